//! The judge's own table, cell by cell: every state, built as files, against every use, as a command
//! and as the engine's function. The table decides what is expected.

use super::losses::ext4;
use super::{file, run, sandbox};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use testkit::{CHEAP, Sandbox};
use volume::judge::{Ruling, State, Use};
use volume::{Access, OpenOptions, Secret, Volume, VolumeError};

const MIB: u64 = 1 << 20;

/// A command for each use, of the volume `V`, which may be more than its image.
fn command(use_: Use) -> String {
    match use_ {
        Use::Read => "open V --passphrase-file pass".into(),
        Use::WriteData => "serve V --nbd sock --daemon --passphrase-file pass".into(),
        Use::ChangeHeader => {
            format!("key add V --passphrase-file pass --new-passphrase-file other {CHEAP}")
        }
        Use::ChangeLayout => "resize V --to 30MiB".into(),
        Use::MendHeader => "header repair V --passphrase-file pass".into(),
        Use::Reencrypt => format!("reencrypt V --passphrase-file pass {CHEAP} --no-progress"),
        Use::Encrypt => {
            format!("reencrypt d.img --encrypt --header new --passphrase-file pass {CHEAP}")
        }
        Use::Overwrite => format!("create d.img --passphrase-file pass {CHEAP}"),
    }
}

/// Makes `d.img`, and `h` if the header is apart: whether it is, and the words of the refusal.
fn build(sandbox: &Sandbox, state: State) -> (bool, &'static str) {
    for name in ["d.img", "h", "new"] {
        let _ = fs::remove_file(sandbox.path(name));
    }
    let create = |names: &str, size: u64| {
        sandbox.volume(&format!(
            "create {names} --size {size} --passphrase-file pass {CHEAP}"
        ));
    };
    let sectors = 24 * MIB / 512;
    match state {
        State::Data => {
            create("d.img", sectors);
            (false, "holds a LUKS2 volume")
        }
        State::StaleHeader => {
            create("d.img", sectors);
            let mut image = sandbox.read("d.img");
            image[..16 << 10].fill(0);
            image[..512].copy_from_slice(&table());
            sandbox.write("d.img", image);
            (false, "what is left of that header is older")
        }
        State::Member => {
            create("d.img", sectors);
            let mut image = sandbox.read("d.img");
            let at = (image.len() - 8192) & !4095;
            image[at..at + 4].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
            sandbox.write("d.img", image);
            (false, "the other disks would differ from it")
        }
        State::Unfinished => {
            create("d.img --type luks1", sectors);
            let mut image = sandbox.read("d.img");
            image[4..6].copy_from_slice(&[0xde, 0xad]);
            sandbox.write("d.img", image);
            (
                false,
                "has begun to reencrypt this LUKS volume and has not finished",
            )
        }
        State::Exposed => {
            create("d.img", sectors);
            let mut image = sandbox.read("d.img");
            expose(&mut image);
            sandbox.write("d.img", image);
            (
                false,
                "is exposed: the data of this volume are not encrypted",
            )
        }
        State::OtherHeader => {
            create("d.img", sectors);
            sandbox.volume("header backup d.img --output h");
            sandbox.volume(&format!(
                "reencrypt d.img --passphrase-file pass {CHEAP} --no-progress"
            ));
            (true, "a header of its own")
        }
        State::Unencrypted => {
            create("d.img --header h", sectors);
            file(sandbox, "d.img", 24 * MIB, &[(0, &ext4())]);
            (
                true,
                "would not be there if the data were encrypted this way",
            )
        }
        State::Weak
        | State::Keyslots
        | State::Hidden
        | State::Behind
        | State::CutOff
        | State::Replaced
        | State::Unproved => {
            unreachable!("`CHOICES` has them")
        }
        State::Unknown => {
            create("other.img --header h2", sectors);
            create("d.img --header h", sectors);
            let plain = ext4();
            file(sandbox, "fs", MIB, &[(0, &plain), (4096, &[7; 4096])]);
            sandbox.volume("import other.img --header h2 --input fs --passphrase-file pass");
            fs::rename(sandbox.path("other.img"), sandbox.path("d.img")).unwrap();
            (true, "decrypt to noise")
        }
    }
}

/// Has both copies of the header say that the data have no cipher.
fn expose(image: &mut [u8]) {
    rewrite(image, |json| {
        json["segments"]["0"]["encryption"] = "cipher_null-ecb".into();
    });
}

