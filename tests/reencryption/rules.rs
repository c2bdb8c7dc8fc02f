//! What must hold of every reencryption, whoever began it.

use crate::kit::{By, Task, Volume, delays};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use testkit::{CHEAP, have};

/// Changes the JSON of both copies as somebody can who has the disk and no key.
fn forge(sandbox: &Volume, edit: impl Fn(&mut Value)) {
    let mut bytes = sandbox.read("v");
    for at in [0, 16 << 10] {
        let copy = &mut bytes[at..][..16 << 10];
        let end = copy[4096..].iter().position(|byte| *byte == 0).unwrap();
        let mut json: Value = serde_json::from_slice(&copy[4096..][..end]).unwrap();
        edit(&mut json);
        copy[4096..].fill(0);
        let text = json.to_string();
        copy[4096..][..text.len()].copy_from_slice(text.as_bytes());
        copy[448..512].fill(0);
        let checksum = Sha256::digest(&*copy);
        copy[448..480].copy_from_slice(&checksum);
    }
    sandbox.write("v", bytes);
}

/// CVE-2021-4122: a header that says that the volume is being decrypted would have the next
/// opening write what stands in the "journal" into the volume, and plaintext after it.
#[test]
fn a_forged_decryption_is_not_gone_on_with() {
    if !have(&["cryptsetup"]) {
        return;
    }
    for hot in [false, true] {
        let sandbox = Volume::new(Task::Reencrypt);
        forge(&sandbox, |json| {
            let mut segment = json["segments"]["0"].clone();
            segment["flags"] = json!(["backup-previous"]);
            let linear = |flag: &str, size: &str| json!({ "type": "linear", "offset": "4194304", "size": size, "flags": [flag] });
            let mut segments = vec![json["segments"]["0"].clone()];
            if hot {
                let mut rest = json["segments"]["0"].clone();
                rest["offset"] = json!("4259840");
                rest["iv_tweak"] = json!("128");
                segments = vec![linear("in-reencryption", "65536"), rest];
            }
            let regular = segments.len();
            segments.push(segment);
            segments.push(linear("backup-final", "dynamic"));
            let keyed: Vec<String> = (usize::from(hot)..=regular)
                .map(|at| at.to_string())
                .collect();
            let numbers = (0..).map(|number: u32| number.to_string());
            json["segments"] = Value::Object(numbers.zip(segments).collect());
            json["keyslots"]["7"] = json!({
                "type": "reencrypt", "key_size": 1, "mode": "decrypt", "direction": "forward",
                "area": { "type": "journal", "offset": "1048576", "size": "65536" },
            });
            json["digests"]["7"] = json["digests"]["0"].clone();
            json["digests"]["7"]["keyslots"] = json!(["7"]);
            json["digests"]["7"]["segments"] = json!([]);
            json["digests"]["0"]["segments"] = json!(keyed);
            json["config"]["requirements"] = json!({ "mandatory": ["online-reencrypt-v2"] });
        });
        for arguments in [
            "open v",
            "export v --output out",
            "import v --input plain --yes",
            "reencrypt v",
            "reencrypt v --decrypt",
        ] {
            let said = sandbox.refused("v", 4, arguments);
            assert!(said.contains("not bound to the volume's keys"), "{said}");
        }
        let theirs = sandbox.their_command("reencrypt --resume-only --force-offline-reencrypt v");
        let mut theirs = theirs;
        assert!(!theirs.output().unwrap().status.success(), "they take it");
    }
}

/// Nothing is replayed because somebody opens the volume for writing.
#[test]
fn a_write_does_not_replay() {
    if !have(&["cryptsetup"]) {
        return;
    }
    for by in [By::Us, By::Them] {
        let hot = (0..50).find_map(|_| {
            let sandbox = Volume::killed(Task::Reencrypt, by, "journal");
            sandbox
                .metadata()
                .contains("in-reencryption")
                .then_some(sandbox)
        });
        let sandbox = hot.expect("a kill in the middle of a write");
        sandbox.holds("hot");
        let said = sandbox.refused("v", 4, "import v --input plain --yes");
        assert!(said.contains("cryptmark volume reencrypt"), "{said}");
        sandbox.finish(Task::Reencrypt, By::Us);
        sandbox.ended(Task::Reencrypt, true);
    }
}

