//! Two headers of one volume, or two reencryptions of one: neither is gone on with where that
//! would change the data twice.

use crate::kit::{OTHER, SIDE, Task, Volume};
use serde_json::Value;
use std::fs;
use testkit::{CHEAP, have};

/// Whether the header says that all the data are new, and that the old key is still to go.
fn says_done(sandbox: &Volume) -> bool {
    let metadata: Value = serde_json::from_str(&sandbox.metadata()).unwrap_or_default();
    let Some(segments) = metadata["segments"].as_object() else {
        return false;
    };
    let regular = segments.values().filter(|one| one.get("flags").is_none());
    let last = segments
        .values()
        .find(|one| one["flags"].to_string().contains("backup-final"));
    let mut regular: Vec<&Value> = regular.collect();
    let (Some(one), Some(last)) = (regular.pop(), last) else {
        return false;
    };
    regular.is_empty() && one["type"] == last["type"] && one["offset"] == last["offset"]
}

/// What was put back from a backup is other data also where the header says that all is done.
#[test]
fn done_is_done_with_its_own_data_alone() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    for (task, begin, header, go_on) in [
        (
            Task::Decrypt,
            "reencrypt v --decrypt",
            SIDE,
            "reencrypt v --decrypt",
        ),
        (
            Task::DecryptDetached,
            "reencrypt v --decrypt --header h",
            "h",
            "reencrypt v --header h",
        ),
    ] {
        let untouched = Volume::new(task);
        let begun = (4..20).find_map(|at| {
            let sandbox = untouched.copy();
            assert!(sandbox.ours_killed_at(begin, "fdatasync", at), "{task:?}");
            (sandbox.path(header).exists() && sandbox.is_begun()).then_some(sandbox)
        });
        let begun = begun.expect("it begins");
        begun.theirs(&format!("repair v --header {header}"));
        let resume =
            format!("reencrypt --resume-only --force-offline-reencrypt v --header {header}");
        let mut done = 0;
        // It is so for more writes than are left out.
        for at in (1..80).step_by(3) {
            let sandbox = begun.copy();
            if !sandbox.killed_at(&sandbox.their_command(&resume), "write,pwrite64", at) {
                break;
            }
            if !sandbox.path(header).exists() || !sandbox.is_begun() || !says_done(&sandbox) {
                continue;
            }
            fs::copy(untouched.path("v"), sandbox.path("v")).unwrap();
            let said = sandbox.refused("v", 4, go_on);
            if !said.contains(OTHER) {
                // Without its old keyslots nobody can tell.
                break;
            }
            done += 1;
        }
        assert!(done > 0, "{task:?} was never killed when all was done");
    }
}

/// Copies the header of the volume to a file of its own.
fn keep_header(sandbox: &Volume, name: &str) {
    let volume = sandbox.read("v");
    sandbox.write(name, &volume[..4 << 20]);
}

#[test]
fn a_copy_of_the_header_is_none_to_change_the_data_by() {
    if !have(&["strace"]) {
        return;
    }
    let untouched = Volume::new(Task::Reencrypt);
    keep_header(&untouched, "bak");
    for mode in ["--decrypt", CHEAP] {
        let sandbox = untouched.copy();
        let said = sandbox.refused("v", 4, &format!("reencrypt v --header bak {mode}"));
        assert!(said.contains("a header of its own"), "{said}");
    }
    // Taken in the middle, and older than the volume's own by now.
    let reencrypt = format!("reencrypt v {CHEAP}");
    let begun = (5..40).find_map(|at| {
        let sandbox = untouched.copy();
        assert!(sandbox.ours_killed_at(&reencrypt, "fdatasync", at));
        sandbox.is_begun().then_some(sandbox)
    });
    let sandbox = begun.expect("it begins");
    keep_header(&sandbox, "older");
    sandbox.refused("v", 4, "reencrypt v --header older");
    sandbox.ours("reencrypt v");
    sandbox.holds("by its own");
    // Without a header of its own it has the one that is named.
    let sandbox = untouched.copy();
    let mut bytes = sandbox.read("v");
    bytes[..4 << 20].fill(0);
    sandbox.write("v", bytes);
    sandbox.ours("reencrypt v --header bak --decrypt");
    let there = sandbox.read("v");
    assert!(there[4 << 20..] == sandbox.plain);
}