/// Changes the metadata in both copies of a LUKS2 header.
fn rewrite(image: &mut [u8], change: impl Fn(&mut Value)) {
    const HEADER: usize = 16 << 10;
    for copy in image[..2 * HEADER].chunks_mut(HEADER) {
        let end = 4096 + copy[4096..].iter().position(|&byte| byte == 0).unwrap();
        let mut json: Value = serde_json::from_slice(&copy[4096..end]).unwrap();
        change(&mut json);
        let text = json.to_string();
        copy[4096..].fill(0);
        copy[4096..4096 + text.len()].copy_from_slice(text.as_bytes());
        copy[448..512].fill(0);
        let digest = Sha256::digest(&*copy);
        copy[448..480].copy_from_slice(&digest);
    }
}

/// An MBR with one partition.
fn table() -> [u8; 512] {
    let mut sector = [0; 512];
    let entry = [0x80, 0, 1, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0];
    sector[446..462].copy_from_slice(&entry);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// A loss that follows from what is chosen: the state, the use, what makes the volume, the command,
/// and the words of its question.
type Choice = (
    State,
    Use,
    &'static [&'static str],
    &'static str,
    &'static str,
);

const MAKE: &str = "create d.img --size 24MiB --passphrase-file pass CHEAP";
const VERA: &str = "create d.img --size 4MiB --type veracrypt --quick --passphrase-file pass";

const CHOICES: [Choice; 16] = [
    (
        State::Weak,
        Use::Overwrite,
        &[],
        "create d.img --size 24MiB --cipher aes-ecb --passphrase-file pass CHEAP",
        "aes-ecb does not protect",
    ),
    (
        State::Weak,
        Use::Overwrite,
        &[],
        "create d.img --size 4MiB --type veracrypt --veracrypt-pim 1 --quick --passphrase-file short",
        "makes passphrases cheap to guess",
    ),
    (
        State::Weak,
        Use::Encrypt,
        &["DATA"],
        "reencrypt d.img --encrypt --header new --cipher aes-ecb --passphrase-file pass CHEAP",
        "aes-ecb does not protect",
    ),
    (
        State::Weak,
        Use::Reencrypt,
        &[MAKE],
        "reencrypt d.img --cipher aes-ecb --passphrase-file pass CHEAP",
        "aes-ecb does not protect",
    ),
    (
        State::Keyslots,
        Use::Reencrypt,
        &[
            MAKE,
            "key add d.img --passphrase-file pass --new-passphrase-file other CHEAP",
        ],
        "reencrypt d.img --passphrase-file pass CHEAP",
        "would lose 1 more key slot",
    ),
    (
        State::Hidden,
        Use::Reencrypt,
        &[VERA],
        "reencrypt d.img --type veracrypt --passphrase-file pass CHEAP",
        "may have a hidden volume",
    ),
    (
        State::Behind,
        Use::ChangeLayout,
        &[MAKE, "BEHIND"],
        "resize d.img --to 30MiB",
        "holds data behind the volume",
    ),
    (
        State::Behind,
        Use::ChangeLayout,
        &[VERA, "BEHIND"],
        "resize d.img --type veracrypt --to 30MiB --passphrase-file pass",
        "holds data behind the volume",
    ),
    (
        State::Behind,
        Use::Reencrypt,
        &[MAKE, "BEHIND"],
        "reencrypt d.img --decrypt --passphrase-file pass",
        "holds data behind the volume",
    ),
    (
        State::CutOff,
        Use::ChangeLayout,
        &[MAKE],
        "resize d.img --to 20MiB",
        "which would be cut off",
    ),
    (
        State::CutOff,
        Use::ChangeLayout,
        &[MAKE, "FIXED"],
        "resize d.img --to 20MiB",
        "which would be cut off",
    ),
    (
        State::CutOff,
        Use::ChangeLayout,
        &["create d.img --size 24MiB --type luks1 --passphrase-file pass CHEAP"],
        "resize d.img --to 20MiB",
        "which would be cut off",
    ),
    (
        State::Replaced,
        Use::MendHeader,
        &[
            MAKE,
            "header backup d.img --output saved",
            "key add d.img --passphrase-file pass --new-passphrase-file other CHEAP",
        ],
        "header restore d.img --input saved",
        "would lose keyslot 1",
    ),
    (
        State::Replaced,
        Use::MendHeader,
        &[
            VERA,
            "header backup d.img --type veracrypt --output saved",
            "create d.img --type veracrypt --quick --passphrase-file pass --yes",
        ],
        "header restore d.img --type veracrypt --input saved --passphrase-file pass",
        "could never be read again",
    ),
    (
        State::Unproved,
        Use::MendHeader,
        &[MAKE, "UNSURE"],
        "header repair d.img",
        "nothing proves that it is right",
    ),
    (
        State::Replaced,
        Use::MendHeader,
        &[MAKE, "header backup d.img --output saved", "ROT"],
        "header restore d.img --input saved",
        "the key material of its key slots",
    ),
];

