//! [`Plan`]: the work of a reencryption and its progress, from the header.
//!
//! ```text
//! forward                  new ‥│ hot │‥ old
//! backward                 old ‥│ hot │‥ new
//! encrypt, data moves up   moved │ old ‥│ hot │‥ new      at last: hot │ new
//! decrypt, data moves down moved │ new ‥│ hot │‥ old      at last: hot │ new
//! ```
//!
//! These are the header's segments, in the order of the data. The hot one is being worked on.
//! `moved` is the start of the data, which was copied out of the way.

mod segments;

pub(super) use self::segments::Kind;

use super::conversion::crypt_parts;
use super::{Backup, KEYSLOT_KIND, number_of};
use crate::luks2::metadata::{Keyslot, Segment, SegmentKind};
use crate::luks2::read::Header;
use crate::{Hash, VolumeError};
use block::{AlignedBuffer, BlockDevice, ByteRange, Geometry};

/// The most bytes that are worked on at a time, if that is not more than can be protected.
const MOST_WINDOW: u64 = 16 << 20;

/// The largest block that a checksum may be of.
const MOST_BLOCK: u64 = 1 << 20;

/// The operation on the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Encrypt,
    Reencrypt,
    Decrypt,
}

/// In which order the data is worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// How the hot segment survives a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    /// It does not.
    Nothing,
    /// The area has the old data.
    Journal(ByteRange),
    /// The area has hashes of the old data's blocks.
    Checksum {
        area: ByteRange,
        hash: Hash,
        block: u64,
    },
    /// The old data lies elsewhere, and is not overwritten.
    Elsewhere,
}

impl Protection {
    /// The smallest unit that it can protect, bytes; 1 if it protects any length.
    const fn block(self) -> u64 {
        match self {
            Self::Checksum { block, .. } => block,
            _ => 1,
        }
    }

    /// The most bytes that it protects at a time.
    fn capacity(self, shift: u64) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Journal(area) => area.length,
            Self::Checksum { area, hash, block } => {
                (area.length / hash.digest_bytes() as u64).saturating_mul(block)
            }
            Self::Elsewhere => shift,
        }
    }
}

/// Data from one byte to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Window {
    pub(super) const fn length(self) -> u64 {
        self.to - self.from
    }

    /// Its parts of `most` bytes or fewer.
    pub(super) fn pieces(self, most: u64) -> impl Iterator<Item = Self> {
        (self.from..self.to)
            .step_by(most as usize)
            .map(move |from| Self {
                from,
                to: (from + most).min(self.to),
            })
    }
}

/// How far a reencryption has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Up to this byte, or down to it, the data is new.
    Edge(u64),
    /// This may be old, new, or both.
    Hot(Window),
    /// All is new, and the header does not say so yet.
    Done,
}

/// The plan of a reencryption, as the header describes it.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) slot: u32,
    mode: Mode,
    direction: Direction,
    protection: Protection,
    /// The protection of the window that was moved.
    moved_protection: Protection,
    pub(super) previous: Segment,
    pub(super) last: Segment,
    moved: Option<ByteRange>,
    pub(super) old_digest: Option<u32>,
    pub(super) new_digest: Option<u32>,
    /// Bytes of data.
    pub(super) length: u64,
    /// The length of a window is a multiple of this, bytes.
    unit: u64,
    /// Whether the header says how many bytes the data has.
    fixed: bool,
}

impl Plan {
    /// Reads the plan and checks it against the device of the data. The digest over the metadata is not
    /// looked at.
    pub(super) fn read(header: &Header, data: Geometry) -> Result<Self, VolumeError> {
        let plan = Self::parse(header, data)?;
        plan.check(data)?;
        Ok(plan)
    }

