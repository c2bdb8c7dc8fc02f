//! [`Allocation`]: what of a volume's plaintext is stored, told by who knows
//! what is stored below.

use crate::{Opened, Storage};
use block::{BlockDevice, BlockError, ByteRange, Extent};

/// Where the plaintext of an opened volume lies, and whether a hole there is
/// one here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// One behind the other; none for a volume whose sectors have tags.
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    storage: Storage,
    data: ByteRange,
    /// Zeros below are zeros above.
    holes: bool,
}

impl Opened {
    /// Describes which ranges of the plaintext can be holes, once the volume is open. Call it after
    /// [`reading_holes`](Self::reading_holes). Without that, a hole decrypts to noise and counts as
    /// stored.
    pub fn allocation(&self, header: &dyn BlockDevice, data: &dyn BlockDevice) -> Allocation {
        let place = |row: &crate::Row| {
            let below = match row.storage {
                Storage::Header => header,
                Storage::Data => data,
            };
            Place {
                storage: row.storage,
                data: row.mapping.data,
                holes: row.mapping.holes && below.geometry().discard_zeroes,
            }
        };
        Allocation {
            places: self.rows.iter().map(place).collect(),
        }
    }
}

impl Allocation {
    /// The extents of `range` of the plaintext, in order and without gaps; each one is stored or a
    /// hole. `below` returns the extents of one of the two devices. It isn't called for places that
    /// can have no holes.
    ///
    /// # Errors
    /// Those of `below`.
    pub fn extents(
        &self,
        range: ByteRange,
        below: impl Fn(Storage, ByteRange) -> Result<Vec<Extent>, BlockError>,
    ) -> Result<Vec<Extent>, BlockError> {
        let end = range.offset + range.length;
        let mut extents = Vec::new();
        let (mut start, mut at) = (0, range.offset);
        for place in &self.places {
            let next = start + place.data.length;
            let until = end.min(next);
            if place.holes && at < until {
                let base = place.data.offset;
                let asked = ByteRange::new(base + (at - start), until - at);
                for Extent { range, hole } in below(place.storage, asked)? {
                    let offset = range.offset - base + start;
                    let range = ByteRange::new(offset, range.length);
                    Extent { range, hole }.append_to(&mut extents);
                }
                at = until;
            } else if at < until {
                stored(at, until).append_to(&mut extents);
                at = until;
            }
            start = next;
        }
        stored(at, end).append_to(&mut extents);
        Ok(extents)
    }
}

/// The bytes from `at` to `end`, as no hole.
fn stored(at: u64, end: u64) -> Extent {
    Extent {
        range: ByteRange::new(at, end - at),
        hole: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Two rows: data that may have holes, from 1 MiB on, and then some that
    /// stand with the header and may not.
    fn two_places(holes: bool) -> Allocation {
        Allocation {
            places: vec![
                Place {
                    storage: Storage::Data,
                    data: ByteRange::new(MIB, 2 * MIB),
                    holes,
                },
                Place {
                    storage: Storage::Header,
                    data: ByteRange::new(0, MIB),
                    holes: false,
                },
            ],
        }
    }

    /// Below, every second 64 KiB are a hole, the first of them too.
    fn striped(storage: Storage, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        assert_eq!(storage, Storage::Data);
        let mut extents = Vec::new();
        let (mut at, end) = (range.offset, range.offset + range.length);
        while at < end {
            let next = end.min((at / 65_536 + 1) * 65_536);
            let extent = Extent {
                range: ByteRange::new(at, next - at),
                hole: at / 65_536 % 2 == 0,
            };
            extent.append_to(&mut extents);
            at = next;
        }
        Ok(extents)
    }

    #[test]
    fn holes_below_are_holes_at_their_plaintext() {
        let allocation = two_places(true);
        for (offset, length, expected) in [
            (0, 65_536, vec![(0, 65_536, true)]),
            (
                1000,
                131_072,
                vec![
                    (1000, 64_536, true),
                    (65_536, 65_536, false),
                    (131_072, 1000, true),
                ],
            ),
            // Across the rows: the last stripe of the first is stored.
            (
                2 * MIB - 131_072,
                262_144,
                vec![
                    (2 * MIB - 131_072, 65_536, true),
                    (2 * MIB - 65_536, 196_608, false),
                ],
            ),
            (2 * MIB, MIB, vec![(2 * MIB, MIB, false)]),
            (512, 0, vec![]),
        ] {
            let range = ByteRange::new(offset, length);
            let found: Vec<(u64, u64, bool)> = allocation
                .extents(range, striped)
                .unwrap()
                .iter()
                .map(|extent| (extent.range.offset, extent.range.length, extent.hole))
                .collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn where_holes_are_noise_all_is_stored() {
        let asked = |_, _| panic!("nobody needs to know");
        let range = ByteRange::new(0, 3 * MIB);
        for allocation in [two_places(false), Allocation { places: Vec::new() }] {
            let extents = allocation.extents(range, asked).unwrap();
            assert_eq!(extents, [Extent { range, hole: false }]);
        }
    }
}
