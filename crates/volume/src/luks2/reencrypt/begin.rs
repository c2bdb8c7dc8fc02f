//! The beginning of a reencryption: a second segment, keyslots of its key, and the keyslot that
//! tells of it, bound to both keys.

use super::conversion::crypt_parts;
use super::plan::Plan;
use super::{
    ALONE, Backup, GROWN, KEYSLOT_KIND, Keys, bind, forget_tokens, free_number, numbered, room,
    sample,
};
use crate::judge::{self, State, Use};
use crate::luks2::create::{crypt_json, digest_json};
use crate::luks2::keyslots::{KEYSLOTS, KeyslotOptions, insert, set_priority, share_tokens};
use crate::luks2::metadata::{Keyslot, Metadata};
use crate::luks2::read::Header;
use crate::mapping::{data_of_size, data_to_end, sectors_of};
use crate::{CryptDevice, Hash, VolumeError};
use block::{AlignedBuffer, BlockDevice, ByteRange, Geometry};
use cipher::{CipherSpec, Key, SectorSize};
use serde_json::{Map, Value, json};

/// The least that a journal is worth having with.
const LEAST_JOURNAL: u64 = 64 << 10;

/// The most text that a header has for a while beyond what it begins with: of three segments more.
const MORE_TEXT: u64 = 1 << 10;

/// The blocks whose checksums cryptsetup keeps, bytes.
const THEIR_BLOCK: u64 = 4096;

/// Bytes that are copied at a time.
const PIECE: u64 = 1 << 20;

/// The encryption of the data after the reencryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Cipher, mode and IV generator.
    pub spec: CipherSpec,
    /// Encryption sector size.
    pub sector_size: SectorSize,
    /// The keyslot of the new key.
    pub keyslot: KeyslotOptions,
}

/// The content of the key slot of type `reencrypt`.
pub(in crate::luks2) struct Announcement<'a> {
    pub(in crate::luks2) mode: &'static str,
    /// The distance by which the data moves, bytes.
    pub(in crate::luks2) shift: u64,
    /// The size of the blocks to keep checksums of, if data moves down. `None` keeps the data
    /// itself.
    pub(in crate::luks2) block: Option<u64>,
    /// Whether cryptsetup could not continue the reencryption.
    pub(in crate::luks2) alone: bool,
    /// Numbers of key slots and areas that are taken, but not in the header yet.
    pub(in crate::luks2) taken: (&'a [u32], &'a [ByteRange]),
    /// The device of the data, with the room that they need.
    pub(in crate::luks2) data: Geometry,
    /// The token that tells the data, of a header apart.
    pub(in crate::luks2) sample: Option<Value>,
}

impl Header {
    /// Checks that [`begin_reencryption`](Self::begin_reencryption) would lose no key slot that the
    /// user wants to keep. The costs of new key slots need not be known for that.
    ///
    /// # Errors
    /// [`VolumeError::Judged`] if `kept` lacks key slots of the data, unless that is `accepted`;
    /// [`VolumeError::EmptyKeyslot`] if one in `kept` is not a key slot of the data.
    #[doc(hidden)]
    pub fn check_kept(&self, kept: &[(u32, &Key)], accepted: &[State]) -> Result<(), VolumeError> {
        let bound = self.keyslots_of_data()?;
        if let Some(&(slot, _)) = kept.iter().find(|(slot, _)| !bound.contains(slot)) {
            return Err(VolumeError::EmptyKeyslot { slot });
        }
        let is_kept = |slot: &&u32| kept.iter().any(|(kept, _)| kept == *slot);
        let count = bound.len() - bound.iter().filter(is_kept).count();
        let found = match count {
            0 => return Ok(()),
            1 => "1 more key slot".to_owned(),
            count => format!("{count} more key slots"),
        };
        judge::check(Use::Reencrypt, State::Keyslots, found, accepted)
    }

