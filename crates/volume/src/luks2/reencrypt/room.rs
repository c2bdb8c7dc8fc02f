//! Makes room for a header before data that are not encrypted yet, and puts the header there.
//!
//! The bytes that the header will overwrite are copied behind the data first. Until that is done,
//! the header is in a file of its own. A digest in it identifies its data, because the file of the
//! data may have been restored or replaced meanwhile.

use super::begin::{copy, is_same};
use super::{Backup, GROWN};
use crate::luks2::metadata::SegmentKind;
use crate::luks2::read::Header;
use crate::{CryptDevice, Hash, LuksHeader, Own, VolumeError, judge};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use block::{BlockDevice, ByteRange};
use cipher::Key;
use serde_json::{Value, json};

/// The unit that every device writes as a whole, bytes.
const SECTOR: usize = 512;

/// Bytes that are compared at a time, if there are many.
const PIECE: u64 = 1 << 20;

/// The work to do on data before they are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that the device had when this began.
    pub before: u64,
    /// Bytes that it needs.
    pub needed: u64,
    /// Whether the data are as they were; otherwise the header is on its way over their start.
    pub untouched: bool,
}

/// A token that says that the device is made longer, from how many bytes, and what the data
/// begin with.
pub(super) fn token(data: &dyn BlockDevice, moved: u64) -> Result<Value, VolumeError> {
    Ok(json!({
        "type": GROWN,
        "keyslots": [],
        "length": data.geometry().size.to_string(),
        "start": STANDARD.encode(digest(data, (0, moved), data.geometry().size)?),
    }))
}

fn read(data: &dyn BlockDevice, range: ByteRange) -> Result<Vec<u8>, VolumeError> {
    let mut bytes = block::AlignedBuffer::new(range.length as usize);
    data.read_at(range.offset, &mut bytes)?;
    Ok(bytes.to_vec())
}

/// The digest of the `length` bytes that are now at `offset`, as far as a device of `before` bytes
/// had them. If its size was not a multiple of the sector, they end later.
fn digest(
    data: &dyn BlockDevice,
    (offset, length): (u64, u64),
    before: u64,
) -> Result<Vec<u8>, VolumeError> {
    let range = ByteRange::new(offset, length.min(before));
    Ok(Hash::Sha256.digest(&[&read(data, range)?]).to_vec())
}

/// Whether every sector of `start` is that of one of `others` at the same place.
pub(super) fn is_made_of(start: &[u8], others: [&[u8]; 2]) -> bool {
    start.chunks(SECTOR).enumerate().all(|(number, sector)| {
        let at = number * SECTOR;
        let is = |other: &&[u8]| other.get(at..at + sector.len()) == Some(sector);
        others.iter().any(is)
    })
}

/// Whether the start of `data`, which was to be copied to `moved`, is as it was; otherwise the
/// header on `side` is there, or a part of it. `None` if something is there that was not copied.
fn is_untouched(
    side: &dyn BlockDevice,
    data: &dyn BlockDevice,
    moved: ByteRange,
) -> Result<Option<bool>, VolumeError> {
    let range = ByteRange::new(0, moved.length);
    let (there, header, copied) = (read(data, range)?, read(side, range)?, read(data, moved)?);
    Ok(is_made_of(&there, [&header, &copied]).then_some(there == copied))
}

