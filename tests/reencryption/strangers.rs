//! A header or a journal in a file of its own, and data that are not those with which it began:
//! another volume's, or put back from a backup.

use crate::kit::{By, SIDE, Task, Volume};
use serde_json::Value;
use std::collections::HashSet;
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
        let sandbox = Volume::new(Task::Decrypt);
        fs::copy(sandbox.path("v"), sandbox.path("backup")).unwrap();
        let ended = !sandbox.ours_killed_at("reencrypt v --decrypt", "pwrite64", at);
        if ended {
            break;
        }
        if !sandbox.path(SIDE).exists() {
            continue;
        }
        fs::copy(sandbox.path("v"), sandbox.path("killed")).unwrap();
        fs::copy(sandbox.path("backup"), sandbox.path("v")).unwrap();
        // Before anything was copied, the volume is what it was.
        let (code, said) = sandbox.ends("export v --output out");
        match code {
            Some(0) => assert!(sandbox.read("out").starts_with(&sandbox.plain)),
            code => {
                assert_eq!(code, Some(4), "{at}: {said}");
                sandbox.refused_as_other("v", "reencrypt v --decrypt");
                refusals += 1;
            }
        }
        fs::copy(sandbox.path("killed"), sandbox.path("v")).unwrap();
        sandbox.ours("reencrypt v --decrypt");
        assert!(sandbox.is_plain(), "{at}");
    }
    assert!(refusals > 0, "no kill came after data was copied");
}

/// Killed when the header is before the data, and the file with it still there.
#[test]
fn data_that_were_put_back_are_not_overwritten() {
    if !have(&["strace"]) {
        return;
    }
    let sandbox = Volume::new(Task::Encrypt);
    assert!(sandbox.ours_killed_at("reencrypt v --encrypt", "unlink,unlinkat", 1));
    assert!(sandbox.path(SIDE).exists());
    let killed = sandbox.read("v");
    // Other data of the same length, and shorter data.
    let mut other = killed.clone();
    other[100] ^= 1;
    sandbox.write("v", &other);
    sandbox.refused_as_other("v", "reencrypt v --encrypt");
    sandbox.write("v", &other[..1 << 20]);
    sandbox.refused_as_other("v", "reencrypt v --encrypt");
    let said = sandbox.refused("v", 4, "create v --yes");
    assert!(said.contains("has the header of a reencryption"), "{said}");
    // The data themselves can be encrypted, and what was begun goes on.
    for there in [&sandbox.plain, &killed] {
        sandbox.write("v", there);
        let copy = sandbox.copy();
        copy.ours("reencrypt v --encrypt");
        copy.holds("put back");
    }
}

/// What fails before it has begun has not made the file longer.
#[test]
fn an_encryption_that_cannot_begin_leaves_the_file_as_it_is() {
    let sandbox = Volume::new(Task::Encrypt);
    symlink("/nowhere", sandbox.path(SIDE)).unwrap();
    let (code, said) = sandbox.ends("reencrypt v --encrypt");
    assert_eq!(code, Some(4), "{said}");
    assert!(sandbox.read("v") == sandbox.plain);
    let long = "a".repeat(245);
    fs::rename(sandbox.path("v"), sandbox.path(&long)).unwrap();
    let (code, said) = sandbox.ends(&format!("reencrypt {long} --encrypt"));
    assert_eq!(code, Some(1), "{said}");
    assert!(sandbox.read(&long) == sandbox.plain);
}

/// The second copy of the header would be taken for the header, and the data for damage.
#[test]
fn no_header_is_left_where_data_move() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    let sandbox = Volume::empty();
    sandbox.make(18 << 20);
    sandbox.theirs(&format!(
        "luksFormat {CHEAP} --luks2-metadata-size 4m --luks2-keyslots-size 8m --offset 32768 v"
    ));
    let small = &sandbox.plain[..2 << 20];
    sandbox.write("small", small);
    sandbox.ours("import v --input small --yes");
    let by_link = sandbox.path("link");
    symlink("v", &by_link).unwrap();
    // It is one volume by any of its names.
    assert!(sandbox.ours_killed_at("reencrypt link --decrypt", "pwrite64", 12));
    assert!(sandbox.path(SIDE).exists());
    let before = sandbox.read("v");
    let dump = sandbox.their_command("luksDump v").output().unwrap();
    assert!(!dump.status.success());
    assert!(sandbox.read("v") == before);
    sandbox.ours("reencrypt v --decrypt");
    assert!(sandbox.read("v") == small);
}

