//! [`ByteRange`] and the one check that every request passes at the door.

use crate::{BlockError, Geometry, Operation, Request};

/// A run of bytes of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteRange {
    /// First byte.
    pub offset: u64,
    /// Bytes; may be 0.
    pub length: u64,
}

impl ByteRange {
    /// `length` bytes from `offset`.
    pub const fn new(offset: u64, length: u64) -> Self {
        Self { offset, length }
    }

    /// The first byte after the range; `None` beyond 2⁶⁴ − 1.
    pub const fn end(self) -> Option<u64> {
        self.offset.checked_add(self.length)
    }

    /// Whether the byte at `offset` belongs to the range.
    pub const fn contains(self, offset: u64) -> bool {
        offset >= self.offset && offset - self.offset < self.length
    }

    /// Whether all of the range lies inside `outer`.
    pub fn within(self, outer: Self) -> bool {
        match (self.end(), outer.end()) {
            (Some(end), Some(outer_end)) => self.offset >= outer.offset && end <= outer_end,
            _ => false,
        }
    }

    /// Whether the two share a byte.
    pub fn overlaps(self, other: Self) -> bool {
        self.length > 0
            && other.length > 0
            && (self.contains(other.offset) || other.contains(self.offset))
    }
}

impl Geometry {
    /// Turns an offset and a length into a range that is aligned to
    /// `logical_block` and inside the device.
    ///
    /// Every device calls this once and trusts the range afterwards. A length
    /// of 0 is allowed anywhere up to the end. Errors are
    /// [`BlockError::Misaligned`] and [`BlockError::OutOfRange`].
    #[inline]
    pub fn check(&self, offset: u64, length: u64) -> Result<ByteRange, BlockError> {
        let mask = u64::from(self.logical_block) - 1;
        if (offset | length) & mask != 0 {
            return Err(BlockError::Misaligned {
                offset,
                length,
                logical_block: self.logical_block,
            });
        }
        match offset.checked_add(length) {
            Some(end) if end <= self.size => Ok(ByteRange { offset, length }),
            _ => Err(BlockError::OutOfRange {
                offset,
                length,
                size: self.size,
            }),
        }
    }

    /// [`check`](Self::check) for a queued request; a flush always passes and
    /// a discard needs a device that can.
    #[inline]
    pub fn check_request(&self, request: &Request) -> Result<ByteRange, BlockError> {
        match request.operation {
            Operation::Flush => Ok(ByteRange::new(0, 0)),
            Operation::Discard { .. } if self.discard_granularity.is_none() => {
                Err(BlockError::Unsupported {
                    operation: request.operation.kind(),
                })
            }
            _ => self.check(request.offset, request.length()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        size: 8192,
        logical_block: 512,
        physical_block: 4096,
        discard_granularity: None,
        discard_zeroes: false,
    };

    #[test]
    fn accepts_every_block_up_to_the_end() {
        for (offset, length) in [(0, 0), (0, 8192), (7680, 512), (8192, 0), (512, 1024)] {
            assert_eq!(
                GEOMETRY.check(offset, length).unwrap(),
                ByteRange::new(offset, length)
            );
        }
    }

    #[test]
    fn refuses_what_is_misaligned_or_beyond() {
        for (offset, length) in [(1, 512), (0, 511), (511, 513), (8191, 1)] {
            assert!(matches!(
                GEOMETRY.check(offset, length),
                Err(BlockError::Misaligned { .. })
            ));
        }
        for (offset, length) in [
            (8192, 512),
            (0, 8704),
            (8704, 0),
            (u64::MAX - 511, 512),
            (512, u64::MAX - 511),
        ] {
            assert!(matches!(
                GEOMETRY.check(offset, length),
                Err(BlockError::OutOfRange { .. })
            ));
        }
    }

    #[test]
    fn ranges_know_their_bounds() {
        let range = ByteRange::new(10, 5);
        assert!(range.contains(10) && range.contains(14));
        assert!(!range.contains(9) && !range.contains(15));
        assert!(range.within(ByteRange::new(10, 5)));
        assert!(!range.within(ByteRange::new(11, 5)));
        assert!(!ByteRange::new(u64::MAX, 2).within(ByteRange::new(0, u64::MAX)));
        assert!(range.overlaps(ByteRange::new(14, 1)) && range.overlaps(ByteRange::new(0, 11)));
        assert!(!range.overlaps(ByteRange::new(15, 1)) && !range.overlaps(ByteRange::new(12, 0)));
    }
}
