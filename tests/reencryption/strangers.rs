//! A header or a journal in a file of its own, and data that are not those with which it began:
//! another volume's, or put back from a backup.

use crate::kit::{By, SIDE, Task, Volume};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::Command;
use testkit::{CHEAP, have};

#[test]
fn a_volume_that_was_put_back_is_not_decrypted_twice() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    let mut refusals = 0;
    for at in 1..40 {
        let desk = Volume::new(Task::Decrypt);
        fs::copy(desk.path("v"), desk.path("backup")).unwrap();
        let ended = !desk.ours_killed_at("reencrypt v --decrypt", "pwrite64", at);
        if ended {
            break;
        }
        if !desk.path(SIDE).exists() {
            continue;
        }
        fs::copy(desk.path("v"), desk.path("killed")).unwrap();
        fs::copy(desk.path("backup"), desk.path("v")).unwrap();
        // Before anything was copied, the volume is what it was.
        let (code, said) = desk.ends("export v --output out");
        match code {
            Some(0) => assert!(desk.read("out").starts_with(&desk.plain)),
            code => {
                assert_eq!(code, Some(4), "{at}: {said}");
                desk.refused_as_other("v", "reencrypt v --decrypt");
                refusals += 1;
            }
        }
        fs::copy(desk.path("killed"), desk.path("v")).unwrap();
        desk.ours("reencrypt v --decrypt");
        assert!(desk.is_plain(), "{at}");
    }
    assert!(refusals > 0, "no kill came after data was copied");
}

/// Killed when the header is before the data, and the file with it still there.
#[test]
fn data_that_were_put_back_are_not_overwritten() {
    if !have(&["strace"]) {
        return;
    }
    let desk = Volume::new(Task::Encrypt);
    assert!(desk.ours_killed_at("reencrypt v --encrypt", "unlink,unlinkat", 1));
    assert!(desk.path(SIDE).exists());
    let killed = desk.read("v");
    // Other data of the same length, and shorter data.
    let mut other = killed.clone();
    other[100] ^= 1;
    desk.write("v", &other);
    desk.refused_as_other("v", "reencrypt v --encrypt");
    desk.write("v", &other[..1 << 20]);
    desk.refused_as_other("v", "reencrypt v --encrypt");
    let said = desk.refused("v", 4, "create v --yes");
    assert!(said.contains("has the header of a reencryption"), "{said}");
    // The data themselves can be encrypted, and what was begun goes on.
    for there in [&desk.plain, &killed] {
        desk.write("v", there);
        let copy = desk.copy();
        copy.ours("reencrypt v --encrypt");
        copy.holds("put back");
    }
}

/// What fails before it has begun has not made the file longer.
#[test]
fn an_encryption_that_cannot_begin_leaves_the_file_as_it_is() {
    let desk = Volume::new(Task::Encrypt);
    symlink("/nowhere", desk.path(SIDE)).unwrap();
    let (code, said) = desk.ends("reencrypt v --encrypt");
    assert_eq!(code, Some(4), "{said}");
    assert!(desk.read("v") == desk.plain);
    let long = "a".repeat(245);
    fs::rename(desk.path("v"), desk.path(&long)).unwrap();
    let (code, said) = desk.ends(&format!("reencrypt {long} --encrypt"));
    assert_eq!(code, Some(1), "{said}");
    assert!(desk.read(&long) == desk.plain);
}

/// The second copy of the header would be taken for the header, and the data for damage.
#[test]
fn no_header_is_left_where_data_move() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    let desk = Volume::empty();
    desk.make(18 << 20);
    desk.theirs(&format!(
        "luksFormat {CHEAP} --luks2-metadata-size 4m --luks2-keyslots-size 8m --offset 32768 v"
    ));
    let small = &desk.plain[..2 << 20];
    desk.write("small", small);
    desk.ours("import v --input small --yes");
    let by_link = desk.path("link");
    symlink("v", &by_link).unwrap();
    // It is one volume by any of its names.
    assert!(desk.ours_killed_at("reencrypt link --decrypt", "pwrite64", 12));
    assert!(desk.path(SIDE).exists());
    let before = desk.read("v");
    let dump = desk.their_command("luksDump v").output().unwrap();
    assert!(!dump.status.success());
    assert!(desk.read("v") == before);
    desk.ours("reencrypt v --decrypt");
    assert!(desk.read("v") == small);
}

/// All of the data is within what moves first, and the file ends later.
#[test]
fn little_data_before_a_tail_are_decrypted() {
    let desk = Volume::empty();
    desk.make((16 << 20) + (1 << 20));
    desk.ours(&format!("create v --sector-size 4096 {CHEAP} --yes"));
    let small = &desk.plain[..1 << 20];
    desk.write("small", small);
    desk.ours("import v --input small --yes");
    let file = File::options().write(true).open(desk.path("v")).unwrap();
    let length = file.metadata().unwrap().len();
    // Sectors that nobody wrote, and a few bytes that somebody may need.
    file.set_len(length + 1024).unwrap();
    let copy = desk.copy();
    copy.ours("reencrypt v --decrypt");
    assert!(fs::read(copy.path("v")).unwrap() == small);
    file.set_len(length + 1000).unwrap();
    drop(file);
    let mut bytes = desk.read("v");
    bytes[length as usize..].fill(7);
    desk.write("v", bytes);
    let said = desk.refused("v", 4, "reencrypt v --decrypt");
    assert!(said.contains("bytes behind the data"), "{said}");
    desk.ours("reencrypt v --decrypt --yes");
    assert!(desk.read("v") == small);
}

