//! [`Encryption`]: how the data of a new LUKS volume is encrypted.

use super::Creation;
use crate::luks2::DataCipher;
use crate::mapping::has_equal_halves;
use crate::operate::impossible;
use crate::{Format, SealedSpec, VolumeError};
use cipher::{Algorithm, CipherSpec, Key, Mode, SectorLayout, SectorSize};
use std::fmt;

/// cryptsetup's default: AES in XTS with 512 bits, two keys of 256.
pub(super) const CIPHER: &str = "aes-xts-plain64";
const XTS_KEY_BYTES: usize = 64;

/// The length of a new key if the user names none.
pub fn usual_key_bytes(spec: &CipherSpec) -> usize {
    let possible = spec.key_sizes();
    match spec.mode() == Mode::Xts && possible.contains(&XTS_KEY_BYTES) {
        true => XTS_KEY_BYTES,
        false => spec.default_key_size(),
    }
}

/// Refuses a cipher that no key slot can hold a key of.
///
/// # Errors
/// [`VolumeError::Impossible`].
pub fn check_has_key(spec: CipherSpec) -> Result<(), VolumeError> {
    match spec.algorithms() == [Algorithm::Null] {
        true => Err(impossible(
            format!("{spec} encrypts nothing, and has no key that a key slot could hold"),
            "Take aes-xts-plain64. Unencrypted data needs no LUKS header.",
        )),
        false => Ok(()),
    }
}

/// How the data is encrypted.
pub(super) struct Encryption {
    /// The cipher, as the header states it.
    pub(super) cipher: DataCipher,
    /// The cipher of the data, unless it makes the tags itself.
    pub(super) data: Option<CipherSpec>,
    /// Length of the volume key, bytes.
    pub(super) key_bytes: usize,
    /// Length of the part of it that is the cipher's, bytes.
    cipher_bytes: usize,
}

impl Encryption {
    /// The encryption that the options describe.
    ///
    /// # Errors
    /// [`VolumeError::Cipher`], [`VolumeError::Impossible`].
    pub(super) fn of(creation: &Creation) -> Result<Self, VolumeError> {
        let given = creation.parameters.key_bytes()?;
        let encryption = match &creation.integrity {
            None => {
                let spec = plain_cipher(creation)?;
                let key_bytes = given.unwrap_or_else(|| usual_key_bytes(&spec));
                Self {
                    cipher: DataCipher::Plain(spec),
                    data: Some(spec),
                    key_bytes,
                    cipher_bytes: key_bytes,
                }
            }
            Some(word) => {
                let name = creation.parameters.cipher.as_deref().unwrap_or(CIPHER);
                let sealed = SealedSpec::named(name, word).ok_or_else(|| {
                    let words: Vec<_> = SealedSpec::words().collect();
                    impossible(
                        format!("there is no integrity algorithm `{word}`"),
                        format!("Use one of: {}.", words.join(", ")),
                    )
                })?;
                if sealed.repeats_key_stream() {
                    return Err(impossible(
                        format!(
                            "{sealed} encrypts every version of a sector by the same key stream: \
                             who has two of them reads both"
                        ),
                        "Take aes-gcm-random or aegis128-random with aead, chacha20-random with \
                         poly1305, or aes-xts-plain64 with hmac-sha256.",
                    ));
                }
                let data = sealed
                    .data_cipher()
                    .map_err(|error| no_such(error, &sealed))?;
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
        encryption.data.map_or(Ok(()), check_has_key)?;
        let size = creation.parameters.sector_size()?;
        encryption.check(size.unwrap_or_default())?;
        Ok(encryption)
    }

    /// A cipher that is not possible is refused before anything is asked or written.
    fn check(&self, size: SectorSize) -> Result<(), VolumeError> {
        match &self.cipher {
            DataCipher::Plain(spec) => {
                let trial_key = Key::from(vec![0; self.key_bytes]);
                let layout = SectorLayout {
                    size,
                    large_iv: false,
                };
                spec.cipher(&trial_key, layout, None)?;
            }
            DataCipher::Sealed(sealed) => sealed
                .check(self.key_bytes, size)
                .map_err(|error| no_such(error, sealed))?,
        }
        Ok(())
    }

    /// The volume key that the user gives, or a random one.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`] if both halves are the same that must not be.
    pub(super) fn key(&self, given: Option<&Key>) -> Result<Key, VolumeError> {
        let Some(key) = given else {
            return Ok(Key::random(self.key_bytes)?);
        };
        let is_halved = |spec| {
            let part = &key.as_bytes()[..self.cipher_bytes];
            has_equal_halves(spec, &Key::from_slice(part))
        };
        if key.len() == self.key_bytes && self.data.is_some_and(is_halved) {
            return Err(impossible(
                "both halves of the volume key are the same: XTS needs two keys".to_owned(),
                "Give a volume key of random bytes, or none.".to_owned(),
            ));
        }
        Ok(Key::from_slice(key.as_bytes()))
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

/// The cipher of a volume whose sectors have no tags.
///
/// # Errors
/// [`VolumeError::Cipher`], and [`VolumeError::Impossible`] for one that needs tags.
pub(super) fn plain_cipher(creation: &Creation) -> Result<CipherSpec, VolumeError> {
    let name = creation.parameters.cipher.as_deref().unwrap_or(CIPHER);
    match name.parse() {
        Ok(spec) => Ok(spec),
        Err(_) if SealedSpec::is_needed(name) => Err(impossible(
            format!("{name} needs room for tags or IVs beside the sectors"),
            format!(
                "Choose an integrity algorithm with {}, or take aes-xts-plain64.",
                Format::Luks2.title()
            ),
        )),
        Err(error) => Err(error.into()),
    }
}

/// Says what is possible instead of a cipher and an algorithm that do not go together.
fn no_such(error: VolumeError, sealed: &SealedSpec) -> VolumeError {
    match error {
        VolumeError::Unsupported { .. } => impossible(
            format!("{sealed} is not possible with such a key"),
            "Use one of: aes-gcm-random with aead, aegis128-random with aead, chacha20-random \
             with poly1305, aes-xts-plain64 with hmac-sha256."
                .to_owned(),
        ),
        other => other,
    }
}