/// Whether the `offset` bytes before the data are those of `side`, or a part of the data was
/// copied over them. There may be more of them than there is memory.
fn came_from(
    side: &dyn BlockDevice,
    data: &dyn BlockDevice,
    offset: u64,
) -> Result<bool, VolumeError> {
    let size = data.geometry().size;
    for done in (0..offset).step_by(PIECE as usize) {
        let length = PIECE.min(offset - done);
        let there = read(data, ByteRange::new(done, length))?;
        let header = read(side, ByteRange::new(done, length))?;
        let from = offset.saturating_add(done);
        let start = match size.saturating_sub(from).min(length) {
            0 => Vec::new(),
            length => read(data, ByteRange::new(from, length))?,
        };
        if !is_made_of(&there, [&header, &start]) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[doc(hidden)]
impl Header {
    /// The work to do on `data` before they get this header, which is on `side`. They are not
    /// encrypted yet.
    ///
    /// # Errors
    /// [`VolumeError::OtherData`] if they are not the data with which this began, and those of
    /// reading.
    pub fn room(
        &self,
        side: &dyn BlockDevice,
        data: &dyn BlockDevice,
    ) -> Result<Room, VolumeError> {
        let (shift, moved) = self.places()?;
        let (before, start) = self.told().ok_or(VolumeError::ForeignReencryption)?;
        let needed = moved.offset.saturating_add(shift);
        let room = |untouched| Room {
            before,
            needed,
            untouched,
        };
        let size = data.geometry().size;
        if ![before, needed].contains(&size) {
            return Err(VolumeError::OtherData);
        }
        // The digest is not of the end of a file that is within a sector: what is there says
        // more, and comes first.
        if size == needed
            && digest(data, (moved.offset, moved.length), before)? == start
            && let Some(untouched) = is_untouched(side, data, moved)?
        {
            return Ok(room(untouched));
        }
        match digest(data, (0, moved.length), before)? == start {
            true => Ok(room(true)),
            false => Err(VolumeError::OtherData),
        }
    }

    /// Refuses data whose start may not have been copied yet, while the header is apart: what it
    /// says of them is not so before that.
    pub(super) fn check_room(
        &self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
    ) -> Result<(), VolumeError> {
        // The copied bytes are no longer needed once they are encrypted.
        let Some((before, start)) = self.told().filter(|_| !self.has_encrypted()) else {
            return Ok(());
        };
        let (_, moved) = self.places()?;
        let is_there = moved.end().is_some_and(|end| end <= data.geometry().size);
        let is_copied = is_there && digest(data, (moved.offset, moved.length), before)? == start;
        match is_same(device, data) {
            // Another program has gone on with the header that was apart.
            true if !is_copied => Err(VolumeError::OtherData),
            true => Ok(()),
            false
                if is_copied
                    && (before >= moved.length || is_untouched(device, data, moved)?.is_some()) =>
            {
                Ok(())
            }
            false => Err(VolumeError::RecoveryNeeded),
        }
    }

    /// Whether the data are recognised by what they began with. That is so until some of them are
    /// encrypted, whether the header is before them already or not.
    pub(super) fn is_told_by_start(&self) -> bool {
        !self.has_encrypted() && self.told().is_some()
    }

    /// Whether a part of the data is encrypted.
    fn has_encrypted(&self) -> bool {
        let mut segments = self.regular_segments();
        segments.any(|segment| segment.kind != SegmentKind::Linear)
    }

    /// Whether the data are all encrypted, and the move that went before is not ended: the header
    /// may be apart, and the file too long.
    pub fn has_moved(&self) -> bool {
        !self.is_reencrypting() && self.grown().is_some()
    }

    /// Puts this header, which is on `side`, before `data`, which another program has encrypted with
    /// it where it was. `key` is theirs.
    ///
    /// # Errors
    /// [`VolumeError::OtherData`] if they are not those with which this began, or may not all be, and
    /// those of reading and writing.
    pub fn bring_before(
        &self,
        side: &dyn BlockDevice,
        data: &dyn BlockDevice,
        key: Key,
    ) -> Result<(), VolumeError> {
        let (before, start) = self.grown().ok_or(VolumeError::ForeignReencryption)?;
        let (_, segment) = self.data_segment()?;
        let shift = segment.offset;
        if shift > MOST || shift < self.bytes_with_keyslots() {
            return Err(VolumeError::ForeignReencryption);
        }
        let moved = (0, before.min(shift));
        let plaintext = CryptDevice::new(data, self.mapping(key, data)?)?;
        let is = |device: &dyn BlockDevice| {
            Ok::<_, VolumeError>(digest(device, moved, before)? == start)
        };
        let is_own = |there: Self| there.binary.uuid == self.binary.uuid;
        let is_free = match Self::read(data).is_ok_and(is_own) {
            // All was copied before; since then the volume may have been used.
            true => is(&plaintext)? || !judge::names(&plaintext)?.is_empty(),
            // The other program may have encrypted a half copy. Then the start is here alone.
            false => is(&plaintext)? && is(&data)?,
        };
        match is_free {
            true => copy(side, data, (0, 0), shift),
            false => Err(VolumeError::OtherData),
        }
    }

    /// How long the device was, and the digest of what it began with, before all is encrypted.
    fn told(&self) -> Option<(u64, Vec<u8>)> {
        // cryptsetup leaves it there when it has ended the encryption.
        self.reencryption_mode().filter(|mode| *mode == "encrypt")?;
        self.grown()
    }

    /// The same at any time.
    fn grown(&self) -> Option<(u64, Vec<u8>)> {
        let token = self.token_of(GROWN)?;
        let before = token["length"].as_str()?.parse().ok()?;
        Some((before, STANDARD.decode(token["start"].as_str()?).ok()?))
    }

    /// Puts this header, which is on `side`, before `data`, which have the room for it.
    ///
    /// # Errors
    /// As [`room`](Self::room), and those of writing.
    pub fn put_before(
        &self,
        side: &dyn BlockDevice,
        data: &dyn BlockDevice,
    ) -> Result<(), VolumeError> {
        let (shift, moved) = self.places()?;
        if self.room(side, data)?.untouched {
            copy(data, data, (0, moved.offset), moved.length)?;
        }
        copy(side, data, (0, 0), shift)
    }

    /// Puts this header back before the data from which it was taken. No reencryption has begun,
    /// and at most the start of the data was copied over it.
    ///
    /// # Errors
    /// [`VolumeError::OtherData`] if other data stand there, and those of writing.
    pub fn put_back(
        &self,
        side: &dyn BlockDevice,
        data: &dyn BlockDevice,
    ) -> Result<(), VolumeError> {
        let (_, segment) = self.data_segment()?;
        let offset = segment.offset;
        if data.geometry().size < offset || offset < 2 * self.binary.header_size {
            return Err(VolumeError::OtherData);
        }
        if !came_from(side, data, offset)? && !self.follows(data) {
            return Err(VolumeError::OtherData);
        }
        // One copy of the metadata is whole at any time, and tells of key slots that are there.
        let first = self.binary.header_size;
        let second = first * 2;
        copy(side, data, (second, second), offset - second)?;
        copy(side, data, (first, first), first)?;
        copy(side, data, (0, 0), first)
    }

    /// Whether the data have this header as it was before a change of its keyslots, or the
    /// header is on its way there.
    fn follows(&self, data: &dyn BlockDevice) -> bool {
        let of = |header: &Self| LuksHeader::Luks2(Box::new(header.clone()));
        Header::read(data).is_ok_and(|there| {
            let is_older = there.binary.seqid < self.binary.seqid;
            (is_older && of(self).own(&of(&there)) == Own::Same)
                || (there.binary.seqid == self.binary.seqid && there.json == self.json)
        })
    }

    /// How far the data move up, and where their start goes first.
    fn places(&self) -> Result<(u64, ByteRange), VolumeError> {
        let places = || {
            let moved = self.backup(Backup::Moved)?;
            Some((
                self.backup(Backup::Final)?.offset,
                moved.offset,
                moved.size?,
            ))
        };
        let (shift, offset, length) = places().ok_or(VolumeError::ForeignReencryption)?;
        // As much as a header may have is read at once.
        match shift > 0 && shift <= MOST && length <= shift && offset.checked_add(shift).is_some() {
            true => Ok((shift, ByteRange::new(offset, length))),
            false => Err(VolumeError::ForeignReencryption),
        }
    }
}

/// The largest header that this program makes room for.
const MOST: u64 = 64 << 20;
