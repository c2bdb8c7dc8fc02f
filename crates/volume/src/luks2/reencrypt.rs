//! Another cipher, mode, sector size or volume key for the data where it is.
//!
//! The header says both segments, the old one and the new one, and requires
//! what only this program knows; the [`Journal`] says how far it has come. A
//! stop at any byte is safe: what reads the volume meanwhile reads both parts,
//! and whoever goes on writes the newest record again first.
//!
//! A segment that is not encrypted makes it an encryption or a decryption in
//! place. Data that moves to a higher place is moved from its end on.

mod begin;
mod conversion;

pub use self::begin::Target;

use self::conversion::{Conversion, Piece, Side, crypt_parts};
use super::journal::{Journal, Record};
use super::keyslots::forget;
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
use cipher::Key;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

/// What a program must know to use a volume that is being reencrypted.
pub(super) const REQUIREMENT: &str = "cryptmark-reencrypt-v1";

/// The type of the keyslot whose area is the journal.
const JOURNAL_KIND: &str = "cryptmark-reencrypt";

/// The flag of the segment that is to be.
pub(super) const FINAL: &str = "backup-final";

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

fn is_journal(keyslot: &Keyslot) -> bool {
    matches!(keyslot, Keyslot::Other { kind, .. } if kind == JOURNAL_KIND)
}
