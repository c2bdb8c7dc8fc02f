//! The file with the header beside a volume, and what it is to the start of the data.

use crate::kit::{SIDE, Task, Volume};
use std::fs;
use testkit::{CHEAP, Expect as _, have};

/// The end of a file that is within a sector is not known by the digest of its start.
#[test]
fn files_of_less_than_a_sector_are_copied_once() {
    if !have(&["strace"]) {
        return;
    }
    let command = format!("reencrypt v --encrypt {CHEAP}");
    let wholes = [1, 100, 511, 512, 700].map(|bytes| {
        let mut sandbox = Volume::empty();
        sandbox.plain.truncate(bytes);
        sandbox.write("plain", &sandbox.plain);
        sandbox.write("v", &sandbox.plain);
        sandbox
    });
    for whole in &wholes {
        let sandbox = whole.copy();
        let encrypt = sandbox.our_command(&command);
        let output = sandbox.injected(&encrypt, "unlink,unlinkat", "error=EIO");
        assert!(!output.status.success(), "{output:?}");
        assert!(sandbox.path(SIDE).exists(), "{output:?}");
        sandbox.ours("reencrypt v");
        sandbox.holds("the file beside could not be removed");
    }
    for calls in ["pwrite64", "fdatasync", "unlink,unlinkat"] {
        // Each file has its share of the calls, and half of them are enough.
        for (first, whole) in (1..).step_by(2).zip(&wholes) {
            for at in (first..).step_by(2 * wholes.len()) {
                let sandbox = whole.copy();
                if !sandbox.ours_killed_at(&command, calls, at) {
                    break;
                }
                let when = format!("{} bytes, killed at {calls} {at}", sandbox.plain.len());
                if sandbox.path(SIDE).exists() {
                    // What can be read before it goes on is the same.
                    let (code, said) = sandbox.ends("export v --output out");
                    match code {
                        Some(0) => {
                            let there = sandbox.read("out");
                            assert!(there.starts_with(&sandbox.plain), "{when}");
                        }
                        code => assert_eq!(code, Some(4), "{when}: {said}"),
                    }
                }
                let (code, said) = sandbox.ends(&command);
                // All may have been done but for the exit.
                let done = code == Some(0) || said.contains("volume already");
                assert!(done, "{when}: {said}");
                sandbox.holds(&when);
            }
        }
    }
}

/// Killed before a decryption has begun: the header beside the volume is a copy of its own.
fn decryption_that_has_not_begun() -> Volume {
    let sandbox = Volume::new(Task::Decrypt);
    let volume = sandbox.read("v");
    sandbox.write(SIDE, &volume[..4 << 20]);
    sandbox
}

/// The header beside would not be known for the volume's own any more.
#[test]
fn a_header_that_goes_back_is_not_changed() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = decryption_that_has_not_begun();
    sandbox.write("new", "another passphrase");
    let side = sandbox.read(SIDE);
    sandbox.write("backup", &side);
    for command in [
        &format!("key add v --new-passphrase-file new {CHEAP}"),
        &format!("passwd v --new-passphrase-file new {CHEAP}"),
        "key kill v --key-slot 0 --yes",
        "header restore v --input backup --yes",
        "header repair v",
    ] {
        let said = sandbox.refused("v", 4, command);
        assert!(said.contains("volume reencrypt"), "{command}: {said}");
        assert!(sandbox.read(SIDE) == side, "{command}");
    }
    sandbox.ours("reencrypt v");
    assert!(!sandbox.path(SIDE).exists());
    sandbox.holds("put back");
    sandbox.ours(&format!("key add v --new-passphrase-file new {CHEAP}"));
}

/// One that was changed all the same goes back with its new passphrase.
#[test]
fn a_header_that_was_changed_beside_the_volume_goes_back() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = decryption_that_has_not_begun();
    sandbox.write("new", "another passphrase");
    let add = format!("key add v --header {SIDE} --new-passphrase-file new {CHEAP}");
    sandbox.ours(&add);
    sandbox.ours("reencrypt v");
    assert!(!sandbox.path(SIDE).exists());
    fs::copy(sandbox.path("new"), sandbox.path("line")).unwrap();
    sandbox.holds("by the new passphrase");
    // A volume that was changed itself has what is newer.
    let sandbox = decryption_that_has_not_begun();
    sandbox.add_keyslot();
    sandbox.refused_as_other("v", "reencrypt v");
}

/// The data begin behind more than the process may have in memory.
#[test]
fn a_large_header_goes_back() {
    if !have(&["cryptsetup"]) {
        return;
    }
    const OFFSET: u64 = 256 << 20;
    let sandbox = Volume::empty();
    sandbox.make((OFFSET + (1 << 20)) as usize);
    let format = format!("luksFormat {CHEAP} --offset {} v", OFFSET / 512);
    sandbox.theirs(&format);
    let volume = sandbox.read("v");
    sandbox.write(SIDE, &volume[..OFFSET as usize]);
    let ours = sandbox.our_command("reencrypt v");
    let mut limited = sandbox.command("sh", &["-c", "ulimit -v 500000; exec \"$@\"", "sh"]);
    limited.arg(ours.get_program()).args(ours.get_args());
    limited.succeeds();
    assert!(!sandbox.path(SIDE).exists());
    assert!(sandbox.read("v") == volume);
}

/// The power may be cut while a header goes back, and any part of it may be on the disk.
#[test]
fn a_header_that_went_back_in_part_goes_back() {
    if !have(&["cryptsetup"]) {
        return;
    }
    const COPY: usize = 16 << 10;
    let sandbox = decryption_that_has_not_begun();
    sandbox.write("new", "another passphrase");
    let change = format!("passwd v --header {SIDE} --new-passphrase-file new {CHEAP}");
    sandbox.ours(&change);
    fs::copy(sandbox.path("new"), sandbox.path("line")).unwrap();
    let (old, new) = ["v", SIDE].map(|name| sandbox.read(name)).into();
    let mixed = |from_new: &dyn Fn(usize) -> bool| -> Vec<u8> {
        let mut bytes = old.clone();
        for at in (0..new.len()).step_by(512).filter(|at| from_new(*at)) {
            bytes[at..at + 512].copy_from_slice(&new[at..at + 512]);
        }
        bytes
    };
    let slots = |at: usize| at >= 2 * COPY;
    let states: [&dyn Fn(usize) -> bool; 6] = [
        // As the sectors come.
        &|at| at < 2 * COPY,
        &|at| slots(at) && at % 1024 == 0,
        &slots,
        &|at| slots(at) || (at >= COPY && at % 1024 == 0),
        &|at| at >= COPY,
        &|at| at >= COPY || at % 1024 == 0,
    ];
    for (number, from_new) in states.into_iter().enumerate() {
        let sandbox = sandbox.copy();
        sandbox.write("v", mixed(from_new));
        sandbox.ours("reencrypt v");
        assert!(!sandbox.path(SIDE).exists(), "{number}");
        sandbox.holds(&format!("state {number}"));
    }
}
