//! The door of Rust: answers questions about volumes, as `asked.rs` writes them.

use crate::asked::{ENDS, bytes};
use cipher::Key;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use volume::judge::{Ruling, State, Use};
use volume::operate::{
    self, Answers, Change, Creation, KeyOptions, KeySlotCost, NewKey, PasswordChange,
};
use volume::tcrypt::Keyfiles;
use volume::{
    Access, Format, KdfKind, OpenOptions, Parameters, Place, Secret, Site, Verdict, Volume,
    VolumeError,
};

/// What the lines of a question say.
#[derive(Default)]
struct Asked {
    path: PathBuf,
    header: Option<PathBuf>,
    output: Option<PathBuf>,
    data: Option<Vec<u8>>,
    format: Option<Format>,
    parameters: Parameters,
    keyfiles: Vec<PathBuf>,
    secret: Option<Secret>,
    access: Option<Access>,
    accepted: Vec<State>,
    cost: KeySlotCost,
    quick: bool,
}

/// The answer to the lines of a question.
pub fn answer(lines: &str) -> String {
    let mut asked = Asked::default();
    let mut done = Ok(None);
    for line in lines.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let value = |at: usize| words.get(at).map_or_else(Vec::new, |hex| bytes(hex));
        let text = |at: usize| String::from_utf8(value(at)).unwrap();
        match words[0] {
            "path" => asked.path = text(1).into(),
            "output" => asked.output = Some(text(1).into()),
            "data" => asked.data = Some(value(1)),
            "option" => asked.set(words[1], text(2)),
            "secret" => {
                let key = Key::from_slice(&value(2));
                asked.secret = Some(match words[1] {
                    "0" => Secret::Passphrase(key),
                    "1" => Secret::KeyFile(key),
                    _ => Secret::VolumeKey(key),
                });
            }
            "open" => done = asked.opened().map(Some),
            command => done = asked.changed(command, &value(1)).map(|()| None),
        }
    }
    match done {
        Ok(Some(volume)) => {
            let info = hexadecimal(&volume.info().to_string());
            format!("opened {} {info}", volume.size())
        }
        Ok(None) => "done".to_owned(),
        Err(error) => refused(&error),
    }
}

impl Asked {
    fn set(&mut self, name: &str, value: String) {
        let said = &mut self.parameters;
        let (number, flag) = (value.parse().ok(), value == "1");
        match name {
            "format" => self.format = Format::named(&value),
            "header" => self.header = Some(value.into()),
            "keyfile" => self.keyfiles.push(value.into()),
            "write" => self.access = flag.then_some(Access::Write),
            "allow" => self.accepted.extend(State::named(&value)),
            "quick" => self.quick = flag,
            "pbkdf" => self.cost.kind = KdfKind::named(&value),
            "iter_time" => self.cost.time = number.map(Duration::from_millis),
            "cipher" => said.cipher = Some(value),
            "key_size" => said.key_size = value.parse().ok(),
            "hash" => said.hash = Some(value),
            "offset" => said.offset = number,
            "skip" => said.skip = number,
            "size" => said.size = number,
            "sector_size" => said.sector_size = value.parse().ok(),
            "iv_large_sectors" => said.iv_large_sectors = flag,
            "key_slot" => said.key_slot = value.parse().ok(),
            "tcrypt_hidden" => said.tcrypt_hidden = flag,
            "tcrypt_backup" => said.tcrypt_backup = flag,
            "tcrypt_system" => said.tcrypt_system = flag,
            "veracrypt_pim" => said.veracrypt_pim = value.parse().ok(),
            "experimental" => said.experimental = flag,
            "key_derivation" => said.key_derivation = Some(value),
            name => panic!("no door is asked with {name}"),
        }
    }

    fn parameters(&self) -> Result<Parameters, VolumeError> {
        Ok(Parameters {
            keyfiles: match self.keyfiles.is_empty() {
                true => None,
                false => Some(Keyfiles::read(&self.keyfiles)?),
            },
            ..self.parameters.clone()
        })
    }

