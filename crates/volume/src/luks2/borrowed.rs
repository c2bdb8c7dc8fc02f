//! Reencryption of a volume of another format, by means of LUKS2.
//!
//! Such a volume has no room for a journal. While its data are reencrypted, a LUKS2 header on a
//! device of its own holds the journal, both keys and both ciphers, as in an encryption in place. A
//! token in it keeps the headers of the other format that are to be written at the end.

use super::create::{crypt_json, digest_json};
use super::keyslots::{KeyslotOptions, insert};
use super::read::Header;
use super::reencrypt::{Announcement, Backup, Keys, flagged};
use crate::luks::digest_of;
use crate::{Hash, Mapping, VolumeError, unaligned};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use block::BlockDevice;
use cipher::Key;
use serde_json::{Map, Value, json};
use subtle::ConstantTimeEq;

/// The type of the token that keeps the headers.
const TOKEN_KIND: &str = "cryptmark-headers";

/// The keyslots of the two keys.
const NEW_SLOT: &str = "0";
const OLD_SLOT: u32 = 1;

/// A header of another format, to be written to the device of the data at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptHeader {
    /// Its first byte.
    pub offset: u64,
    /// All of it.
    pub bytes: Vec<u8>,
}

#[doc(hidden)]
impl Header {
    /// Begins to make `new` of `old`, which lie on `data` at the same place. It makes a LUKS2
    /// header on `device`, a device of its own, that `passphrase` opens. `headers` are kept for
    /// [`put_headers`](Self::put_headers). No data is changed, and the headers of the volume stay
    /// until [`take_headers`](Self::take_headers).
    ///
    /// # Errors
    /// As [`create`](Self::create), and those of reading.
    pub fn begin_for_another(
        (device, data): (&dyn BlockDevice, &dyn BlockDevice),
        (old, new): (&Mapping, &Mapping),
        headers: &[KeptHeader],
        keyslot: &KeyslotOptions,
        passphrase: &Key,
    ) -> Result<Self, VolumeError> {
        // The segments come with the reencryption.
        let creation = super::Creation {
            cipher: super::DataCipher::Plain(new.spec),
            key_bytes: new.key.len(),
            sector_size: new.layout.size,
            keyslot: *keyslot,
            detached: true,
            ..super::Creation::new(keyslot.kdf)
        };
        let mut header = Self::create(device, &creation, &new.key, passphrase)?;
        let (old_keyslot, area) = header.store(device, &old.key, passphrase, keyslot, &[])?;
        let old_digest = digest_json(&old.key, &[OLD_SLOT], &[0, 1])?;
        let kept = headers.iter().map(|header| kept_json(header, data));
        let kept: Vec<Value> = kept.collect::<Result<_, _>>()?;
        let seal = seal(headers, &new.key)?;
        let keys = Keys {
            old: Key::from_slice(old.key.as_bytes()),
            new: Key::from_slice(new.key.as_bytes()),
        };
        let announcement = Announcement {
            mode: "reencrypt",
            shift: 0,
            block: None,
            alone: true,
            taken: (&[OLD_SLOT], &[area]),
            data: data.geometry(),
            sample: None,
        };
        header.announce(device, &keys, announcement, |json| {
            insert(json, OLD_SLOT, old_keyslot);
            json["segments"] = json!({
                "0": segment(old),
                "1": flagged(&segment(old), Backup::Previous),
                "2": flagged(&segment(new), Backup::Final),
            });
            json["digests"][NEW_SLOT]["segments"] = json!(["2"]);
            json["digests"]["1"] = old_digest;
            json["tokens"]["0"] = json!({
                "type": TOKEN_KIND,
                "keyslots": [],
                "headers": kept,
                "seal": STANDARD.encode(seal.as_bytes()),
            });
        })?;
        Ok(header)
    }

    /// Whether the data are those of a volume of another format.
    pub fn is_for_another(&self) -> bool {
        self.metadata.tokens.values().any(|kind| kind == TOKEN_KIND)
    }

    /// Whether `json` is the metadata of such a header.
    pub(super) fn is_kept_for_another(json: &Map<String, Value>) -> bool {
        let tokens = json.get("tokens").and_then(Value::as_object);
        tokens.is_some_and(|tokens| tokens.values().any(|token| token["type"] == TOKEN_KIND))
    }

    /// Overwrites the volume's own headers on `data` with noise, because they would open data of
    /// which a part has the other key. From now on the volume is recognised by that noise.
    ///
    /// # Errors
    /// [`VolumeError::OtherData`] if the headers there are neither those with which this began, nor
    /// the noise that it has put there. [`VolumeError::Unsupported`] if this header says too little
    /// of them. Those of reading and writing.
    pub fn take_headers(&self, data: &dyn BlockDevice) -> Result<(), VolumeError> {
        for (offset, noise) in self.headers_to_take(data)? {
            unaligned::write_verified(data, offset, &noise)?;
        }
        Ok(())
    }

    /// Refuses what [`take_headers`](Self::take_headers) would refuse, and writes nothing.
    ///
    /// # Errors
    /// As those of that.
    pub fn check_headers(&self, data: &dyn BlockDevice) -> Result<(), VolumeError> {
        self.headers_to_take(data).map(drop)
    }

