//! Key material moved to another place before the data.
//!
//! A copy is on the device before the header names it, and the header changes in four bytes of one
//! sector. So a power cut leaves the old place or the new one.

use super::header::{Header, KEYSLOT_BYTES, KEYSLOTS, KEYSLOTS_AT, Keyslot};
use crate::error::conversion_room;
use crate::keyslot::{AREA_UNIT, SECTOR, gaps, wipe};
use crate::{VolumeError, unaligned};
use block::{BlockDevice, ByteRange};

/// Where the place of the material stands within a keyslot of the header.
const PLACE_AT: usize = 40;

/// The first byte behind the header's own page.
const MATERIAL_AT: u64 = 4096;

/// A keyslot whose material moves.
struct Move {
    slot: usize,
    to: u64,
    /// The unused keyslot whose place that is; it gets the old place.
    for_place_of: Option<usize>,
}

impl Header {
    /// Moves key material until all of it is within `space` and begins at multiples of 4096. The
    /// bytes up to the next multiple then belong to it alone. Afterwards it overwrites all former
    /// places of key material.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`] before anything is written, and those of
    /// writing.
    pub(crate) fn move_material(
        &mut self,
        device: &dyn BlockDevice,
        space: ByteRange,
    ) -> Result<(), VolumeError> {
        let mut planned = self.clone();
        let mut moves = Vec::new();
        while let Some(slot) = planned.misplaced(space) {
            let found = planned.place_for(slot, space);
            let found = found.ok_or_else(conversion_room)?;
            planned.apply(&found);
            moves.push(found);
        }
        for moving in &moves {
            let from = self.material(&self.keyslots[moving.slot]).range();
            let material = unaligned::read(device, from)?;
            unaligned::write_verified(device, moving.to, &material)?;
            self.apply(moving);
            match moving.for_place_of {
                None => self.write_places(device, &[moving.slot])?,
                Some(other) if sector(other) == sector(moving.slot) => {
                    self.write_places(device, &[other, moving.slot])?;
                }
                Some(other) => {
                    self.write_places(device, &[other])?;
                    self.write_places(device, &[moving.slot])?;
                }
            }
        }
        self.wipe_unused(device, space)
    }

    /// The end of the places of all keyslots, those that are in use and those
    /// that could be, as far as they are before `limit`.
    pub(crate) fn material_end(&self, limit: u64) -> u64 {
        let ends = self.keyslots.iter().map(|keyslot| {
            let area = self.area(keyslot);
            area.offset + area.length
        });
        ends.filter(|&end| end <= limit).max().unwrap_or(0)
    }

    /// Writes where the material of these keyslots is: what stands between them
    /// in the header stays as it is.
    fn write_places(&self, device: &dyn BlockDevice, slots: &[usize]) -> Result<(), VolumeError> {
        let places = slots.iter().map(|&slot| place_at(slot));
        let first = places.clone().min().unwrap_or(0);
        let end = places.max().unwrap_or(0) + 4;
        let mut bytes = unaligned::read(device, ByteRange::new(first, end - first))?;
        for &slot in slots {
            let sectors = (self.keyslots[slot].offset / SECTOR) as u32;
            bytes[(place_at(slot) - first) as usize..][..4].copy_from_slice(&sectors.to_be_bytes());
        }
        unaligned::write_verified(device, first, &bytes)
    }

    /// The material of a keyslot, and its bytes up to the next multiple of 4096.
    pub(crate) fn area(&self, keyslot: &Keyslot) -> ByteRange {
        let range = self.material(keyslot).range();
        ByteRange::new(range.offset, range.length.next_multiple_of(AREA_UNIT))
    }

    fn active_areas(&self) -> impl Iterator<Item = ByteRange> {
        let active = self.keyslots.iter().filter(|keyslot| keyslot.active);
        active.map(|keyslot| self.area(keyslot))
    }

    /// A keyslot in use whose material must move.
    fn misplaced(&self, space: ByteRange) -> Option<usize> {
        let fits = |keyslot: &Keyslot| {
            let area = self.area(keyslot);
            let others = self.active_areas().filter(|other| area.overlaps(*other));
            // It overlaps itself.
            possible(area, space) && others.count() == 1
        };
        let mut keyslots = self.keyslots.iter();
        keyslots.position(|keyslot| keyslot.active && !fits(keyslot))
    }

    /// The place to move the material of `slot` to. An unused key slot in the same sector of the
    /// header is preferred, because one write exchanges the two. Then comes space that no key slot
    /// has, and then any unused key slot.
    fn place_for(&self, slot: usize, space: ByteRange) -> Option<Move> {
        let length = self.area(&self.keyslots[slot]).length;
        let free = |offset| {
            let area = ByteRange::new(offset, length);
            possible(area, space) && !self.active_areas().any(|other| area.overlaps(other))
        };
        let unused = |near: bool| {
            let mut slots = 0..KEYSLOTS;
            let other = slots.find(|&other| {
                let keyslot = &self.keyslots[other];
                !keyslot.active && (sector(other) == sector(slot)) == near && free(keyslot.offset)
            })?;
            Some(Move {
                slot,
                to: self.keyslots[other].offset,
                for_place_of: Some(other),
            })
        };
        let nobodys = || {
            let end = self.material_end(space.offset + space.length);
            let to = end.max(space.offset).next_multiple_of(AREA_UNIT);
            let moving = Move {
                slot,
                to,
                for_place_of: None,
            };
            free(to).then_some(moving)
        };
        unused(true).or_else(nobodys).or_else(|| unused(false))
    }

    fn apply(&mut self, moving: &Move) {
        let from = self.keyslots[moving.slot].offset;
        self.keyslots[moving.slot].offset = moving.to;
        if let Some(other) = moving.for_place_of {
            self.keyslots[other].offset = from;
        }
    }

    /// Overwrites what no keyslot in use has, of all that keyslots may have: also
    /// what was moved away from before a cut.
    fn wipe_unused(&self, device: &dyn BlockDevice, space: ByteRange) -> Result<(), VolumeError> {
        let end = self.material_end(space.offset + space.length);
        let unused = gaps((MATERIAL_AT, end), self.active_areas().collect());
        unused.into_iter().try_for_each(|gap| wipe(device, gap))
    }
}

/// The byte of the header at which the place of a keyslot's material stands.
const fn place_at(slot: usize) -> u64 {
    (KEYSLOTS_AT + slot * KEYSLOT_BYTES + PLACE_AT) as u64
}

/// The sector of the header that says it.
const fn sector(slot: usize) -> u64 {
    place_at(slot) / SECTOR
}

/// Whether `area` may be key material of LUKS2.
fn possible(area: ByteRange, space: ByteRange) -> bool {
    area.within(space) && area.offset.is_multiple_of(AREA_UNIT)
}
