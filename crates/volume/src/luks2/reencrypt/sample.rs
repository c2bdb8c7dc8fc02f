//! Recognises the data that belong to a header in a file of its own.
//!
//! Such a header records the progress of a reencryption, but the data are elsewhere. They may have
//! been restored from a backup meanwhile, or be those of another volume. A program that continued
//! would encrypt twice or decrypt noise. So a token keeps a digest of the start of the plaintext,
//! under a key of the reencryption. It stays the same from the beginning to the end. cryptsetup
//! keeps the token, and does not read it.

use super::{Backup, Keys, VolumeError, number_of};
use crate::error::impossible;
use crate::luks::digest_of;
use crate::luks2::read::Header;
use crate::opening::Opened;
use crate::{Hash, Row, unaligned};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use block::{BlockDevice, ByteRange};
use cipher::Key;
use serde_json::{Map, Value, json};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The type of the token.
pub(super) const SAMPLE: &str = "cryptmark-data";

/// Bytes of plaintext that are looked at, at most.
pub(super) const LENGTH: u64 = 4096;

impl Header {
    /// Refuses data with which the reencryption did not begin, if the header identifies the data.
    /// `rows` are the volume's, as the header describes them.
    pub(super) fn check_sample(
        &self,
        (device, data): (&dyn BlockDevice, &dyn BlockDevice),
        rows: Vec<Row>,
        keys: &Keys,
    ) -> Result<(), VolumeError> {
        let Some(kept) = self.kept_sample("digest") else {
            return Ok(());
        };
        let opened = Opened {
            rows,
            ..Opened::without_rows(None)
        };
        let plaintext = opened.device(device, data)?;
        match bool::from(kept.ct_eq(digest(&*plaintext, keys)?.as_bytes())) {
            true => Ok(()),
            false => Err(VolumeError::OtherData),
        }
    }

    /// Whether `data` are those that were decrypted by this header, as they were then; nothing
    /// if it does not say that all of them are.
    ///
    /// # Errors
    /// Those of reading.
    #[doc(hidden)]
    pub fn has_decrypted(&self, data: &dyn BlockDevice) -> Result<Option<bool>, VolumeError> {
        let Some(kept) = self.kept_sample("start") else {
            return Ok(None);
        };
        let (_, segment) = self.data_segment()?;
        let Some(length) = segment.size else {
            return Ok(None);
        };
        let range = ByteRange::new(segment.offset, length);
        let size = data.geometry().size;
        // Their file is cut behind them, and has grown if it has any other length.
        let fits = range.end() == Some(size) || self.size_then() == Some(size);
        Ok(Some(fits && kept == *start(data, range)?))
    }

    /// Whether the header says which data it is of.
    pub(super) fn has_sample(&self) -> bool {
        self.kept_sample("digest").is_some()
    }

    /// The size of the data's device when all was decrypted.
    fn size_then(&self) -> Option<u64> {
        self.token_of(SAMPLE)?["size"].as_str()?.parse().ok()
    }

    fn kept_sample(&self, name: &str) -> Option<Vec<u8>> {
        let token = self.token_of(SAMPLE)?;
        // When all is decrypted nothing of the reencryption is left but this.
        let own = name == "start" || token["of"] == bond(&self.json);
        STANDARD.decode(token[name].as_str()?).ok().filter(|_| own)
    }
}

/// A token that tells data that are decrypted, `range` of their device, when no key is left to
/// tell them by.
pub(super) fn of_plaintext(data: &dyn BlockDevice, range: ByteRange) -> Result<Value, VolumeError> {
    Ok(json!({
        "type": SAMPLE,
        "keyslots": [],
        "start": STANDARD.encode(&*start(data, range)?),
        "size": data.geometry().size.to_string(),
    }))
}

/// SHA-256 of what `range` begins with.
fn start(data: &dyn BlockDevice, range: ByteRange) -> Result<Zeroizing<Vec<u8>>, VolumeError> {
    let range = ByteRange::new(range.offset, LENGTH.min(range.length));
    Ok(Hash::Sha256.digest(&[&unaligned::read(data, range)?]))
}

/// Adds the token to the metadata of its reencryption; cryptsetup leaves it there when it
/// ends that, and it is none of the next one's.
pub(super) fn insert(
    json: &mut Map<String, Value>,
    token: Option<Value>,
) -> Result<(), VolumeError> {
    let bond = bond(json);
    let (Some(mut token), Value::Object(tokens)) = (token, &mut json["tokens"]) else {
        return Ok(());
    };
    let number = super::free_number(tokens).ok_or_else(|| {
        impossible(
            "there is no room for another token",
            "Remove a token that you don't need any more.",
        )
    })?;
    token["of"] = bond.into();
    tokens.insert(number.to_string(), token);
    Ok(())
}

/// An identifier of a reencryption: a hash of the digests of its old and new keys.
fn bond(json: &Map<String, Value>) -> String {
    let digest = |flag| -> Option<&str> {
        let number = number_of(json, flag)?.to_string();
        let mut digests = json["digests"].as_object()?.values();
        let has = |digest: &&Value| {
            let of = digest["segments"].as_array();
            of.is_some_and(|of| of.iter().any(|segment| *segment == *number))
        };
        digests.find(has)?["digest"].as_str()
    };
    let [old, new] = [Backup::Previous, Backup::Final].map(|flag| digest(flag).unwrap_or("none"));
    STANDARD.encode(&*Hash::Sha256.digest(&[old.as_bytes(), b" ", new.as_bytes()]))
}

/// The token itself.
pub(super) fn token(plaintext: &dyn BlockDevice, keys: &Keys) -> Result<Value, VolumeError> {
    let digest = digest(plaintext, keys)?;
    Ok(json!({
        "type": SAMPLE,
        "keyslots": [],
        "digest": STANDARD.encode(digest.as_bytes()),
    }))
}

/// A digest of the start of the plaintext, keyed with the new key, or with the old one if the new
/// one is empty. It reveals nothing about the data without that key.
fn digest(plaintext: &dyn BlockDevice, keys: &Keys) -> Result<Key, VolumeError> {
    let salt = start(plaintext, ByteRange::new(0, plaintext.geometry().size))?;
    let key = match keys.new.is_empty() {
        true => &keys.old,
        false => &keys.new,
    };
    digest_of(key, &salt)
}
