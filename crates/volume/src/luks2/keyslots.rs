//! Keyslots made, changed and removed.
//!
//! Key material is on the device before a header speaks of it, and is wiped
//! after no header speaks of it any more.

use super::metadata::{Keyslot, Priority};
use super::read::Header;
use crate::error::unbound_keyslot;
use crate::keyslot::{AREA_UNIT, KeyMaterial, gaps, wipe};
use crate::luks::free_slot;
use crate::{Hash, Kdf, Limits, Stop, VolumeError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use block::{BlockDevice, ByteRange};
use cipher::{CipherError, CipherSpec, Key};
use serde_json::{Map, Value, json};

/// Keyslots of a header, at most.
pub(super) const KEYSLOTS: u32 = 32;

/// cryptsetup's number.
pub(super) const STRIPES: u32 = 4000;

/// Length of the salts of keyslots and digests.
pub(super) const SALT_BYTES: usize = 32;

/// How a new keyslot keeps its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyslotOptions {
    /// The key derivation.
    pub kdf: Kdf,
    /// The cipher of the key material.
    pub spec: CipherSpec,
    /// Length of the key material's key, bytes.
    pub key_bytes: usize,
    /// The splitter's hash.
    pub af_hash: Hash,
    /// Whether the new passphrase may be empty. Anyone can open such a volume.
    pub allow_empty: bool,
    /// What may end the derivation.
    pub stop: Stop,
}

impl KeyslotOptions {
    /// With this key derivation, and cryptsetup's defaults for all else:
    /// `aes-xts-plain64` with 512 bits, SHA-256. An empty passphrase is refused.
    pub fn new(kdf: Kdf) -> Self {
        Self {
            kdf,
            spec: "aes-xts-plain64".parse().expect("it is possible"),
            key_bytes: 64,
            af_hash: Hash::Sha256,
            allow_empty: false,
            stop: Stop::NEVER,
        }
    }

    pub(super) fn check_passphrase(&self, passphrase: &Key) -> Result<(), VolumeError> {
        match passphrase.is_empty() && !self.allow_empty {
            true => Err(VolumeError::EmptyPassphrase),
            false => Ok(()),
        }
    }
}

impl Header {
    /// Makes a keyslot that opens with `passphrase`: `slot`, or the first that
    /// is free.
    ///
    /// # Errors
    /// [`VolumeError::WrongVolumeKey`], [`VolumeError::EmptyPassphrase`],
    /// [`VolumeError::KeyslotInUse`], [`VolumeError::NoFreeKeyslot`], those of
    /// [`Kdf::derive`] and of writing.
    pub fn add_key(
        &mut self,
        device: &dyn BlockDevice,
        volume_key: &Key,
        passphrase: &Key,
        options: &KeyslotOptions,
        slot: Option<u32>,
    ) -> Result<u32, VolumeError> {
        options.check_passphrase(passphrase)?;
        self.check_volume_key(volume_key)?;
        self.put_key(device, volume_key, passphrase, options, slot)
    }

    /// As [`add_key`](Self::add_key), of the key that the header was made for.
    pub(super) fn put_key(
        &mut self,
        device: &dyn BlockDevice,
        volume_key: &Key,
        passphrase: &Key,
        options: &KeyslotOptions,
        slot: Option<u32>,
    ) -> Result<u32, VolumeError> {
        let is_used = |slot: &u32| self.metadata.keyslots.contains_key(slot);
        let slot = free_slot(slot, KEYSLOTS, is_used)?;
        let digest = self.digest_of_data()?;
        let (keyslot, _) = self.store(device, volume_key, passphrase, options, &[])?;
        self.commit(device, |json| {
            insert(json, slot, keyslot);
            let bound = &mut json["digests"][digest.to_string()]["keyslots"];
            if let Value::Array(bound) = bound {
                bound.push(slot.to_string().into());
            }
        })?;
        Ok(slot)
    }

