//! Plain dm-crypt: no header; cipher, key and place come from the user.
//!
//! Source: cryptsetup(8), plain mode; lib/crypt_plain.c for the hashing.

use crate::error::impossible;
use crate::mapping::{data_of_size, data_to_end, key_for};
use crate::{Hash, Mapping, Secret, VolumeError};
use block::BlockDevice;
use cipher::{CipherSpec, IvSector, Key, SectorLayout};
use std::convert::Infallible;
use std::str::FromStr;

/// Length of the key if the user names none, as in cryptsetup.
pub const DEFAULT_KEY_BYTES: usize = 32;

/// The parameters of a plain volume, which has no header: the user gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Cipher, mode and IV generator.
    pub spec: CipherSpec,
    /// Length of the key, bytes; `None` takes all of a volume key, and
    /// [`DEFAULT_KEY_BYTES`] of all else.
    pub key_bytes: Option<usize>,
    /// The hashing of a passphrase to a key.
    pub hashing: Hashing,
    /// Where the data is.
    pub place: Place,
    /// Encryption sector size and IV numbering.
    pub layout: SectorLayout,
}

/// Where the data of a volume without a header is, and how it is numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// First byte of the data (`--offset`, which counts 512-byte sectors).
    pub offset: u64,
    /// IV number of the first sector in units of 512 bytes (`--skip`).
    pub skip: u64,
    /// Length of the data, bytes (`--size`); `None` goes to the end.
    pub size: Option<u64>,
}

/// How a passphrase becomes a key of any length: cryptsetup's `--hash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    /// `None` takes the passphrase as it is.
    pub hash: Option<Hash>,
    /// Only so many bytes of key are made, and zeros follow (`sha256:16`).
    pub length: Option<usize>,
}

/// The error of a hash that is not known.
pub(crate) fn unknown_hash(text: &str) -> VolumeError {
    let names = Hash::ALL.map(Hash::name).join(", ");
    impossible(
        format!("unknown hash `{text}`"),
        format!("Use one of: {names}. `plain` means no hash."),
    )
}

impl FromStr for Hashing {
    type Err = VolumeError;

    fn from_str(text: &str) -> Result<Self, VolumeError> {
        let unknown = || unknown_hash(text);
        let (name, length) = match text.split_once(':') {
            None => (text, None),
            Some((name, length)) => (name, Some(length.parse().map_err(|_| unknown())?)),
        };
        let hash = match name {
            "plain" => None,
            name => Some(Hash::named(name).ok_or_else(unknown)?),
        };
        Ok(Self { hash, length })
    }
}

impl Hashing {
    /// The key of `key_bytes` bytes that a passphrase gives.
    ///
    /// Digests of the passphrase, of `A` and the passphrase, of `AA` and the
    /// passphrase… follow one another until the key is full.
    pub fn key(&self, passphrase: &[u8], key_bytes: usize) -> Key {
        let filled = Key::filled(key_bytes, |key| {
            let length = self.length.unwrap_or(key_bytes).min(key_bytes);
            let key = &mut key[..length];
            match self.hash {
                None => {
                    let length = key.len().min(passphrase.len());
                    key[..length].copy_from_slice(&passphrase[..length]);
                }
                Some(hash) => {
                    for (round, piece) in key.chunks_mut(hash.digest_bytes()).enumerate() {
                        let digest = hash.digest(&[&vec![b'A'; round], passphrase]);
                        piece.copy_from_slice(&digest[..piece.len()]);
                    }
                }
            }
            Ok::<_, Infallible>(())
        });
        filled.expect("nothing fails")
    }
}

impl Opening {
    /// The volume as `secret` opens it: every secret opens it, the wrong ones
    /// to noise.
    ///
    /// A passphrase is hashed; of a key file the first bytes are the key.
    ///
    /// # Errors
    /// [`VolumeError::SecretLength`] for a key file that is too short,
    /// [`VolumeError::Cipher`], [`VolumeError::DataArea`] and
    /// [`VolumeError::DataAlignment`].
    pub fn mapping(
        &self,
        secret: &Secret,
        device: &dyn BlockDevice,
    ) -> Result<Mapping, VolumeError> {
        let key_bytes = self.key_bytes.unwrap_or(match secret {
            Secret::VolumeKey(key) => key.len(),
            Secret::Passphrase(_) | Secret::KeyFile(_) => DEFAULT_KEY_BYTES,
        });
        let key = match secret {
            Secret::Passphrase(passphrase) => self.hashing.key(passphrase.as_bytes(), key_bytes),
            Secret::KeyFile(bytes) | Secret::VolumeKey(bytes) => {
                let key = bytes.as_bytes().get(..key_bytes);
                let key = key.ok_or_else(|| VolumeError::SecretLength {
                    what: "key file",
                    got: bytes.len() as u64,
                    rule: format!("the key needs {key_bytes}").into(),
                })?;
                Key::from_slice(key)
            }
        };
        self.place.mapping(self.spec, key, self.layout, device)
    }
}

impl Place {
    /// The mapping of `device` there.
    pub(crate) fn mapping(
        &self,
        spec: CipherSpec,
        key: Key,
        layout: SectorLayout,
        device: &dyn BlockDevice,
    ) -> Result<Mapping, VolumeError> {
        let skip_unit = match layout.large_iv {
            true => layout.size.bytes() as u64 / 512,
            false => 1,
        };
        if !self.skip.is_multiple_of(skip_unit) {
            let skip = self.skip;
            return Err(impossible(
                format!("a skip of {skip} sectors is not a multiple of the encryption sector size"),
                format!("Give a `skip` that is a multiple of {skip_unit}."),
            ));
        }
        let key = key_for(&spec, &key);
        let data = match self.size {
            None => data_to_end(device, self.offset, layout)?,
            Some(size) => data_of_size(device, self.offset, size, layout)?,
        };
        let first = IvSector::new(self.skip / skip_unit);
        Ok(Mapping::new(spec, key, layout, data, first))
    }
}
