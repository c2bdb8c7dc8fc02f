//! What cannot be opened over NBD is said in two lines, by its exit code.

use crate::sandbox::{Kind, MIB, create, desk, start};
use std::fs;
use testkit::{Sandbox, have};

fn refused(desk: &Sandbox, code: i32, arguments: &str, words: &str) {
    let output = desk.run(arguments);
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
    let desk = desk();
    desk.write_zeros("disk", 20 * MIB);
    let _back = Kind::Ours.start(&desk);
    let unreachable = "cannot reach an NBD server";
    for (code, place, words) in [
        (2, "nbd://", "is no NBD URI"),
        (2, "nbd+unix:///", "names no socket"),
        (
            2,
            "nbd+unix:///?socket=back&colour=red",
            "a parameter of it",
        ),
        (2, "nbd+ssh://host/disk", "scheme"),
        (2, "nbd://user@host/", "users"),
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
            refused(&desk, code, &command, words);
        }
    }
    let place = "nbd+unix:///?socket=back";
    refused(
        &desk,
        2,
        &format!("volume open {place} --passphrase-file line"),
        "signature",
    );
    refused(
        &desk,
        2,
        &format!("volume umount {place}"),
        "neither mounted nor served",
    );
    refused(
        &desk,
        2,
        &format!("run --at {place} --size 1GiB --store runs.db"),
        "holds",
    );
    refused(
        &desk,
        2,
        &format!("advise --at {place} --store runs.db"),
        "not for NBD exports",
    );
    create(&desk, place);
    refused(
        &desk,
        4,
        &format!("volume create {place} --passphrase-file line"),
        "a LUKS",
    );
    refused(
        &desk,
        4,
        &format!("run --at {place} --size 40MB --store runs.db"),
        "a LUKS",
    );
    desk.write("wrong", "wrong\n");
    refused(
        &desk,
        3,
        &format!("volume open {place} --passphrase-file wrong"),
        "keyslot",
    );
    refused(
        &desk,
        2,
        &format!("volume reencrypt {place} --decrypt --passphrase-file line"),
        "no place for a header",
    );
    assert!(!desk.path("front").exists());
}

#[test]
fn an_export_that_is_only_read_is_not_written() {
    if !have(&["nbdkit"]) {
        return;
    }
    let desk = desk();
    desk.write_zeros("disk", 20 * MIB);
    create(&desk, "disk --yes");
    let command = desk.command("nbdkit", "--foreground --readonly --unix back file disk");
    let _back = start(command, &desk.path("back"));
    let place = "nbd+unix:///?socket=back";
    let only = "open for reading only";
    refused(
        &desk,
        2,
        &format!("volume create {place} --yes --passphrase-file line"),
        only,
    );
    refused(
        &desk,
        2,
        &format!("volume passwd {place} --passphrase-file line"),
        only,
    );
    refused(
        &desk,
        2,
        &format!("volume serve {place} --passphrase-file line --nbd front"),
        only,
    );
    refused(
        &desk,
        2,
        &format!("run --at {place} --size 40MB --yes --store runs.db"),
        only,
    );
    let opened = desk.run(&format!("volume open {place} --passphrase-file line"));
    assert!(opened.status.success());
}

#[test]
fn tls_that_is_not_there_is_said() {
    let desk = desk();
    desk.write_zeros("disk", 20 * MIB);
    let _back = Kind::Ours.start(&desk);
    fs::create_dir(desk.path("pki")).unwrap();
    let place = "nbds+unix:///?socket=back";
    let open = |place: &str| format!("volume open {place} --passphrase-file line");
    refused(&desk, 2, &open(place), "tls-certificates");
    if cfg!(feature = "tls") {
        refused(
            &desk,
            2,
            &open(&format!("{place}&tls-certificates=pki")),
            "ca-cert.pem",
        );
    } else {
        refused(
            &desk,
            1,
            &open(&format!("{place}&tls-certificates=pki")),
            "without TLS",
        );
    }
}

#[test]
fn names_are_as_long_as_the_protocol_has_them() {
    let desk = desk();
    desk.write_zeros("disk", 20 * MIB);
    create(&desk, "disk --yes");
    let name = "x".repeat(4097);
    refused(
        &desk,
        2,
        &format!("volume serve disk --nbd front --passphrase-file line --name {name}"),
        "4097 bytes",
    );
}
