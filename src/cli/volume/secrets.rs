//! Passphrases and keys: from files, from standard input, from a prompt; never
//! from arguments or the environment.

use super::typed;
use crate::cli::Failure;
use cipher::Key;
use clap::Args;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use volume::{Format, Given, Secret, VolumeError, check_secret_source, open_secret, read_key};

/// The most bytes of a passphrase, from any source. Users do not type so much.
const MOST_PASSPHRASE: usize = 64 << 10;

/// The options that say what to open a volume with.
#[derive(Debug, Args)]
#[group(id = "secret", multiple = true)]
pub struct SecretArguments {
    /// Key file, used whole, newlines included; - is standard input
    #[arg(long, short = 'd', value_name = "FILE|-")]
    key_file: Option<PathBuf>,
    /// Bytes to skip at the start of the key file
    #[arg(
        long,
        value_name = "BYTES",
        requires = "key_file",
        conflicts_with = "passphrase_file",
        default_value_t = 0
    )]
    keyfile_offset: u64,
    /// Bytes to read of the key file [default: all]
    #[arg(
        long,
        short = 'l',
        value_name = "BYTES",
        requires = "key_file",
        conflicts_with = "passphrase_file"
    )]
    keyfile_size: Option<u64>,
    /// File with the passphrase in its first line; - is standard input
    #[arg(long, value_name = "FILE|-", conflicts_with = "key_file")]
    passphrase_file: Option<PathBuf>,
    /// File with the volume key itself, instead of a passphrase
    #[arg(long, value_name = "FILE|-")]
    volume_key_file: Option<PathBuf>,
}

impl SecretArguments {
    /// The secret to open a volume of `format` with. It is asked for if no option gives it.
    pub fn secret(&self, format: Format, image: &Path) -> Result<Secret, Failure> {
        let named: Vec<&str> = self.named().map(|(option, _)| option).collect();
        if let [one, other] = named[..] {
            return Err(Failure::new(
                2,
                format!("{one} and {other} are two secrets"),
                "Give the one that opens the volume.",
            ));
        }
        if let Some(path) = &self.volume_key_file {
            return Ok(Secret::VolumeKey(read(path, 0, None)?));
        }
        if let Some(path) = &self.key_file {
            let bytes = read(path, self.keyfile_offset, self.keyfile_size)?;
            // cryptsetup hashes what comes from a pipe, and not what comes from a file.
            let piped = is_standard_input(path) && format == Format::Plain;
            return Ok(match piped {
                true => Secret::Passphrase(bytes),
                false => Secret::KeyFile(bytes),
            });
        }
        if format == Format::Bitlk
            && let Some(saved) = self.passphrase_file.as_deref().and_then(recovery_text)
        {
            return Ok(Secret::KeyFile(saved));
        }
        Ok(Secret::Passphrase(match &self.passphrase_file {
            Some(path) => passphrase_in(path)?,
            None => ask(&format!("Passphrase for {}: ", image.display()))?,
        }))
    }

    /// The option that says where the secret is.
    pub fn given(&self) -> Option<&'static str> {
        self.named().next().map(|(option, _)| option)
    }

    /// The files that options name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let options = [
            ("--key-file", &self.key_file),
            ("--passphrase-file", &self.passphrase_file),
            ("--volume-key-file", &self.volume_key_file),
        ];
        let named = options.into_iter();
        named.filter_map(|(option, path)| Some((option, path.as_deref()?)))
    }

    /// The option by which standard input is the secret to its end, and not to the end of a
    /// line.
    pub fn takes_all_input(&self) -> Option<&'static str> {
        let mut whole = self
            .named()
            .filter(|(option, _)| *option != "--passphrase-file");
        let found = whole.find(|(_, path)| is_standard_input(path));
        found.map(|(option, _)| option)
    }

    /// Whether it is a key file.
    pub fn takes_key_file(&self) -> bool {
        self.key_file.is_some()
    }

    /// Whether a passphrase or key file is named.
    pub fn is_given(&self) -> bool {
        self.key_file.is_some() || self.passphrase_file.is_some()
    }

    /// The secret that a new volume will open with. It is asked for twice if no option gives it.
    pub fn first_secret(&self, image: &Path, may_be_empty: bool) -> Result<Key, Failure> {
        match (&self.key_file, &self.passphrase_file) {
            (Some(path), _) => {
                read(path, self.keyfile_offset, self.keyfile_size).inspect(warn_of_equal_bytes)
            }
            (None, Some(path)) => checked(passphrase_in(path)?, may_be_empty),
            (None, None) => ask_twice(image, may_be_empty),
        }
    }

    /// The volume key, if the user gives one.
    pub fn volume_key(&self) -> Result<Option<Key>, Failure> {
        let path = self.volume_key_file.as_deref();
        path.map(|path| read(path, 0, None)).transpose()
    }
}