    /// Begins a reencryption. It makes the journal, and a key slot of the new key for each key slot
    /// in `kept`. There must be at least one, and each has the passphrase beside its number. The
    /// header then states that the reencryption has begun. No data is touched.
    ///
    /// # Errors
    /// [`VolumeError::WrongVolumeKey`] if `keys` has another old key than the data;
    /// [`VolumeError::Unsupported`] if a reencryption has begun already, or the data has integrity
    /// tags; [`VolumeError::NoFreeKeyslot`] if the header has no room;
    /// [`VolumeError::EmptyKeyslot`] if one in `kept` is not a key slot of the data;
    /// [`VolumeError::DataAlignment`] if the data is not made of sectors of the new size;
    /// [`VolumeError::Judged`] if `kept` lacks key slots of the data, which would be lost, or if
    /// nothing shows that the data belong to a header that is apart, unless that is `accepted`; those
    /// of writing.
    pub fn begin_reencryption(
        &mut self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
        target: &Target,
        keys: &Keys,
        kept: &[(u32, &Key)],
        accepted: &[State],
    ) -> Result<(), VolumeError> {
        let data_now = self.data_to_change((device, data), keys, accepted)?;
        let layout = sectors_of(target.sector_size);
        target.spec.cipher(&keys.new, layout, None)?;
        data_of_size(data, data_now.offset, data_now.length, layout)?;
        self.check_kept(kept, accepted)?;

        // The bytes behind the last sector are not data of smaller sectors either.
        let reach = data_to_end(data, data_now.offset, layout)?.length;
        let size = match reach == data_now.length {
            true => data_now.size_afterwards.clone(),
            false => data_now.length.to_string().into(),
        };
        let cipher = (target.spec.to_string(), target.sector_size.bytes());
        let last = crypt_json(data_now.offset, size, data_now.iv_tweak, cipher);
        // One more for what tells of it, which is looked for when they are there.
        let slots: Vec<u32> = self.free_slots().take(kept.len()).collect();
        if slots.len() < kept.len() {
            return Err(VolumeError::NoFreeKeyslot);
        }
        let mut keyslots = Vec::new();
        let mut areas = Vec::new();
        for (old, passphrase) in kept {
            let options = &target.keyslot;
            let (mut keyslot, area) = self.store(device, &keys.new, passphrase, options, &areas)?;
            if let Some(Keyslot::Luks2(old)) = self.metadata.keyslots.get(old) {
                set_priority(&mut keyslot, old.priority);
            }
            keyslots.push(keyslot);
            areas.push(area);
        }
        let digest = digest_json(&keys.new, &slots, &[2])?;
        let old_digest = data_now.digest.to_string();
        let sample = match is_same(device, data) {
            true => None,
            false => Some(self.token_of_data(data, keys)?),
        };
        let announcement = Announcement {
            mode: "reencrypt",
            shift: 0,
            block: None,
            alone: data_now.ends_early,
            taken: (&slots, &areas),
            data: data.geometry(),
            sample,
        };
        self.announce(device, keys, announcement, |json| {
            for ((slot, keyslot), (old, _)) in slots.iter().zip(keyslots).zip(kept) {
                insert(json, *slot, keyslot);
                share_tokens(json, *old, *slot);
            }
            json["segments"] = json!({
                "0": data_now.segment,
                "1": flagged(&data_now.segment, Backup::Previous),
                "2": flagged(&last, Backup::Final),
            });
            json["digests"][&old_digest]["segments"] = json!(["0", "1"]);
            let digests = json["digests"].as_object_mut();
            digests.and_then(|digests| {
                let number = free_number(digests)?;
                digests.insert(number.to_string(), digest)
            });
        })
    }

    /// The data as they are. Refuses those that do not have this key, lie upon the header, or do
    /// not belong to a header which is apart.
    fn data_to_change(
        &self,
        (device, data): (&dyn BlockDevice, &dyn BlockDevice),
        keys: &Keys,
        accepted: &[State],
    ) -> Result<DataNow, VolumeError> {
        self.check_beside(device, data)?;
        let data_now = self.data_now(data)?;
        self.check_volume_key(&keys.old)?;
        if !is_same(device, data) {
            let mapping = self.mapping(Key::from_slice(keys.old.as_bytes()), data)?;
            mapping.check_together(Use::Reencrypt, data, accepted)?;
        }
        Ok(data_now)
    }

