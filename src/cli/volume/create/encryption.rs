//! [`Encryption`]: how the data of a new LUKS volume is encrypted, and what its sectors need
//! if they have tags.

use super::{CreateOptions, usual_key_bytes};
use crate::cli::progress::Progress;
use crate::cli::volume::copy::tell;
use crate::cli::volume::disk::Disk;
use crate::cli::{Failure, stop_on_signal};
use block::{BlockDevice, transfer};
use cipher::{Algorithm, CipherError, CipherSpec, Key, SectorLayout, SectorSize};
use std::fmt;
use std::str::FromStr;
use volume::luks2::DataCipher;
use volume::{SealedDevice, SealedSpec, VolumeError, has_equal_halves};

/// The cipher that `--cipher` names.
#[derive(Clone, Debug)]
pub enum CipherName {
    /// A cipher that needs nothing else.
    Plain(CipherSpec),
    /// One that is possible only with `--integrity`.
    Sealed(String),
}

impl CipherName {
    /// The cipher of a volume whose sectors have no tags.
    ///
    /// # Errors
    /// Exit code 2 of a cipher that needs tags.
    pub fn plain(&self) -> Result<CipherSpec, Failure> {
        match self {
            Self::Plain(spec) => Ok(*spec),
            Self::Sealed(name) => Err(Failure::new(
                2,
                format!("{name} needs room for tags or IVs beside the sectors"),
                "Give --integrity with --type luks2, or take aes-xts-plain64.",
            )),
        }
    }
}

impl FromStr for CipherName {
    type Err = CipherError;

    fn from_str(name: &str) -> Result<Self, CipherError> {
        match name.parse() {
            Ok(spec) => Ok(Self::Plain(spec)),
            Err(_) if SealedSpec::is_needed(name) => Ok(Self::Sealed(name.into())),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for CipherName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(spec) => spec.fmt(f),
            Self::Sealed(name) => f.write_str(name),
        }
    }
}

/// How the data is encrypted.
pub struct Encryption {
    /// The cipher, as the header states it.
    pub cipher: DataCipher,
    /// The cipher of the data, unless it makes the tags itself.
    pub data: Option<CipherSpec>,
    /// Length of the volume key, bytes.
    pub key_bytes: usize,
    /// Length of the part of it that is the cipher's, bytes.
    cipher_bytes: usize,
}

impl Encryption {
    /// The encryption that the options describe.
    ///
    /// # Errors
    /// Exit code 2 if it is impossible.
    pub fn of(options: &CreateOptions) -> Result<Self, Failure> {
        let encryption = match &options.integrity {
            None => {
                let spec = options.cipher.plain()?;
                let key_bytes = options
                    .key_bytes()?
                    .unwrap_or_else(|| usual_key_bytes(&spec));
                Self {
                    cipher: DataCipher::Plain(spec),
                    data: Some(spec),
                    key_bytes,
                    cipher_bytes: key_bytes,
                }
            }
            Some(word) => {
                let name = options.cipher.to_string();
                let sealed = SealedSpec::named(&name, word).ok_or_else(|| {
                    let words: Vec<_> = SealedSpec::words().collect();
                    Failure::new(
                        2,
                        format!("there is no integrity algorithm `{word}`"),
                        format!("Use one of: {}.", words.join(", ")),
                    )
                })?;
                let data = sealed
                    .data_cipher()
                    .map_err(|error| no_such(error, &sealed))?;
                let given = options.key_bytes()?;
                let cipher_bytes = given.or(data.as_ref().map(usual_key_bytes));
                let key_bytes = sealed.key_bytes(cipher_bytes)?;
                Self {
                    data,
                    key_bytes,
                    cipher_bytes: cipher_bytes.unwrap_or(key_bytes),
                    cipher: DataCipher::Sealed(sealed),
                }
            }
        };
        if let Some(spec) = encryption.data
            && spec.algorithms() == [Algorithm::Null]
        {
            return Err(Failure::new(
                2,
                format!("{spec} encrypts nothing, and has no key that a key slot could hold"),
                "Take aes-xts-plain64. Unencrypted data needs no LUKS header.",
            ));
        }
        encryption.check(options.sector_size()?.unwrap_or_default())?;
        Ok(encryption)
    }

    /// A cipher that is not possible is refused before anything is asked or written.
    fn check(&self, size: SectorSize) -> Result<(), Failure> {
        match &self.cipher {
            DataCipher::Plain(spec) => {
                let trial_key = Key::filled(self.key_bytes, |_| Ok::<_, Failure>(()))?;
                let layout = SectorLayout {
                    size,
                    large_iv: false,
                };
                spec.cipher(&trial_key, layout, None)
                    .map_err(VolumeError::Cipher)?;
            }
            DataCipher::Sealed(sealed) => sealed
                .check(self.key_bytes, size)
                .map_err(|error| no_such(error, sealed))?,
        }
        Ok(())
    }

    /// Whether both halves of the data's key are the same if they must not be.
    pub fn is_halved(&self, volume_key: &Key) -> bool {
        let own = |spec| {
            let part = &volume_key.as_bytes()[..self.cipher_bytes];
            has_equal_halves(spec, &Key::from_slice(part))
        };
        volume_key.len() == self.key_bytes && self.data.is_some_and(own)
    }
}

impl fmt::Display for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cipher {
            DataCipher::Plain(spec) => spec.fmt(f),
            DataCipher::Sealed(sealed) => sealed.fmt(f),
        }
    }
}

/// Makes room for tags on the data's device. Unless the user does without, every sector is
/// written, so that all of them can be read.
///
/// # Errors
/// Those of writing; exit code 130 if the user ends it.
pub fn format(sealed: &SealedDevice<&Disk>, options: &CreateOptions) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    sealed.format()?;
    if options.integrity_no_wipe {
        return Ok(());
    }
    let progress = Progress::bytes(options.no_progress, sealed.geometry().size);
    let report = |done| tell(&progress, &stop, done);
    let outcome = transfer::zero(sealed, &report);
    progress.finish();
    Ok(outcome?)
}

/// Says what is possible instead of a cipher and an algorithm that do not go together.
fn no_such(error: VolumeError, sealed: &SealedSpec) -> Failure {
    match error {
        VolumeError::Unsupported { .. } => Failure::new(
            2,
            format!("{sealed} is not possible with such a key"),
            "Use one of: aes-gcm-random with aead, aegis128-random with aead, chacha20-random \
             with poly1305, aes-xts-plain64 with hmac-sha256.",
        ),
        other => other.into(),
    }
}
