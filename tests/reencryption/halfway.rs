//! What a reencryption leaves when it is stopped, fails, or has ended a moment ago: whatever the
//! user does next, no byte is lost, and it can be brought to its end.

use crate::kit::{SIDE, Task, Volume};
use std::fs;
use testkit::{CHEAP, have};

const VERACRYPT: &str = "--type veracrypt --hash sha512 --veracrypt-pim 1";

/// A volume of the first `bytes` of the data.
fn small(bytes: usize) -> Volume {
    let sandbox = Volume::empty();
    sandbox.make((16 << 20) + bytes);
    sandbox.ours(&format!("create v {CHEAP} --yes"));
    sandbox.write("small", &sandbox.plain[..bytes]);
    sandbox.ours("import v --input small --yes");
    sandbox
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
            let sandbox = Volume::new(task);
            let before = sandbox.read("v");
            if !sandbox.ours_killed_at(begin, "fdatasync", at) {
                break;
            }
            if !sandbox.is_begun() || !sandbox.metadata().contains("in-reencryption") {
                continue;
            }
            hot += 1;
            let killed = sandbox.read("v");
            let mut other = killed.clone();
            other.iter_mut().for_each(|byte| *byte ^= 0x5a);
            sandbox.write("v", &other);
            sandbox.refused_as_other("v", go_on);
            sandbox.write("v", &killed);
            let copy = sandbox.copy();
            copy.ours(go_on);
            copy.ended(task, true);
            if task == Task::Decrypt {
                continue;
            }
            // A power cut may leave some sectors as they were, and some as they are to be.
            let after = fs::read(copy.path("v")).unwrap();
            let both = before.chunks(512).zip(after.chunks(512)).enumerate();
            let mixed = both.flat_map(|(at, (old, new))| if at % 3 == 1 { new } else { old });
            sandbox.write("v", mixed.copied().collect::<Vec<u8>>());
            sandbox.ours(go_on);
            sandbox.ended(task, true);
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
                let sandbox = whole.copy();
                if !sandbox.ours_killed_at("reencrypt v --decrypt", name, at) {
                    break;
                }
                kills += 1;
                let when = format!("{bytes} bytes, killed at {name} {at}");
                let (code, said) = sandbox.ends("reencrypt v --decrypt");
                // All may have been done but for the exit.
                let there = sandbox.read("v");
                assert!(there == sandbox.plain[..bytes], "{when}: {code:?} {said}");
                assert!(!sandbox.path(SIDE).exists(), "{when}: {code:?} {said}");
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
    let sandbox = Volume::new(Task::Encrypt);
    let encrypt = format!("reencrypt v --encrypt {CHEAP}");
    assert!(sandbox.ours_killed_at(&encrypt, "unlink,unlinkat", 1));
    let mut torn = sandbox.read("v");
    let sectors = sandbox.plain.chunks(512).enumerate().take(64);
    for (at, old) in sectors.filter(|(at, _)| at % 3 == 1) {
        torn[at * 512..][..512].copy_from_slice(old);
    }
    sandbox.write("v", torn);
    sandbox.ours(&encrypt);
    sandbox.holds("torn");
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
            let sandbox = whole.copy();
            let text = "x".repeat(filling);
            let token = format!(r#"{{"type":"of-a-user","keyslots":[],"text":"{text}"}}"#);
            sandbox.write("token", token);
            sandbox.theirs("token import --json-file token v");
            let (code, said) = sandbox.ends(&format!("reencrypt v {mode} {CHEAP}"));
            let when = format!("{filling} {mode}: {said}");
            match code {
                Some(0) => sandbox.ended(
                    if mode.is_empty() {
                        Task::Reencrypt
                    } else {
                        Task::Decrypt
                    },
                    true,
                ),
                _ => {
                    refusals += 1;
                    assert!(!sandbox.is_begun(), "{when}");
                    sandbox.holds(&when);
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
    let sandbox = Volume::new(Task::DecryptDetached);
    sandbox.write("token", r#"{"type":"of-a-user","keyslots":[]}"#);
    for _ in 0..32 {
        sandbox.theirs("token import --json-file token h");
    }
    for mode in ["--decrypt", CHEAP] {
        sandbox.refused("v", 2, &format!("reencrypt v --header h {mode}"));
        assert!(!sandbox.is_begun());
    }
    sandbox.theirs("token remove --token-id 7 h");
    sandbox.ours("reencrypt v --header h --decrypt");
    assert!(sandbox.is_plain());
}

/// The same command once more, because nobody saw the first one end.
#[test]
fn what_is_done_is_done() {
    let sandbox = Volume::new(Task::EncryptDetached);
    let encrypt = format!("reencrypt v --encrypt --header h {CHEAP}");
    sandbox.ours(&encrypt);
    let said = sandbox.refused("v", 4, &encrypt);
    // Whoever did that would encrypt it twice.
    assert!(!said.contains("Name another file"), "{said}");
    let decrypt = "reencrypt v --decrypt --header h";
    sandbox.ours(decrypt);
    assert!(sandbox.is_plain());
    sandbox.ours(decrypt);
    assert!(sandbox.is_plain());
    // It knows the data that it has decrypted, and no others.
    let other = vec![7; sandbox.plain.len()];
    sandbox.write("v", other);
    sandbox.refused("v", 4, decrypt);
}

/// Killed when all is decrypted, and the file with the header still there.
fn decrypted_but_for_the_file() -> Option<Volume> {
    if !have(&["strace", "cryptsetup"]) {
        return None;
    }
    let untouched = Volume::new(Task::Decrypt);
    let sandbox = (1..10).find_map(|at| {
        let sandbox = untouched.copy();
        let killed = sandbox.ours_killed_at("reencrypt v --decrypt", "unlink,unlinkat", at);
        let whole = sandbox.read("v") == sandbox.plain;
        (killed && whole && sandbox.path(SIDE).exists()).then_some(sandbox)
    });
    let sandbox = sandbox.expect("the file is removed at the end");
    Some(sandbox)
}

#[test]
fn what_was_decrypted_is_encrypted_when_the_user_says_so() {
    let Some(sandbox) = decrypted_but_for_the_file() else {
        return;
    };
    sandbox.ours(&format!("reencrypt v --encrypt {CHEAP}"));
    assert!(!sandbox.is_plain());
    sandbox.holds("encrypted again");
}

#[test]
fn a_decrypted_file_that_has_grown_is_not_cut() {
    let Some(sandbox) = decrypted_but_for_the_file() else {
        return;
    };
    let mut longer = sandbox.plain.clone();
    longer.extend([9; 8192]);
    sandbox.write("v", &longer);
    sandbox.refused("v", 4, "reencrypt v --decrypt");
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
            let sandbox = Volume::new(Task::Encrypt);
            if !sandbox.ours_killed_at(&encrypt, name, at) {
                break;
            }
            if !sandbox.path(SIDE).exists() {
                continue;
            }
            tries += 1;
            fs::rename(sandbox.path("v"), sandbox.path("w")).unwrap();
            let go_on = format!("reencrypt w --header {SIDE}");
            let said = sandbox.refused("w", 4, &go_on);
            assert!(said.contains("w.cryptmark-header"), "{said}");
            fs::rename(sandbox.path(SIDE), sandbox.path("w.cryptmark-header")).unwrap();
            sandbox.ours("reencrypt w --encrypt");
            fs::rename(sandbox.path("w"), sandbox.path("v")).unwrap();
            sandbox.holds(&format!("{name} {at}"));
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
            let sandbox = Volume::new(task);
            if !sandbox.ours_killed_at(command, name, at) || !sandbox.path(SIDE).exists() {
                continue;
            }
            tries += 1;
            let other: Vec<u8> = sandbox.plain.iter().map(|byte| byte ^ 1).collect();
            sandbox.write("other", other);
            let said = sandbox.refused("v", 4, "import v --input other --yes");
            assert!(said.contains("volume reencrypt"), "{said}");
            sandbox.ours(command);
            sandbox.ended(task, true);
        }
        assert!(tries > 0, "{task:?}");
    }
}

/// Whatever a volume accepts after a kill is there at the end, also under another name.
#[test]
fn what_is_written_after_a_kill_stays() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    const PIECE: usize = 64 << 10;
    let encrypt = format!("reencrypt v --encrypt {CHEAP}");
    let (reencrypt, import) = (
        format!("reencrypt v {CHEAP}"),
        "import v --input other --yes",
    );
    for (task, command) in [
        (Task::Encrypt, &*encrypt),
        (Task::Decrypt, "reencrypt v --decrypt"),
        (Task::Reencrypt, &*reencrypt),
    ] {
        let (mut written, mut refused) = (0, 0);
        for at in (1..).step_by(2) {
            let mut sandbox = Volume::new(task);
            if !sandbox.ours_killed_at(command, "fdatasync,unlink,unlinkat", at) {
                break;
            }
            let other: Vec<u8> = sandbox.plain[..PIECE].iter().map(|byte| byte ^ 1).collect();
            sandbox.write("other", &other);
            let is_renamed = at % 4 == 1;
            let name = if is_renamed { "w" } else { "v" };
            fs::rename(sandbox.path("v"), sandbox.path(name)).unwrap();
            let (code, said) = sandbox.ends(&import.replace(" v ", &format!(" {name} ")));
            fs::rename(sandbox.path(name), sandbox.path("v")).unwrap();
            match code {
                Some(0) => {
                    sandbox.plain[..PIECE].copy_from_slice(&other);
                    written += 1;
                }
                _ => refused += 1,
            }
            let when = format!("{task:?} killed at {at}, {name}: {code:?} {said}");
            match sandbox.is_begun() || sandbox.path(SIDE).exists() {
                true => drop(sandbox.ours(command)),
                // It has not begun, or it has ended.
                false if task == Task::Decrypt => continue,
                false if !sandbox.read("v").starts_with(b"LUKS") => continue,
                false => {}
            }
            assert!(
                !sandbox.is_begun() && !sandbox.path(SIDE).exists(),
                "{when}"
            );
            match task {
                Task::Decrypt => assert!(sandbox.is_plain(), "{when}"),
                _ => sandbox.holds(&when),
            }
        }
        println!("{task:?}: {written} written, {refused} refused");
        assert!(
            refused > 0 && (written > 0 || task == Task::Decrypt),
            "{task:?}"
        );
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
    let sandbox = (1..20).find_map(|at| {
        let sandbox = whole.copy();
        assert!(sandbox.ours_killed_at(&reencrypt, "fsync", at));
        sandbox.path("J").exists().then_some(sandbox)
    });
    let sandbox = sandbox.expect("the journal has a name before anything else happens");
    assert!(sandbox.read("v") == before);
    let failed = sandbox.injected(&sandbox.our_command(&reencrypt), "fsync", "error=EIO");
    assert_eq!(failed.status.code(), Some(1));
    assert!(sandbox.read("v") == before);
    sandbox.ours(&reencrypt);
    sandbox.ours(&format!("open v {VERACRYPT}"));
}

/// A small volume is worked on as a whole, so that it has one part all the time.
#[test]
fn a_small_volume_that_was_put_back_keeps_its_data() {
    if !have(&["strace"]) {
        return;
    }
    let sandbox = Volume::empty();
    sandbox.ours(&format!("create v {VERACRYPT} --size 2MiB --quick --yes"));
    let newer = sandbox.copy();
    fs::write(newer.path("small"), &sandbox.plain[..1 << 20]).unwrap();
    newer.ours(&format!("import v {VERACRYPT} --input small --yes"));
    let reencrypt = format!("reencrypt v {VERACRYPT} --header h {CHEAP} --yes");
    let mut hot = 0;
    for at in 1..30 {
        let sandbox = sandbox.copy();
        if !sandbox.ours_killed_at(&reencrypt, "fdatasync", at) {
            break;
        }
        if !sandbox.metadata().contains("in-reencryption") {
            continue;
        }
        hot += 1;
        fs::copy(newer.path("v"), sandbox.path("v")).unwrap();
        sandbox.refused_as_other("v", &reencrypt);
    }
    assert!(hot > 0);
}