/// All of the data is within what moves first, and the file ends later.
#[test]
fn little_data_before_a_tail_are_decrypted() {
    let sandbox = Volume::empty();
    sandbox.make((16 << 20) + (1 << 20));
    sandbox.ours(&format!("create v --sector-size 4096 {CHEAP} --yes"));
    let small = &sandbox.plain[..1 << 20];
    sandbox.write("small", small);
    sandbox.ours("import v --input small --yes");
    let file = File::options().write(true).open(sandbox.path("v")).unwrap();
    let length = file.metadata().unwrap().len();
    // Sectors that nobody wrote, and a few bytes that somebody may need.
    file.set_len(length + 1024).unwrap();
    let copy = sandbox.copy();
    copy.ours("reencrypt v --decrypt");
    assert!(fs::read(copy.path("v")).unwrap() == small);
    file.set_len(length + 1000).unwrap();
    drop(file);
    let mut bytes = sandbox.read("v");
    bytes[length as usize..].fill(7);
    sandbox.write("v", bytes);
    let said = sandbox.refused("v", 4, "reencrypt v --decrypt");
    assert!(said.contains("data behind the volume"), "{said}");
    sandbox.ours("reencrypt v --decrypt --yes");
    assert!(sandbox.read("v") == small);
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
        let sandbox = Volume::new(Task::EncryptDetached);
        let file = File::options().write(true).open(sandbox.path("v")).unwrap();
        file.set_len(LENGTH as u64).unwrap();
        drop(file);
        let encrypt = format!("reencrypt v --encrypt --header h {CHEAP}");
        if !sandbox.ours_killed_at(&encrypt, "fdatasync", at) {
            break;
        }
        if sandbox.is_plain() || !sandbox.is_begun() {
            continue;
        }
        let metadata: Value = serde_json::from_str(&sandbox.metadata()).unwrap();
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
        let mut other = sandbox.plain.clone();
        other[..4096].fill(9);
        other.resize(LENGTH, 0);
        sandbox.write("other", &other);
        for command in [
            "reencrypt other --header h",
            "export other --header h --output -",
        ] {
            sandbox.refused_as_other("other", command);
        }
        // What they are known by stays until then.
        let serve = "serve v --header h --nbd s.sock --daemon";
        let said = sandbox.refused("v", 4, serve);
        assert!(said.contains("--read-only"), "{said}");
        sandbox.ours("reencrypt v --header h");
        sandbox.holds("the file itself");
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
    let sandbox = Volume::empty();
    for name in ["v", "other"] {
        sandbox.ours(&format!(
            "create {name} {VERACRYPT} --size 16MiB --quick --yes"
        ));
        sandbox.ours(&format!("import {name} {VERACRYPT} --input plain --yes"));
    }
    fs::copy(sandbox.path("v"), sandbox.path("backup")).unwrap();
    let reencrypt = |image: &str| format!("reencrypt {image} {VERACRYPT} --header J {CHEAP} --yes");
    // Number 10 is among the writes of data.
    let mut at = 10;
    while !sandbox.path("J").exists() {
        assert!(sandbox.ours_killed_at(&reencrypt("v"), "pwrite64", at));
        at += 5;
    }
    fs::copy(sandbox.path("v"), sandbox.path("killed")).unwrap();
    sandbox.refused_as_other("other", &reencrypt("other"));
    let exported = sandbox.ours(&format!("export other {VERACRYPT} --output -"));
    assert!(exported.stdout.starts_with(&sandbox.plain));
    // Without its journal nobody takes it for a volume that is whole.
    let new = "--new-passphrase-file plain-new";
    sandbox.write("plain-new", "another passphrase, of many letters");
    for command in [
        format!("open v {VERACRYPT}"),
        format!("passwd v {VERACRYPT} {new}"),
        format!("reencrypt v {VERACRYPT} {CHEAP} --yes"),
    ] {
        let before = sandbox.read("v");
        let (code, said) = sandbox.ends(&command);
        assert_eq!(code, Some(3), "{command}\n{said}");
        assert!(sandbox.read("v") == before, "{command}");
    }
    sandbox.ours(&reencrypt("v"));
    let exported = sandbox.ours(&format!("export v {VERACRYPT} --output -"));
    assert!(exported.stdout.starts_with(&sandbox.plain));
    assert!(!sandbox.path("J").exists());
}