/// The states that stand at a place; the others follow from a choice.
fn standing() -> impl Iterator<Item = State> {
    let chosen = |state: &State| CHOICES.iter().any(|choice| choice.0 == *state);
    State::ALL.into_iter().filter(move |state| !chosen(state))
}

/// Makes the length of the data in a LUKS2 header a fixed one.
fn fix(image: &mut [u8], bytes: u64) {
    rewrite(image, |json| {
        json["segments"]["0"]["size"] = bytes.to_string().into();
    });
}

#[test]
fn every_choice_that_loses_something_is_asked_for() {
    let sandbox = sandbox();
    sandbox.write("short", "few letters\n");
    for state in State::ALL
        .into_iter()
        .filter(|state| !standing().any(|other| other == *state))
    {
        for use_ in Use::ALL.into_iter().filter(|use_| *use_ != Use::Overwrite) {
            let is_tried = CHOICES
                .iter()
                .any(|choice| (choice.0, choice.1) == (state, use_));
            assert_eq!(
                use_.ruling(state) == Ruling::Ask,
                is_tried,
                "{state:?} {use_:?}"
            );
        }
    }
    for (state, _, makes, line, words) in CHOICES {
        for name in ["d.img", "new", "saved"] {
            let _ = fs::remove_file(sandbox.path(name));
        }
        for make in makes {
            match *make {
                "DATA" => file(&sandbox, "d.img", 24 * MIB, &[(4096, &[7; 4096])]),
                "FIXED" => {
                    let mut image = sandbox.read("d.img");
                    fix(&mut image, 8 * MIB);
                    sandbox.write("d.img", image);
                }
                "ROT" => {
                    let mut saved = sandbox.read("saved");
                    saved[40 << 10..44 << 10].fill(0x5a);
                    sandbox.write("saved", saved);
                }
                "UNSURE" => {
                    let mut image = sandbox.read("d.img");
                    // The JSON areas stay.
                    for copy in [0, 16 << 10] {
                        image[copy..copy + 4096].fill(0);
                    }
                    sandbox.write("d.img", image);
                }
                "BEHIND" => {
                    let mut image = sandbox.read("d.img");
                    let end = image.len() as u64;
                    if image.starts_with(b"LUKS") {
                        fix(&mut image, end - 16 * MIB);
                    }
                    image.resize(25 << 20, 0);
                    image[(end + 8192) as usize..][..16].copy_from_slice(b"mine, not theirs");
                    sandbox.write("d.img", image);
                }
                command => {
                    sandbox.volume(&command.replace("CHEAP", CHEAP));
                }
            }
        }
        let before = sandbox
            .path("d.img")
            .exists()
            .then(|| sandbox.read("d.img"));
        let line = line.replace("CHEAP", CHEAP);
        let answer = run(&sandbox, &line, b"");
        let case = format!("{state:?}: `{line}` {answer:?}");
        assert_eq!(answer.code, Some(4), "{case}");
        assert!(answer.said.contains(words), "{case}");
        let after = sandbox
            .path("d.img")
            .exists()
            .then(|| sandbox.read("d.img"));
        assert!(after == before, "{case}");
        assert!(!sandbox.path("new").exists(), "{case}");
        let answer = run(&sandbox, &format!("{line} --yes"), b"");
        assert_eq!(answer.code, Some(0), "{case}: {answer:?}");
    }
}

