//! cryptoloop: loop devices that the kernel encrypted until Linux 5.16,
//! `losetup -e`.
//!
//! The data are encrypted as by `<cipher>-cbc-plain` or `<cipher>-ecb`, in sectors of 512 bytes.
//! The sectors count from the start of the backing file, wherever the volume begins.
//!
//! Source: Linux 5.15, drivers/block/cryptoloop.c; util-linux 2.22,
//! mount/lomount.c, and Debian's patches of it; hashalot(1).

use crate::error::impossible;
use crate::plain::{Hashing, Place};
use crate::{Hash, Mapping, Secret, VolumeError};
use block::BlockDevice;
use cipher::{CipherError, CipherSpec, Key, SectorLayout};
use std::str::FromStr;

/// Bytes of passphrase that util-linux used, and the length of its keys.
const UTIL_LINUX_PASSPHRASE: usize = 31;
const UTIL_LINUX_KEY: usize = 32;

/// The parameters of a cryptoloop volume, which has no header: the user gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The cipher.
    pub cipher: LoopCipher,
    /// Length of the key, bytes; `None` takes that of the cipher's name, or 32.
    pub key_bytes: Option<usize>,
    /// The derivation of the key from a passphrase.
    pub derivation: Derivation,
    /// First byte of the data.
    pub offset: u64,
    /// IV number of the first sector; `None` counts from the start of the
    /// backing file, as the kernel does.
    pub skip: Option<u64>,
    /// Length of the data, bytes; `None` goes to the end.
    pub size: Option<u64>,
}

/// A cipher by one of its names there: `aes`, `aes-256`, `aes-cbc`, `aes-ecb`,
/// and dm-crypt's `aes-cbc-plain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopCipher {
    /// The same in dm-crypt's notation.
    pub spec: CipherSpec,
    /// Key length that the name tells, bytes.
    pub key_bytes: Option<usize>,
}

impl FromStr for LoopCipher {
    type Err = CipherError;

    fn from_str(text: &str) -> Result<Self, CipherError> {
        let (name, rest) = text.split_once('-').unwrap_or((text, ""));
        let (mode, bits) = match rest.parse::<u16>() {
            Ok(bits) => ("", Some(usize::from(bits))),
            Err(_) => (rest, None),
        };
        let notation = match mode {
            "" | "cbc" => format!("{name}-cbc-plain"),
            "ecb" => format!("{name}-ecb"),
            _ => text.to_owned(),
        };
        Ok(Self {
            spec: notation.parse()?,
            key_bytes: bits.map(|bits| bits / 8),
        })
    }
}

/// How a passphrase became a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Derivation {
    /// Not at all: its first 31 bytes, then zeros up to 32.
    #[default]
    UtilLinux,
    /// RIPEMD-160 of it, and of `A` and it.
    DebianRmd160,
    /// The output of hashalot with this hash.
    Hashalot(Hash),
}

impl FromStr for Derivation {
    type Err = VolumeError;

    fn from_str(text: &str) -> Result<Self, VolumeError> {
        let hash = text.strip_prefix("hashalot-").and_then(|name| match name {
            "rmd160" | "rmd160compat" => Some(Hash::Ripemd160),
            name => Hash::named(name),
        });
        match (text, hash) {
            ("util-linux", _) => Ok(Self::UtilLinux),
            ("debian-rmd160", _) => Ok(Self::DebianRmd160),
            (_, Some(hash)) => Ok(Self::Hashalot(hash)),
            _ => Err(impossible(
                format!("unknown key derivation `{text}`"),
                "Use one of: util-linux, debian-rmd160, hashalot-HASH, where HASH is rmd160compat or \
                 a hash such as ripemd160, sha1, sha256, sha384, sha512 or whirlpool.",
            )),
        }
    }
}

impl Derivation {
    /// The key of `key_bytes` bytes that a passphrase gives.
    pub fn key(self, passphrase: &[u8], key_bytes: usize) -> Key {
        let (hash, used) = match self {
            Self::UtilLinux => (None, passphrase.len().min(UTIL_LINUX_PASSPHRASE)),
            Self::DebianRmd160 => (Some(Hash::Ripemd160), passphrase.len()),
            Self::Hashalot(hash) => (Some(hash), passphrase.len()),
        };
        let hashing = Hashing { hash, length: None };
        hashing.key(&passphrase[..used], key_bytes)
    }
}

impl Opening {
    /// The volume as `secret` opens it: every secret opens it, the wrong ones
    /// to noise.
    ///
    /// # Errors
    /// [`VolumeError::Cipher`], [`VolumeError::DataArea`] and
    /// [`VolumeError::DataAlignment`].
    pub fn mapping(
        &self,
        secret: &Secret,
        device: &dyn BlockDevice,
    ) -> Result<Mapping, VolumeError> {
        let key_bytes = self
            .key_bytes
            .or(self.cipher.key_bytes)
            .unwrap_or(UTIL_LINUX_KEY);
        let key = match secret {
            Secret::Passphrase(bytes) => self.derivation.key(bytes.as_bytes(), key_bytes),
            // The input of `losetup -p`: the bytes themselves.
            Secret::KeyFile(bytes) | Secret::VolumeKey(bytes) => {
                let length = bytes.len().min(key_bytes);
                Key::from_slice(&bytes.as_bytes()[..length])
            }
        };
        let place = Place {
            offset: self.offset,
            skip: self.skip.unwrap_or(self.offset / 512),
            size: self.size,
        };
        place.mapping(self.cipher.spec, key, SectorLayout::default(), device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// hashalot hands on the digest, of which cryptsetup's plain mode makes the same key.
    #[test]
    fn hashalot_has_every_hash() {
        for hash in Hash::ALL {
            let derivation: Derivation = format!("hashalot-{hash}").parse().unwrap();
            assert_eq!(derivation, Derivation::Hashalot(hash));
        }
        let sha1: Derivation = "hashalot-sha1".parse().unwrap();
        let expected =
            b"\x2a\xae\x6c\x35\xc9\x4f\xcf\xb4\x15\xdb\xe9\x5f\x40\x8b\x9c\xe9\x1e\xe8\x46\xed";
        assert_eq!(sha1.key(b"hello world", 20).as_bytes(), expected);
    }
}