/// By the old key nobody writes into what has a new one.
#[test]
fn an_older_header_is_none_to_write_by() {
    let sandbox = Volume::new(Task::Reencrypt);
    let volume = sandbox.read("v");
    sandbox.write("older", &volume[..4 << 20]);
    // As long as it says the same, it is as good as the other.
    sandbox.ours("import v --header older --input plain --yes");
    sandbox.ours(&format!("reencrypt v {CHEAP}"));
    for command in [
        "import v --header older --input plain --yes",
        "serve v --header older --nbd s.sock --daemon",
    ] {
        let said = sandbox.refused("v", 4, command);
        assert!(said.contains("a header of its own"), "{said}");
    }
    sandbox.holds("by its own");
}

/// The rest of the data would be changed another time.
#[test]
fn a_copy_from_the_middle_is_none_when_the_volume_has_ended() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    let untouched = Volume::new(Task::Reencrypt);
    let reencrypt = format!("reencrypt v {CHEAP}");
    let mut copies = 0;
    for at in 5..60 {
        let sandbox = untouched.copy();
        if !sandbox.ours_killed_at(&reencrypt, "fdatasync", at) {
            break;
        }
        if !sandbox.is_begun() {
            continue;
        }
        copies += 1;
        keep_header(&sandbox, "middle");
        sandbox.ours("reencrypt v");
        for command in [
            "reencrypt v --header middle",
            "import v --header middle --input plain --yes",
        ] {
            let said = sandbox.refused("v", 4, command);
            assert!(said.contains("a header of its own"), "{at}: {said}");
            assert!(said.contains("Omit --header"), "{at}: {said}");
        }
        sandbox.holds("by its own");
    }
    assert!(copies > 2, "only {copies} copies");
}

/// The header that is named is the right one, and the volume's own is what must not be used.
#[test]
fn the_newer_header_can_be_put_into_the_volume() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let untouched = Volume::new(Task::Reencrypt);
    keep_header(&untouched, "newer");
    let theirs = format!("reencrypt --force-offline-reencrypt {CHEAP} v --header newer");
    let sandbox = untouched.copy();
    sandbox.theirs(&theirs);
    for command in [
        "import v --header newer --input plain --yes",
        &format!("reencrypt v --header newer {CHEAP}"),
    ] {
        let said = sandbox.refused("v", 4, command);
        assert!(said.contains("a header of its own"), "{said}");
        assert!(said.contains("header restore v --input newer"), "{said}");
    }
    sandbox.ours("header restore v --input newer --yes");
    sandbox.holds("put there");
    sandbox.ours("import v --input plain --yes");
    sandbox.ours(&format!("reencrypt v {CHEAP}"));
    sandbox.holds("changed");

    // What began by the header apart goes on by it.
    fs::rename(untouched.path("newer"), untouched.path("h")).unwrap();
    let init = format!("reencrypt --init-only --force-offline-reencrypt {CHEAP} v --header h");
    untouched.theirs(&init);
    for command in [
        "import v --header h --input plain --yes",
        "reencrypt v --header h",
    ] {
        let output = untouched.ours(command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("out of date"), "{command}: {said}");
    }
    untouched.holds("by the header apart");
}

#[test]
fn an_own_header_of_luks1_counts() {
    let sandbox = Volume::empty();
    let create = "create v --type luks1 --size 20MiB --pbkdf-force-iterations 1000 --yes";
    sandbox.ours(create);
    sandbox.ours("import v --input plain --yes");
    fs::copy(sandbox.path("v"), sandbox.path("copy")).unwrap();
    sandbox.volume("convert --type luks2 copy");
    for mode in ["--decrypt", CHEAP] {
        let said = sandbox.refused("v", 4, &format!("reencrypt v --header copy {mode}"));
        assert!(said.contains("a header of its own"), "{said}");
    }
    sandbox.holds("by its own");
}

/// The volume was made anew, and the header of before has the same passphrase.
#[test]
fn a_header_of_another_volume_is_asked_about() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = Volume::new(Task::Reencrypt);
    keep_header(&sandbox, "before");
    sandbox.theirs(&format!("luksFormat {CHEAP} --offset 8192 v"));
    sandbox.ours("import v --input plain --yes");
    for mode in ["--decrypt", CHEAP] {
        let reencrypt = format!("reencrypt v --header before {mode}");
        let said = sandbox.refused("v", 4, &reencrypt);
        assert!(said.contains("of another LUKS volume"), "{said}");
        sandbox.copy().ours(&format!("{reencrypt} --yes"));
    }
    sandbox.holds("by its own");
}

/// A header that was erased after it was copied elsewhere leaves the copy as the only one.
#[test]
fn a_header_without_key_slots_does_not_count() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = Volume::new(Task::Reencrypt);
    keep_header(&sandbox, "h");
    sandbox.ours("key kill v --key-slot 0 --yes");
    sandbox.ours(&format!("reencrypt v --header h {CHEAP}"));
    sandbox.holds("another key");
    sandbox.ours("import v --header h --input plain --yes");
    sandbox.ours("reencrypt v --header h --decrypt");
    let there = sandbox.read("v");
    assert!(there[4 << 20..] == sandbox.plain);
}

