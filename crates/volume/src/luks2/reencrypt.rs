//! Another cipher, mode, sector size or volume key for the data where it is.
//!
//! The header says both segments, the old one and the new one, and requires
//! what only this program knows; the [`Journal`] says how far it has come. A
//! stop at any byte is safe: what reads the volume meanwhile reads both parts,
//! and whoever goes on writes the newest record again first.
//!
//! A segment that is not encrypted makes it an encryption or a decryption in
//! place. Data that moves to a higher place is moved from its end on.

use super::journal::{Journal, Record};
use super::keyslots::{KEYSLOTS, KeyslotOptions, forget, insert, set_priority, share_tokens};
use super::metadata::{Digest, Keyslot, Segment, SegmentKind, SegmentSize};
use super::read::Header;
use crate::damage::printable;
use crate::keyslot::wipe;
use crate::mapping::{data_of_size, data_to_end, key_for};
use crate::{
    Access, Damage, Format, Limits, Mapping, Row, Secret, Storage, VolumeError, unaligned,
};
use block::transfer::Report;
use block::{AlignedBuffer, BlockDevice, ByteRange};
use cipher::{CipherSpec, IvSector, Key, KeyedCipher, SectorCipher, SectorLayout, SectorSize};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use zeroize::Zeroizing;

/// What a program must know to use a volume that is being reencrypted.
pub(super) const REQUIREMENT: &str = "cryptmark-reencrypt-v1";

/// The type of the keyslot whose area is the journal.
const JOURNAL_KIND: &str = "cryptmark-reencrypt";

/// The flag of the segment that is to be.
pub(super) const FINAL: &str = "backup-final";

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

/// In which order the data is worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// A reencryption that has begun, as the header says it.
struct Reencryption<'a> {
    old: &'a Segment,
    new: &'a Segment,
    /// Of the keys; what is not encrypted has none.
    old_digest: Option<&'a Digest>,
    new_digest: Option<&'a Digest>,
    journal: Journal,
}

impl Reencryption<'_> {
    fn direction(&self) -> Direction {
        match self.new.offset > self.old.offset {
            true => Direction::Backward,
            false => Direction::Forward,
        }
    }
}

/// Both keys of a volume that is being reencrypted.
#[derive(Debug)]
pub struct Keys {
    /// Of the segment that was; empty where that is not encrypted.
    pub old: Key,
    /// Of the segment that is to be; empty where that is not encrypted.
    pub new: Key,
}