    /// Gives keyslot `slot` another passphrase; the old one opens until the
    /// new one does.
    ///
    /// # Errors
    /// [`VolumeError::EmptyKeyslot`], [`VolumeError::Impossible`] if it has another key than
    /// the data, [`VolumeError::NoFreeKeyslot`] if there is no space beside the old key material,
    /// and those of [`add_key`](Self::add_key).
    pub fn change_key(
        &mut self,
        device: &dyn BlockDevice,
        slot: u32,
        volume_key: &Key,
        passphrase: &Key,
        options: &KeyslotOptions,
    ) -> Result<(), VolumeError> {
        let digest = self.digest_of_data()?;
        let old = match self.metadata.keyslots.get(&slot) {
            Some(Keyslot::Luks2(keyslot)) => keyslot.clone(),
            _ => return Err(VolumeError::EmptyKeyslot { slot }),
        };
        // A caller with the volume key may name any slot. This one has another key.
        if !self.metadata.digests[&digest].keyslots.contains(&slot) {
            return Err(unbound_keyslot(slot));
        }
        options.check_passphrase(passphrase)?;
        self.check_volume_key(volume_key)?;
        let (mut keyslot, _) = self.store(device, volume_key, passphrase, options, &[])?;
        set_priority(&mut keyslot, old.priority);
        self.commit(device, |json| insert(json, slot, keyslot))?;
        wipe(device, old.area)
    }

    /// Removes keyslot `slot`; the last one of the data only if `last_too`. One whose key
    /// material is overwritten opens nothing, and is none that is left.
    ///
    /// # Errors
    /// [`VolumeError::EmptyKeyslot`], [`VolumeError::LastKeyslot`],
    /// [`VolumeError::Unsupported`] while it is reencrypted, and those of writing.
    pub fn kill_key(
        &mut self,
        device: &dyn BlockDevice,
        slot: u32,
        last_too: bool,
    ) -> Result<(), VolumeError> {
        // Of a volume that requires more than is known, or that is being
        // reencrypted, a keyslot may be the only place of something.
        self.digest_of_data()?;
        let Some(keyslot) = self.metadata.keyslots.get(&slot) else {
            return Err(VolumeError::EmptyKeyslot { slot });
        };
        let area = keyslot.area();
        let bound = |slot: &u32| {
            self.metadata
                .digests
                .values()
                .any(|digest| !digest.segments.is_empty() && digest.keyslots.contains(slot))
        };
        let lost = self.lost_keyslots(device)?;
        let left = self
            .metadata
            .keyslots
            .keys()
            .filter(|other| **other != slot && bound(other) && !lost.contains(other));
        if bound(&slot) && left.count() == 0 && !last_too {
            return Err(VolumeError::LastKeyslot { slot });
        }
        self.commit(device, |json| forget(json, slot))?;
        area.map_or(Ok(()), |area| wipe(device, area))
    }

    /// Writes key material into a free area that is not among `taken`. Returns the key slot's JSON
    /// and the area.
    pub(super) fn store(
        &self,
        device: &dyn BlockDevice,
        volume_key: &Key,
        passphrase: &Key,
        options: &KeyslotOptions,
        taken: &[ByteRange],
    ) -> Result<(Value, ByteRange), VolumeError> {
        self.check_places(device)?;
        let length = (volume_key.len() as u64 * u64::from(STRIPES)).next_multiple_of(AREA_UNIT);
        let area = self.free_area(length, taken);
        let area = area.ok_or(VolumeError::NoFreeKeyslot)?;
        let material = KeyMaterial {
            spec: options.spec,
            offset: area.offset,
            key_bytes: volume_key.len(),
            stripes: STRIPES as usize,
            hash: options.af_hash,
        };
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt).map_err(CipherError::from)?;
        let limits = Limits {
            stop: options.stop,
            ..Limits::default()
        };
        let (kdf, key_bytes) = (&options.kdf, options.key_bytes);
        let slot_key = kdf.derive(passphrase.as_bytes(), &salt, key_bytes, &limits)?;
        // The derivation took time. A place that the old header calls free may be in use by now.
        self.check_unchanged(device)?;
        material.store(device, &slot_key, volume_key)?;
        Ok((keyslot_json(&material, area, key_bytes, (kdf, &salt)), area))
    }

    /// The first gap of `length` bytes between areas and what is `taken`.
    fn free_area(&self, length: u64, taken: &[ByteRange]) -> Option<ByteRange> {
        let mut gaps = self.gaps(taken).into_iter();
        let gap = gaps.find(|gap| gap.length >= length)?;
        Some(ByteRange::new(gap.offset, length))
    }

    /// The largest gap between areas and what is `taken`.
    pub(super) fn largest_free_area(&self, taken: &[ByteRange]) -> ByteRange {
        let gaps = self.gaps(taken).into_iter();
        let largest = gaps.max_by_key(|gap| gap.length);
        largest.unwrap_or(ByteRange::new(0, 0))
    }

    /// The free ranges between the areas of key slots and those in `taken`.
    fn gaps(&self, taken: &[ByteRange]) -> Vec<ByteRange> {
        let start = 2 * self.binary.header_size;
        let end = start + self.metadata.config.keyslots_size;
        let areas = self.metadata.keyslots.values().filter_map(Keyslot::area);
        let areas = areas.chain(taken.iter().copied());
        let whole = |area: ByteRange| {
            let end = (area.offset + area.length).next_multiple_of(AREA_UNIT);
            ByteRange::new(area.offset, end - area.offset)
        };
        gaps((start, end), areas.map(whole).collect())
    }
}

