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
        let mut desk = Volume::empty();
        desk.plain.truncate(bytes);
        desk.write("plain", &desk.plain);
        desk.write("v", &desk.plain);
        desk
    });
    for whole in &wholes {
        let desk = whole.copy();
        let encrypt = desk.our_command(&command);
        let output = desk.injected(&encrypt, "unlink,unlinkat", "error=EIO");
        assert!(!output.status.success(), "{output:?}");
        assert!(desk.path(SIDE).exists(), "{output:?}");
        desk.ours("reencrypt v");
        desk.holds("the file beside could not be removed");
    }
    for calls in ["pwrite64", "fdatasync", "unlink,unlinkat"] {
        // Each file has its share of the calls, and half of them are enough.
        for (first, whole) in (1..).step_by(2).zip(&wholes) {
            for at in (first..).step_by(2 * wholes.len()) {
                let desk = whole.copy();
                if !desk.ours_killed_at(&command, calls, at) {
                    break;
                }
                let when = format!("{} bytes, killed at {calls} {at}", desk.plain.len());
                if desk.path(SIDE).exists() {
                    // What can be read before it goes on is the same.
                    let (code, said) = desk.ends("export v --output out");
                    match code {
                        Some(0) => {
                            let there = desk.read("out");
                            assert!(there.starts_with(&desk.plain), "{when}");
                        }
                        code => assert_eq!(code, Some(4), "{when}: {said}"),
                    }
                }
                let (code, said) = desk.ends(&command);
                // All may have been done but for the exit.
                let done = code == Some(0) || said.contains("volume already");
                assert!(done, "{when}: {said}");
                desk.holds(&when);
            }
        }
    }
}

/// Killed before a decryption has begun: the header beside the volume is a copy of its own.
fn decryption_that_has_not_begun() -> Volume {
    let desk = Volume::new(Task::Decrypt);
    let volume = desk.read("v");
    desk.write(SIDE, &volume[..4 << 20]);
    desk
}

/// The header beside would not be known for the volume's own any more.
#[test]
fn a_header_that_goes_back_is_not_changed() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let desk = decryption_that_has_not_begun();
    desk.write("new", "another passphrase");
    let side = desk.read(SIDE);
    desk.write("backup", &side);
    for command in [
        &format!("key add v --new-passphrase-file new {CHEAP}"),
        &format!("passwd v --new-passphrase-file new {CHEAP}"),
        "key kill v --key-slot 0 --yes",
        "header restore v --input backup --yes",
        "header repair v",
    ] {
        let said = desk.refused("v", 4, command);
        assert!(said.contains("volume reencrypt"), "{command}: {said}");
        assert!(desk.read(SIDE) == side, "{command}");
    }
    desk.ours("reencrypt v");
    assert!(!desk.path(SIDE).exists());
    desk.holds("put back");
    desk.ours(&format!("key add v --new-passphrase-file new {CHEAP}"));
}

/// One that was changed all the same goes back with its new passphrase.
#[test]
fn a_header_that_was_changed_beside_the_volume_goes_back() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let desk = decryption_that_has_not_begun();
    desk.write("new", "another passphrase");
    let add = format!("key add v --header {SIDE} --new-passphrase-file new {CHEAP}");
    desk.ours(&add);
    desk.ours("reencrypt v");
    assert!(!desk.path(SIDE).exists());
    fs::copy(desk.path("new"), desk.path("line")).unwrap();
    desk.holds("by the new passphrase");
    // A volume that was changed itself has what is newer.
    let desk = decryption_that_has_not_begun();
    desk.add_keyslot();
    desk.refused_as_other("v", "reencrypt v");
}

/// The data begin behind more than the process may have in memory.
#[test]
fn a_large_header_goes_back() {
    if !have(&["cryptsetup"]) {
        return;
    }
    const OFFSET: u64 = 256 << 20;
    let desk = Volume::empty();
    desk.make((OFFSET + (1 << 20)) as usize);
    let format = format!("luksFormat {CHEAP} --offset {} v", OFFSET / 512);
    desk.theirs(&format);
    let volume = desk.read("v");
    desk.write(SIDE, &volume[..OFFSET as usize]);
    let ours = desk.our_command("reencrypt v");
    let mut limited = desk.command("sh", &["-c", "ulimit -v 500000; exec \"$@\"", "sh"]);
    limited.arg(ours.get_program()).args(ours.get_args());
    limited.succeeds();
    assert!(!desk.path(SIDE).exists());
    assert!(desk.read("v") == volume);
}

/// The power may be cut while a header goes back, and any part of it may be on the disk.
#[test]
fn a_header_that_went_back_in_part_goes_back() {
    if !have(&["cryptsetup"]) {
        return;
    }
    const COPY: usize = 16 << 10;
    let desk = decryption_that_has_not_begun();
    desk.write("new", "another passphrase");
    let change = format!("passwd v --header {SIDE} --new-passphrase-file new {CHEAP}");
    desk.ours(&change);
    fs::copy(desk.path("new"), desk.path("line")).unwrap();
    let (old, new) = ["v", SIDE].map(|name| desk.read(name)).into();
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
        let desk = desk.copy();
        desk.write("v", mixed(from_new));
        desk.ours("reencrypt v");
        assert!(!desk.path(SIDE).exists(), "{number}");
        desk.holds(&format!("state {number}"));
    }
}
