//! What cannot be opened over NBD is said in two lines, by its exit code.

use crate::sandbox::{Kind, MIB, create, sandbox, start};
use std::fs;
use testkit::{Sandbox, have};

fn refused(sandbox: &Sandbox, code: i32, arguments: &str, words: &str) {
    let output = sandbox.run(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments}\n{said}");
    assert!(
        said.starts_with("error: ") && said.lines().count() >= 2,
        "{said}"
    );
    assert!(said.contains(words), "{arguments}: {said}");
}

#[test]
fn bad_input_is_told() {
    let sandbox = sandbox();
    sandbox.write_zeros("disk", 20 * MIB);
    let _back = Kind::Ours.start(&sandbox);
    let unreachable = "cannot reach an NBD server";
    for (code, place, words) in [
        (2, "nbd://", "isn't an NBD URI"),
        (2, "nbd+unix:///", "names no socket"),
        (
            2,
            "nbd+unix:///?socket=back&colour=red",
            "a parameter other than",
        ),
        (2, "nbd+ssh://host/disk", "scheme"),
        (2, "nbd://user@host/", "user names"),
        (1, "nbd+unix:///?socket=absent", unreachable),
        (1, "nbd+unix:///?socket=line", unreachable),
        // Nobody listens there, and nobody is called that.
        (1, "nbd://localhost:1/disk", unreachable),
        (1, "nbd://nowhere.invalid/disk", unreachable),
        (2, "nbd+unix:///other?socket=back", "has no export `other`"),
    ] {
        for command in [
            format!("volume open {place} --passphrase-file line"),
            format!("volume create {place} --passphrase-file line"),
            format!("volume serve {place} --passphrase-file line --nbd front"),
            format!("run --at {place} --size 40MB --quick --store runs.db"),
        ] {
            refused(&sandbox, code, &command, words);
        }
    }
    let place = "nbd+unix:///?socket=back";
    refused(
        &sandbox,
        2,
        &format!("volume open {place} --passphrase-file line"),
        "signature",
    );
    refused(
        &sandbox,
        2,
        &format!("volume umount {place}"),
        "neither mounted nor served",
    );
    refused(
        &sandbox,
        2,
        &format!("run --at {place} --size 1GiB --store runs.db"),
        "but the plan needs",
    );
    refused(
        &sandbox,
        2,
        &format!("advise --at {place} --store runs.db"),
        "not for NBD exports",
    );
    create(&sandbox, place);
    refused(
        &sandbox,
        4,
        &format!("volume create {place} --passphrase-file line"),
        "a LUKS",
    );
    refused(
        &sandbox,
        4,
        &format!("run --at {place} --size 40MB --store runs.db"),
        "a LUKS",
    );
    sandbox.write("wrong", "wrong\n");
    refused(
        &sandbox,
        3,
        &format!("volume open {place} --passphrase-file wrong"),
        "keyslot",
    );
    refused(
        &sandbox,
        2,
        &format!("volume reencrypt {place} --decrypt --passphrase-file line"),
        "a header beside a device or an export",
    );
    assert!(!sandbox.path("front").exists());
}

#[test]
fn an_export_that_is_only_read_is_not_written() {
    if !have(&["nbdkit"]) {
        return;
    }
    let sandbox = sandbox();
    sandbox.write_zeros("disk", 20 * MIB);
    create(&sandbox, "disk --yes");
    let command = sandbox.command("nbdkit", "--foreground --readonly --unix back file disk");
    let _back = start(command, &sandbox.path("back"));
    let place = "nbd+unix:///?socket=back";
    let only = "open for reading only";
    refused(
        &sandbox,
        2,
        &format!("volume create {place} --yes --passphrase-file line"),
        only,
    );
    refused(
        &sandbox,
        2,
        &format!("volume passwd {place} --passphrase-file line"),
        only,
    );
    refused(
        &sandbox,
        2,
        &format!("volume serve {place} --passphrase-file line --nbd front"),
        only,
    );
    refused(
        &sandbox,
        2,
        &format!("run --at {place} --size 40MB --yes --store runs.db"),
        only,
    );
    let opened = sandbox.run(&format!("volume open {place} --passphrase-file line"));
    assert!(opened.status.success());
}

#[test]
fn tls_that_is_not_there_is_said() {
    let sandbox = sandbox();
    sandbox.write_zeros("disk", 20 * MIB);
    let _back = Kind::Ours.start(&sandbox);
    fs::create_dir(sandbox.path("pki")).unwrap();
    let place = "nbds+unix:///?socket=back";
    let open = |place: &str| format!("volume open {place} --passphrase-file line");
    refused(&sandbox, 2, &open(place), "tls-certificates");
    if cfg!(feature = "tls") {
        refused(
            &sandbox,
            2,
            &open(&format!("{place}&tls-certificates=pki")),
            "ca-cert.pem",
        );
    } else {
        refused(
            &sandbox,
            1,
            &open(&format!("{place}&tls-certificates=pki")),
            "without TLS",
        );
    }
}

#[test]
fn names_are_as_long_as_the_protocol_has_them() {
    let sandbox = sandbox();
    sandbox.write_zeros("disk", 20 * MIB);
    create(&sandbox, "disk --yes");
    let name = "x".repeat(4097);
    refused(
        &sandbox,
        2,
        &format!("volume serve disk --nbd front --passphrase-file line --name {name}"),
        "4097 bytes",
    );
}
