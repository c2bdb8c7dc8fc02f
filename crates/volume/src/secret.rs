//! [`Secret`]: what a user has to open a volume with.

use crate::error::impossible;
use crate::{Format, VolumeError};
use cipher::Key;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

/// The most bytes of a secret, as of a key file in cryptsetup.
const MOST: usize = 8 << 20;

/// A passphrase, the content of a key file, or the volume key itself.
///
/// Formats treat them differently: a plain volume hashes a passphrase and
/// takes a key file as it is.
#[derive(Debug)]
pub enum Secret {
    /// The bytes of a passphrase, without the newline that ended it.
    Passphrase(Key),
    /// The bytes of a key file, all of them.
    KeyFile(Key),
    /// The key that encrypts the data.
    VolumeKey(Key),
}

impl Secret {
    /// The bytes of whatever kind.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Passphrase(key) | Self::KeyFile(key) | Self::VolumeKey(key) => key.as_bytes(),
        }
    }

    /// The same once more.
    pub(crate) fn copy(&self) -> Self {
        let copy = |key: &Key| Key::from_slice(key.as_bytes());
        match self {
            Self::Passphrase(key) => Self::Passphrase(copy(key)),
            Self::KeyFile(key) => Self::KeyFile(copy(key)),
            Self::VolumeKey(key) => Self::VolumeKey(copy(key)),
        }
    }

    /// The key file at `path`, which nothing else has a copy of.
    ///
    /// # Errors
    /// [`VolumeError::Unreadable`], [`VolumeError::EmptyKeyFile`], and [`VolumeError::Impossible`] for
    /// more than 8 MiB.
    #[doc(hidden)]
    pub fn read_key_file(path: &Path) -> Result<Self, VolumeError> {
        read_key(open_secret(path)?, path, 0, None).map(Self::KeyFile)
    }

    /// The bytes of whatever kind, as a key.
    #[doc(hidden)]
    pub fn into_words(self) -> Key {
        match self {
            Self::Passphrase(key) | Self::KeyFile(key) | Self::VolumeKey(key) => key,
        }
    }

    /// Whether this process has its bytes.
    #[doc(hidden)]
    pub fn is_here(&self) -> bool {
        match self {
            Self::Passphrase(key) | Self::KeyFile(key) | Self::VolumeKey(key) => key.is_here(),
        }
    }

    /// The passphrase or key file, which a header of `format` is written with.
    ///
    /// # Errors
    /// [`VolumeError::SecretKind`] for a volume key.
    pub fn words(&self, format: Format) -> Result<&Key, VolumeError> {
        match self {
            Self::Passphrase(words) | Self::KeyFile(words) => Ok(words),
            Self::VolumeKey(_) => Err(VolumeError::SecretKind {
                format,
                got: self.kind(),
            }),
        }
    }

    /// Its kind in a sentence.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Passphrase(_) => "a passphrase",
            Self::KeyFile(_) => "a key file",
            Self::VolumeKey(_) => "a volume key",
        }
    }
}

/// The form of a secret that opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// An empty passphrase.
    Nothing,
    /// A passphrase that ends in a carriage return.
    Return,
    /// A passphrase or key file that begins with a byte order mark.
    Mark,
    /// A passphrase or key file in UTF-16.
    Utf16,
    /// A passphrase with a zero byte in it.
    Zero,
    /// A passphrase that ends in a space.
    Space,
    /// A key file that is a line of text, whose end counts.
    Line,
    /// Anything else.
    Other,
}

/// The byte order mark in UTF-8.
const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Whether `bytes` begin with the byte order mark of UTF-16, or are two letters of it.
fn is_utf16(bytes: &[u8]) -> bool {
    match bytes {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => true,
        [first, 0, second, 0, ..] | [0, first, 0, second, ..] => {
            first.is_ascii_graphic() && second.is_ascii_graphic()
        }
        _ => false,
    }
}