/// While it lasts, nothing else changes the header.
#[test]
fn the_header_is_left_alone_meanwhile() {
    if !have(&["cryptsetup"]) {
        return;
    }
    for by in [By::Us, By::Them] {
        let sandbox = Volume::killed(Task::Reencrypt, by, "checksum");
        for arguments in [
            "key kill v --key-slot 0 --yes",
            "key add v --new-passphrase-file plain",
            "passwd v --new-passphrase-file line",
            "resize v --to 64MiB",
            "reencrypt v --decrypt",
            "reencrypt v --encrypt",
        ] {
            sandbox.refused("v", 4, arguments);
        }
        let before = sandbox.read("v");
        let mut label = std::process::Command::new(env!("CARGO_BIN_EXE_cryptmark"));
        label.args(["volume", "header", "set", "--label", "x"]);
        let set = label.arg(sandbox.path("v")).output().unwrap();
        assert_eq!(set.status.code(), Some(4));
        assert!(sandbox.read("v") == before);
        // They refuse on ours what they refuse on theirs.
        for arguments in [
            "luksAddKey v line",
            "config v --label x",
            "luksConvertKey v",
        ] {
            let theirs = sandbox.their_command(arguments).output().unwrap();
            assert!(!theirs.status.success(), "{arguments}");
        }
        sandbox.finish(Task::Reencrypt, by);
        sandbox.ended(Task::Reencrypt, true);
    }
}

/// Numbers of digests are free to choose: theirs goes on at 1 after a whole reencryption.
#[test]
fn reencryptions_of_both_follow_one_another() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = Volume::new(Task::Reencrypt);
    for round in 0..3 {
        sandbox.theirs(&format!(
            "reencrypt --force-offline-reencrypt {CHEAP} --resilience journal v"
        ));
        sandbox.holds(&format!("theirs {round}"));
        sandbox.ours(&format!("reencrypt v {CHEAP}"));
        sandbox.ended(Task::Reencrypt, true);
    }
}

/// A key that belongs to no data belongs to the user all the same.
#[test]
fn an_unbound_key_survives() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = Volume::new(Task::Reencrypt);
    sandbox.theirs(&format!(
        "luksAddKey {CHEAP} --unbound --key-size 256 --key-slot 5 v line"
    ));
    sandbox.ours(&format!("reencrypt v {CHEAP}"));
    sandbox.ended(Task::Reencrypt, true);
    sandbox.theirs("luksDump --unbound --key-slot 5 v");
    // Decryption leaves no header to keep it in.
    let said = sandbox.refused("v", 4, "reencrypt v --decrypt");
    assert!(said.contains("would lose key slot 5"), "{said}");
    sandbox.ours("reencrypt v --decrypt --yes");
    sandbox.ended(Task::Decrypt, true);
}

/// The end of data that is no whole sector is data.
#[test]
fn a_tail_is_kept() {
    for (bytes, options) in [
        (3_000_100, ""),
        (3_000_100, "--sector-size 4096"),
        ((1 << 20) + 512, "--sector-size 4096"),
        (1, ""),
        (100, "--sector-size 4096"),
    ] {
        for header in ["", "--header h"] {
            let sandbox = Volume::empty();
            sandbox.write("v", &sandbox.plain[..bytes]);
            sandbox.ours(&format!("reencrypt v --encrypt {CHEAP} {options} {header}"));
            let there = sandbox
                .ours(&format!("export v {header} --output -"))
                .stdout;
            assert!(
                there.starts_with(&sandbox.plain[..bytes]),
                "{bytes} {options}"
            );
            assert!(there.len() < bytes + 4096);
            sandbox.ours(&format!("reencrypt v --decrypt {header}"));
            let again = sandbox.read("v");
            assert!(
                again.starts_with(&sandbox.plain[..bytes]),
                "{bytes} {options}"
            );
            assert!(again[bytes..].iter().all(|byte| *byte == 0));
            assert!(again.len() < bytes + 4096);
        }
    }
}

/// A volume that ends before its device does is ours alone to finish, and cryptsetup knows.
#[test]
fn what_they_could_not_finish_they_do_not_touch() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = delays().find_map(|within| {
        let sandbox = Volume::new(Task::Reencrypt);
        let file = fs::File::options().write(true).open(sandbox.path("v"));
        let file = file.unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length + 512).unwrap();
        drop(file);
        let begun = sandbox.begin_and_kill(Task::Reencrypt, By::Us, "journal", within);
        begun.then_some(sandbox)
    });
    let sandbox = sandbox.expect("a kill before the end");
    // A repair may write an old copy of the header anew; what it tells is the same.
    let metadata = || {
        let mut dump = sandbox.their_command("luksDump --dump-json-metadata v");
        dump.output().unwrap().stdout
    };
    let before = metadata();
    assert!(!before.is_empty());
    for arguments in [
        "repair v",
        "reencrypt --resume-only --force-offline-reencrypt v",
    ] {
        sandbox.their_command(arguments).output().unwrap();
        assert!(metadata() == before, "{arguments}");
    }
    sandbox.holds("with a tail");
    sandbox.ours("reencrypt v");
    sandbox.ended(Task::Reencrypt, true);
}
