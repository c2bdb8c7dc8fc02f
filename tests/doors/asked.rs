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
}

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

    /// The paths of the volume and of its header.
    pub fn paths(&self) -> Vec<&Path> {
        let header = self.options.iter().filter(|(name, _)| *name == "header");
        let header = header.map(|(_, path)| Path::new(path));
        header.chain([self.path]).collect()
    }

    /// The lines that ask `door.c` and `door.py`.
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
        for (name, value) in self.options {
            line(&format!("option {name}"), value.as_bytes());
        }
        if let Some(secret) = self.secret {
            line(&format!("secret {}", secret.kind as i32), &secret.bytes);
        }
        if self.work != Work::Read {
            line("option write", b"1");
        }
        if self.work == Work::Overwrite {
            line("data", &data());
            for state in volume::judge::State::ALL {
                line("option allow", state.name().as_bytes());
            }
        }
        line("open", b"");
        text
    }

    /// The answer in a line of `door.c` or `door.py`.
    pub fn answer(&self, line: &str) -> Answer {
        let words: Vec<&str> = line.split_whitespace().collect();
        let text = |hex: &str| String::from_utf8(bytes(hex)).unwrap();
        match words[..] {
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
