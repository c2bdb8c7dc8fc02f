//! [`Map`]: where each byte of the plaintext is stored, and whether it is encrypted there.

use super::conversion::Conversion;
use super::header::{Header, VISTA_PLAIN_BYTES};
use crate::{VolumeError, Warning};
use block::ByteRange;

/// How bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// Encrypted.
    Encrypted,
    /// Not encrypted.
    Plain,
    /// Not at all: BitLocker's own areas, which read as zeros.
    Nowhere,
    /// Not encrypted, with two fields of the boot sector replaced.
    Boot,
}

/// A run of the plaintext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// First byte on the device.
    pub(super) at: u64,
    /// End of the run in the plaintext.
    pub(super) end: u64,
    /// How it is stored.
    pub(super) stands: Stands,
}

/// Maps the plaintext to the device.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// Ranges that are not stored in their own place. Sorted, without overlaps.
    special: Vec<Special>,
    conversion: Conversion,
}

#[derive(Clone, Copy, Debug)]
struct Special {
    range: ByteRange,
    is: Is,
}

#[derive(Clone, Copy, Debug)]
enum Is {
    /// Stored from this byte of the device on, encrypted if that place is.
    From(u64),
    /// Stored in its own place, or nowhere.
    Here(Stands),
}

impl Map {
    /// The map of a volume of `size` bytes on a device with blocks of `block` bytes.
    ///
    /// # Errors
    /// [`VolumeError::DataArea`] and [`VolumeError::DataAlignment`] for areas that are not inside
    /// the volume or not made of whole blocks.
    pub(super) fn new(header: &Header, size: u64, block: u64) -> Result<Self, VolumeError> {
        let mut map = Self {
            special: Vec::new(),
            conversion: header.conversion.clone(),
        };
        let places = &header.places;
        if let Some(from) = places.first_sectors {
            // What is beyond the end of a volume that is cut off reads as zeros.
            let there = size.saturating_sub(from.offset).min(from.length) / block * block;
            check(
                ByteRange::new(from.offset, there),
                size.max(from.offset),
                block,
            )?;
            map.add(ByteRange::new(0, there), Is::From(from.offset));
            map.add(
                ByteRange::new(0, from.length.min(size)),
                Is::Here(Stands::Nowhere),
            );
        } else {
            map.add(ByteRange::new(0, block), Is::Here(Stands::Boot));
            map.add(
                ByteRange::new(0, VISTA_PLAIN_BYTES),
                Is::Here(Stands::Plain),
            );
        }
        let copies = places
            .copies
            .map(|at| ByteRange::new(at, places.area_bytes));
        let own = copies
            .into_iter()
            .chain(places.first_sectors)
            .chain(header.conversion.own().iter().copied())
            .chain(places.log);
        // A truncated image is readable up to its end.
        for ByteRange { offset, length } in own.filter(|range| range.offset < size) {
            let end = offset.saturating_add(length).min(size);
            let range = ByteRange::new(offset, end.next_multiple_of(block) - offset);
            check(range, size, block)?;
            map.add(range, Is::Here(Stands::Nowhere));
        }
        Ok(map)
    }

    /// The parts of the first `size` bytes that are not encrypted, apart from Vista's start, which
    /// never is.
    pub(super) fn unprotected(&self, size: u64) -> Option<Warning> {
        let starts =
            |special: &&Special| matches!(special.is, Is::Here(Stands::Boot | Stands::Plain));
        let start = self.special.iter().take_while(starts).last();
        let mut at = start.map_or(0, |start| start.range.offset + start.range.length);
        let (mut bytes, mut first) = (0, None::<ByteRange>);
        while at < size {
            let run = self.run(at);
            let length = run.end.min(size) - at;
            if run.stands == Stands::Plain {
                bytes += length;
                match &mut first {
                    Some(first) if first.offset + first.length == at => first.length += length,
                    Some(_) => {}
                    None => first = Some(ByteRange::new(at, length)),
                }
            }
            at += length;
        }
        first.map(|first| Warning::Unprotected { bytes, first })
    }

    /// Adds the parts of `range` that no earlier range covers.
    fn add(&mut self, range: ByteRange, is: Is) {
        let mut at = range.offset;
        let end = range.offset + range.length;
        while at < end {
            let next = self
                .special
                .partition_point(|known| known.range.offset <= at);
            let before = next.checked_sub(1).map(|nth| self.special[nth].range);
            if let Some(before) = before
                && before.offset + before.length > at
            {
                at = before.offset + before.length;
                continue;
            }
            let until = self
                .special
                .get(next)
                .map_or(end, |known| end.min(known.range.offset));
            let part = match is {
                Is::From(from) => Is::From(from + (at - range.offset)),
                is => is,
            };
            let range = ByteRange::new(at, until - at);
            self.special.insert(next, Special { range, is: part });
            at = until;
        }
    }

    /// The run of the plaintext that begins with byte `at`.
    pub(super) fn run(&self, at: u64) -> Run {
        let next = self
            .special
            .partition_point(|known| known.range.offset <= at);
        let before = next.checked_sub(1).map(|nth| self.special[nth]);
        if let Some(Special { range, is }) = before
            && at < range.offset + range.length
        {
            let end = range.offset + range.length;
            let inside = at - range.offset;
            return match is {
                Is::From(from) => self.as_converted(from + inside, at, end),
                Is::Here(stands) => Run { at, end, stands },
            };
        }
        let end = self
            .special
            .get(next)
            .map_or(u64::MAX, |known| known.range.offset);
        self.as_converted(at, at, end)
    }

    /// The run from `at` to `end` at most, stored from byte `place` of the device on.
    fn as_converted(&self, place: u64, at: u64, end: u64) -> Run {
        let (encrypted, until) = self.conversion.at(place);
        Run {
            at: place,
            end: end.min(at.saturating_add(until - place)),
            stands: match encrypted {
                true => Stands::Encrypted,
                false => Stands::Plain,
            },
        }
    }
}

fn check(range: ByteRange, size: u64, block: u64) -> Result<(), VolumeError> {
    let ByteRange { offset, length } = range;
    if range.end().is_none_or(|end| end > size) {
        return Err(VolumeError::DataArea {
            offset,
            length,
            device: size,
        });
    }
    if !offset.is_multiple_of(block) || !length.is_multiple_of(block) {
        return Err(VolumeError::DataAlignment {
            offset,
            length,
            unit: block as u32,
        });
    }
    Ok(())
}