    /// Where the headers are that are to be taken away, and what is put there.
    fn headers_to_take(&self, data: &dyn BlockDevice) -> Result<Vec<(u64, Vec<u8>)>, VolumeError> {
        let (Some(kept), Some(before), Some(seal)) = (
            self.kept_headers(),
            self.headers_before(),
            self.seal_of_headers(),
        ) else {
            return Err(too_little());
        };
        let mut segments = self.regular_segments();
        // A small volume is one segment also while it is worked on.
        let first = segments.next().is_some_and(|first| first.flags.is_empty());
        let untouched = self.is_reencrypting() && first && segments.next().is_none();
        let mut left = Vec::new();
        for (header, before) in kept.iter().zip(before) {
            let noise = noise(&seal, header);
            let there = match unaligned::read_up_to(data, header.offset, noise.len() as u64) {
                // Writing there may heal it.
                Err(error) if untouched && error.is_of_place() && before.is_empty() => {
                    left.push((header.offset, noise));
                    continue;
                }
                there => there?,
            };
            let is_before = || Hash::Sha256.digest(&[&there])[..] == before[..];
            match () {
                // A run that was killed may have left it in a cache, and nowhere else.
                () if there[..] == noise[..] => left.push((header.offset, noise)),
                () if !self.is_reencrypting() && there[..] == header.bytes[..] => {}
                () if untouched && is_before() => left.push((header.offset, noise)),
                () => return Err(VolumeError::OtherData),
            }
        }
        Ok(left)
    }

    /// Writes the kept headers to `data`, in their order. Each is on the device before the next is
    /// written. `key` is the current key of the data.
    ///
    /// # Errors
    /// [`VolumeError::UnboundReencryption`] if the kept headers were not bound to this key.
    /// [`VolumeError::Unsupported`] if the data are not done, or the headers cannot be read or lie
    /// outside of `data`. Those of writing.
    pub fn put_headers(&self, data: &dyn BlockDevice, key: &Key) -> Result<(), VolumeError> {
        let size = data.geometry().size;
        let fits = |header: &KeptHeader| {
            let end = header.offset.checked_add(header.bytes.len() as u64);
            end.is_some_and(|end| end <= size)
        };
        let kept = self.kept_headers().filter(|kept| kept.iter().all(fits));
        let Some(kept) = kept.filter(|_| !self.is_reencrypting()) else {
            return Err(too_little());
        };
        let sealed = self.seal_of_headers();
        let expected = seal(&kept, key)?;
        if !sealed.is_some_and(|sealed| bool::from(sealed.ct_eq(expected.as_bytes()))) {
            return Err(VolumeError::UnboundReencryption);
        }
        for header in kept {
            unaligned::write_verified(data, header.offset, &header.bytes)?;
        }
        Ok(())
    }

    fn seal_of_headers(&self) -> Option<Vec<u8>> {
        STANDARD
            .decode(self.token_of(TOKEN_KIND)?["seal"].as_str()?)
            .ok()
    }

    /// SHA-256 of what each header was before; nothing of one that could not be read.
    fn headers_before(&self) -> Option<Vec<Vec<u8>>> {
        let headers = self.token_of(TOKEN_KIND)?["headers"].as_array()?.iter();
        let before = |header: &Value| STANDARD.decode(header["before"].as_str()?).ok();
        headers.map(before).collect()
    }

    fn kept_headers(&self) -> Option<Vec<KeptHeader>> {
        let headers = self.token_of(TOKEN_KIND)?["headers"]
            .as_array()?
            .iter()
            .map(|header| {
                Some(KeptHeader {
                    offset: header["offset"].as_str()?.parse().ok()?,
                    bytes: STANDARD.decode(header["bytes"].as_str()?).ok()?,
                })
            });
        headers.collect()
    }
}

/// Binds the headers to the key of the data. Without that key, no program can have other headers
/// written.
fn seal(headers: &[KeptHeader], key: &Key) -> Result<Key, VolumeError> {
    let mut all = Vec::new();
    for header in headers {
        all.extend(header.offset.to_be_bytes());
        all.extend((header.bytes.len() as u64).to_be_bytes());
        all.extend(&header.bytes);
    }
    digest_of(key, &Hash::Sha256.digest(&[&all]))
}

fn too_little() -> VolumeError {
    super::unsupported("a reencryption with an incomplete description")
}

/// The bytes that stand in the place of `header` while the data is reencrypted.
fn noise(seal: &[u8], header: &KeptHeader) -> Vec<u8> {
    let length = header.bytes.len();
    let blocks = (0_u64..).flat_map(|number| {
        let (offset, number) = (header.offset.to_be_bytes(), number.to_be_bytes());
        Hash::Sha256.digest(&[seal, &offset, &number]).to_vec()
    });
    blocks.take(length).collect()
}

fn kept_json(header: &KeptHeader, data: &dyn BlockDevice) -> Result<Value, VolumeError> {
    let length = header.bytes.len() as u64;
    let before = match unaligned::read_up_to(data, header.offset, length) {
        Err(error) if error.is_of_place() => String::new(),
        before => STANDARD.encode(&*Hash::Sha256.digest(&[&before?])),
    };
    Ok(json!({
        "offset": header.offset.to_string(),
        "bytes": STANDARD.encode(&header.bytes),
        "before": before,
    }))
}

/// A mapping as a segment.
fn segment(mapping: &Mapping) -> Value {
    let size = mapping.data.length.to_string().into();
    let cipher = (mapping.spec.to_string(), mapping.layout.size.bytes());
    crypt_json(mapping.data.offset, size, mapping.first.get(), cipher)
}
