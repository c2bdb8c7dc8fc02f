//! [`Draft`]: what is going to be written, in memory until all of it is known.

use crate::VolumeError;
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Geometry, InlineQueue, OperationKind, Queue,
    QueueOptions,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A device that accepts writes without making them. A new header is made on it first, so that any
/// obstacle to that header is found before the old one is gone.
///
/// Headers are small, so all changes are in memory. Blocks that were never written are read from
/// the device below.
pub struct Draft<'a> {
    device: &'a dyn BlockDevice,
    changes: Mutex<Changes>,
}

#[derive(Default)]
struct Changes {
    /// The requests, in the order in which they came.
    steps: Vec<Step>,
    /// Logical blocks as they would be, by number.
    blocks: BTreeMap<u64, Box<[u8]>>,
}

enum Step {
    Write(u64, Box<[u8]>),
    Flush,
}

impl<'a> Draft<'a> {
    /// A draft of the future content of `device`.
    pub fn new(device: &'a dyn BlockDevice) -> Self {
        Self {
            device,
            changes: Mutex::default(),
        }
    }

    /// Writes the changes to the device, in the same order and with the same flushes, and reads
    /// them back.
    ///
    /// # Errors
    /// Those of writing, and [`VolumeError::Unverified`].
    pub fn write(self) -> Result<(), VolumeError> {
        let steps = std::mem::take(&mut self.changes().steps);
        let mut written = Vec::new();
        for step in &steps {
            match step {
                Step::Write(offset, bytes) => {
                    self.device.write_at(*offset, bytes)?;
                    written.push(ByteRange::new(*offset, bytes.len() as u64));
                }
                Step::Flush => self.device.flush()?,
            }
        }
        self.device.flush()?;
        for ByteRange { offset, length } in written {
            let mut there = AlignedBuffer::new(length as usize);
            self.device.read_at(offset, &mut there)?;
            // A block that was written twice has the second content.
            let mut wanted = AlignedBuffer::new(length as usize);
            self.read_at(offset, &mut wanted)?;
            if there[..] != wanted[..] {
                return Err(VolumeError::Unverified { offset, length });
            }
        }
        Ok(())
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn block(&self) -> usize {
        self.device.geometry().logical_block as usize
    }

    fn read_below(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        match into.is_empty() {
            true => Ok(()),
            false => self.device.read_at(offset, into),
        }
    }
}

impl BlockDevice for Draft<'_> {
    fn geometry(&self) -> Geometry {
        Geometry {
            discard_granularity: None,
            discard_zeroes: false,
            ..self.device.geometry()
        }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.geometry().check(offset, into.len() as u64)?;
        let block = self.block();
        let changes = self.changes();
        let first = offset / block as u64;
        // Only what was not written here is asked for: the device may be unable to read the rest.
        let mut unread = 0;
        for index in 0..into.len() / block {
            let at = index * block;
            if let Some(bytes) = changes.blocks.get(&(first + index as u64)) {
                self.read_below(offset + unread as u64, &mut into[unread..at])?;
                unread = at + block;
                into[at..unread].copy_from_slice(bytes);
            }
        }
        self.read_below(offset + unread as u64, &mut into[unread..])
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.geometry().check(offset, data.len() as u64)?;
        let block = self.block();
        let mut changes = self.changes();
        changes.steps.push(Step::Write(offset, data.into()));
        let numbers = offset / block as u64..;
        let blocks = numbers.zip(data.chunks(block));
        changes
            .blocks
            .extend(blocks.map(|(number, bytes)| (number, Box::from(bytes))));
        Ok(())
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.changes().steps.push(Step::Flush);
        Ok(())
    }

    fn discard(&self, _: ByteRange) -> Result<(), BlockError> {
        Err(BlockError::Unsupported {
            operation: OperationKind::Discard,
        })
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(self, options, None)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::RamDevice;
    use block::layer::Count;

    fn blocks(device: &dyn BlockDevice) -> Vec<u8> {
        let mut all = vec![0; 4096];
        device.read_at(0, &mut all).unwrap();
        all.chunks(512).map(|block| block[0]).collect()
    }

    #[test]
    fn nothing_is_written_before_all_is() {
        let ram = RamDevice::new(4096);
        ram.write_at(0, &[9; 4096]).unwrap();
        let device = Count::new(&ram);
        let draft = Draft::new(&device);
        draft.write_at(512, &[1; 1024]).unwrap();
        draft.flush().unwrap();
        draft.write_at(1024, &[2; 512]).unwrap();
        draft.write_at(3584, &[3; 512]).unwrap();
        assert!(draft.write_at(4096, &[4; 512]).is_err());
        assert_eq!(blocks(&draft), [9, 1, 2, 9, 9, 9, 9, 3]);
        assert_eq!(blocks(&ram), [9; 8]);
        draft.write().unwrap();
        assert_eq!(blocks(&ram), [9, 1, 2, 9, 9, 9, 9, 3]);
        assert_eq!(device.of(OperationKind::Write).operations, 3);
        assert_eq!(device.of(OperationKind::Flush).operations, 2);
    }

    /// A block that the disk cannot read need not be read if it is overwritten as a whole.
    #[test]
    fn what_is_written_is_not_read_from_the_device() {
        let ram = RamDevice::new(4096);
        let device = Count::new(&ram);
        let draft = Draft::new(&device);
        draft.write_at(0, &[1; 4096]).unwrap();
        assert_eq!(blocks(&draft), [1; 8]);
        assert_eq!(device.of(OperationKind::Read).operations, 0);
    }
}