/// What cryptsetup has ended leaves nothing that stands in the way of the next reencryption.
#[test]
fn what_another_program_has_ended_is_forgotten() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    let sandbox = Volume::new(Task::EncryptDetached);
    let encrypt = format!("reencrypt v --encrypt --header h {CHEAP}");
    assert!(sandbox.ours_killed_at(&encrypt, "fdatasync", 7));
    assert!(sandbox.is_begun());
    sandbox.theirs("repair v --header h");
    sandbox.theirs("reencrypt --resume-only --force-offline-reencrypt v --header h");
    sandbox.holds("ended");
    let their = format!("reencrypt --init-only --force-offline-reencrypt {CHEAP} v --header h");
    sandbox.theirs(&their);
    sandbox.holds("begun");
    sandbox.ours("reencrypt v --header h");
    sandbox.holds("ended again");

    // With its header before the data, and where the other program can go on.
    let sandbox = (8..40).find_map(|at| {
        let sandbox = Volume::new(Task::Encrypt);
        let encrypt = format!("reencrypt v --encrypt {CHEAP}");
        let killed = sandbox.ours_killed_at(&encrypt, "fdatasync", at);
        let alone = sandbox.metadata().contains("reencrypt-alone");
        let placed = !sandbox.path(SIDE).exists() && sandbox.is_begun();
        (killed && placed && !alone).then_some(sandbox)
    });
    let sandbox = sandbox.expect("it can be killed there");
    sandbox.finish(Task::Encrypt, By::Them);
    sandbox.holds("ended");
    sandbox.ours("reencrypt v --decrypt --yes");
    assert!(sandbox.is_plain());
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
        let sandbox = Volume::new(Task::Reencrypt);
        let volume = sandbox.read("v");
        sandbox.write("h", &volume[..4 << 20]);
        // With a header of its own nobody begins by another.
        let mut bare = volume.clone();
        bare[..4 << 20].fill(0);
        sandbox.write("v", &bare);
        if !sandbox.ours_killed_at(&reencrypt, "fdatasync", at) {
            break;
        }
        if sandbox.read("v") == bare {
            continue;
        }
        // A header that says that all is done is no help against what is put back later.
        if !sandbox.is_begun() {
            break;
        }
        sandbox.write("v", &volume);
        let export = "export v --header h --output -";
        if sandbox.ends(export).0 == Some(0) {
            same += 1;
            sandbox.holds("put back");
            sandbox.ours(&reencrypt);
            sandbox.holds("ended");
            continue;
        }
        other += 1;
        sandbox.refused_as_other("v", export);
        sandbox.refused_as_other("v", &reencrypt);
    }
    assert!(same > 0 && other > 0, "{same} {other}");
}

/// Without room for its journal a reencryption has not begun.
#[test]
fn a_journal_without_room_leaves_the_volume() {
    let sandbox = Volume::empty();
    let small = sandbox.path("small");
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
        sandbox.ours(&format!("create small/v {VERACRYPT} --size 1MiB --yes"));
        let before = fs::read(small.join("v")).unwrap();
        let (code, said) = sandbox.ends(&format!("reencrypt small/v {VERACRYPT} {CHEAP} --yes"));
        assert_eq!(code, Some(1), "{said}");
        assert!(fs::read(small.join("v")).unwrap() == before);
        sandbox.ours(&format!("open small/v {VERACRYPT}"));
    });
    let unmounted = Command::new("umount").arg("--lazy").arg(&small).status();
    assert!(unmounted.unwrap().success());
    outcome.unwrap();
}

/// The name that a reencryption would take for itself.
#[test]
fn a_header_has_another_name_than_the_file_beside() {
    let sandbox = Volume::new(Task::EncryptDetached);
    let (code, said) = sandbox.ends(&format!("reencrypt v --encrypt --header {SIDE}"));
    assert_eq!(code, Some(2), "{said}");
    assert!(sandbox.is_plain() && !sandbox.path(SIDE).exists());
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
    let sandbox = (1..60).find_map(|at| {
        let sandbox = whole.copy();
        assert!(sandbox.ours_killed_at(&reencrypt, "pwrite64", at), "{at}");
        let untouched = sandbox.read("v") == before;
        (sandbox.path(SIDE).exists() && untouched).then_some(sandbox)
    });
    let sandbox = sandbox.expect("the file with the keys comes before the headers go");
    sandbox.write("line", "a wrong one");
    sandbox.refused("v", 3, &reencrypt);
    sandbox.write("line", "a passphrase");
    sandbox.ours(&reencrypt);
    let exported = sandbox.ours(&format!("export v {VERACRYPT} --output -"));
    assert!(exported.stdout.starts_with(&sandbox.plain));
}

