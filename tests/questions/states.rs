//! What the judge's table has rows for, built as files, and a command for each use.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use testkit::{CHEAP, Sandbox};
use volume::judge::{State, Use};

pub const MIB: u64 = 1 << 20;

/// A command for each use, of the volume `V`, which may be more than its image.
pub fn command(use_: Use) -> String {
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
pub fn build(sandbox: &Sandbox, state: State) -> (bool, &'static str) {
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
pub fn table() -> [u8; 512] {
    let mut sector = [0; 512];
    let entry = [0x80, 0, 1, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0];
    sector[446..462].copy_from_slice(&entry);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// A loss that follows from what is chosen: the state, the use, what makes the volume, the command,
/// and the words of its question.
pub type Choice = (
    State,
    Use,
    &'static [&'static str],
    &'static str,
    &'static str,
);

const MAKE: &str = "create d.img --size 24MiB --passphrase-file pass CHEAP";
const VERA: &str = "create d.img --size 4MiB --type veracrypt --quick --passphrase-file pass";

pub const CHOICES: [Choice; 16] = [
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
pub fn standing() -> impl Iterator<Item = State> {
    let chosen = |state: &State| CHOICES.iter().any(|choice| choice.0 == *state);
    State::ALL.into_iter().filter(move |state| !chosen(state))
}

/// Makes the volume of a choice by its commands, and by changes that no command makes.
pub fn make(sandbox: &Sandbox, makes: &[&str]) {
    for name in ["d.img", "new", "saved"] {
        let _ = fs::remove_file(sandbox.path(name));
    }
    for make in makes {
        match *make {
            "DATA" => file(sandbox, "d.img", 24 * MIB, &[(4096, &[7; 4096])]),
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
}

/// Makes the length of the data in a LUKS2 header a fixed one.
pub fn fix(image: &mut [u8], bytes: u64) {
    rewrite(image, |json| {
        json["segments"]["0"]["size"] = bytes.to_string().into();
    });
}

/// A file of `size` bytes with these pieces in it.
pub fn file(sandbox: &Sandbox, name: &str, size: u64, pieces: &[(u64, &[u8])]) {
    let file = File::create(sandbox.path(name)).unwrap();
    file.set_len(size).unwrap();
    for (offset, bytes) in pieces {
        file.write_all_at(bytes, *offset).unwrap();
    }
}

/// An ext4 superblock by hand: only what tells it.
pub fn ext4() -> Vec<u8> {
    let mut block = vec![0; 2048];
    block[1024..1028].copy_from_slice(&64_u32.to_le_bytes());
    block[1028..1032].copy_from_slice(&4096_u32.to_le_bytes());
    block[1080..1082].copy_from_slice(&[0x53, 0xef]);
    block[1100..1104].copy_from_slice(&1_u32.to_le_bytes());
    block[1116..1120].copy_from_slice(&4_u32.to_le_bytes());
    block[1120..1124].copy_from_slice(&0x42_u32.to_le_bytes());
    block[1144..1151].copy_from_slice(b"letters");
    block
}