impl Header {
    /// Whether a reencryption has begun and not ended.
    pub fn is_reencrypting(&self) -> bool {
        let required = &self.metadata.config.requirements;
        required
            .iter()
            .any(|requirement| requirement == REQUIREMENT)
    }

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
        let mut digest = super::create::digest_json(new_key)?;
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
        creation: &super::Creation,
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
    pub(super) fn announce(
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

    /// Both keys, by a passphrase that opens both keyslots.
    ///
    /// # Errors
    /// As those of [`unlock`](Self::unlock).
    pub fn unlock_both(
        &self,
        device: &dyn BlockDevice,
        secret: &Secret,
        limits: &Limits,
    ) -> Result<Keys, VolumeError> {
        let state = self.reencryption()?;
        let key = |digest: Option<&Digest>| match digest {
            Some(digest) => {
                let unlocked = self.unlock_digest(device, digest, secret, None, limits)?;
                Ok::<_, VolumeError>(unlocked.key)
            }
            None => Ok(Key::from_slice(&[])),
        };
        Ok(Keys {
            old: key(state.old_digest)?,
            new: key(state.new_digest)?,
        })
    }

    /// Writes the newest record of the journal over the data again, and an empty
    /// one behind it: from then on the data may be written, and the journal has
    /// nothing older that would be written over that.
    ///
    /// # Errors
    /// [`VolumeError::Block`].
    pub fn redo(
        &self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
    ) -> Result<(), VolumeError> {
        let (state, _, newest) = self.progress(device, data)?;
        let Some(record) = newest.filter(|record| record.length > 0) else {
            return Ok(());
        };
        let start = state.new.offset + record.position;
        for piece in record.pieces() {
            let kept = unaligned::read(device, piece)?;
            unaligned::write(data, start + (piece.offset - record.kept_at), &kept)?;
        }
        data.flush()?;
        let position = match state.direction() {
            Direction::Forward => record.end(),
            Direction::Backward => record.position,
        };
        let nothing = Journal::digest(&[]);
        state
            .journal
            .keep(device, Some(record), position, &[], &nothing)?;
        Ok(())
    }

    /// Goes on to the end, from the start or from where it was stopped, and
    /// makes the new segment the only one. `report` is told the bytes that are
    /// done.
    ///
    /// # Errors
    /// [`VolumeError::Stopped`] where `report` says so, and those of reading
    /// and writing; the volume then opens, and this goes on another time.
    pub fn reencrypt(
        &mut self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
        keys: &Keys,
        report: Report,
    ) -> Result<(), VolumeError> {
        self.redo(device, data)?;
        let (state, length, mut last) = self.progress(device, data)?;
        let (from, to) = (
            Side::new(state.old, &keys.old)?,
            Side::new(state.new, &keys.new)?,
        );
        let direction = state.direction();
        let mut done = match (last, direction) {
            (None, _) => 0,
            (Some(record), Direction::Forward) => record.end(),
            (Some(record), Direction::Backward) => length - record.position,
        };
        let (to_offset, end) = (
            to.offset,
            to.offset + length + to.layout.size.bytes() as u64,
        );
        let conversion = Conversion {
            data,
            from,
            to,
            length,
            piece: state.journal.capacity().min(length.next_multiple_of(4096)),
            direction,
        };
        // While one piece is written, the next is made: it is read from where
        // the one before does not go.
        thread::scope(|scope| {
            let (buffers, used) = channel();
            let (ready, pieces) = sync_channel(1);
            for _ in 0..PIECES_AT_ONCE {
                // The thread lives as long as its ends of the channels.
                let _ = buffers.send(AlignedBuffer::new(conversion.piece as usize));
            }
            let from_here = done;
            let conversion = &conversion;
            scope.spawn(move || conversion.run(from_here, &used, &ready));
            for made in pieces {
                let piece: Piece = made?;
                let bytes = &piece.buffer[..piece.length];
                let kept =
                    state
                        .journal
                        .keep(device, last, piece.position, bytes, &piece.digest)?;
                last = Some(kept);
                data.write_at(to_offset + piece.position, bytes)?;
                data.flush()?;
                done += piece.length as u64;
                // At the end nobody takes it.
                let _ = buffers.send(piece.buffer);
                if let ControlFlow::Break(()) = report(done) {
                    return Err(VolumeError::Stopped);
                }
            }
            Ok(())
        })?;
        let to_the_end = end > data.geometry().size;
        self.end_reencryption(device, to_the_end)
    }

    /// Makes the new segment the only one, and wipes the old keyslots. What is
    /// encrypted and goes to the end of the device goes there ever after.
    fn end_reencryption(
        &mut self,
        device: &dyn BlockDevice,
        to_the_end: bool,
    ) -> Result<(), VolumeError> {
        let state = self.reencryption()?;
        let listed = |digest: Option<&Digest>, number: &u32| {
            digest.is_some_and(|digest| digest.keyslots.contains(number))
        };
        let leaves = |number: &u32, keyslot: &Keyslot| {
            is_journal(keyslot)
                || (listed(state.old_digest, number) && !listed(state.new_digest, number))
        };
        let keyslots = self.metadata.keyslots.iter();
        let leaving: Vec<(u32, Option<ByteRange>)> = keyslots
            .filter(|(number, keyslot)| leaves(number, keyslot))
            .map(|(number, keyslot)| (*number, keyslot.area()))
            .collect();
        let digests = [self.digest_of(0).ok(), self.digest_of(1).ok()];
        let dynamic = to_the_end && state.new.kind != SegmentKind::Linear;
        self.commit(device, |json| {
            for (number, _) in &leaving {
                forget(json, *number);
            }
            let mut segment = json["segments"]["1"].take();
            if let Value::Object(segment) = &mut segment {
                segment.shift_remove("flags");
                if dynamic {
                    segment.insert("size".to_owned(), "dynamic".into());
                }
            }
            json["segments"] = json!({ "0": segment });
            if let [Some(old), Some(new)] = digests.map(|digest| digest.map(|n| n.to_string())) {
                json["digests"][&old] = json["digests"][&new].take();
                if let Value::Object(digests) = &mut json["digests"] {
                    digests.shift_remove(&new);
                }
            }
            if let Value::Object(digests) = &mut json["digests"] {
                let stays = |digest: &Value| digest["keyslots"] != json!([]);
                digests.retain(|_, digest| stays(digest));
                for digest in digests.values_mut() {
                    if digest["segments"] == json!(["1"]) {
                        digest["segments"] = json!(["0"]);
                    }
                }
            }
            if let Value::Object(config) = &mut json["config"] {
                config.shift_remove("requirements");
            }
        })?;
        for (_, area) in leaving {
            area.map_or(Ok(()), |area| wipe(device, area))?;
        }
        Ok(())
    }

    /// The rows of a volume that is being reencrypted: what is new, what is
    /// kept in the journal, what is old.
    ///
    /// For writing, nothing may be read from the journal: see [`redo`](Self::redo).
    pub(crate) fn rows(
        &self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
        keys: Keys,
        access: Access,
    ) -> Result<Vec<Row>, VolumeError> {
        let (state, length, record) = self.progress(device, data)?;
        let nothing_done = match state.direction() {
            Direction::Forward => 0,
            Direction::Backward => length,
        };
        let kept_at = |record: Record| (record.position, record.end());
        let (kept_from, kept_to) = record.map_or((nothing_done, nothing_done), kept_at);
        let mut rows = Vec::new();
        let mut row = |segment: &Segment, key: &Key, from: u64, to: u64, kept: Option<u64>| {
            if from < to.min(length) {
                let side = Side::new(segment, key)?;
                rows.push(Row {
                    storage: match kept {
                        Some(_) => Storage::Header,
                        None => Storage::Data,
                    },
                    mapping: Mapping {
                        spec: crypt_parts(segment)?.0,
                        key: key_for(&crypt_parts(segment)?.0, key),
                        layout: side.layout,
                        data: ByteRange::new(
                            kept.unwrap_or(side.offset + from),
                            to.min(length) - from,
                        ),
                        first: side.iv_at(from),
                        backend: None,
                        sharing: None,
                        allow_discards: false,
                    },
                });
            }
            Ok::<_, VolumeError>(())
        };
        let kept = record
            .filter(|_| access == Access::Read)
            .map(|record| record.kept_at);
        let (first, last) = match state.direction() {
            Direction::Forward => ((state.new, &keys.new), (state.old, &keys.old)),
            Direction::Backward => ((state.old, &keys.old), (state.new, &keys.new)),
        };
        row(first.0, first.1, 0, kept_from, None)?;
        row(state.new, &keys.new, kept_from, kept_to, kept)?;
        row(last.0, last.1, kept_to, length, None)?;
        Ok(rows)
    }

    /// What the header says of a reencryption that has begun.
    fn reencryption(&self) -> Result<Reencryption<'_>, VolumeError> {
        let metadata = &self.metadata;
        let parts = || {
            let old = metadata.segments.get(&0)?;
            let new = metadata.segments.get(&1)?;
            let digest = |segment| metadata.digests.get(&self.digest_of(segment).ok()?);
            let mut areas = metadata
                .keyslots
                .values()
                .filter(|keyslot| is_journal(keyslot));
            let state = Reencryption {
                old,
                new,
                old_digest: digest(0),
                new_digest: digest(1),
                journal: Journal::new(areas.next()?.area()?)?,
            };
            let sides = [(old, state.old_digest), (new, state.new_digest)];
            let keyed = |(segment, digest): (&Segment, Option<_>)| {
                segment.kind == SegmentKind::Linear || digest.is_some()
            };
            sides.into_iter().all(keyed).then_some(state)
        };
        let required = &self.metadata.config.requirements;
        if let Some(other) = required.iter().find(|name| *name != REQUIREMENT) {
            return Err(VolumeError::Unsupported {
                format: Format::Luks2,
                feature: format!("`{}`", printable(other)).into(),
            });
        }
        let found = self.is_reencrypting().then(parts).flatten();
        found.ok_or_else(|| VolumeError::Unsupported {
            format: Format::Luks2,
            feature: "a reencryption that says too little of itself".into(),
        })
    }

