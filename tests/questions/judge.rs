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
            (
                true,
                "has a header of its own, and h describes another encryption of the data",
            )
        }
        State::Unencrypted => {
            create("d.img --header h", sectors);
            file(sandbox, "d.img", 24 * MIB, &[(0, &ext4())]);
            (
                true,
                "would not be there if the data were encrypted this way",
            )
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
    const HEADER: usize = 16 << 10;
    for copy in image[..2 * HEADER].chunks_mut(HEADER) {
        let end = 4096 + copy[4096..].iter().position(|&byte| byte == 0).unwrap();
        let mut json: Value = serde_json::from_slice(&copy[4096..end]).unwrap();
        json["segments"]["0"]["encryption"] = "cipher_null-ecb".into();
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

#[test]
fn every_cell_of_the_table_is_what_the_program_does() {
    let sandbox = sandbox();
    for state in State::ALL {
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
                assert_eq!(answer.said.contains(words), is_refused, "{case}");
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
    for state in State::ALL {
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
