//! What all doors are asked, and what they answer.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// What is read of a volume at its start and at its end, bytes.
pub const ENDS: usize = 1 << 20;

/// The kinds of secrets, with the numbers that C gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Passphrase = 0,
    KeyFile = 1,
    VolumeKey = 2,
}

/// A secret.
#[derive(Clone, Debug)]
pub struct Given {
    pub kind: Kind,
    pub bytes: Vec<u8>,
}

/// What is done to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Its ends are read.
    Read,
    /// It is opened for writing, and nothing is written.
    OpenToWrite,
    /// All losses are accepted, and its start is overwritten.
    Overwrite,
    /// It is changed, without a loss.
    Change(Change),
}

/// A change of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another volume takes its place.
    Create,
    ToLuks1,
    ToLuks2,
    Shorter,
    Longer,
    /// Another passphrase.
    Key,
    Repair,
    /// The start of the undamaged volume is taken for a backup of its header.
    Restore,
}

impl Change {
    pub const ALL: [Self; 8] = [
        Self::Create,
        Self::ToLuks1,
        Self::ToLuks2,
        Self::Shorter,
        Self::Longer,
        Self::Key,
        Self::Repair,
        Self::Restore,
    ];
}

/// The new passphrase, and the sizes of what is resized.
pub const NEW: &str = "another passphrase";
pub const SHORTER: u64 = 1_050_112;
pub const LONGER: u64 = 4 << 20;

/// A question to a door.
pub struct Question<'a> {
    pub path: &'a Path,
    /// By the names of `Parameters`, and `format`, `header` and `keyfile`.
    pub options: &'a [(&'static str, String)],
    pub secret: Option<&'a Given>,
    pub work: Work,
    /// A folder for files that a door needs.
    pub folder: &'a Path,
}

/// What is written to the start of a volume.
pub fn data() -> Vec<u8> {
    b"written through a door; "
        .iter()
        .copied()
        .cycle()
        .take(512)
        .collect()
}

/// An answer. What a door does not show is `None`.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Opened(Opened),
    Refused(Refused),
}

impl Answer {
    /// That a change was made.
    pub fn done() -> Self {
        Self::Opened(Opened {
            size: None,
            ends: None,
            info: None,
            warnings: Vec::new(),
        })
    }
}

/// A volume that was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    pub size: Option<u64>,
    /// Both ends of the plaintext, if they were read.
    pub ends: Option<Vec<u8>>,
    pub info: Option<Value>,
    /// The texts of its warnings.
    pub warnings: Vec<String>,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The program's exit code.
    pub code: i32,
    /// What happened.
    pub what: String,
    /// The loss that can be accepted. The program shows that there is one, and not its name.
    pub question: Option<String>,
}