/// The same header for another file: as soon as anything is encrypted, it goes with no other.
/// While the start of the data is being worked on, the header itself has what it was.
#[test]
fn a_detached_header_encrypts_the_file_with_which_it_began() {
    if !have(&["strace"]) {
        return;
    }
    // More than is worked on at a time.
    const LENGTH: usize = 20 << 20;
    let (mut at_the_start, mut behind) = (0, 0);
    for at in 1..60 {
        let desk = Volume::new(Task::EncryptDetached);
        let file = File::options().write(true).open(desk.path("v")).unwrap();
        file.set_len(LENGTH as u64).unwrap();
        let encrypt = format!("reencrypt v --encrypt --header h {CHEAP}");
        if !desk.ours_killed_at(&encrypt, "fdatasync", at) {
            break;
        }
        if desk.is_plain() || !desk.is_begun() {
            continue;
        }
        let metadata: Value = serde_json::from_str(&desk.metadata()).unwrap();
        let first = &metadata["segments"]["0"]["flags"];
        let count = match first.to_string().contains("in-reencryption") {
            true => &mut at_the_start,
            false => &mut behind,
        };
        *count += 1;
        // Once of each kind is enough.
        if *count > 1 {
            continue;
        }
        let mut other = desk.plain.clone();
        other[..4096].fill(9);
        other.resize(LENGTH, 0);
        desk.write("other", &other);
        for command in [
            "reencrypt other --header h",
            "export other --header h --output -",
        ] {
            desk.refused_as_other("other", command);
        }
        // What they are known by stays until then.
        let serve = "serve v --header h --nbd s.sock --daemon";
        let said = desk.refused("v", 4, serve);
        assert!(said.contains("--read-only"), "{said}");
        desk.ours("reencrypt v --header h");
        desk.holds("the file itself");
    }
    assert!(at_the_start > 0 && behind > 0, "{at_the_start} {behind}");
}

const VERACRYPT: &str = "--type veracrypt --hash sha512 --veracrypt-pim 1";

/// A VeraCrypt volume and its journal: neither goes on with another.
#[test]
fn a_journal_of_another_format_belongs_to_its_volume() {
    if !have(&["strace"]) {
        return;
    }
    let desk = Volume::empty();
    for name in ["v", "other"] {
        desk.ours(&format!(
            "create {name} {VERACRYPT} --size 16MiB --quick --yes"
        ));
        desk.ours(&format!("import {name} {VERACRYPT} --input plain --yes"));
    }
    fs::copy(desk.path("v"), desk.path("backup")).unwrap();
    let reencrypt = |image: &str| format!("reencrypt {image} {VERACRYPT} --header J {CHEAP} --yes");
    // Number 10 is among the writes of data.
    let mut at = 10;
    while !desk.path("J").exists() {
        assert!(desk.ours_killed_at(&reencrypt("v"), "pwrite64", at));
        at += 5;
    }
    fs::copy(desk.path("v"), desk.path("killed")).unwrap();
    desk.refused_as_other("other", &reencrypt("other"));
    let exported = desk.ours(&format!("export other {VERACRYPT} --output -"));
    assert!(exported.stdout.starts_with(&desk.plain));
    // Without its journal nobody takes it for a volume that is whole.
    let new = "--new-passphrase-file plain-new";
    desk.write("plain-new", "another passphrase, of many letters");
    for command in [
        format!("open v {VERACRYPT}"),
        format!("passwd v {VERACRYPT} {new}"),
        format!("reencrypt v {VERACRYPT} {CHEAP} --yes"),
    ] {
        let before = desk.read("v");
        let (code, said) = desk.ends(&command);
        assert_eq!(code, Some(3), "{command}\n{said}");
        assert!(desk.read("v") == before, "{command}");
    }
    desk.ours(&reencrypt("v"));
    let exported = desk.ours(&format!("export v {VERACRYPT} --output -"));
    assert!(exported.stdout.starts_with(&desk.plain));
    assert!(!desk.path("J").exists());
}

