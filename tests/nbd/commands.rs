//! What takes a volume's place takes an export's URI.

use crate::sandbox::{Kind, MIB, create, sandbox, start};
use testkit::have;

const PLACE: &str = "nbd+unix:///?socket=back";

/// Everything that is done to a volume where it is.
fn keeps_volumes(kind: Kind) {
    if !kind.is_here() {
        return;
    }
    let sandbox = sandbox();
    sandbox.write_zeros("disk", 20 * MIB);
    let _back = kind.start(&sandbox);
    create(&sandbox, PLACE);
    let cheap = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000";
    let info = sandbox.ok(&format!("volume info {PLACE}"));
    assert!(info.contains("luks2"), "{info}");
    let open = format!("volume open {PLACE} --passphrase-file line");
    assert!(sandbox.ok(&open).contains("aes-xts-plain64"));

    let plain: Vec<u8> = (0..2 * MIB).map(|at| (at * 31 / 7) as u8).collect();
    sandbox.write("plain", &plain);
    let secret = "--passphrase-file line --no-progress";
    sandbox.ok(&format!("volume import {PLACE} --input plain {secret}"));
    let export = format!("volume export {PLACE} --output out {secret} --yes");
    sandbox.ok(&export);
    assert!(sandbox.read("out")[..plain.len()] == plain);

    sandbox.write("new", "another\n");
    let new = "--new-passphrase-file new";
    sandbox.ok(&format!(
        "volume key add {PLACE} --passphrase-file line {new} {cheap}"
    ));
    sandbox.ok(&format!(
        "volume passwd {PLACE} --passphrase-file new --new-passphrase-file line {cheap}"
    ));
    sandbox.ok(&format!(
        "volume key kill {PLACE} --key-slot 1 --passphrase-file line"
    ));
    sandbox.ok(&format!("volume header backup {PLACE} --output saved"));
    sandbox.ok(&format!("volume header restore {PLACE} --input saved"));
    sandbox.ok(&format!("volume header set {PLACE} --label far"));
    sandbox.ok(&format!(
        "volume reencrypt {PLACE} --cipher serpent-xts-plain64 --yes {secret} {cheap}"
    ));
    assert!(sandbox.ok(&open).contains("serpent-xts-plain64"));
    sandbox.ok(&export);
    assert!(sandbox.read("out")[..plain.len()] == plain);
    let short = sandbox.run(&format!("volume resize {PLACE} --to 18MiB --yes"));
    assert_eq!(short.status.code(), Some(2), "an export has its size");

    // All of it is in the server's file, which needs no server.
    if kind == Kind::NbdkitFile {
        sandbox.ok(&format!("volume export disk --output out {secret} --yes"));
        assert!(sandbox.read("out")[..plain.len()] == plain);
    }
}

#[test]
fn volumes_are_kept_on_nbdkits_file() {
    keeps_volumes(Kind::NbdkitFile);
}

#[test]
fn volumes_are_kept_in_nbdkits_memory() {
    keeps_volumes(Kind::NbdkitMemory);
}

#[test]
fn volumes_are_kept_on_qemu_nbd() {
    keeps_volumes(Kind::Qemu);
}

#[test]
fn volumes_are_kept_on_our_own_server() {
    keeps_volumes(Kind::Ours);
}

/// The header here, the data there.
#[test]
fn a_header_may_be_elsewhere() {
    let sandbox = sandbox();
    sandbox.write_zeros("disk", 4 * MIB);
    let _back = Kind::Ours.start(&sandbox);
    let cheap = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000 --passphrase-file line";
    sandbox.ok(&format!("volume create {PLACE} --header head {cheap}"));
    let opened = sandbox.ok(&format!(
        "volume open {PLACE} --header head --passphrase-file line"
    ));
    assert!(opened.contains("4194304 bytes from 0"), "{opened}");
    assert_eq!(
        sandbox
            .run(&format!("volume open {PLACE} --passphrase-file line"))
            .status
            .code(),
        Some(2)
    );
}

/// Requests that are longer than a server takes go in parts, also where many are in flight.
#[test]
fn servers_that_take_little_at_once() {
    if !have(&["nbdkit"]) {
        return;
    }
    let sandbox = sandbox();
    let little = sandbox.command(
        "nbdkit",
        "--foreground --unix back --filter=blocksize-policy memory 40M blocksize-minimum=512 \
         blocksize-preferred=4096 blocksize-maximum=64K blocksize-error-policy=error",
    );
    let _back = start(little, &sandbox.path("back"));
    sandbox.ok(&format!(
        "run --at {PLACE} --size 34MiB --quick --repeat 2 --cipher aes-xts-plain64 \
             --system builtin --no-progress --store runs.db"
    ));
    create(&sandbox, &format!("{PLACE} --yes"));
    let data: Vec<u8> = (0..8_u32 << 20)
        .map(|at| (at >> 9) as u8 ^ at as u8)
        .collect();
    sandbox.write("data", &data);
    let volume = |what: &str| format!("volume {what} {PLACE} --passphrase-file line --no-progress");
    sandbox.ok(&format!("{} --input data --yes", volume("import")));
    sandbox.ok(&format!("{} --output out", volume("export")));
    assert!(sandbox.read("out").starts_with(&data));
}

#[test]
fn storage_behind_nbd_is_measured() {
    if !have(&["nbdkit"]) {
        return;
    }
    let sandbox = sandbox();
    let _back = Kind::NbdkitMemory.start(&sandbox);
    let store = "--store runs.db";
    let run = format!(
        "run --at {PLACE} --size 34MiB --quick --repeat 2 --cipher aes-xts-plain64 \
         --system none --system builtin --system qemu --no-progress --json out.json {store}"
    );
    sandbox.ok(&run);
    let record = sandbox.read_json("out.json");
    let trials = record["trials"].as_array().unwrap();
    let systems: Vec<_> = trials
        .iter()
        .map(|trial| trial["system"].as_str().unwrap())
        .collect();
    assert!(
        systems.contains(&"none") && systems.contains(&"builtin"),
        "{systems:?}"
    );
    for trial in trials {
        assert_eq!(trial["device"]["kind"], "nbd");
        assert_eq!(trial["device"]["engine"], "nbd");
        assert!(trial["throughput_mb_s"]["median"].as_f64().unwrap() > 0.0);
    }
    // What is there now is not overwritten again without a word.
    let again = sandbox.run(&run);
    assert_eq!(again.status.code(), Some(4));
    let files = sandbox.run(&format!("run --at {PLACE} --tier fs {store}"));
    assert_eq!(files.status.code(), Some(2));
}
