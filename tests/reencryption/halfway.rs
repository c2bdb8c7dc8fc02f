//! What a reencryption leaves when it is stopped, fails, or has ended a moment ago: whatever the
//! user does next, no byte is lost, and it can be brought to its end.

use crate::kit::{SIDE, Task, Volume};
use std::fs;
use testkit::{CHEAP, have};

const VERACRYPT: &str = "--type veracrypt --hash sha512 --veracrypt-pim 1";

/// A volume of the first `bytes` of the data.
fn small(bytes: usize) -> Volume {
    let desk = Volume::empty();
    desk.make((16 << 20) + bytes);
    desk.ours(&format!("create v {CHEAP} --yes"));
    desk.write("small", &desk.plain[..bytes]);
    desk.ours("import v --input small --yes");
    desk
}

/// The journal has the old data of its window, whatever data stand there now.
#[test]
fn a_journal_vouches_for_no_other_data() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    for (task, begin, go_on) in [
        (
            Task::EncryptDetached,
            "reencrypt v --encrypt --header h --pbkdf pbkdf2 --pbkdf-force-iterations 1000",
            "reencrypt v --header h",
        ),
        (
            Task::DecryptDetached,
            "reencrypt v --decrypt --header h",
            "reencrypt v --header h",
        ),
        (
            Task::Decrypt,
            "reencrypt v --decrypt",
            "reencrypt v --decrypt",
        ),
    ] {
        let mut hot = 0;
        for at in 1..60 {
            let desk = Volume::new(task);
            let before = desk.read("v");
            if !desk.ours_killed_at(begin, "fdatasync", at) {
                break;
            }
            if !desk.is_begun() || !desk.metadata().contains("in-reencryption") {
                continue;
            }
            hot += 1;
            let killed = desk.read("v");
            let mut other = killed.clone();
            other.iter_mut().for_each(|byte| *byte ^= 0x5a);
            desk.write("v", &other);
            desk.refused_as_other("v", go_on);
            desk.write("v", &killed);
            let copy = desk.copy();
            copy.ours(go_on);
            copy.ended(task, true);
            if task == Task::Decrypt {
                continue;
            }
            // A power cut may leave some sectors as they were, and some as they are to be.
            let after = fs::read(copy.path("v")).unwrap();
            let both = before.chunks(512).zip(after.chunks(512)).enumerate();
            let mixed = both.flat_map(|(at, (old, new))| if at % 3 == 1 { new } else { old });
            desk.write("v", mixed.copied().collect::<Vec<u8>>());
            desk.ours(go_on);
            desk.ended(task, true);
        }
        println!("{task:?}: {hot} times in the middle");
        assert!(hot > 0, "{task:?} was never in the middle");
    }
}

/// Kills at all that a decryption of little data does.
#[test]
fn little_data_are_decrypted_whenever_it_is_killed() {
    if !have(&["strace"]) {
        return;
    }
    let wholes = [512, 1536, 4608].map(|bytes| (bytes, small(bytes)));
    for name in ["pwrite64", "fdatasync", "fsync", "unlink,unlinkat"] {
        let mut kills = 0;
        // Each volume has its third of the calls.
        for (first, (bytes, whole)) in (1..).zip(&wholes) {
            let bytes = *bytes;
            for at in (first..).step_by(wholes.len()) {
                let desk = whole.copy();
                if !desk.ours_killed_at("reencrypt v --decrypt", name, at) {
                    break;
                }
                kills += 1;
                let when = format!("{bytes} bytes, killed at {name} {at}");
                let (code, said) = desk.ends("reencrypt v --decrypt");
                // All may have been done but for the exit.
                let there = desk.read("v");
                assert!(there == desk.plain[..bytes], "{when}: {code:?} {said}");
                assert!(!desk.path(SIDE).exists(), "{when}: {code:?} {said}");
            }
        }
        println!("{name}: {kills} kills");
        assert!(kills > 0, "{name}");
    }
}

/// A block of the header that was half written is of neither the header nor the data.
#[test]
fn a_sector_is_what_a_disk_writes_as_a_whole() {
    if !have(&["strace"]) {
        return;
    }
    let desk = Volume::new(Task::Encrypt);
    let encrypt = format!("reencrypt v --encrypt {CHEAP}");
    assert!(desk.ours_killed_at(&encrypt, "unlink,unlinkat", 1));
    let mut torn = desk.read("v");
    let sectors = desk.plain.chunks(512).enumerate().take(64);
    for (at, old) in sectors.filter(|(at, _)| at % 3 == 1) {
        torn[at * 512..][..512].copy_from_slice(old);
    }
    desk.write("v", torn);
    desk.ours(&encrypt);
    desk.holds("torn");
}