impl Header {
    /// The key slots that token `number` names; none if there is no such token.
    #[doc(hidden)]
    pub fn keyslots_of_token(&self, number: u32) -> Vec<u32> {
        let keyslots = self.json["tokens"][number.to_string()]["keyslots"].as_array();
        let slots = keyslots.into_iter().flatten();
        slots
            .filter_map(|slot| slot.as_str()?.parse().ok())
            .collect()
    }
}

/// Takes a keyslot out of the JSON, and whatever speaks of it.
pub(super) fn forget(json: &mut Map<String, Value>, slot: u32) {
    let name = slot.to_string();
    if let Some(Value::Object(keyslots)) = json.get_mut("keyslots") {
        keyslots.shift_remove(&name);
    }
    for kind in ["digests", "tokens"] {
        let Some(Value::Object(members)) = json.get_mut(kind) else {
            continue;
        };
        for member in members.values_mut() {
            if let Some(Value::Array(keyslots)) = member.get_mut("keyslots") {
                keyslots.retain(|slot| slot.as_str() != Some(&name));
            }
        }
        // A digest of nothing but an unbound keyslot goes with it.
        members.retain(|_, member| {
            let empty = |list: &str| member[list].as_array().is_some_and(Vec::is_empty);
            kind != "digests" || !(empty("keyslots") && empty("segments"))
        });
    }
}

/// Gives a new keyslot the priority of the one whose place it takes.
pub(super) fn set_priority(keyslot: &mut Value, priority: Priority) {
    match priority {
        Priority::Ignore => keyslot["priority"] = 0.into(),
        Priority::Normal => {}
        Priority::Prefer => keyslot["priority"] = 2.into(),
    }
}

/// Lets the tokens of keyslot `old` speak of `new` as well.
pub(super) fn share_tokens(json: &mut Map<String, Value>, old: u32, new: u32) {
    let Some(Value::Object(tokens)) = json.get_mut("tokens") else {
        return;
    };
    for token in tokens.values_mut() {
        if let Some(Value::Array(keyslots)) = token.get_mut("keyslots")
            && keyslots
                .iter()
                .any(|slot| slot.as_str() == Some(&old.to_string()))
        {
            keyslots.push(new.to_string().into());
        }
    }
}

/// A keyslot of type `luks2`, whose key material is in `area` under a key of `area_key_bytes`.
pub(super) fn keyslot_json(
    material: &KeyMaterial,
    area: ByteRange,
    area_key_bytes: usize,
    (kdf, salt): (&Kdf, &[u8]),
) -> Value {
    json!({
        "type": "luks2",
        "key_size": material.key_bytes,
        "af": {
            "type": "luks1",
            "stripes": material.stripes,
            "hash": material.hash.name(),
        },
        "area": {
            "type": "raw",
            "offset": area.offset.to_string(),
            "size": area.length.to_string(),
            "encryption": material.spec.to_string(),
            "key_size": area_key_bytes,
        },
        "kdf": kdf_json(kdf, salt),
    })
}

/// Puts a keyslot into the JSON.
pub(super) fn insert(json: &mut Map<String, Value>, slot: u32, keyslot: Value) {
    if let Some(Value::Object(keyslots)) = json.get_mut("keyslots") {
        keyslots.insert(slot.to_string(), keyslot);
    }
}

/// A key derivation as headers write it.
fn kdf_json(kdf: &Kdf, salt: &[u8]) -> Value {
    let salt = STANDARD.encode(salt);
    match kdf {
        Kdf::Pbkdf2 { hash, iterations } => json!({
            "type": "pbkdf2",
            "hash": hash.name(),
            "iterations": iterations,
            "salt": salt,
        }),
        Kdf::Argon2 {
            variant,
            time,
            memory_kib,
            lanes,
        } => json!({
            "type": variant.name(),
            "time": time,
            "memory": memory_kib,
            "cpus": lanes,
            "salt": salt,
        }),
    }
}
