//! The data that a header of a file of its own speaks of, told from all other data.
//!
//! Such a header says how far a reencryption is, and the data are elsewhere: they may have been
//! put back from a backup meanwhile, or be those of another volume, and whoever went on would
//! encrypt twice or decrypt noise. So a token keeps a digest of the plaintext that the data begin
//! with, under a key of the reencryption. It stays the same from the beginning to the end.
//! cryptsetup keeps the token, and does not look at it.

use super::{Backup, Keys, VolumeError, backup, number_of};
use crate::luks::DIGEST_ITERATIONS;
use crate::luks2::read::Header;
use crate::opening::Opened;
use crate::{Hash, Kdf, Limits, Row};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use block::{AlignedBuffer, BlockDevice};
use cipher::Key;
use serde_json::{Map, Value, json};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The type of the token.
pub(super) const SAMPLE: &str = "cryptmark-data";

/// Bytes of plaintext that are looked at, at most.
const LENGTH: u64 = 4096;

impl Header {
    /// Refuses data that are not those with which the reencryption began, if the header says
    /// which those are; `rows` are the volume's as the header tells of them.
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
            sealed: None,
            slot: None,
            by_copy: false,
        };
        let plaintext = opened.device(device, data)?;
        match bool::from(kept.ct_eq(digest(&*plaintext, keys)?.as_bytes())) {
            true => Ok(()),
            false => Err(VolumeError::OtherData),
        }
    }
}

impl Header {
    /// Refuses data that are not those that were decrypted by this header, which says that all of
    /// them are.
    ///
    /// # Errors
    /// [`VolumeError::OtherData`], and those of reading.
    pub fn check_decrypted(&self, data: &dyn BlockDevice) -> Result<(), VolumeError> {
        match self.kept_sample("start") {
            Some(kept) if kept != *start(data)? => Err(VolumeError::OtherData),
            _ => Ok(()),
        }
    }

    /// Whether the header says which data it is of.
    pub(super) fn has_sample(&self) -> bool {
        self.kept_sample("digest").is_some()
    }

    fn kept_sample(&self, name: &str) -> Option<Vec<u8>> {
        let tokens = self.json.get("tokens")?.as_object()?;
        let token = tokens.values().find(|token| token["type"] == SAMPLE)?;
        // When all is decrypted nothing of the reencryption is left but this.
        let own = name == "start" || token["of"] == bond(&self.json);
        STANDARD.decode(token[name].as_str()?).ok().filter(|_| own)
    }
}

/// A token that tells data that are decrypted, when no key is left to tell them by.
pub(super) fn of_plaintext(plaintext: &dyn BlockDevice) -> Result<Value, VolumeError> {
    Ok(json!({
        "type": SAMPLE,
        "keyslots": [],
        "start": STANDARD.encode(&*start(plaintext)?),
    }))
}

/// SHA-256 of what the data begin with.
fn start(plaintext: &dyn BlockDevice) -> Result<Zeroizing<Vec<u8>>, VolumeError> {
    let length = LENGTH.min(plaintext.geometry().size);
    let mut start = AlignedBuffer::new(length as usize);
    plaintext.read_at(0, &mut start)?;
    Ok(Hash::Sha256.digest(&[&start]))
}

/// Adds the token to the metadata of its reencryption; cryptsetup leaves it there when it
/// ends that, and it is none of the next one's.
pub(super) fn insert(json: &mut Map<String, Value>, token: Option<Value>) {
    let bond = bond(json);
    let Value::Object(tokens) = &mut json["tokens"] else {
        return;
    };
    forget(tokens);
    if let (Some(mut token), Some(number)) = (token, super::free_number(tokens)) {
        token["of"] = bond.into();
        tokens.insert(number.to_string(), token);
    }
}

/// What tells a reencryption from all others: the digests of the keys of before and afterwards.
fn bond(json: &Map<String, Value>) -> String {
    let digest = |flag| -> Option<&str> {
        let segments = json["segments"].as_object()?;
        let number = number_of(segments, backup(segments, flag)?)?.to_string();
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

/// Takes the token away.
pub(super) fn forget(tokens: &mut Map<String, Value>) {
    tokens.retain(|_, token| token["type"] != SAMPLE);
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

/// Nobody without the keys can tell from it what the data are.
fn digest(plaintext: &dyn BlockDevice, keys: &Keys) -> Result<Key, VolumeError> {
    let salt = start(plaintext)?;
    let key = match keys.new.is_empty() {
        true => &keys.old,
        false => &keys.new,
    };
    let hash = Hash::Sha256;
    let kdf = Kdf::Pbkdf2 {
        hash,
        iterations: DIGEST_ITERATIONS,
    };
    kdf.derive(
        key.as_bytes(),
        &salt,
        hash.digest_bytes(),
        &Limits::default(),
    )
}
