//! The beginning of a reencryption: a second segment, keyslots of its key, a journal.

use super::conversion::crypt_parts;
use super::{FINAL, JOURNAL_KIND, REQUIREMENT};
use crate::VolumeError;
use crate::luks2::journal::Journal;
use crate::luks2::keyslots::{KEYSLOTS, KeyslotOptions, insert, set_priority, share_tokens};
use crate::luks2::metadata::Keyslot;
use crate::luks2::read::Header;
use crate::mapping::data_of_size;
use block::{BlockDevice, ByteRange};
use cipher::{CipherSpec, Key, SectorLayout, SectorSize};
use serde_json::{Map, Value, json};

/// What the data shall be afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Cipher, mode and IV generator.
    pub spec: CipherSpec,
    /// Encryption sector size.
    pub sector_size: SectorSize,
    /// The keyslot of the new key.
    pub keyslot: KeyslotOptions,
}

impl Header {
    /// Whether [`begin_reencryption`](Self::begin_reencryption) would lose no keyslot
    /// that nobody gave up; costs of new ones need not be known for that.
    ///
    /// # Errors
    /// [`VolumeError::OtherKeyslots`] where there are keyslots of the data that are not kept,
    /// unless `others_too`; [`VolumeError::EmptyKeyslot`] where one that is kept is none of them.
    pub fn check_kept(&self, kept: &[(u32, &Key)], others_too: bool) -> Result<(), VolumeError> {
        let bound = self.keyslots_of_data()?;
        if let Some(&(slot, _)) = kept.iter().find(|(slot, _)| !bound.contains(slot)) {
            return Err(VolumeError::EmptyKeyslot { slot });
        }
        let is_kept = |slot: &&u32| kept.iter().any(|(kept, _)| kept == *slot);
        let count = bound.len() - bound.iter().filter(is_kept).count();
        match count {
            1.. if !others_too => Err(VolumeError::OtherKeyslots { count }),
            _ => Ok(()),
        }
    }

    /// Begins: makes a keyslot of `new_key` for each keyslot in `kept`, one at
    /// least, with the passphrase that stands beside its number, and the
    /// journal, and says so in the header. No data is touched.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] where that has happened already, or the
    /// data has integrity tags; [`VolumeError::NoFreeKeyslot`] where the
    /// header has no room; [`VolumeError::OtherKeyslots`] where there are
    /// keyslots of the data that are not kept, which would be lost, unless
    /// `others_too`; [`VolumeError::EmptyKeyslot`] where one that is kept is
    /// none of them; [`VolumeError::DataAlignment`] where the data is not made
    /// of sectors of the new size; those of writing.
    pub fn begin_reencryption(
        &mut self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
        target: &Target,
        new_key: &Key,
        kept: &[(u32, &Key)],
        others_too: bool,
    ) -> Result<(), VolumeError> {
        let (_, segment) = self.data_segment()?;
        crypt_parts(segment)?;
        let layout = SectorLayout {
            size: target.sector_size,
            large_iv: false,
        };
        target.spec.cipher(new_key, layout, None)?;
        let length = self.data_length(segment, data)?;
        data_of_size(data, segment.offset, length, layout)?;
        self.check_kept(kept, others_too)?;

        let new = json!({
            "type": "crypt",
            "offset": segment.offset.to_string(),
            "size": length.to_string(),
            "iv_tweak": "0",
            "encryption": target.spec.to_string(),
            "sector_size": target.sector_size.bytes(),
            "flags": [FINAL],
        });
        // One more for the journal, which is looked for when they are there.
        let slots: Vec<u32> = self.free_slots().take(kept.len()).collect();
        if slots.len() < kept.len() {
            return Err(VolumeError::NoFreeKeyslot);
        }
        let mut keyslots = Vec::new();
        let mut areas = Vec::new();
        for (old, passphrase) in kept {
            let options = &target.keyslot;
            let (mut keyslot, area) = self.store(device, new_key, passphrase, options, &areas)?;
            if let Some(Keyslot::Luks2(old)) = self.metadata.keyslots.get(old) {
                set_priority(&mut keyslot, old.priority);
            }
            keyslots.push(keyslot);
            areas.push(area);
        }
        let names: Vec<String> = slots.iter().map(u32::to_string).collect();
        let mut digest = crate::luks2::create::digest_json(new_key)?;
        digest["keyslots"] = json!(names);
        digest["segments"] = json!(["1"]);
        self.announce(device, &slots, &areas, |json| {
            for ((slot, keyslot), (old, _)) in slots.iter().zip(keyslots).zip(kept) {
                insert(json, *slot, keyslot);
                share_tokens(json, *old, *slot);
            }
            json["segments"]["1"] = new;
            json["digests"]["1"] = digest;
        })
    }

    /// Begins to decrypt, and to move the data to byte `offset` of its device,
    /// not behind where it is.
    ///
    /// # Errors
    /// As [`begin_reencryption`](Self::begin_reencryption).
    pub fn begin_decryption(
        &mut self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
        offset: u64,
    ) -> Result<(), VolumeError> {
        let (_, segment) = self.data_segment()?;
        crypt_parts(segment)?;
        let new = json!({
            "type": "linear",
            "offset": offset.to_string(),
            "size": self.data_length(segment, data)?.to_string(),
            "flags": [FINAL],
        });
        self.announce(device, &[], &[], |json| {
            json["segments"]["1"] = new;
        })
    }

    /// Begins to encrypt what is on `data` from byte `from` on, `length` bytes:
    /// makes a header on `device`, a device of its own. The data moves to where
    /// `creation` says, which is not before where it is.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn begin_encryption(
        device: &dyn BlockDevice,
        creation: &crate::luks2::Creation,
        from: u64,
        length: u64,
        new_key: &Key,
        passphrase: &Key,
    ) -> Result<Self, VolumeError> {
        let mut header = Self::create(device, creation, new_key, passphrase)?;
        header.announce(device, &[], &[], |json| {
            let mut new = json["segments"]["0"].take();
            new["size"] = length.to_string().into();
            new["flags"] = json!([FINAL]);
            let old = json!({
                "type": "linear",
                "offset": from.to_string(),
                "size": length.to_string(),
            });
            json["segments"] = json!({ "0": old, "1": new });
            json["digests"]["0"]["segments"] = json!(["1"]);
        })?;
        Ok(header)
    }

    /// Makes the journal in what the header has left beside the keyslots of
    /// these numbers and areas, and says in the header that all this has begun.
    pub(in crate::luks2) fn announce(
        &mut self,
        device: &dyn BlockDevice,
        taken: &[u32],
        areas: &[ByteRange],
        edit: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), VolumeError> {
        let slot = self.free_slots().find(|slot| !taken.contains(slot));
        let slot = slot.ok_or(VolumeError::NoFreeKeyslot)?;
        let area = self.largest_free_area(areas);
        let journal = Journal::new(area).ok_or(VolumeError::NoFreeKeyslot)?;
        self.check_places(device)?;
        journal.clear(device)?;
        let keyslot = json!({
            "type": JOURNAL_KIND,
            "key_size": 1,
            "area": {
                "type": "journal",
                "offset": area.offset.to_string(),
                "size": area.length.to_string(),
            },
        });
        self.commit(device, |json| {
            edit(json);
            insert(json, slot, keyslot);
            json["config"]["requirements"] = json!({ "mandatory": [REQUIREMENT] });
        })
    }

    fn free_slots(&self) -> impl Iterator<Item = u32> {
        (0..KEYSLOTS).filter(|slot| !self.metadata.keyslots.contains_key(slot))
    }
}