/// A header with so much text that not every state of a reencryption has room in it.
#[test]
fn a_full_header_is_not_reencrypted_half() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let whole = Volume::new(Task::Reencrypt);
    let mut refusals = 0;
    for filling in (9_000..11_400).step_by(100) {
        for mode in ["", "--decrypt"] {
            let desk = whole.copy();
            let text = "x".repeat(filling);
            let token = format!(r#"{{"type":"of-a-user","keyslots":[],"text":"{text}"}}"#);
            desk.write("token", token);
            desk.theirs("token import --json-file token v");
            let (code, said) = desk.ends(&format!("reencrypt v {mode} {CHEAP}"));
            let when = format!("{filling} {mode}: {said}");
            match code {
                Some(0) => desk.ended(
                    if mode.is_empty() {
                        Task::Reencrypt
                    } else {
                        Task::Decrypt
                    },
                    true,
                ),
                _ => {
                    refusals += 1;
                    assert!(!desk.is_begun(), "{when}");
                    desk.holds(&when);
                }
            }
        }
    }
    assert!(refusals > 0);
}

/// Without room for what the data are known by, nobody begins.
#[test]
fn thirty_two_tokens_leave_no_room_for_another() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let desk = Volume::new(Task::DecryptDetached);
    desk.write("token", r#"{"type":"of-a-user","keyslots":[]}"#);
    for _ in 0..32 {
        desk.theirs("token import --json-file token h");
    }
    for mode in ["--decrypt", CHEAP] {
        desk.refused("v", 2, &format!("reencrypt v --header h {mode}"));
        assert!(!desk.is_begun());
    }
    desk.theirs("token remove --token-id 7 h");
    desk.ours("reencrypt v --header h --decrypt");
    assert!(desk.is_plain());
}

/// The same command once more, because nobody saw the first one end.
#[test]
fn what_is_done_is_done() {
    let desk = Volume::new(Task::EncryptDetached);
    let encrypt = format!("reencrypt v --encrypt --header h {CHEAP}");
    desk.ours(&encrypt);
    let said = desk.refused("v", 4, &encrypt);
    // Whoever did that would encrypt it twice.
    assert!(!said.contains("Name another file"), "{said}");
    let decrypt = "reencrypt v --decrypt --header h";
    desk.ours(decrypt);
    assert!(desk.is_plain());
    desk.ours(decrypt);
    assert!(desk.is_plain());
    // It knows the data that it has decrypted, and no others.
    let other = vec![7; desk.plain.len()];
    desk.write("v", other);
    desk.refused("v", 4, decrypt);
}

/// Killed when all is decrypted, and the file with the header still there.
fn decrypted_but_for_the_file() -> Option<Volume> {
    if !have(&["strace", "cryptsetup"]) {
        return None;
    }
    let untouched = Volume::new(Task::Decrypt);
    let desk = (1..10).find_map(|at| {
        let desk = untouched.copy();
        let killed = desk.ours_killed_at("reencrypt v --decrypt", "unlink,unlinkat", at);
        let whole = desk.read("v") == desk.plain;
        (killed && whole && desk.path(SIDE).exists()).then_some(desk)
    });
    let desk = desk.expect("the file is removed at the end");
    Some(desk)
}

#[test]
fn what_was_decrypted_is_encrypted_when_the_user_says_so() {
    let Some(desk) = decrypted_but_for_the_file() else {
        return;
    };
    desk.ours(&format!("reencrypt v --encrypt {CHEAP}"));
    assert!(!desk.is_plain());
    desk.holds("encrypted again");
}

#[test]
fn a_decrypted_file_that_has_grown_is_not_cut() {
    let Some(desk) = decrypted_but_for_the_file() else {
        return;
    };
    let mut longer = desk.plain.clone();
    longer.extend([9; 8192]);
    desk.write("v", &longer);
    desk.refused("v", 4, "reencrypt v --decrypt");
}