    /// Checks that a decryption, after which there is no header, loses no key but the data's.
    ///
    /// # Errors
    /// [`VolumeError::Judged`] if there are key slots of another key, unless that is `accepted`.
    #[doc(hidden)]
    pub fn check_unbound(&self, accepted: &[State]) -> Result<(), VolumeError> {
        let bound = self.keyslots_of_data()?;
        let slots = self.metadata.keyslots.iter();
        let is_journal = |keyslot: &Keyslot| matches!(keyslot, Keyslot::Other { kind, .. } if kind == "reencrypt");
        let unbound = slots.filter(|(slot, it)| !bound.contains(slot) && !is_journal(it));
        let unbound: Vec<String> = unbound.map(|(slot, _)| slot.to_string()).collect();
        let found = match &unbound[..] {
            [] => return Ok(()),
            [slot] => format!("key slot {slot} with a key of its own"),
            slots => format!("key slots {} with keys of their own", slots.join(", ")),
        };
        judge::check(Use::Reencrypt, State::Keyslots, found, accepted)
    }

    /// Begins to decrypt: in place, or moving the data to the start of its device, which has
    /// the header no more. The data's start goes there first.
    ///
    /// # Errors
    /// As [`begin_reencryption`](Self::begin_reencryption), with these losses `accepted`.
    pub fn begin_decryption(
        &mut self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
        keys: &Keys,
        to_start: bool,
        accepted: &[State],
    ) -> Result<(), VolumeError> {
        let data_now = self.data_to_change((device, data), keys, accepted)?;
        // Where the data moves, the header on their device is about to go.
        let sample = match to_start || !is_same(device, data) {
            true => Some(self.token_of_data(data, keys)?),
            false => None,
        };
        let shift = match to_start {
            true => data_now.offset,
            false => 0,
        };
        // A checksum tells an old block from a new one, and not from half of each.
        let (_, layout) = crypt_parts(self.data_segment()?.1)?;
        let block = layout.size.bytes() as u64;
        let is_whole = block <= u64::from(data.geometry().physical_block);
        // cryptsetup goes on with checksums of such blocks, and with whole ones alone.
        let ends_within = !data_now.length.is_multiple_of(THEIR_BLOCK);
        let block = (is_whole && shift.min(data_now.length).is_multiple_of(block)).then_some(block);
        let announcement = Announcement {
            mode: "decrypt",
            shift,
            block,
            // cryptsetup recovers what moves as if the first IV were 0.
            alone: data_now.ends_early || (shift > 0 && (data_now.iv_tweak > 0 || ends_within)),
            taken: (&[], &[]),
            data: data.geometry(),
            sample,
        };
        let last = json!({
            "type": "linear",
            "offset": (data_now.offset - shift).to_string(),
            "size": data_now.size_afterwards,
        });
        let mut segments = vec![data_now.segment.clone()];
        if shift > 0 {
            let room = self.largest_free_area(&[]).length;
            let room = match block {
                Some(block) => room / Hash::Sha256.digest_bytes() as u64 * block,
                None => room,
            };
            let moved = shift.min(room).min(data_now.length);
            let moved = match moved == data_now.length {
                true => moved,
                false => moved / 4096 * 4096,
            };
            copy(data, data, (shift, 0), moved)?;
            let mut first = data_now.segment.clone();
            first["offset"] = "0".into();
            first["size"] = moved.to_string().into();
            segments = vec![first];
            if moved < data_now.length {
                let mut second = data_now.segment.clone();
                second["offset"] = (shift + moved).to_string().into();
                second["iv_tweak"] = (data_now.iv_tweak + moved / 512).to_string().into();
                if second["size"] != "dynamic" {
                    second["size"] = (data_now.length - moved).to_string().into();
                }
                segments.push(second);
            }
        }
        let now = segments.len();
        let first = segments[0].clone();
        segments.push(flagged(&data_now.segment, Backup::Previous));
        segments.push(flagged(&last, Backup::Final));
        let mut keyed: Vec<usize> = (0..=now).collect();
        if shift > 0 {
            keyed.push(segments.len());
            segments.push(flagged(&first, Backup::Moved));
        }
        let digest = data_now.digest.to_string();
        let keyed: Vec<String> = keyed.iter().map(usize::to_string).collect();
        self.announce(device, keys, announcement, |json| {
            json["segments"] = numbered(segments);
            json["digests"][&digest]["segments"] = json!(keyed);
        })
    }

