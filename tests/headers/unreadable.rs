//! A disk that does not give some of its bytes: one good copy is enough.

use crate::sandbox::{create, ends, opens, sandbox};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use testkit::{CHEAP, Running, Sandbox, have, wait_until};

const PLACE: &str = "nbd+unix:///?socket=back";

/// nbdkit over `v`, which cannot read a range until it is written: so disks do it
/// that have sectors to spare.
fn served(sandbox: &Sandbox, from: u64, to: u64) -> Running {
    let _ = std::fs::remove_file(sandbox.path("back"));
    let _ = std::fs::remove_file(sandbox.path("healed"));
    let folder = sandbox.path("");
    let folder = folder.display();
    let touches = format!(r#"[ "$4" -lt {to} ] && [ $(($4 + $3)) -gt {from} ]"#);
    let read = format!(
        r#"pread=cd {folder}; if [ ! -e healed ] && {touches}; then echo EIO it is bad >&2; exit 1; fi;
               dd if=v skip="$4" count="$3" iflag=count_bytes,skip_bytes status=none"#
    );
    let write = format!(
        r#"pwrite=cd {folder}; if {touches}; then touch healed; fi;
               dd of=v seek="$4" oflag=seek_bytes conv=notrunc status=none"#
    );
    let mut command = sandbox.command("nbdkit", "--foreground --unix back eval");
    command
        .arg(format!("get_size=stat -c %s {folder}/v"))
        .args([&read, &write])
        .args(["flush=true", "can_write=true", "can_flush=true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let back = Running::start(&mut command);
    wait_until("nbdkit does not begin", || {
        UnixStream::connect(sandbox.path("back")).is_ok()
    });
    back
}

#[test]
fn one_copy_that_can_be_read_is_enough() {
    if !have(&["nbdkit"]) {
        return;
    }
    const KIB: u64 = 1 << 10;
    let vera = "--type veracrypt --veracrypt-pim 1 --hash sha512";
    for (kind, from, to) in [
        ("luks2", 0, 4 * KIB),
        ("luks2", 0, 16 * KIB),
        ("luks2", 8 * KIB, 12 * KIB),
        ("luks2", 16 * KIB, 32 * KIB),
        ("luks2", 16 * KIB, 20 * KIB),
        ("veracrypt", 0, 512),
        ("veracrypt", (2 << 20) - 128 * KIB, (2 << 20) - 127 * KIB),
    ] {
        let sandbox = sandbox();
        let (options, opened) = match kind {
            "veracrypt" => {
                sandbox.volume(&format!(
                    "create v {vera} --size 2MiB --quick --no-progress --key-file one"
                ));
                (
                    format!("{vera} --key-file one"),
                    format!("open v {vera} --key-file one"),
                )
            }
            _ => {
                create(&sandbox, "v", kind);
                (String::new(), "open v --key-file one".to_owned())
            }
        };
        let sound = sandbox.read("v");
        let back = served(&sandbox, from, to);
        let place = format!("{kind} without {from} to {to}");
        let open = match kind {
            "veracrypt" => format!("open {PLACE} {options}"),
            _ => format!("open {PLACE} --key-file one"),
        };
        sandbox.volume(&open);
        if kind == "luks2" {
            let info = ends(&sandbox, 0, &format!("info {PLACE}"));
            let which = if from < 16 * KIB { "second" } else { "first" };
            assert!(
                info.contains(&format!("only the {which}")),
                "{place}: {info}"
            );
        }
        assert!(sandbox.read("v") == sound, "{place}");
        let said = ends(&sandbox, 0, &format!("header repair {PLACE} {options}"));
        assert!(!said.contains("are good\n"), "{place}: {said}");
        drop(back);
        sandbox.volume(&opened);
        if kind == "luks2" {
            assert!(opens(&sandbox, "v", "one"), "{place}");
            assert!(ends(&sandbox, 0, "info v").contains("both"), "{place}");
        }
    }
}

/// A keyslot that is not needed need not be readable; one that is fails as a disk
/// does, and not as if the passphrase were wrong.
#[test]
fn a_keyslot_that_cannot_be_read_does_not_close_the_others() {
    if !have(&["nbdkit"]) {
        return;
    }
    for (kind, material) in [("luks2", 32 << 10), ("luks1", 4096)] {
        let sandbox = sandbox();
        create(&sandbox, "v", kind);
        sandbox.volume(&format!(
            "key add v {CHEAP} --key-file one --new-key-file two"
        ));
        let _back = served(&sandbox, material, material + 4096);
        let said = ends(&sandbox, 0, &format!("open {PLACE} --key-file two"));
        assert!(said.contains("keyslot     1"), "{kind}: {said}");
        ends(&sandbox, 1, &format!("open {PLACE} --key-file one"));
    }
}