/// The file with the header belongs beside the volume, also when that has another name now.
#[test]
fn a_volume_with_another_name_is_not_encrypted_without_its_start() {
    if !have(&["strace"]) {
        return;
    }
    let encrypt = format!("reencrypt v --encrypt {CHEAP}");
    let mut tries = 0;
    for name in ["pwrite64", "fallocate", "unlink,unlinkat"] {
        for at in (1..60).step_by(3) {
            let desk = Volume::new(Task::Encrypt);
            if !desk.ours_killed_at(&encrypt, name, at) {
                break;
            }
            if !desk.path(SIDE).exists() {
                continue;
            }
            tries += 1;
            fs::rename(desk.path("v"), desk.path("w")).unwrap();
            let go_on = format!("reencrypt w --header {SIDE}");
            let said = desk.refused("w", 4, &go_on);
            assert!(said.contains("w.cryptmark-header"), "{said}");
            fs::rename(desk.path(SIDE), desk.path("w.cryptmark-header")).unwrap();
            desk.ours("reencrypt w --encrypt");
            fs::rename(desk.path("w"), desk.path("v")).unwrap();
            desk.holds(&format!("{name} {at}"));
        }
    }
    assert!(tries > 3, "{tries}");
}

/// What is written while the file with the header is there would not be known again.
#[test]
fn nobody_writes_while_the_header_moves() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    let encrypt = format!("reencrypt v --encrypt {CHEAP}");
    for (task, command, name, last) in [
        (Task::Encrypt, &*encrypt, "unlink,unlinkat", 2),
        (Task::Decrypt, "reencrypt v --decrypt", "fdatasync", 12),
    ] {
        let mut tries = 0;
        for at in 1..last {
            let desk = Volume::new(task);
            if !desk.ours_killed_at(command, name, at) || !desk.path(SIDE).exists() {
                continue;
            }
            tries += 1;
            let other: Vec<u8> = desk.plain.iter().map(|byte| byte ^ 1).collect();
            desk.write("other", other);
            let said = desk.refused("v", 4, "import v --input other --yes");
            assert!(said.contains("volume reencrypt"), "{said}");
            desk.ours(command);
            desk.ended(task, true);
        }
        assert!(tries > 0, "{task:?}");
    }
}

/// A name that its folder may lose in a power cut keeps nothing yet.
#[test]
fn a_journal_is_on_the_disk_before_the_volume_changes() {
    if !have(&["strace"]) {
        return;
    }
    let whole = Volume::empty();
    whole.ours(&format!("create v {VERACRYPT} --size 2MiB --quick --yes"));
    let before = fs::read(whole.path("v")).unwrap();
    let reencrypt = format!("reencrypt v {VERACRYPT} --header J {CHEAP} --yes");
    let desk = (1..20).find_map(|at| {
        let desk = whole.copy();
        assert!(desk.ours_killed_at(&reencrypt, "fsync", at));
        desk.path("J").exists().then_some(desk)
    });
    let desk = desk.expect("the journal has a name before anything else happens");
    assert!(desk.read("v") == before);
    let failed = desk.injected(&desk.our_command(&reencrypt), "fsync", "error=EIO");
    assert_eq!(failed.status.code(), Some(1));
    assert!(desk.read("v") == before);
    desk.ours(&reencrypt);
    desk.ours(&format!("open v {VERACRYPT}"));
}

/// A small volume is worked on as a whole, so that it has one part all the time.
#[test]
fn a_small_volume_that_was_put_back_keeps_its_data() {
    if !have(&["strace"]) {
        return;
    }
    let desk = Volume::empty();
    desk.ours(&format!("create v {VERACRYPT} --size 2MiB --quick --yes"));
    let newer = desk.copy();
    fs::write(newer.path("small"), &desk.plain[..1 << 20]).unwrap();
    newer.ours(&format!("import v {VERACRYPT} --input small --yes"));
    let reencrypt = format!("reencrypt v {VERACRYPT} --header h {CHEAP} --yes");
    let mut hot = 0;
    for at in 1..30 {
        let desk = desk.copy();
        if !desk.ours_killed_at(&reencrypt, "fdatasync", at) {
            break;
        }
        if !desk.metadata().contains("in-reencryption") {
            continue;
        }
        hot += 1;
        fs::copy(newer.path("v"), desk.path("v")).unwrap();
        desk.refused_as_other("v", &reencrypt);
    }
    assert!(hot > 0);
}