    /// The token that tells the data of a volume that is not being reencrypted.
    fn token_of_data(&self, data: &dyn BlockDevice, keys: &Keys) -> Result<Value, VolumeError> {
        let mapping = self.mapping(Key::from_slice(keys.old.as_bytes()), data)?;
        sample::token(&CryptDevice::new(data, mapping)?, keys)
    }

    /// Begins to encrypt the `length` bytes that `data` begins with: makes a header on `device`,
    /// a device of its own. If the data are to move to where `creation` says, they get
    /// [room](Self::room) before, and the header is [put there](Self::put_before).
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn begin_encryption(
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
        creation: &crate::luks2::Creation,
        length: u64,
        key: &Key,
        passphrase: &Key,
    ) -> Result<Self, VolumeError> {
        let layout = sectors_of(creation.sector_size);
        let size = data.geometry().size;
        let shift = creation.data_offset.unwrap_or(0);
        if shift == 0 {
            data_of_size(data, shift, length, layout)?;
        }
        let mut header = Self::create(device, creation, key, passphrase)?;
        let linear = |offset: u64, size: Value| json!({ "type": "linear", "offset": offset.to_string(), "size": size });
        let moved = length.min(shift);
        let (old, mut segments) = match shift {
            0 if length == size => (linear(0, "dynamic".into()), Vec::new()),
            0 => (linear(0, length.to_string().into()), Vec::new()),
            _ => {
                let moved = linear(shift + length, moved.to_string().into());
                (linear(0, length.to_string().into()), vec![moved])
            }
        };
        if length > moved {
            segments.push(match shift {
                0 => old.clone(),
                _ => linear(moved, (length - moved).to_string().into()),
            });
        }
        let first = segments[0].clone();
        let mut last = header.json["segments"]["0"].clone();
        if shift == 0 && length < size {
            last["size"] = length.to_string().into();
        }
        let number = segments.len() + 1;
        segments.push(flagged(&old, Backup::Previous));
        segments.push(flagged(&last, Backup::Final));
        if shift > 0 {
            segments.push(flagged(&first, Backup::Moved));
        }
        let keys = Keys {
            old: Key::from_slice(&[]),
            new: Key::from_slice(key.as_bytes()),
        };
        // Where the data moves, the header goes before them before anything is encrypted.
        let (sample, grown, room) = match shift {
            0 => (Some(sample::token(data, &keys)?), None, size),
            _ => {
                let grown = room::token(data, moved.min(size))?;
                (None, Some(grown), shift + length + shift)
            }
        };
        let announcement = Announcement {
            mode: "encrypt",
            shift,
            block: None,
            // cryptsetup moves as much as the shift, also of less data, and writes over them.
            alone: length < if shift == 0 { size } else { shift },
            taken: (&[], &[]),
            data: Geometry {
                size: room,
                ..data.geometry()
            },
            sample,
        };
        header.announce(device, &keys, announcement, |json| {
            json["segments"] = numbered(segments);
            json["digests"]["0"]["segments"] = json!([number.to_string()]);
            if let Some(grown) = grown {
                json["tokens"] = json!({ "0": grown });
            }
        })?;
        Ok(header)
    }