    /// A reencryption that has begun, the bytes of its data and the newest
    /// record of its journal: all of that is in the header's hands, and all of
    /// it is held against the devices before anything is read or written.
    fn progress(
        &self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
    ) -> Result<(Reencryption<'_>, u64, Option<Record>), VolumeError> {
        let state = self.reencryption()?;
        self.check_beside(device, data)?;
        let length = self.data_length(state.new, data)?;
        let mut unit = 512;
        for segment in [state.old, state.new] {
            let (_, layout) = crypt_parts(segment)?;
            let size = self.data_length(segment, data)?;
            data_of_size(data, segment.offset, length, layout)?;
            if size < length {
                return Err(VolumeError::damaged(
                    Format::Luks2,
                    Damage::number("segments.1.size", length, format!("segment 0 has {size}")),
                ));
            }
            unit = unit.max(layout.size.bytes() as u64);
        }
        let record = state.journal.newest(device)?;
        match record {
            Some(record) if record.end() > length || !record.is_made_of(unit) => {
                Err(VolumeError::damaged(
                    Format::Luks2,
                    Damage::number(
                        "journal.position",
                        record.position,
                        format!(
                            "its {} bytes must be sectors of the {length} bytes of data",
                            record.length
                        ),
                    ),
                ))
            }
            record => Ok((state, length, record)),
        }
    }