/// The digest of a plaintext.
pub fn digest(plaintext: &[u8]) -> String {
    let digest = Sha256::digest(plaintext);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The ends of what `whole` is.
pub fn ends(whole: &[u8]) -> Vec<u8> {
    let start = &whole[..whole.len().min(ENDS)];
    let end = match whole.len() > ENDS {
        true => &whole[whole.len() - ENDS..],
        false => &[],
    };
    [start, end].concat()
}

/// The texts of the warnings in the description of an open volume.
pub fn warnings(info: &Value) -> Vec<String> {
    let warnings = info["warnings"].as_array().cloned().unwrap_or_default();
    let text = |warning: &Value| warning["text"].as_str().unwrap().to_owned();
    warnings.iter().map(text).collect()
}

impl Question<'_> {
    /// The file for what a door has read.
    pub fn output(&self) -> PathBuf {
        self.folder.join("output")
    }

    /// The file with the start of the volume as it was before it was damaged.
    pub fn saved(&self) -> PathBuf {
        self.folder.join("saved")
    }

    /// The options that a change takes.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let Work::Change(change) = self.work else {
            return self.options.to_vec();
        };
        let searched = ["tcrypt", "veracrypt"];
        let takes = |(name, value): &&(&str, String)| match *name {
            "format" => searched.contains(&value.as_str()),
            "veracrypt_pim" | "keyfile" => !matches!(change, Change::ToLuks1 | Change::ToLuks2),
            name => name == "header",
        };
        let mut options: Vec<_> = self.options.iter().filter(takes).cloned().collect();
        let named = match change {
            Change::Create | Change::ToLuks2 => Some("luks2"),
            Change::ToLuks1 => Some("luks1"),
            _ => None,
        };
        if let Some(format) = named {
            options.retain(|(name, _)| *name == "header");
            options.push(("format", format.to_owned()));
        }
        if matches!(change, Change::Create) || (change == Change::Key && self.family().is_none()) {
            options.push(("pbkdf", "pbkdf2".to_owned()));
            options.push(("iter_time", "1".to_owned()));
        }
        options
    }

    /// TrueCrypt or VeraCrypt, if it is one of theirs.
    pub fn family(&self) -> Option<&str> {
        let mut formats = self.options.iter().filter(|(name, _)| *name == "format");
        let format = formats.next().map(|(_, format)| format.as_str());
        format.filter(|format| ["tcrypt", "veracrypt"].contains(format))
    }

    /// The paths of the volume and of its header.
    pub fn paths(&self) -> Vec<&Path> {
        let header = self.options.iter().filter(|(name, _)| *name == "header");
        let header = header.map(|(_, path)| Path::new(path));
        header.chain([self.path]).collect()
    }

    /// The lines that ask `door.rs`, `door.c` and `door.py`.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        let mut line = |words: &str, value: &[u8]| {
            text += words;
            text.push(' ');
            text.extend(value.iter().map(|byte| format!("{byte:02x}")));
            text.push('\n');
        };
        line("path", self.path.as_os_str().as_encoded_bytes());
        if self.work == Work::Read {
            line("output", self.output().as_os_str().as_encoded_bytes());
        }
        for (name, value) in self.options() {
            line(&format!("option {name}"), value.as_bytes());
        }
        if let Some(secret) = self.secret {
            line(&format!("secret {}", secret.kind as i32), &secret.bytes);
        }
        if matches!(self.work, Work::OpenToWrite | Work::Overwrite) {
            line("option write", b"1");
        }
        if self.work == Work::Overwrite {
            line("data", &data());
            for state in volume::judge::State::ALL {
                line("option allow", state.name().as_bytes());
            }
        }
        let number = |number: u64| number.to_string().into_bytes();
        match self.work {
            Work::Read | Work::OpenToWrite | Work::Overwrite => line("open", b""),
            Work::Change(change) => match change {
                Change::Create => line("create", b""),
                Change::ToLuks1 | Change::ToLuks2 => line("convert", b""),
                Change::Shorter => line("resize", &number(SHORTER)),
                Change::Longer => line("resize", &number(LONGER)),
                Change::Key => line("change", NEW.as_bytes()),
                Change::Repair => line("repair", b""),
                Change::Restore => line("restore", self.saved().as_os_str().as_encoded_bytes()),
            },
        }
        text
    }

    /// The answer in a line of one of them.
    pub fn answer(&self, line: &str) -> Answer {
        let words: Vec<&str> = line.split_whitespace().collect();
        let text = |hex: &str| String::from_utf8(bytes(hex)).unwrap();
        match words[..] {
            ["done"] => Answer::done(),
            ["opened", size, info] => {
                let info: Value = serde_json::from_str(&text(info)).unwrap();
                let read = self.work == Work::Read;
                Answer::Opened(Opened {
                    size: Some(size.parse().unwrap()),
                    ends: read.then(|| std::fs::read(self.output()).unwrap()),
                    warnings: warnings(&info),
                    info: Some(info),
                })
            }
            ["refused", code, question, what] => Answer::Refused(Refused {
                code: code.parse().unwrap(),
                what: text(what),
                question: (question != "-").then(|| question.to_owned()),
            }),
            _ => panic!("a door answers {line:?}"),
        }
    }
}

/// The bytes of hexadecimal digits.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}