/// What a tester lost after the table was there: one copy of a header that is newer than the good one,
/// a header without its data, and what one question hid of another.
#[test]
fn no_key_is_lost_by_a_repair_a_size_or_another_question() {
    let sandbox = sandbox();
    let make = |name: &str| {
        sandbox.volume(&format!(
            "create {name} --size 24MiB --passphrase-file pass {CHEAP}"
        ));
    };
    make("d.img");
    let old = sandbox.read("d.img");
    sandbox.volume(&format!(
        "passwd d.img --passphrase-file pass --new-passphrase-file other {CHEAP}"
    ));
    let mut image = sandbox.read("d.img");
    // The second copy is the older one, and the newer has lost its magic, or more.
    image[16 << 10..32 << 10].copy_from_slice(&old[16 << 10..32 << 10]);
    image[..6].fill(0);
    sandbox.write("d.img", &image);
    sandbox.volume("header repair d.img");
    sandbox.volume("open d.img --passphrase-file other");
    image[5000..5010].fill(b'!');
    sandbox.write("d.img", &image);
    let answer = run(&sandbox, "header repair d.img", b"");
    assert_eq!(answer.code, Some(4), "{answer:?}");
    assert!(answer.said.contains("which is newer"), "{answer:?}");
    assert!(sandbox.read("d.img") == image);
    // The second copy is another volume's.
    make("foreign");
    let mut mixed = old.clone();
    mixed[16 << 10..32 << 10].copy_from_slice(&sandbox.read("foreign")[16 << 10..32 << 10]);
    sandbox.write("d.img", &mixed);
    let answer = run(&sandbox, "header repair d.img", b"");
    assert_eq!(answer.code, Some(4), "{answer:?}");
    assert!(sandbox.read("d.img") == mixed);

    // A header without its data.
    for kind in ["luks1", "luks2"] {
        let create = format!("create data --header h --type {kind} --size 24MiB");
        sandbox.volume(&format!("{create} --passphrase-file pass {CHEAP}"));
        let header = sandbox.read("h");
        let mut lines = vec!["resize h --to 64KiB --yes".to_owned()];
        if kind == "luks2" {
            for mode in ["", "--decrypt"] {
                let reencrypt = "reencrypt h --passphrase-file pass --no-progress";
                lines.push(format!("{reencrypt} {CHEAP} {mode}"));
            }
        }
        for line in lines {
            let answer = run(&sandbox, &line, b"");
            assert!(matches!(answer.code, Some(2 | 4)), "{line}: {answer:?}");
            assert!(sandbox.read("h") == header, "{line}: {answer:?}");
        }
        for name in ["data", "h"] {
            fs::remove_file(sandbox.path(name)).unwrap();
        }
    }

    // What --yes accepts is said at once.
    sandbox.write("d.img", &old);
    sandbox.volume(&format!(
        "key add d.img --passphrase-file pass --new-passphrase-file other {CHEAP}"
    ));
    let line = format!("reencrypt d.img --cipher aes-ecb --passphrase-file pass {CHEAP}");
    let answer = run(&sandbox, &line, b"");
    assert!(answer.said.contains("does not protect"), "{answer:?}");
    assert!(
        answer.said.contains("1 more of its key slots"),
        "{answer:?}"
    );
    file(&sandbox, "d.img", 30 * MIB, &[]);
    let mut image = old;
    fix(&mut image, 6 * MIB);
    image.resize(30 << 20, 7);
    sandbox.write("d.img", image);
    let answer = run(&sandbox, "resize d.img --to 20MiB", b"");
    assert!(answer.said.contains("behind the volume"), "{answer:?}");
}

#[test]
fn every_cell_of_the_table_is_what_the_program_does() {
    let sandbox = sandbox();
    for state in standing() {
        let (is_apart, words) = build(&sandbox, state);
        let names: &[&str] = if is_apart {
            &["d.img", "h"]
        } else {
            &["d.img"]
        };
        let before: Vec<Vec<u8>> = names.iter().map(|name| sandbox.read(name)).collect();
        let volume = if is_apart {
            "d.img --header h"
        } else {
            "d.img"
        };
        for use_ in Use::ALL {
            let ruling = use_.ruling(state);
            // Whatever it is, it goes.
            let words = match use_ {
                Use::Overwrite => "All of that would be lost",
                _ => words,
            };
            for yes in [false, true] {
                // Such a header cannot be read at all.
                if (state, use_) == (State::Unfinished, Use::Read) {
                    continue;
                }
                // Not every command has the option.
                if yes && matches!(use_, Use::Read | Use::ChangeHeader) {
                    continue;
                }
                for (name, bytes) in names.iter().zip(&before) {
                    sandbox.write(name, bytes);
                }
                let _ = fs::remove_file(sandbox.path("new"));
                let mut line = command(use_).replace('V', volume);
                if yes {
                    line += " --yes";
                }
                let answer = run(&sandbox, &line, b"");
                let is_refused = match ruling {
                    Ruling::Allowed => false,
                    Ruling::Ask => !yes,
                    Ruling::Refused => true,
                };
                let case = format!("{state:?} {use_:?} {yes}: `{line}` {answer:?}");
                // Who reads data that do not fit is warned, and not refused.
                let is_said = answer.said.contains(words) && !answer.said.starts_with("warning");
                assert_eq!(is_said, is_refused, "{case}");
                if is_refused {
                    assert_eq!(answer.code, Some(4), "{case}");
                    for (name, bytes) in names.iter().zip(&before) {
                        assert!(sandbox.read(name) == *bytes, "{case}: {name} was changed");
                    }
                }
                if use_ == Use::WriteData && answer.code == Some(0) {
                    sandbox.volume("umount d.img");
                }
            }
        }
    }
}

