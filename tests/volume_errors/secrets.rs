//! Secrets that do not fit.

use crate::{Refuses as _, sandbox};

const NO_FIT: &str = "no keyslot opens with this passphrase or key file";
const CHECK: &str =
    "Check the passphrase and its keyboard layout, or give the right --key-file or --key-slot.";

#[test]
fn secrets_that_do_not_fit() {
    sandbox().refuses(&[
        ("open luks1 --passphrase-file wrong", 3, NO_FIT, CHECK),
        ("open luks2 --passphrase-file wrong", 3, NO_FIT, CHECK),
        (
            "export luks2 --passphrase-file wrong --output out",
            3,
            NO_FIT,
            CHECK,
        ),
        (
            "import luks2 --passphrase-file wrong --input noise --yes",
            3,
            NO_FIT,
            CHECK,
        ),
        (
            "passwd luks2 --passphrase-file wrong --new-passphrase-file pass",
            3,
            NO_FIT,
            CHECK,
        ),
        (
            "key add luks1 --passphrase-file wrong --new-passphrase-file pass",
            3,
            NO_FIT,
            CHECK,
        ),
        ("key kill luks1 --passphrase-file wrong", 3, NO_FIT, CHECK),
        ("reencrypt luks2 --passphrase-file wrong", 3, NO_FIT, CHECK),
        ("open luks2 --key-file key", 3, NO_FIT, CHECK),
        (
            "open luks2 --volume-key-file key",
            3,
            "this is not the volume key of this volume",
            "Give the --volume-key-file of this volume.",
        ),
        (
            "open luks2 --volume-key-file key --passphrase-file pass",
            2,
            "--passphrase-file and --volume-key-file are two secrets",
            "Give the one that opens the volume.",
        ),
        (
            "open luks1 --volume-key-file key",
            3,
            "this is not the volume key of this volume",
            "Give the --volume-key-file of this volume.",
        ),
        (
            "open luks2 --passphrase-file pass --key-slot 5",
            2,
            "keyslot 5 holds no key",
            "`cryptmark volume info` lists the keyslots.",
        ),
        (
            "open luks1 --passphrase-file pass --key-slot 9",
            2,
            "keyslot 9 holds no key",
            "`cryptmark volume info` lists the keyslots.",
        ),
        (
            "open luks2 --passphrase-file long",
            2,
            "the passphrase is longer than 65536 bytes",
            "Check that it is the file with the passphrase.",
        ),
        (
            "open luks2 --passphrase-file missing",
            2,
            "cannot read missing: No such file or directory (os error 2)",
            "Check the path and its permissions.",
        ),
        (
            "open luks2 --passphrase-file folder",
            2,
            "cannot read folder: Is a directory (os error 21)",
            "Check the path and its permissions.",
        ),
        (
            "open luks2 --key-file nothing",
            2,
            "the key file nothing is empty",
            "Check that it is the right file.",
        ),
        (
            "open luks2 --key-file missing",
            2,
            "cannot read missing: No such file or directory (os error 2)",
            "Check the path and its permissions.",
        ),
        (
            "open luks2 --key-file key --keyfile-offset 65",
            2,
            "key ends before the bytes that were asked for",
            "Check that it is whole, and --keyfile-offset and --keyfile-size.",
        ),
        (
            "open luks2 --key-file key --keyfile-offset 64",
            2,
            "the key file key is empty",
            "Check that it is the right file.",
        ),
        (
            "open luks2 --key-file key --keyfile-size 65",
            2,
            "key ends before the bytes that were asked for",
            "Check that it is whole, and --keyfile-offset and --keyfile-size.",
        ),
        (
            "open luks2 --key-file key --keyfile-size 18446744073709551615",
            2,
            "key ends before the bytes that were asked for",
            "Check that it is whole, and --keyfile-offset and --keyfile-size.",
        ),
        (
            "open luks2 --key-file key --keyfile-size 0",
            2,
            "the key file key is empty",
            "Check that it is the right file.",
        ),
        (
            "open noise --type plain --key-size 512 --key-file key-cut",
            2,
            "the key file has 63 bytes, and the key needs 64",
            "Check that it is the right file, that it is complete, and that its offset and size \
             are right.",
        ),
        (
            "open noise --type loopaes --key-file key-cut --key-size 24",
            2,
            "aes-cbc-plain64 cannot take a key of 24 bits",
            "Use one of: 128, 192, 256 bits.",
        ),
        (
            "open noise --type loopaes --passphrase-file pass",
            2,
            "a loop-AES volume cannot be opened with a passphrase",
            "Give a --key-file of 1, 64 or 65 lines.",
        ),
    ]);
}