    fn parse(header: &Header, data: Geometry) -> Result<Self, VolumeError> {
        let parts = || {
            let slot = slot_of(header)?;
            let keyslot = &header.json["keyslots"][slot.to_string()];
            let area = match &header.metadata.keyslots[&slot] {
                Keyslot::Other { area, .. } => (*area)?,
                Keyslot::Luks2(_) => return None,
            };
            let mode = match keyslot["mode"].as_str()? {
                "encrypt" => Mode::Encrypt,
                "reencrypt" => Mode::Reencrypt,
                "decrypt" => Mode::Decrypt,
                _ => return None,
            };
            let direction = match keyslot["direction"].as_str()? {
                "forward" => Direction::Forward,
                "backward" => Direction::Backward,
                _ => return None,
            };
            let kind = keyslot["area"]["type"].as_str()?;
            let checksum = || {
                let hash = Hash::named(keyslot["area"]["hash"].as_str()?)?;
                let block = keyslot["area"]["sector_size"].as_u64()?;
                let possible = block.is_power_of_two() && (512..=MOST_BLOCK).contains(&block);
                possible.then_some(Protection::Checksum { area, hash, block })
            };
            let (protection, moved_protection) = match kind {
                "none" => (Protection::Nothing, Protection::Nothing),
                "journal" => (Protection::Journal(area), Protection::Nothing),
                "checksum" => (checksum()?, Protection::Nothing),
                "datashift" => (Protection::Elsewhere, Protection::Elsewhere),
                "datashift-journal" => (Protection::Elsewhere, Protection::Journal(area)),
                "datashift-checksum" => (Protection::Elsewhere, checksum()?),
                _ => return None,
            };
            let number = |flag| number_of(&header.json, flag);
            let (previous, last) = (number(Backup::Previous)?, number(Backup::Final)?);
            let moved = header.backup(Backup::Moved);
            let moved = match moved {
                None => None,
                Some(moved) => Some(ByteRange::new(moved.offset, moved.size?)),
            };
            let plan = Self {
                slot,
                mode,
                direction,
                protection,
                moved_protection,
                previous: header.metadata.segments[&previous].clone(),
                last: header.metadata.segments[&last].clone(),
                moved,
                old_digest: header.digest_of(previous).ok(),
                new_digest: header.digest_of(last).ok(),
                length: 0,
                unit: 512,
                fixed: false,
            };
            plan.fits_its_mode().then_some(plan)
        };
        let mut plan = parts().ok_or(VolumeError::ForeignReencryption)?;
        for segment in [&plan.previous, &plan.last] {
            let (_, layout) = crypt_parts(segment)?;
            plan.unit = plan.unit.max(layout.size.bytes() as u64);
        }
        plan.unit = plan.unit.max(u64::from(data.logical_block));
        (plan.length, plan.fixed) = plan.measure(header, data)?;
        Ok(plan)
    }

    /// Whether segments, digests and directions are those of the mode.
    fn fits_its_mode(&self) -> bool {
        let keyed = |segment: &Segment, digest: Option<u32>| match segment.kind {
            SegmentKind::Linear => digest.is_none(),
            SegmentKind::Crypt(_) => digest.is_some(),
            SegmentKind::Other { .. } => false,
        };
        let linear = |segment: &Segment| segment.kind == SegmentKind::Linear;
        let kinds = match self.mode {
            Mode::Encrypt => linear(&self.previous) && !linear(&self.last),
            Mode::Reencrypt => !linear(&self.previous) && !linear(&self.last),
            Mode::Decrypt => !linear(&self.previous) && linear(&self.last),
        };
        let (from, to) = (self.previous.offset, self.last.offset);
        let shape = match (self.mode, self.direction, self.moved) {
            (Mode::Encrypt, Direction::Backward, Some(_)) => from < to,
            (Mode::Decrypt, Direction::Forward, Some(moved)) => {
                from > to
                    && moved.offset == to
                    && moved.length <= from - to
                    && self.moved_protection != Protection::Elsewhere
            }
            (Mode::Reencrypt, Direction::Backward, None) if from != to => from < to,
            (_, _, None) => from == to,
            _ => false,
        };
        let shifted = self.protection == Protection::Elsewhere;
        kinds
            && shape
            && shifted == (from != to)
            && keyed(&self.previous, self.old_digest)
            && keyed(&self.last, self.new_digest)
    }

