//! Conversion of a LUKS1 header to LUKS2, with the same key slots and the same data.
//!
//! LUKS1's first key material lies in the place of LUKS2's header copies. It moves first, while
//! LUKS1's header stands. The second copy is written before the first sector of the first one. That
//! sector alone turns the LUKS1 volume into LUKS2, and the second copy counts until the first is
//! complete.

use super::binary::{Binary, Place};
use super::create::{DATA_OFFSET, HEADER_SIZE, crypt_json};
use super::keyslots::{STRIPES, keyslot_json};
use super::metadata::Metadata;
use super::read::{Header, Recovered};
use crate::error::conversion_room;
use crate::keyslot::SECTOR;
use crate::{Format, Instead, VolumeError, luks1, unaligned};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use block::{BlockDevice, ByteRange};
use cipher::Algorithm;
use serde_json::{Map, Value, json};

/// The epoch of the first header, as cryptsetup counts.
const FIRST_EPOCH: u64 = 1;

/// The mark of the metadata that luksmeta writes behind LUKS1's key slots.
const LUKSMETA: &[u8] = b"LUKSMETA";

#[doc(hidden)]
impl Header {
    /// Makes the LUKS1 volume, whose header `old` was read from `device`, one of
    /// LUKS2. Keyslots keep their numbers and open with what they opened with;
    /// no data is touched. Called again after a cut, it goes on.
    ///
    /// # Errors
    /// Before anything is written [`VolumeError::Impossible`],
    /// [`VolumeError::Lacks`] if LUKS2 has no such keyslots and
    /// [`VolumeError::Unsupported`]; later those of writing.
    pub fn convert(device: &dyn BlockDevice, mut old: luks1::Header) -> Result<Self, VolumeError> {
        check(&old)?;
        let size = device.geometry().size;
        let end = match old.payload_offset {
            0 => size,
            data => data.min(size),
        };
        let start = 2 * HEADER_SIZE;
        let length = end.min(DATA_OFFSET).saturating_sub(start) / 4096 * 4096;
        if length == 0 {
            return Err(conversion_room());
        }
        let behind = unaligned::read_up_to(device, old.material_end(end), LUKSMETA.len() as u64)?;
        if *behind == LUKSMETA {
            return Err(VolumeError::unsupported(
                Format::Luks1,
                "luksmeta metadata after its keyslots",
            ));
        }
        old.move_material(device, ByteRange::new(start, length))?;

        let json = document(&old, length);
        let mut header = Self {
            binary: Binary {
                seqid: FIRST_EPOCH,
                ..Binary::new(HEADER_SIZE, old.uuid.clone())
            },
            metadata: Metadata::parse_to_write(&json, HEADER_SIZE)?,
            json,
            recovered: Recovered::Both,
        };
        let second = header.copy(Place::Secondary)?;
        unaligned::write_verified(device, HEADER_SIZE, &second)?;
        let first = header.copy(Place::Primary)?;
        unaligned::write_verified(device, 0, &first[..SECTOR as usize])?;
        unaligned::write_verified(device, 0, &first)?;
        Ok(header)
    }
}

/// Refuses keyslots that LUKS2 does not have.
fn check(old: &luks1::Header) -> Result<(), VolumeError> {
    let lacks = |what: String| VolumeError::Lacks {
        format: Format::Luks2,
        what: what.into(),
        instead: Instead::Copy(Format::Luks2),
    };
    if old.spec.algorithms() == [Algorithm::Null] {
        return Err(lacks("key material that is not encrypted".to_owned()));
    }
    let mut active = old.keyslots.iter().filter(|keyslot| keyslot.active);
    match active.find(|keyslot| keyslot.stripes != STRIPES) {
        Some(keyslot) => Err(lacks(format!(
            "key material of {} stripes",
            keyslot.stripes
        ))),
        None => Ok(()),
    }
}

/// The JSON that says what `old` says, as cryptsetup writes it.
pub(crate) fn document(old: &luks1::Header, keyslots_size: u64) -> Map<String, Value> {
    let cipher = (old.spec.to_string(), SECTOR as usize);
    let hash = old.hash.name();
    let mut keyslots = Map::new();
    for (slot, keyslot) in old.keyslots.iter().enumerate() {
        if !keyslot.active {
            continue;
        }
        let (material, area) = (old.material(keyslot), old.area(keyslot));
        let kdf = (&old.kdf(keyslot.iterations), &keyslot.salt[..]);
        let json = keyslot_json(&material, area, old.key_bytes, kdf);
        keyslots.insert(slot.to_string(), json);
    }
    let bound: Vec<&String> = keyslots.keys().collect();
    let Value::Object(json) = json!({
        "tokens": {},
        "segments": {
            "0": crypt_json(old.payload_offset, "dynamic".into(), 0, cipher),
        },
        "digests": {
            "0": {
                "type": "pbkdf2",
                "keyslots": bound,
                "segments": ["0"],
                "hash": hash,
                "iterations": old.digest_iterations,
                "salt": STANDARD.encode(old.digest_salt),
                "digest": STANDARD.encode(old.digest),
            },
        },
        "config": {
            "json_size": (HEADER_SIZE - 4096).to_string(),
            "keyslots_size": keyslots_size.to_string(),
        },
        "keyslots": keyslots,
    }) else {
        unreachable!("it was written as an object")
    };
    json
}