    /// Bytes of data in `segment`.
    fn data_length(&self, segment: &Segment, data: &dyn BlockDevice) -> Result<u64, VolumeError> {
        match segment.size {
            SegmentSize::Fixed(size) => Ok(size),
            SegmentSize::Dynamic => {
                let (_, layout) = crypt_parts(segment)?;
                Ok(data_to_end(data, segment.offset, layout)?.length)
            }
        }
    }
}

/// Pieces that exist at the same time: one is written, one is ready, one is made.
const PIECES_AT_ONCE: usize = 3;

/// A piece of the data, under the new key.
struct Piece {
    position: u64,
    length: usize,
    buffer: AlignedBuffer,
    digest: Zeroizing<Vec<u8>>,
}

/// What makes pieces.
struct Conversion<'a> {
    data: &'a dyn BlockDevice,
    from: Side,
    to: Side,
    length: u64,
    piece: u64,
    direction: Direction,
}

impl Conversion<'_> {
    /// Makes all pieces behind the first `done` bytes, until there are none or
    /// nobody wants them.
    fn run(
        &self,
        mut done: u64,
        buffers: &Receiver<AlignedBuffer>,
        ready: &SyncSender<Result<Piece, VolumeError>>,
    ) {
        while done < self.length {
            let Ok(buffer) = buffers.recv() else { return };
            let length = self.piece.min(self.length - done);
            let position = match self.direction {
                Direction::Forward => done,
                Direction::Backward => self.length - done - length,
            };
            done += length;
            let made = self.make(position, length as usize, buffer);
            let failed = made.is_err();
            if ready.send(made).is_err() || failed {
                return;
            }
        }
    }

    fn make(
        &self,
        position: u64,
        length: usize,
        mut buffer: AlignedBuffer,
    ) -> Result<Piece, VolumeError> {
        let (from, to) = (&self.from, &self.to);
        let bytes = &mut buffer[..length];
        self.data.read_at(from.offset + position, bytes)?;
        from.cipher.decrypt(from.iv_at(position), bytes);
        to.cipher.encrypt(to.iv_at(position), bytes);
        Ok(Piece {
            position,
            length,
            digest: Journal::digest(bytes),
            buffer,
        })
    }
}

/// One of the two ways in which data is encrypted.
struct Side {
    cipher: KeyedCipher,
    layout: SectorLayout,
    offset: u64,
    first: IvSector,
}

impl Side {
    fn new(segment: &Segment, key: &Key) -> Result<Self, VolumeError> {
        let (spec, layout) = crypt_parts(segment)?;
        let iv_tweak = match segment.kind {
            SegmentKind::Crypt { iv_tweak, .. } => iv_tweak,
            SegmentKind::Linear => 0,
        };
        Ok(Self {
            cipher: spec.cipher(&key_for(&spec, key), layout, None)?,
            layout,
            offset: segment.offset,
            first: IvSector::new(iv_tweak),
        })
    }

    fn iv_at(&self, position: u64) -> IvSector {
        let sectors = position / self.layout.size.bytes() as u64;
        self.first.advance(sectors, self.layout)
    }
}

fn is_journal(keyslot: &Keyslot) -> bool {
    matches!(keyslot, Keyslot::Other { kind, .. } if kind == JOURNAL_KIND)
}

/// Cipher and sectors of a segment; no cipher is a cipher here.
fn crypt_parts(segment: &Segment) -> Result<(CipherSpec, SectorLayout), VolumeError> {
    match &segment.kind {
        SegmentKind::Linear => Ok(("cipher_null-ecb".parse()?, SectorLayout::default())),
        SegmentKind::Crypt {
            integrity: Some(_), ..
        } => Err(VolumeError::Unsupported {
            format: Format::Luks2,
            feature: "integrity tags, which cannot be reencrypted".into(),
        }),
        SegmentKind::Crypt {
            encryption,
            sector_size,
            ..
        } => Ok((
            encryption.parse()?,
            SectorLayout {
                size: *sector_size,
                large_iv: false,
            },
        )),
    }
}
