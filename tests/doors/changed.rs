//! Changes of volumes, by the engine itself and by the program.

use crate::asked::{Change, LONGER, NEW, Question, SHORTER};
use crate::opened::{add_options, secret};
use cipher::Key;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use testkit::Sandbox;
use volume::judge::Use;
use volume::operate::{self, Creation, KeyOptions, KeySlotCost, NewKey, PasswordChange};
use volume::tcrypt::Keyfiles;
use volume::{Format, KdfKind, Place, VolumeError};

/// Makes the change, as the libraries for C and Python do it.
pub fn by_rust(question: &Question, change: Change) -> Result<(), VolumeError> {
    let mut keyfiles = Vec::new();
    let mut header = None;
    let mut options = operate::Options::default();
    let mut format = Format::Luks2;
    for (name, value) in question.options() {
        match name {
            "header" => header = Some(PathBuf::from(value)),
            "keyfile" => keyfiles.push(PathBuf::from(value)),
            "veracrypt_pim" => options.parameters.veracrypt_pim = value.parse().ok(),
            "format" => {
                format = Format::named(&value).unwrap();
                options.format = Some(format);
            }
            _ => {}
        }
    }
    if !keyfiles.is_empty() {
        options.parameters.keyfiles = Some(Keyfiles::read(&keyfiles)?);
    }
    let secret = question.secret.map(secret);
    let secret = secret.as_ref();
    let new = |words: &[u8]| NewKey {
        secret: Key::from_slice(words),
        cost: KeySlotCost {
            kind: KdfKind::named("pbkdf2"),
            time: Some(Duration::from_millis(1)),
            ..KeySlotCost::default()
        },
        allow_empty: false,
    };
    let header = header.as_deref();
    let open = |use_| Place::open(question.path, header, use_);
    let unwatched = &operate::unwatched;
    match change {
        Change::Create => {
            let creation = Creation::new(format);
            creation.check()?;
            let mut place = Place::create(question.path, header, Some(0))?;
            let new = question.secret.map(|given| new(&given.bytes));
            operate::create(&mut place, new.as_ref(), &creation, unwatched).map(drop)
        }
        Change::ToLuks1 | Change::ToLuks2 => {
            operate::convert(&open(Use::ChangeLayout)?, format).map(drop)
        }
        Change::Shorter | Change::Longer => {
            let to = match change {
                Change::Shorter => SHORTER,
                _ => LONGER,
            };
            let mut place = open(Use::ChangeLayout)?;
            operate::resize(&mut place, to, secret, &options, unwatched).map(drop)
        }
        Change::Key => {
            let (place, new) = (open(Use::ChangeHeader)?, new(NEW.as_bytes()));
            let secret = secret.unwrap();
            match options.format {
                Some(_) => {
                    let change = PasswordChange::begin(&place, secret, &options, unwatched)?;
                    change.finish(&new, unwatched).map(drop)
                }
                None => operate::change_key(&place, secret, &new, &KeyOptions::default()).map(drop),
            }
        }
        Change::Repair => {
            let place = open(Use::MendHeader)?;
            operate::repair_header(&place, secret, None, &options, unwatched).map(drop)
        }
        Change::Restore => {
            let saved = Place::open(&question.saved(), None, Use::Read)?;
            let place = open(Use::MendHeader)?;
            operate::restore_header(&place, saved.data(), secret, &options, unwatched).map(drop)
        }
    }
}

/// The command of the program that makes a change.
pub fn by_program(sandbox: &Sandbox, question: &Question, change: Change) -> Command {
    let name = match change {
        Change::Create => "create",
        Change::ToLuks1 | Change::ToLuks2 => "convert",
        Change::Shorter | Change::Longer => "resize",
        Change::Key => "passwd",
        Change::Repair => "header repair",
        Change::Restore => "header restore",
    };
    let mut command = sandbox.volume_command(name);
    command.arg(question.path);
    // A conversion needs no secret, and takes none.
    let takes_secret = !matches!(change, Change::ToLuks1 | Change::ToLuks2);
    let asked = Question {
        secret: question.secret.filter(|_| takes_secret),
        ..*question
    };
    add_options(&mut command, &asked);
    let sectors = |bytes: u64| (bytes / 512).to_string();
    match change {
        Change::Shorter => command.arg("--to").arg(sectors(SHORTER)),
        Change::Longer => command.arg("--to").arg(sectors(LONGER)),
        Change::Restore => command.arg("--input").arg(question.saved()),
        Change::Key => {
            let file = question.folder.join("new");
            fs::write(&file, format!("{NEW}\n")).unwrap();
            command.arg("--new-passphrase-file").arg(file)
        }
        _ => &mut command,
    };
    command
}
