//! The judge's own table, cell by cell: every state, built as files, against every use, as a command
//! and as the engine's function. The table decides what is expected.

use super::states::{CHOICES, MIB, build, command, ext4, file, fix, make, standing, table};
use super::{run, sandbox};
use std::fs;
use testkit::CHEAP;
use volume::judge::{Ruling, State, Use};
use volume::{Access, OpenOptions, Secret, Volume, VolumeError};

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
        make(&sandbox, makes);
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