    /// Writes to the header that the reencryption has begun, with the largest free area as its
    /// journal. It refuses a reencryption that could not be carried to its end.
    pub(in crate::luks2) fn announce(
        &mut self,
        device: &dyn BlockDevice,
        keys: &Keys,
        announcement: Announcement,
        edit: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), VolumeError> {
        let (slots, areas) = announcement.taken;
        let slot = self.free_slots().find(|slot| !slots.contains(slot));
        let slot = slot.ok_or(VolumeError::NoFreeKeyslot)?;
        let mut area = self.largest_free_area(areas);
        let (kind, version) = match (announcement.shift, announcement.mode, announcement.block) {
            (0, ..) => ("journal", 2),
            (_, "decrypt", None) => ("datashift-journal", 3),
            (_, "decrypt", Some(_)) => ("datashift-checksum", 3),
            _ => ("datashift", 2),
        };
        if area.length < LEAST_JOURNAL {
            return Err(VolumeError::NoFreeKeyslot);
        }
        if kind == "datashift" {
            area.length = 4096;
        }
        self.check_places(device)?;
        let mut keyslot = json!({
            "type": KEYSLOT_KIND,
            "key_size": 1,
            "priority": 0,
            "mode": announcement.mode,
            "direction": if kind == "datashift" { "backward" } else { "forward" },
            "area": {
                "type": kind,
                "offset": area.offset.to_string(),
                "size": area.length.to_string(),
            },
        });
        if kind == "datashift-checksum" {
            keyslot["area"]["hash"] = Hash::Sha256.name().into();
            keyslot["area"]["sector_size"] = announcement.block.into();
        }
        if announcement.shift > 0 {
            keyslot["area"]["shift_size"] = announcement.shift.to_string().into();
        }
        let mut requirements = vec![format!("online-reencrypt-v{version}")];
        if announcement.alone {
            requirements.push(ALONE.to_owned());
        }
        let mut json = self.json.clone();
        // Of an earlier one, which cryptsetup has ended.
        forget_tokens(&mut json, &[GROWN, sample::SAMPLE]);
        edit(&mut json);
        sample::insert(&mut json, announcement.sample)?;
        insert(&mut json, slot, keyslot);
        json["config"]["requirements"] = json!({ "mandatory": requirements });
        bind(&mut json, version, slot, keys)?;
        let mut begun = self.clone();
        begun.metadata = Metadata::parse_to_write(&json, self.binary.header_size)?;
        begun.json = json;
        Plan::read(&begun, announcement.data)?.progress(&begun)?;
        begun.check_text(MORE_TEXT)?;
        self.commit(device, |written| *written = begun.json)
    }

    fn free_slots(&self) -> impl Iterator<Item = u32> {
        (0..KEYSLOTS).filter(|slot| !self.metadata.keyslots.contains_key(slot))
    }

    /// The data as it is.
    fn data_now(&self, data: &dyn BlockDevice) -> Result<DataNow, VolumeError> {
        let (number, segment) = self.data_segment()?;
        let (_, layout) = crypt_parts(segment)?;
        let crypt = segment.crypt().ok_or(VolumeError::ForeignReencryption)?;
        let rest = data.geometry().size.saturating_sub(segment.offset);
        let (length, ends_early) = match segment.size {
            Some(size) => (size, size != rest),
            None => {
                let length = data_to_end(data, segment.offset, layout)?.length;
                (length, length != rest)
            }
        };
        let mut json = self.json["segments"][number.to_string()].clone();
        let size_afterwards = json["size"].clone();
        if ends_early {
            json["size"] = length.to_string().into();
        }
        Ok(DataNow {
            digest: self.digest_of(number)?,
            offset: segment.offset,
            iv_tweak: crypt.iv_tweak,
            segment: json,
            length,
            ends_early,
            size_afterwards,
        })
    }
}

/// The segment of a volume that is not being reencrypted.
struct DataNow {
    segment: Value,
    digest: u32,
    offset: u64,
    iv_tweak: u64,
    length: u64,
    /// Whether the data may end before the device does.
    ends_early: bool,
    size_afterwards: Value,
}

/// A segment that tells of before or after.
pub(in crate::luks2) fn flagged(segment: &Value, flag: Backup) -> Value {
    let mut segment = segment.clone();
    segment["flags"] = json!([flag.flag()]);
    segment
}

/// Whether the header is on the device of the data.
pub(super) fn is_same(device: &dyn BlockDevice, data: &dyn BlockDevice) -> bool {
    std::ptr::addr_eq(device, data)
}

/// Copies `length` bytes to a place that they do not overlap.
pub(super) fn copy(
    source: &dyn BlockDevice,
    target: &dyn BlockDevice,
    (from, to): (u64, u64),
    length: u64,
) -> Result<(), VolumeError> {
    let mut buffer = AlignedBuffer::new(PIECE.min(length) as usize);
    for done in (0..length).step_by(PIECE as usize) {
        let bytes = &mut buffer[..PIECE.min(length - done) as usize];
        source.read_at(from + done, bytes)?;
        target.write_at(to + done, bytes)?;
    }
    Ok(target.flush()?)
}