    /// Bytes of data, and whether the header says so.
    fn measure(&self, header: &Header, data: Geometry) -> Result<(u64, bool), VolumeError> {
        if let (Some(_), Mode::Encrypt) = (self.moved, self.mode) {
            let size = self.previous.size;
            return Ok((size.ok_or(VolumeError::ForeignReencryption)?, true));
        }
        let mut sum = Some(0_u64);
        for segment in header.regular_segments() {
            sum = sum
                .zip(segment.size)
                .and_then(|(sum, size)| sum.checked_add(size));
        }
        let start = self.previous.offset.max(self.last.offset);
        match sum {
            // Nothing is left but what was moved, and the header does not say it all.
            Some(sum) if self.moved.is_none_or(|moved| sum != moved.length) => Ok((sum, true)),
            _ => match (self.moved, self.previous.size) {
                (Some(_), Some(size)) => Ok((size, true)),
                // A file that has grown may end within a sector, which is none of a volume's. A
                // decryption would cut it off at the end.
                _ => {
                    let length = data.size.saturating_sub(start);
                    let behind = match self.decrypts() {
                        true => 0,
                        false => length % self.unit,
                    };
                    Ok((length - behind, false))
                }
            },
        }
    }

    /// Whether the data are decrypted.
    pub(super) fn decrypts(&self) -> bool {
        self.mode == Mode::Decrypt
    }

    /// Wipes the rest of the header on the device of data that move down over it. Otherwise a
    /// program that finds the second copy would write the first one again, over the data.
    pub(super) fn forget_header(
        &self,
        data: &dyn BlockDevice,
        header: &Header,
    ) -> Result<(), VolumeError> {
        let copy = ByteRange::new(header.binary.header_size, 4096);
        let is_data = header.regular_segments().any(|segment| {
            let length = segment.size.unwrap_or(u64::MAX - segment.offset);
            copy.overlaps(ByteRange::new(segment.offset, length))
        });
        if self.mode != Mode::Decrypt || self.shift() <= copy.offset || is_data {
            return Ok(());
        }
        data.write_at(copy.offset, &AlignedBuffer::new(copy.length as usize))?;
        Ok(data.flush()?)
    }

    fn check(&self, data: Geometry) -> Result<(), VolumeError> {
        let size = data.size;
        let length = self.length;
        for segment in [&self.previous, &self.last] {
            let range = ByteRange::new(segment.offset, length);
            if range.end().is_none_or(|end| end > size) {
                return Err(VolumeError::DataArea {
                    offset: segment.offset,
                    length,
                    device: size,
                });
            }
        }
        let whole = |bytes: u64| bytes.is_multiple_of(self.unit);
        if length == 0 || !whole(length) {
            return Err(VolumeError::DataAlignment {
                offset: self.last.offset,
                length,
                unit: self.unit as u32,
            });
        }
        let Some(moved) = self.moved else {
            return Ok(());
        };
        let behind = |end: u64| end <= size && whole(moved.length) && moved.length <= length;
        let apart = match self.mode {
            Mode::Encrypt => {
                moved.offset >= self.last.offset + length
                    && moved.length == length.min(self.shift())
            }
            _ => true,
        };
        match moved.end().is_some_and(behind) && apart {
            true => Ok(()),
            false => Err(VolumeError::ForeignReencryption),
        }
    }

    /// The distance by which the data moves, bytes.
    const fn shift(&self) -> u64 {
        self.previous.offset.abs_diff(self.last.offset)
    }

    /// The length of the part at the start of the data that was moved, bytes.
    fn moved_length(&self) -> u64 {
        self.moved.map_or(0, |moved| moved.length)
    }

    /// The area of data that was moved out of the way, and is left behind at the end.
    pub(super) fn left_behind(&self) -> Option<ByteRange> {
        self.moved.filter(|_| self.mode == Mode::Encrypt)
    }

    /// Whether what was moved is worked on in this window.
    fn is_moved(&self, window: Window) -> bool {
        window.from < self.moved_length()
    }

    /// Where the edge is when nothing but what was moved is left.
    fn last_edge(&self) -> u64 {
        match self.direction {
            Direction::Forward => self.length,
            Direction::Backward => self.moved_length(),
        }
    }