/// A file that has the name of a reencryption's file is used only if it belongs to the volume.
#[test]
fn a_planted_header_is_not_used() {
    let sandbox = Volume::empty();
    for name in ["v", "other"] {
        sandbox.ours(&format!("create {name} --size 20MiB {CHEAP}"));
    }
    sandbox.volume("header backup other --output planted");
    let side = sandbox.path(SIDE);
    let refused = |said: &str| {
        for command in [
            "open v",
            "export v --output out",
            "passwd v --new-passphrase-file line",
        ] {
            let (code, all) = sandbox.ends(command);
            assert_eq!(code, Some(4), "{command}: {all}");
            assert!(all.contains(said) && all.contains(SIDE), "{command}: {all}");
        }
        fs::remove_file(&side).unwrap();
        sandbox.ours("open v");
    };
    fs::copy(sandbox.path("planted"), &side).unwrap();
    refused("is a header of the volume");
    symlink("planted", &side).unwrap();
    refused("and is none");
    sandbox.volume("header backup v --output own");
    if rustix::process::geteuid().is_root() {
        fs::copy(sandbox.path("own"), &side).unwrap();
        std::os::unix::fs::chown(&side, Some(65534), None).unwrap();
        refused("belongs to the user with the number 65534");
    }
}

/// Killed while the header goes before the data, and ended by cryptsetup with the file beside them:
/// the header is still to be moved, and the plaintext under its place to go.
#[test]
fn a_move_that_cryptsetup_went_on_with_is_ended() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    let (mut moves, mut begun, mut half) = (0, 0, 0);
    for at in (11..60).step_by(9) {
        let sandbox = Volume::new(Task::Encrypt);
        if !sandbox.ours_killed_at("reencrypt v --encrypt", "pwrite64", at) {
            break;
        }
        if !sandbox.path(SIDE).exists() {
            continue;
        }
        let resume = "reencrypt --resume-only --force-offline-reencrypt v";
        let theirs = format!("{resume} --header {SIDE}");
        if !sandbox.their_command(&theirs).status().unwrap().success() {
            continue;
        }
        let opened = sandbox.our_command("export v --output -").output().unwrap();
        if !opened.stdout.starts_with(&sandbox.plain) {
            // It has encrypted what was half copied.
            let said = sandbox.refused("v", 4, "reencrypt v --encrypt");
            assert!(said.contains("only one of both"), "{at}: {said}");
            assert!(sandbox.read("v").starts_with(&sandbox.plain[..16 << 20]));
            half += 1;
            continue;
        }
        moves += 1;
        // Without the file, a header of the beginning is nothing to go on with.
        let without = sandbox.copy();
        fs::remove_file(without.path(SIDE)).unwrap();
        if without.read("v").starts_with(b"LUKS") {
            without.refused("v", 4, "reencrypt v --encrypt");
            without.refused("v", 4, "export v --output out");
            begun += 1;
        }
        sandbox.ours("reencrypt v --encrypt");
        assert!(!sandbox.path(SIDE).exists());
        sandbox.holds("brought home");
        let sectors: HashSet<&[u8]> = sandbox.plain.chunks(512).collect();
        let left = sandbox.read("v");
        assert!(
            !left.chunks(512).any(|sector| sectors.contains(sector)),
            "{at}"
        );
    }
    assert!(
        moves >= begun && begun > 0 && half > 0,
        "{moves} {begun} {half}"
    );
}

/// Killed when all was encrypted, and the room behind it not yet cut off.
#[test]
fn the_room_behind_the_data_goes() {
    if !have(&["strace"]) {
        return;
    }
    let mut longer = 0;
    // The last of them make it longer, and shorter in the end.
    for at in 25.. {
        let sandbox = Volume::new(Task::Encrypt);
        if !sandbox.ours_killed_at("reencrypt v --encrypt", "fdatasync,ftruncate", at) {
            break;
        }
        let change = if at % 2 == 0 { "--encrypt" } else { "" };
        longer += u32::from(!sandbox.is_begun());
        let ended = sandbox.metadata().contains("dynamic") && !sandbox.metadata().contains("grown");
        match ended && !sandbox.is_begun() {
            true => drop(sandbox.refused("v", 4, "reencrypt v --encrypt")),
            false => drop(sandbox.ours(&format!("reencrypt v {change}"))),
        }
        let whole = sandbox.plain.len() + (16 << 20);
        assert_eq!(sandbox.read("v").len(), whole, "{at} {change}");
        let metadata = sandbox.metadata();
        assert!(
            metadata.contains("dynamic") && !metadata.contains("grown"),
            "{at}"
        );
        sandbox.holds("cut");
    }
    assert!(longer > 1, "{longer}");
}
