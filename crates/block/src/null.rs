//! [`NullDevice`]: costs nothing, keeps nothing.

use crate::{BlockDevice, BlockError, ByteRange, Geometry, InlineQueue, Queue, QueueOptions};

/// A device of any size where writes vanish and reads leave the buffer as it was: the cost that
/// remains is that of the layers above it.
///
/// Its queue reads no clock, so `timeline.device` stays 0.
#[derive(Clone, Debug)]
pub struct NullDevice {
    geometry: Geometry,
}

impl NullDevice {
    /// A device of `size` bytes, rounded down to 512, with 512-byte blocks.
    pub fn new(size: u64) -> Self {
        Self {
            geometry: Geometry {
                size: size & !511,
                logical_block: 512,
                physical_block: 512,
                discard_granularity: Some(512),
                discard_zeroes: false,
            },
        }
    }
}

impl BlockDevice for NullDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    #[inline]
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.geometry.check(offset, into.len() as u64).map(drop)
    }

    #[inline]
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.geometry.check(offset, data.len() as u64).map(drop)
    }

    fn flush(&self) -> Result<(), BlockError> {
        Ok(())
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.geometry.check(range.offset, range.length).map(drop)
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(self, options, None)?))
    }
}