/// What cryptsetup has ended leaves nothing that stands in the way of the next reencryption.
#[test]
fn what_another_program_has_ended_is_forgotten() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    let desk = Volume::new(Task::EncryptDetached);
    let encrypt = format!("reencrypt v --encrypt --header h {CHEAP}");
    assert!(desk.ours_killed_at(&encrypt, "fdatasync", 7));
    assert!(desk.is_begun());
    desk.theirs("repair v --header h");
    desk.theirs("reencrypt --resume-only --force-offline-reencrypt v --header h");
    desk.holds("ended");
    let their = format!("reencrypt --init-only --force-offline-reencrypt {CHEAP} v --header h");
    desk.theirs(&their);
    desk.holds("begun");
    desk.ours("reencrypt v --header h");
    desk.holds("ended again");

    // With its header before the data, and where the other program can go on.
    let desk = (8..40).find_map(|at| {
        let desk = Volume::new(Task::Encrypt);
        let encrypt = format!("reencrypt v --encrypt {CHEAP}");
        let killed = desk.ours_killed_at(&encrypt, "fdatasync", at);
        let alone = desk.metadata().contains("reencrypt-alone");
        let placed = !desk.path(SIDE).exists() && desk.is_begun();
        (killed && placed && !alone).then_some(desk)
    });
    let desk = desk.expect("it can be killed there");
    desk.finish(Task::Encrypt, By::Them);
    desk.holds("ended");
    desk.ours("reencrypt v --decrypt --yes");
    assert!(desk.is_plain());
}

/// The volume may have a copy of its header, and the header apart is the one that counts. What was
/// put back while the first window was worked on is what its journal has, and is gone on with.
#[test]
fn a_copy_of_the_header_in_the_volume_vouches_for_nothing() {
    if !have(&["strace"]) {
        return;
    }
    let reencrypt = format!("reencrypt v --header h {CHEAP}");
    let (mut same, mut other) = (0, 0);
    for at in 9..60 {
        let desk = Volume::new(Task::Reencrypt);
        let volume = desk.read("v");
        desk.write("h", &volume[..4 << 20]);
        // With a header of its own nobody begins by another.
        let mut bare = volume.clone();
        bare[..4 << 20].fill(0);
        desk.write("v", &bare);
        if !desk.ours_killed_at(&reencrypt, "fdatasync", at) {
            break;
        }
        if desk.read("v") == bare {
            continue;
        }
        // A header that says that all is done is no help against what is put back later.
        if !desk.is_begun() {
            break;
        }
        desk.write("v", &volume);
        let export = "export v --header h --output -";
        if desk.ends(export).0 == Some(0) {
            same += 1;
            desk.holds("put back");
            desk.ours(&reencrypt);
            desk.holds("ended");
            continue;
        }
        other += 1;
        desk.refused_as_other("v", export);
        desk.refused_as_other("v", &reencrypt);
    }
    assert!(same > 0 && other > 0, "{same} {other}");
}

/// Without room for its journal a reencryption has not begun.
#[test]
fn a_journal_without_room_leaves_the_volume() {
    let desk = Volume::empty();
    let small = desk.path("small");
    fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=3M", "none"])
        .arg(&small)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        println!("skipped: a small disk: it needs root");
        return;
    }
    let outcome = std::panic::catch_unwind(|| {
        desk.ours(&format!("create small/v {VERACRYPT} --size 1MiB --yes"));
        let before = fs::read(small.join("v")).unwrap();
        let (code, said) = desk.ends(&format!("reencrypt small/v {VERACRYPT} {CHEAP} --yes"));
        assert_eq!(code, Some(1), "{said}");
        assert!(fs::read(small.join("v")).unwrap() == before);
        desk.ours(&format!("open small/v {VERACRYPT}"));
    });
    let unmounted = Command::new("umount").arg("--lazy").arg(&small).status();
    assert!(unmounted.unwrap().success());
    outcome.unwrap();
}

/// The name that a reencryption would take for itself.
#[test]
fn a_header_has_another_name_than_the_file_beside() {
    let desk = Volume::new(Task::EncryptDetached);
    let (code, said) = desk.ends(&format!("reencrypt v --encrypt --header {SIDE}"));
    assert_eq!(code, Some(2), "{said}");
    assert!(desk.is_plain() && !desk.path(SIDE).exists());
}

/// What is refused has changed nothing: the volume still opens with VeraCrypt.
#[test]
fn a_wrong_passphrase_takes_no_headers_away() {
    if !have(&["strace"]) {
        return;
    }
    let whole = Volume::empty();
    whole.ours(&format!("create v {VERACRYPT} --size 16MiB --quick --yes"));
    whole.ours(&format!("import v {VERACRYPT} --input plain --yes"));
    let before = fs::read(whole.path("v")).unwrap();
    let reencrypt = format!("reencrypt v {VERACRYPT} {CHEAP} --yes");
    let desk = (1..60).find_map(|at| {
        let desk = whole.copy();
        assert!(desk.ours_killed_at(&reencrypt, "pwrite64", at), "{at}");
        let untouched = desk.read("v") == before;
        (desk.path(SIDE).exists() && untouched).then_some(desk)
    });
    let desk = desk.expect("the file with the keys comes before the headers go");
    desk.write("line", "a wrong one");
    desk.refused("v", 3, &reencrypt);
    desk.write("line", "a passphrase");
    desk.ours(&reencrypt);
    let exported = desk.ours(&format!("export v {VERACRYPT} --output -"));
    assert!(exported.stdout.starts_with(&desk.plain));
}