/// It is not the keyboard if nothing was typed, or if a newline is part of the key.
#[test]
fn secrets_that_are_not_what_they_look_like() {
    let line = "no keyslot opens with this key file, which is a line of text";
    let remedy = "The newline at its end counts as part of the key. If the file holds a \
                  passphrase, give it with --passphrase-file.";
    let nothing = "no keyslot opens with an empty passphrase";
    let give = "Give the passphrase: the line that was read is empty.";
    sandbox().refuses(&[
        ("open luks1 --key-file pass", 3, line, remedy),
        ("open luks2 --key-file pass", 3, line, remedy),
        ("export luks2 --key-file pass --output out", 3, line, remedy),
        (
            "key add luks2 --key-file pass --new-passphrase-file wrong",
            3,
            line,
            remedy,
        ),
        ("reencrypt luks2 --key-file pass", 3, line, remedy),
        // Standard input is empty, or the file.
        ("open luks1", 3, nothing, give),
        ("open luks2", 3, nothing, give),
        ("open luks2 --passphrase-file nothing", 3, nothing, give),
    ]);
}

#[test]
fn keyslots_that_are_none_or_taken() {
    let add = "key add {} --passphrase-file pass --new-passphrase-file wrong --new-key-slot";
    let (add1, add2) = (add.replace("{}", "luks1"), add.replace("{}", "luks2"));
    let another = "Choose another --new-key-slot, or omit it.";
    let free = "Choose a free --new-key-slot, or omit it. `cryptmark volume info` shows the \
                keyslots in use.";
    sandbox().refuses(&[
        (
            &format!("{add1} 8"),
            2,
            "there is no keyslot 8: the highest number for this format is 7",
            another,
        ),
        (
            &format!("{add2} 40"),
            2,
            "there is no keyslot 40: the highest number for this format is 31",
            another,
        ),
        (&format!("{add1} 0"), 2, "keyslot 0 is in use", free),
        (&format!("{add2} 0"), 2, "keyslot 0 is in use", free),
    ]);
}

/// A source of random numbers gives other bytes at each reading, and so might any device.
#[test]
fn no_device_is_a_secret() {
    const WHAT: &str = "/dev/urandom is a device, which may give other bytes at the next reading";
    const FILE: &str = "Make a file of its bytes, and give that: `head -c 64 /dev/urandom >FILE`.";
    let of = |command| (command, 2, WHAT, FILE);
    sandbox().refuses(&[
        of("open luks2 --key-file /dev/urandom --keyfile-size 32"),
        of("open luks1 --passphrase-file /dev/urandom"),
        of("open luks2 --volume-key-file /dev/urandom"),
        of("create new --size 20M --key-file /dev/urandom --keyfile-size 32"),
        of("create new --size 20M --passphrase-file /dev/urandom"),
        of("create new --type veracrypt --size 4M --passphrase-file pass --keyfile /dev/urandom"),
        of("reencrypt noise --encrypt --key-file /dev/urandom --keyfile-size 32 --yes"),
        of("passwd luks2 --passphrase-file pass --new-passphrase-file /dev/urandom"),
        of("passwd luks1 --passphrase-file pass --new-key-file /dev/urandom"),
        of("key add luks2 --passphrase-file pass --new-key-file /dev/urandom"),
    ]);
}