/// The file in which Windows has saved a recovery password, with lines of text around it.
fn recovery_text(path: &Path) -> Option<Key> {
    // What comes from a pipe can be read once.
    path.metadata().ok().filter(|there| there.is_file())?;
    let saved = read(path, 0, None).ok()?;
    volume::bitlk::is_recovery_text(saved.as_bytes()).then_some(saved)
}

/// The passphrase in the first line of a file.
pub fn passphrase_in(path: &Path) -> Result<Key, Failure> {
    first_line(source(path)?, path)
}

/// The whole of a key file.
pub fn key_in(path: &Path) -> Result<Key, Failure> {
    read(path, 0, None)
}

/// Warns of the content of a new key file that other people will try.
pub fn warn_of_equal_bytes(key: &Key) {
    if key.len() > 1 && key.as_bytes().windows(2).all(|pair| pair[0] == pair[1]) {
        eprintln!("warning: all bytes of the key file are the same: other people will try it");
    }
}

/// `secret`, which is going to be set, unless it is empty and must not be. All users can open a
/// volume whose passphrase is empty. Most often it comes from a pipe that has ended, or from Enter
/// pressed twice.
///
/// # Errors
/// Exit code 2.
pub fn checked(secret: Key, may_be_empty: bool) -> Result<Key, Failure> {
    match secret.is_empty() && !may_be_empty {
        true => Err(VolumeError::EmptyPassphrase.into()),
        false => Ok(secret),
    }
}

/// A new passphrase, asked for twice.
pub fn ask_twice(image: &Path, may_be_empty: bool) -> Result<Key, Failure> {
    let first = ask(&format!("New passphrase for {}: ", image.display()))?;
    let first = checked(first, may_be_empty)?;
    if !can_ask() {
        return Ok(first);
    }
    match ask("The same again: ")?.as_bytes() == first.as_bytes() {
        true => Ok(first),
        false => Err(Failure::new(
            2,
            "the two passphrases differ",
            "Type the same passphrase twice.",
        )),
    }
}

/// Whether there is a terminal at which a user can answer.
pub fn can_ask() -> bool {
    io::stdin().is_terminal()
}

/// A passphrase from the terminal, or the next line of standard input.
pub fn ask(question: &str) -> Result<Key, Failure> {
    match can_ask() {
        true => within_limit(typed::prompt(question, MOST_PASSPHRASE)?),
        false => passphrase_in(Path::new("-")),
    }
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// Opens the file or standard input that `path` names.
fn source(path: &Path) -> Result<File, Failure> {
    if !is_standard_input(path) {
        return Ok(open_secret(path)?);
    }
    let input = typed::standard_input().map_err(|error| unreadable(path, error))?;
    check_secret_source(&input, Path::new("standard input"))?;
    Ok(input)
}

/// `size` bytes of a key file from `offset`, or all of them.
fn read(path: &Path, offset: u64, size: Option<u64>) -> Result<Key, Failure> {
    Ok(read_key(source(path)?, path, offset, size)?)
}

/// The first line, without its newline.
fn first_line(from: File, path: &Path) -> Result<Key, Failure> {
    let line = typed::line(from, MOST_PASSPHRASE).map_err(|error| unreadable(path, error))?;
    let line = within_limit(line)?;
    let line = Secret::Passphrase(line);
    let peculiar = match Given::of(&line) {
        Given::Return => Some("ends in a carriage return, as lines of Windows do: it is"),
        Given::Mark => Some("begins with a byte order mark: it is"),
        Given::Zero => Some("has a zero byte in it, which is"),
        Given::Utf16 => Some("is UTF-16, and its zero bytes and byte order mark are"),
        _ => None,
    };
    if let Some(peculiar) = peculiar {
        eprintln!(
            "warning: the passphrase {peculiar} part of the passphrase here and in cryptsetup"
        );
    }
    match line {
        Secret::Passphrase(line) | Secret::KeyFile(line) | Secret::VolumeKey(line) => Ok(line),
    }
}

fn within_limit(passphrase: Key) -> Result<Key, Failure> {
    match passphrase.len() > MOST_PASSPHRASE {
        true => Err(Failure::new(
            2,
            format!("the passphrase is longer than {MOST_PASSPHRASE} bytes"),
            "Check that it is the file with the passphrase.",
        )),
        false => Ok(passphrase),
    }
}

/// A file of the user's that cannot be read.
pub fn unreadable(path: &Path, source: io::Error) -> Failure {
    let path = path.to_owned();
    VolumeError::Unreadable { path, source }.into()
}
