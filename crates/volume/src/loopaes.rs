//! loop-AES: the key file's lines become 1 key (version 1), 64 keys that alternate by sector
//! (version 2), or 64 keys and a seed of the IVs (version 3).
//!
//! Source: cryptsetup, lib/loopaes/loopaes.c; loop-AES's README.

use crate::error::impossible;
use crate::plain::Place;
use crate::{Format, Hash, Mapping, Secret, VolumeError};
use block::BlockDevice;
use cipher::{Algorithm, CipherSpec, Key, SectorLayout};
use std::convert::Infallible;

/// Lines of a key file of version 2; version 3 has one more.
const KEYS: usize = 64;

/// The parameters of a loop-AES volume, which has no header: the user gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The cipher of every key.
    pub cipher: Algorithm,
    /// Length of every key, bytes: 16, 24 or 32.
    pub key_bytes: usize,
    /// The hash of the lines; `None` takes the one that goes with the key length.
    pub hash: Option<Hash>,
    /// First byte of the data.
    pub offset: u64,
    /// IV number of the first sector; `None` counts from the start of the
    /// backing file.
    pub skip: Option<u64>,
    /// Length of the data, bytes; `None` goes to the end.
    pub size: Option<u64>,
}

impl Opening {
    /// The volume as the key file `secret` opens it. Any key file opens it, and a wrong one shows
    /// noise.
    ///
    /// # Errors
    /// [`VolumeError::SecretKind`] for a secret that is not a key file, [`VolumeError::Impossible`]
    /// for one that GnuPG encrypted or whose lines are not 1, 64 or 65 of one length,
    /// [`VolumeError::Cipher`], [`VolumeError::DataArea`] and [`VolumeError::DataAlignment`].
    pub fn mapping(
        &self,
        secret: &Secret,
        device: &dyn BlockDevice,
    ) -> Result<Mapping, VolumeError> {
        let file = match secret {
            Secret::KeyFile(bytes) => bytes.as_bytes(),
            other => {
                return Err(VolumeError::SecretKind {
                    format: Format::LoopAes,
                    got: other.kind(),
                });
            }
        };
        if file.starts_with(b"-----BEGIN PGP") || file.first().is_some_and(|byte| byte >> 7 == 1) {
            return Err(impossible(
                "the key file is encrypted with GnuPG",
                "Decrypt the key file first and pipe the result in: gpg -d FILE | cryptmark volume … \
                 `key_file` -",
            ));
        }
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r' | 0);
        let lines = || file.split(ends).filter(|line| !line.is_empty());
        let length = lines().next().map_or(0, <[u8]>::len);
        let even = lines().all(|line| line.len() == length);
        let count = lines().count();
        let (notation, mark) = match count {
            1 => ("cbc-plain64", 0),
            KEYS if even => ("cbc-lmk", 0x55),
            65 if even => ("cbc-lmk", 0xF4),
            lines => {
                let lengths = if even { "" } else { " of different lengths" };
                return Err(impossible(
                    format!("the key file has {lines} lines{lengths}"),
                    "Give a key file with 1, 64 or 65 lines of equal length.",
                ));
            }
        };
        let spec: CipherSpec = match count {
            1 => format!("{}-{notation}", self.cipher),
            _ => format!("{}:{KEYS}-{notation}", self.cipher),
        }
        .parse()?;
        let hash = self.hash.unwrap_or(match self.key_bytes {
            0..=16 => Hash::Sha256,
            17..=24 => Hash::Sha384,
            _ => Hash::Sha512,
        });
        if hash.digest_bytes() < self.key_bytes {
            let (digest, key) = (hash.digest_bytes(), self.key_bytes);
            return Err(impossible(
                format!("{hash} gives {digest} bytes, and the key has {key}"),
                "Choose a longer `hash` or a shorter `key_size`.",
            ));
        }
        let key = Key::filled(count * self.key_bytes, |keys| {
            for (key, line) in keys.chunks_exact_mut(self.key_bytes).zip(lines()) {
                key.copy_from_slice(&hash.digest(&[line])[..self.key_bytes]);
                key[0] ^= mark;
            }
            Ok::<_, Infallible>(())
        })
        .expect("nothing fails");
        let place = Place {
            offset: self.offset,
            skip: self.skip.unwrap_or(self.offset / 512),
            size: self.size,
        };
        place.mapping(spec, key, SectorLayout::default(), device)
    }
}