/// One that has no passphrase any more still tells that the data have another key.
#[test]
fn an_erased_header_of_a_newer_key_counts() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = Volume::new(Task::Reencrypt);
    keep_header(&sandbox, "older");
    sandbox.ours(&format!("reencrypt v {CHEAP}"));
    keep_header(&sandbox, "newer");
    sandbox.ours("key kill v --key-slot 1 --yes");
    let before = sandbox.read("v");
    for command in [
        "import v --header older --input plain --yes",
        &format!("reencrypt v --header older {CHEAP}"),
        "reencrypt v --header older --decrypt",
    ] {
        let said = sandbox.refused("v", 4, command);
        assert!(said.contains("a header of its own"), "{said}");
        assert!(sandbox.read("v") == before, "{command}");
    }
    sandbox.ours("import v --header newer --input plain --yes");
    sandbox.ours("header restore v --input newer --yes");
    sandbox.holds("by the newer one");
}

/// Half of the data are of another reencryption, whose header would be forgotten.
#[test]
fn what_is_half_decrypted_is_not_encrypted_beside_that() {
    if !have(&["strace"]) {
        return;
    }
    let untouched = Volume::new(Task::Decrypt);
    let half = (6..40).find_map(|at| {
        let sandbox = untouched.copy();
        assert!(sandbox.ours_killed_at("reencrypt v --decrypt", "fdatasync", at));
        (sandbox.path(SIDE).exists() && sandbox.is_begun()).then_some(sandbox)
    });
    let sandbox = half.expect("it begins");
    let encrypt = format!("reencrypt v --encrypt --header h2 {CHEAP}");
    let said = sandbox.refused("v", 4, &encrypt);
    assert!(said.contains(SIDE), "{said}");
    sandbox.ours("reencrypt v --decrypt");
    assert!(sandbox.is_plain());
}

#[test]
fn what_is_decrypted_is_not_called_encrypted() {
    let sandbox = Volume::new(Task::EncryptDetached);
    let encrypt = format!("reencrypt v --encrypt --header h {CHEAP}");
    sandbox.ours(&encrypt);
    sandbox.ours("reencrypt v --decrypt --header h");
    for command in [&*encrypt, "reencrypt v --header h"] {
        let said = sandbox.refused("v", 4, command);
        assert!(said.contains("decrypted"), "{command}: {said}");
    }
    fs::remove_file(sandbox.path("h")).unwrap();
    sandbox.write(SIDE, "");
    let said = sandbox.refused("v", 4, &format!("reencrypt v --encrypt {CHEAP}"));
    assert!(said.contains(SIDE), "{said}");
}

/// cryptsetup moves more than there is, or goes on in blocks that the data are not made of.
#[test]
fn little_data_that_move_are_ours_alone() {
    if !have(&["strace", "cryptsetup"]) {
        return;
    }
    let up = Volume::empty();
    fs::write(up.path("v"), &up.plain).unwrap();
    let down = Volume::empty();
    down.make((16 << 20) + 3072);
    down.ours(&format!("create v --sector-size 1024 {CHEAP} --yes"));
    fs::write(down.path("small"), &down.plain[..3072]).unwrap();
    down.ours("import v --input small --yes");
    let encrypt = format!("reencrypt v --encrypt {CHEAP}");
    for (whole, command, end) in [
        (up, &*encrypt, "reencrypt v"),
        (down, "reencrypt v --decrypt", "reencrypt v --decrypt"),
    ] {
        let mut begun = 0;
        for at in 5..60 {
            let sandbox = whole.copy();
            if !sandbox.ours_killed_at(command, "fdatasync", at) {
                break;
            }
            if !sandbox.is_begun() {
                continue;
            }
            begun += 1;
            let before = sandbox.read("v");
            let header = match sandbox.path(SIDE).exists() {
                true => format!("--header {SIDE}"),
                false => String::new(),
            };
            let resume = format!("reencrypt --resume-only --force-offline-reencrypt v {header}");
            for theirs in [format!("repair v {header}"), resume] {
                let output = sandbox.their_command(&theirs).output().unwrap();
                assert!(!output.status.success(), "{at}: {theirs}");
                assert!(sandbox.read("v") == before, "{at}: {theirs}");
            }
            sandbox.ours(end);
            match end == command {
                true => assert!(sandbox.read("v") == sandbox.plain[..3072]),
                false => sandbox.holds("ended"),
            }
        }
        assert!(begun > 0, "{command} was never killed in the middle");
    }
}