#[test]
fn the_engine_says_the_same_as_the_program() {
    let sandbox = sandbox();
    let secret = Secret::Passphrase(cipher::Key::from_slice(b"a passphrase of many letters"));
    for state in standing() {
        let (is_apart, _) = build(&sandbox, state);
        for (access, use_) in [(Access::Read, Use::Read), (Access::Write, Use::WriteData)] {
            if (state, use_) == (State::Unfinished, Use::Read) {
                continue;
            }
            for accepted in [&[][..], &[state]] {
                let options = OpenOptions {
                    header: is_apart.then(|| sandbox.path("h")),
                    access,
                    accepted,
                    ..OpenOptions::default()
                };
                let opened = Volume::open(&sandbox.path("d.img"), Some(&secret), &options);
                let is_refused = match use_.ruling(state) {
                    Ruling::Allowed => false,
                    Ruling::Ask => accepted.is_empty(),
                    Ruling::Refused => true,
                };
                match opened {
                    Err(VolumeError::Judged(finding)) => {
                        assert!(is_refused, "{state:?} {use_:?}: {finding}");
                        assert_eq!((finding.state, finding.use_), (state, use_));
                    }
                    Err(VolumeError::Unfinished(_)) => assert!(is_refused, "{state:?}"),
                    opened => assert!(opened.is_ok() && !is_refused, "{state:?}: {opened:?}"),
                }
            }
        }
    }
}

/// What takes the place of a header, and leaves enough of it for programs that look no further.
#[test]
fn an_old_header_under_something_new_is_not_written() {
    const VERA: &str = "--type veracrypt --veracrypt-pim 1 --hash sha512";
    let sandbox = sandbox();
    let mut protective = table();
    protective[446 + 4] = 0xee;
    let mut away = table();
    away[446 + 8..446 + 12].copy_from_slice(&(16_384_u32).to_le_bytes());
    let ext4 = ext4();
    // From which byte on, and what.
    let tables: [(usize, &[u8]); 3] = [
        (440, &table()[440..]),
        (440, &protective[440..]),
        (440, &away[440..]),
    ];
    for kind in ["luks1", "luks2", "veracrypt"] {
        let (make, options) = match kind {
            "veracrypt" => (format!("{VERA} --quick"), format!("{VERA} --tcrypt-backup")),
            kind => (format!("--type {kind} {CHEAP}"), String::new()),
        };
        let secret = "--passphrase-file pass";
        for (at, over) in tables.into_iter().chain([(0, &*ext4)]) {
            for name in ["d.img", "saved"] {
                let _ = fs::remove_file(sandbox.path(name));
            }
            sandbox.volume(&format!("create d.img --size 24MiB {make} {secret}"));
            let backup = if options.is_empty() { "" } else { VERA };
            sandbox.volume(&format!("header backup d.img {backup} --output saved"));
            let mut image = sandbox.read("d.img");
            // A file system clears the rest of the header's place.
            if at == 0 {
                image[..128 << 10].fill(0);
            }
            image[at..at + over.len()].copy_from_slice(over);
            let mut lines = vec![
                format!("serve d.img {options} {secret} --nbd sock --daemon --yes"),
                format!("import d.img {options} {secret} --input other --yes"),
                format!("passwd d.img {options} {secret} --new-passphrase-file other"),
                format!("header restore d.img {options} {secret} --input saved"),
            ];
            match kind {
                "luks1" => lines.push("convert d.img --type luks2".into()),
                "luks2" => lines.push("convert d.img --type luks1".into()),
                _ => {}
            }
            if options.is_empty() {
                lines.push(format!("header repair d.img {secret}"));
            }
            for line in lines {
                sandbox.write("d.img", &image);
                let answer = run(&sandbox, &line, b"");
                let case = format!("{kind} {at}: {line}: {answer:?}");
                assert!(matches!(answer.code, Some(2 | 4)), "{case}");
                assert!(sandbox.read("d.img") == image, "{case}");
            }
        }
    }
}