    fn opened(&self) -> Result<Volume, VolumeError> {
        let options = OpenOptions {
            format: self.format,
            parameters: self.parameters()?,
            header: self.header.clone(),
            access: self.access.unwrap_or(Access::Read),
            accepted: &self.accepted,
            ..OpenOptions::default()
        };
        let volume = Volume::open(&self.path, self.secret.as_ref(), &options)?;
        if let Some(data) = &self.data {
            volume.write_at(0, data)?;
            volume.flush()?;
        }
        if let Some(output) = &self.output {
            let mut both = Vec::new();
            let size = volume.size();
            let last = match size > ENDS as u64 {
                true => size - ENDS as u64,
                false => size,
            };
            for place in [0, last] {
                let mut end = vec![0; ENDS];
                let got = volume.read_at(place, &mut end)?;
                both.extend_from_slice(&end[..got]);
            }
            fs::write(output, both).unwrap();
        }
        Ok(volume)
    }

    fn changed(&self, command: &str, value: &[u8]) -> Result<(), VolumeError> {
        let options = operate::Options {
            format: self.format,
            parameters: self.parameters()?,
            accepted: self.accepted.clone(),
            ..operate::Options::default()
        };
        let number = || std::str::from_utf8(value).unwrap().parse().ok();
        let (secret, header) = (self.secret.as_ref(), self.header.as_deref());
        let open = |use_| Place::open(&self.path, header, use_);
        let key = |words: &[u8]| NewKey {
            secret: Key::from_slice(words),
            cost: self.cost,
            allow_empty: false,
        };
        let unwatched = &operate::unwatched;
        let reencrypted = |change| {
            let site = Site::new(&self.path, header);
            let answers = Answers {
                cost: self.cost,
                ..Answers::new(secret.unwrap(), unwatched)
            };
            operate::reencrypt(&site, change, &options, &answers).map(drop)
        };
        match command {
            "create" => {
                let creation = Creation {
                    parameters: self.parameters()?,
                    accepted: self.accepted.clone(),
                    quick: self.quick,
                    ..Creation::new(self.format.unwrap_or(Format::Luks2))
                };
                creation.check()?;
                let bytes = number().unwrap_or(0);
                let mut place = Place::create(&self.path, header, Some(bytes))?;
                let new = secret.map(|secret| match secret {
                    Secret::Passphrase(words)
                    | Secret::KeyFile(words)
                    | Secret::VolumeKey(words) => key(words.as_bytes()),
                });
                operate::create(&mut place, new.as_ref(), &creation, unwatched).map(drop)
            }
            "add" => {
                let place = open(Use::ChangeHeader)?;
                let options = KeyOptions::default();
                operate::add_key(&place, secret.unwrap(), &key(value), &options).map(drop)
            }
            "reencrypt" => reencrypted(Change::Anew),
            "encrypt" => reencrypted(Change::Encrypt),
            "decrypt" => reencrypted(Change::Decrypt),
            "convert" => {
                operate::convert(&open(Use::ChangeLayout)?, self.format.unwrap()).map(drop)
            }
            "resize" => {
                let mut place = open(Use::ChangeLayout)?;
                let to = number().unwrap();
                operate::resize(&mut place, to, secret, &options, unwatched).map(drop)
            }
            "change" => {
                let (place, new) = (open(Use::ChangeHeader)?, key(value));
                let secret = secret.unwrap();
                if self.format.is_none() {
                    let options = KeyOptions::default();
                    return operate::change_key(&place, secret, &new, &options).map(drop);
                }
                let change = PasswordChange::begin(&place, secret, &options, unwatched)?;
                change.finish(&new, unwatched).map(drop)
            }
            "repair" => {
                let place = open(Use::MendHeader)?;
                operate::repair_header(&place, secret, None, &options, unwatched).map(drop)
            }
            "restore" => {
                let path = PathBuf::from(String::from_utf8(value.to_vec()).unwrap());
                let saved = Place::open(&path, None, Use::Read)?;
                let place = open(Use::MendHeader)?;
                let data = saved.data();
                operate::restore_header(&place, data, secret, &options, unwatched).map(drop)
            }
            command => panic!("no door is asked to {command}"),
        }
    }
}

fn refused(error: &VolumeError) -> String {
    let code = match error.verdict() {
        Verdict::Failed => 1,
        Verdict::BadInput => 2,
        Verdict::WrongSecret => 3,
        Verdict::Protected => 4,
        Verdict::Interrupted => 130,
    };
    let question = match error {
        VolumeError::Judged(finding) if finding.ruling() == Ruling::Ask => finding.state.name(),
        _ => "-",
    };
    format!("refused {code} {question} {}", hexadecimal(&chain(error)))
}

/// The error with its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if !text.ends_with(&error.to_string()) {
            text = format!("{text}: {error}");
        }
        cause = error.source();
    }
    text
}

fn hexadecimal(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}
