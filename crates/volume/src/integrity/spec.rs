//! [`SealedSpec`]: which ciphers a new volume with tags can have.

use super::mac::Mac;
use super::seal::{Seal, unsupported};
use crate::VolumeError;
use cipher::{CipherSpec, IvSector, Key, SectorSize};
use std::fmt;

/// A cipher whose sectors have tags, as LUKS2 names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSpec {
    encryption: String,
    integrity: String,
}

/// cryptsetup's words for the algorithms, and LUKS2's.
const WORDS: [(&str, &str); 6] = [
    ("aead", "aead"),
    ("poly1305", "poly1305"),
    ("hmac-sha256", "hmac(sha256)"),
    ("hmac-sha512", "hmac(sha512)"),
    ("hmac-sha1", "hmac(sha1)"),
    ("none", "none"),
];

/// Ciphers with authentication, and the key that they usually have, in bytes.
const WHOLE: [(&str, &str, usize); 3] = [
    ("aes-gcm", "aead", 32),
    ("aegis128", "aead", 16),
    ("chacha20", "poly1305", 32),
];

impl SealedSpec {
    /// The words that [`named`](Self::named) takes for an algorithm.
    pub fn words() -> impl Iterator<Item = &'static str> {
        WORDS.into_iter().map(|(word, _)| word)
    }

    /// The cipher `encryption`, as in `aes-gcm-random`, with the algorithm that
    /// cryptsetup calls `word`; nothing if there is none of that name.
    pub fn named(encryption: &str, word: &str) -> Option<Self> {
        let (_, integrity) = WORDS.into_iter().find(|(known, _)| *known == word)?;
        Some(Self {
            encryption: encryption.into(),
            integrity: integrity.into(),
        })
    }

    /// Whether `encryption` names a cipher that is possible with integrity alone.
    pub fn is_needed(encryption: &str) -> bool {
        let transform = encryption.rsplit_once('-').map(|(transform, _)| transform);
        let whole = WHOLE.iter().any(|(known, ..)| Some(*known) == transform);
        whole || encryption.ends_with("-random")
    }

    /// Whether every version of a sector is encrypted by the same key stream. Who has two of them,
    /// of which the zeros of a new volume may be one, has the difference of the data.
    pub fn repeats_key_stream(&self) -> bool {
        repeats_key_stream(&self.encryption)
    }

    /// Cipher, mode and IV generator, as LUKS2 names them.
    pub fn encryption(&self) -> &str {
        &self.encryption
    }

    /// The algorithm that makes the tags, as LUKS2 names it.
    pub fn integrity(&self) -> &str {
        &self.integrity
    }

    /// The cipher without authentication that the data is encrypted with, under
    /// IVs of sector numbers; `None` if the cipher makes the tags itself.
    ///
    /// # Errors
    /// [`VolumeError::Cipher`], [`VolumeError::Unsupported`].
    pub fn data_cipher(&self) -> Result<Option<CipherSpec>, VolumeError> {
        if self.whole_key_bytes().is_some() {
            return Ok(None);
        }
        let makes_tags = WHOLE
            .iter()
            .any(|(name, ..)| self.transform() == Some(name));
        if makes_tags || matches!(&*self.integrity, "aead" | "poly1305") {
            return Err(unsupported(&self.encryption, &self.integrity));
        }
        let spec = match self.encryption.strip_suffix("-random") {
            Some(transform) => format!("{transform}-plain64").parse(),
            None => self.encryption.parse(),
        };
        Ok(Some(spec.map_err(VolumeError::Cipher)?))
    }

    /// Length of a volume key in bytes whose part for the cipher has
    /// `cipher_bytes`, if the user says so; if not, the cipher's usual one.
    ///
    /// # Errors
    /// As [`data_cipher`](Self::data_cipher).
    pub fn key_bytes(&self, cipher_bytes: Option<usize>) -> Result<usize, VolumeError> {
        let usual = match self.data_cipher()? {
            Some(spec) => spec.default_key_size(),
            None => self.whole_key_bytes().unwrap_or_default(),
        };
        Ok(cipher_bytes.unwrap_or(usual) + Mac::bytes_of(&self.integrity).unwrap_or(0))
    }

    /// Refuses what cannot be, before there is anything of it.
    ///
    /// # Errors
    /// [`VolumeError::Cipher`], [`VolumeError::Unsupported`].
    pub fn check(&self, key_bytes: usize, sector_size: SectorSize) -> Result<(), VolumeError> {
        let key = Key::from(vec![0; key_bytes]);
        let first = IvSector::new(0);
        Seal::new(
            &self.encryption,
            &self.integrity,
            &key,
            None,
            sector_size,
            first,
        )?;
        Ok(())
    }

    /// Cipher and mode, without the IV generator.
    fn transform(&self) -> Option<&str> {
        let (transform, _) = self.encryption.rsplit_once('-')?;
        Some(transform)
    }

    /// The usual length of the key of a cipher that makes the tags itself, bytes.
    fn whole_key_bytes(&self) -> Option<usize> {
        let transform = self.transform()?;
        let mut whole = WHOLE.into_iter();
        let found =
            whole.find(|(name, kind, _)| (*name, *kind) == (transform, &*self.integrity))?;
        Some(found.2)
    }
}

/// [`SealedSpec::repeats_key_stream`] of a cipher as LUKS2 names it.
pub(crate) fn repeats_key_stream(encryption: &str) -> bool {
    const STREAMS: [&str; 4] = ["gcm", "ctr", "chacha20", "aegis"];
    let (transform, generator) = encryption.rsplit_once('-').unwrap_or((encryption, ""));
    generator != "random" && STREAMS.iter().any(|stream| transform.contains(stream))
}

impl fmt::Display for SealedSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {}", self.encryption, self.integrity)
    }
}