    /// How a window survives a crash.
    pub(super) fn protection(&self, window: Window) -> Protection {
        match self.is_moved(window) {
            true => self.moved_protection,
            false => self.protection,
        }
    }

    /// Whether data is not protected: by choice, or because it ends within a block.
    pub(super) fn is_unprotected(&self) -> bool {
        let ragged =
            |protection: Protection, length: u64| !length.is_multiple_of(protection.block());
        self.protection == Protection::Nothing
            || ragged(self.protection, self.length)
            || ragged(self.moved_protection, self.moved_length())
    }

    /// The byte of the device with the old data at `position`.
    pub(super) fn old_at(&self, position: u64) -> u64 {
        match self.moved {
            Some(moved) if position < moved.length => moved.offset + position,
            _ => self.previous.offset + position,
        }
    }

    /// The byte of the device for the new data at `position`.
    pub(super) const fn new_at(&self, position: u64) -> u64 {
        self.last.offset + position
    }

    /// Whether only what was moved is left, and is worked on where it lies.
    pub(super) fn is_moved_at(&self, edge: u64) -> bool {
        self.moved.is_some() && self.mode == Mode::Decrypt && edge == self.last_edge()
    }

    /// The next window to work on.
    pub(super) fn window_at(&self, edge: u64) -> Result<Window, VolumeError> {
        if self.moved.is_some() && edge == self.last_edge() {
            let to = self.moved_length();
            return Ok(Window { from: 0, to });
        }
        let most = self.protection.capacity(self.shift()).min(MOST_WINDOW);
        // All are powers of two.
        let unit = self.unit.max(self.protection.block());
        let most = most / unit * unit;
        if most == 0 {
            return Err(VolumeError::NoFreeKeyslot);
        }
        Ok(match self.direction {
            Direction::Forward => Window {
                from: edge,
                to: edge.saturating_add(most).min(self.length),
            },
            Direction::Backward => Window {
                from: edge.saturating_sub(most).max(self.last_edge()),
                to: edge,
            },
        })
    }

    /// How far it is when a window is done.
    pub(super) fn after(&self, window: Window) -> Progress {
        let edge = match self.direction {
            Direction::Forward => window.to,
            Direction::Backward => window.from,
        };
        match self.is_moved(window) || (self.moved.is_none() && edge == self.last_edge()) {
            true => Progress::Done,
            false => Progress::Edge(edge),
        }
    }

    /// Bytes that are done.
    pub(super) fn done(&self, progress: Progress) -> u64 {
        let moved = self.moved_length();
        match (progress, self.direction) {
            (Progress::Done, _) => self.length,
            (Progress::Edge(edge), Direction::Forward) => edge - moved,
            (Progress::Edge(edge), Direction::Backward) => self.length - edge,
            (Progress::Hot(window), _) if self.is_moved(window) => self.length - moved,
            (Progress::Hot(window), Direction::Forward) => window.from - moved,
            (Progress::Hot(window), Direction::Backward) => self.length - window.to,
        }
    }
}

#[doc(hidden)]
impl Header {
    /// The byte of `data` at which a running encryption will end, if the volume then has all of its
    /// device. Bytes behind it would be taken for encrypted, and are not.
    ///
    /// # Errors
    /// [`VolumeError::ForeignReencryption`] and others, if this program cannot continue it.
    pub fn end_of_encryption(&self, data: &dyn BlockDevice) -> Result<Option<u64>, VolumeError> {
        let plan = Plan::read(self, data.geometry())?;
        let fills = plan.last.size.is_none() && plan.moved.is_none();
        let end = plan.last.offset + plan.length;
        Ok((plan.mode == Mode::Encrypt && fills).then_some(end))
    }
}

/// The key slot of type `reencrypt`, if there is exactly one.
pub(super) fn slot_of(header: &Header) -> Option<u32> {
    let is =
        |keyslot: &Keyslot| matches!(keyslot, Keyslot::Other { kind, .. } if kind == KEYSLOT_KIND);
    let mut slots = header.metadata.keyslots.iter().filter(|(_, slot)| is(slot));
    match (slots.next(), slots.next()) {
        (Some((number, _)), None) => Some(*number),
        _ => None,
    }
}