impl Given {
    /// The form of `secret`.
    pub fn of(secret: &Secret) -> Self {
        let is_text = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ' || *byte >= 0x80;
        match secret {
            Secret::Passphrase(passphrase) if passphrase.is_empty() => Self::Nothing,
            Secret::Passphrase(text) | Secret::KeyFile(text) if is_utf16(text.as_bytes()) => {
                Self::Utf16
            }
            Secret::Passphrase(text) | Secret::KeyFile(text)
                if text.as_bytes().starts_with(UTF8_MARK) =>
            {
                Self::Mark
            }
            Secret::Passphrase(line) if line.as_bytes().ends_with(b"\r") => Self::Return,
            Secret::Passphrase(line) if line.as_bytes().contains(&0) => Self::Zero,
            Secret::Passphrase(line) if line.as_bytes().ends_with(b" ") => Self::Space,
            Secret::KeyFile(key) => match key.as_bytes() {
                [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] if line.iter().all(is_text) => {
                    Self::Line
                }
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }

    /// The remedy, in one or two sentences.
    pub(crate) const fn remedy(self) -> &'static str {
        match self {
            Self::Nothing => "Give the passphrase: the line that was read is empty.",
            Self::Return => {
                "Save the file with Unix line ends: a carriage return counts as part of the \
                 passphrase."
            }
            Self::Mark => {
                "The file begins with a byte order mark, which counts as part of the secret. Save \
                 it as UTF-8 without one. `cryptmark volume recall` tries it without."
            }
            Self::Utf16 => {
                "The file is UTF-16, and its bytes count as they are. Save it as UTF-8 without a \
                 byte order mark. `cryptmark volume recall` tries it without."
            }
            Self::Zero => {
                "The zero byte in it counts as part of the passphrase. Remove it. `cryptmark volume \
                 recall` tries it without."
            }
            Self::Space => {
                "The space at its end counts as part of the passphrase. Remove it. `cryptmark volume \
                 recall` tries it without."
            }
            Self::Line => {
                "The newline at its end counts as part of the key. If the file holds a passphrase, \
                 give it with `passphrase_file`."
            }
            Self::Other => {
                "Check the passphrase and its keyboard layout, or give the right `key_file` or \
                 `key_slot`."
            }
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "an empty passphrase",
            Self::Return => "this passphrase, which ends in a carriage return",
            Self::Mark => "this secret, which begins with a byte order mark",
            Self::Utf16 => "this secret, which is UTF-16",
            Self::Zero => "this passphrase, which has a zero byte in it",
            Self::Space => "this passphrase, which ends in a space",
            Self::Line => "this key file, which is a line of text",
            Self::Other => "this passphrase or key file",
        })
    }
}

/// Opens the file `path` for reading the secret in it.
///
/// # Errors
/// [`VolumeError::Unreadable`], and that of [`check_secret_source`].
#[doc(hidden)]
pub fn open_secret(path: &Path) -> Result<File, VolumeError> {
    let file = File::open(path).map_err(|source| VolumeError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    check_secret_source(&file, path)?;
    Ok(file)
}

/// Reads `size` bytes of the key file at `path` from `offset`, or all that follow. Nothing else has a
/// copy of them.
///
/// # Errors
/// [`VolumeError::Unreadable`], [`VolumeError::EmptyKeyFile`], and [`VolumeError::Impossible`] for
/// too few bytes, and for more than 8 MiB.
#[doc(hidden)]
pub fn read_key(
    mut from: File,
    path: &Path,
    offset: u64,
    size: Option<u64>,
) -> Result<Key, VolumeError> {
    let unreadable = |source| VolumeError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let name = path.display();
    let skipped = io::copy(&mut from.by_ref().take(offset), &mut io::sink()).map_err(unreadable)?;
    let wanted = size.map_or(MOST, |size| usize::try_from(size).unwrap_or(usize::MAX));
    // One byte more shows that there are too many.
    let key = Key::read(wanted.min(MOST) + 1, |room| {
        let mut got = 0;
        while got < room.len() {
            match from.read(&mut room[got..]) {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        Ok(got)
    })?;
    if key.len() > MOST && (size.is_none() || wanted > MOST) {
        return Err(impossible(
            format!("{name} has more than {MOST} bytes"),
            "Check that it is the key file, or say how much to read with `keyfile_size`.",
        ));
    }
    if skipped < offset || size.is_some() && key.len() < wanted {
        return Err(impossible(
            format!("{name} ends before the bytes that were asked for"),
            "Check that it is whole, and `keyfile_offset` and `keyfile_size`.",
        ));
    }
    match &key.as_bytes()[..wanted.min(key.len())] {
        [] => Err(VolumeError::EmptyKeyFile {
            path: path.to_owned(),
        }),
        bytes => Ok(Key::from_slice(bytes)),
    }
}

/// Refuses a device that gives other bytes at each reading, such as a source of random numbers. A
/// volume under such a secret could never be opened again.
///
/// # Errors
/// [`VolumeError::Impossible`].
#[doc(hidden)]
pub fn check_secret_source(file: &File, path: &Path) -> Result<(), VolumeError> {
    if file.is_terminal() || !gives_other_bytes(file) {
        return Ok(());
    }
    let name = path.display();
    Err(impossible(
        format!("{name} is a device, which may give other bytes at the next reading"),
        "Make a file of its bytes, and give that: `head -c 64 /dev/urandom >FILE`.",
    ))
}

/// Whether it is a character device, but for the one that is always empty.
fn gives_other_bytes(file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let empty = std::fs::metadata("/dev/null").map(|null| null.rdev());
        file.metadata().is_ok_and(|found| {
            found.file_type().is_char_device() && empty.ok() != Some(found.rdev())
        })
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        false
    }
}

/// A volume key that was found, and where.
#[derive(Debug)]
pub struct Unlocked {
    /// The key that encrypts the data.
    pub key: Key,
    /// The keyslot that it was in; `None` if the format has none, or the
    /// key was given.
    pub slot: Option<u32>,
}
