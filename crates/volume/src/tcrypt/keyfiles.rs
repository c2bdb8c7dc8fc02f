//! [`Keyfiles`]: what key files add to a passphrase.

use super::Family;
use crate::VolumeError;
use crate::crc;
use crate::error::impossible;
use crate::open_secret;
use cipher::Key;
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use zeroize::{Zeroize, Zeroizing};

/// The length of the pool that key files are mixed into, bytes. VeraCrypt's is longer for a longer
/// passphrase.
const SHORT_POOL: usize = 64;
const LONG_POOL: usize = 128;

/// Key files, in any order, mixed into what is added to a passphrase.
///
/// Both pools are kept, because which of them counts is known only with the
/// passphrase.
#[derive(Clone)]
pub struct Keyfiles {
    short: [u8; SHORT_POOL],
    long: [u8; LONG_POOL],
    count: usize,
}

impl Keyfiles {
    /// The length of the start of a key file that counts, bytes. The rest need not be read.
    pub const MOST_BYTES: usize = 1 << 20;

    /// No key files.
    pub const fn none() -> Self {
        Self {
            short: [0; SHORT_POOL],
            long: [0; LONG_POOL],
            count: 0,
        }
    }

    /// Mixes in the content of a key file, or its first
    /// [`MOST_BYTES`](Self::MOST_BYTES).
    ///
    /// # Errors
    /// [`VolumeError::SecretLength`] if it is empty.
    pub fn add(&mut self, content: &[u8]) -> Result<(), VolumeError> {
        if content.is_empty() {
            return Err(VolumeError::SecretLength {
                what: "key file",
                got: 0,
                rule: "the minimum is 1".into(),
            });
        }
        mix(&mut self.short, content);
        mix(&mut self.long, content);
        self.count += 1;
        Ok(())
    }

    /// The files at `paths`, and those in folders there, mixed. As in VeraCrypt, folders in folders
    /// and files whose names begin with a dot do not count.
    ///
    /// # Errors
    /// [`VolumeError::Unreadable`], [`VolumeError::EmptyKeyFile`] and [`VolumeError::Impossible`].
    pub fn read(paths: &[PathBuf]) -> Result<Self, VolumeError> {
        let mut mixed = Self::none();
        for path in paths {
            if !path.is_dir() {
                mixed.add_file(path)?;
                continue;
            }
            let unreadable = |source| VolumeError::Unreadable {
                path: path.clone(),
                source,
            };
            let before = mixed.count();
            for entry in fs::read_dir(path).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let hides = entry.file_name().as_encoded_bytes().starts_with(b".");
                if entry.path().is_file() && !hides {
                    mixed.add_file(&entry.path())?;
                }
            }
            if mixed.count() == before {
                return Err(impossible(
                    format!("the folder {} has no key file", path.display()),
                    "Check that it is the right folder: files whose names begin with a dot do not \
                     count.",
                ));
            }
        }
        Ok(mixed)
    }

    fn add_file(&mut self, path: &Path) -> Result<(), VolumeError> {
        let mut content = Zeroizing::new(Vec::with_capacity(Self::MOST_BYTES));
        let mut part = open_secret(path)?.take(Self::MOST_BYTES as u64);
        let path = path.to_owned();
        match part.read_to_end(&mut content) {
            Err(source) => Err(VolumeError::Unreadable { path, source }),
            Ok(0) => Err(VolumeError::EmptyKeyFile { path }),
            Ok(_) => self.add(&content),
        }
    }

    /// How many were added.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The input from which the header key is derived.
    pub(super) fn password(&self, family: Family, passphrase: &[u8]) -> Result<Key, VolumeError> {
        let longest = family.longest_passphrase();
        if passphrase.len() > longest {
            return Err(VolumeError::SecretLength {
                what: "passphrase",
                got: passphrase.len() as u64,
                rule: format!("{longest} is the maximum in {}", family.format().title()).into(),
            });
        }
        if self.count == 0 {
            return Ok(Key::from_slice(passphrase));
        }
        let pool: &[u8] = match passphrase.len() > SHORT_POOL {
            true => &self.long,
            false => &self.short,
        };
        Key::filled(pool.len(), |password| {
            password.copy_from_slice(pool);
            for (sum, byte) in password.iter_mut().zip(passphrase) {
                *sum = sum.wrapping_add(*byte);
            }
            Ok(())
        })
    }
}

/// Adds the running checksum after every byte, high byte first, round and
/// round the pool.
fn mix(pool: &mut [u8], content: &[u8]) {
    let counted = &content[..content.len().min(Keyfiles::MOST_BYTES)];
    let (mut crc, mut at) = (u32::MAX, 0);
    for &byte in counted {
        crc = crc::step(crc, byte);
        for (sum, part) in pool[at..].iter_mut().zip(crc.to_be_bytes()) {
            *sum = sum.wrapping_add(part);
        }
        at = (at + 4) % pool.len();
    }
}

impl Default for Keyfiles {
    fn default() -> Self {
        Self::none()
    }
}

impl Drop for Keyfiles {
    fn drop(&mut self) {
        self.short.zeroize();
        self.long.zeroize();
    }
}

impl fmt::Debug for Keyfiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyfiles({})", self.count)
    }
}
