//! [`WriteCache`]: a device that forgets what was not flushed.

use crate::{BlockDevice, BlockError, ByteRange, Geometry, InlineQueue, Queue, QueueOptions};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps writes in memory until a flush, as a disk's volatile cache does, and
/// can lose them: a power cut for tests.
///
/// A flush writes everything below and flushes the device there. Discards go
/// down at once and drop what the cache held of the range. Dropping the layer
/// drops what was not flushed. Its queue carries requests out inside `submit`.
#[derive(Debug)]
pub struct WriteCache<D> {
    device: D,
    /// Logical blocks by number.
    unflushed: Mutex<BTreeMap<u64, Box<[u8]>>>,
}

impl<D: BlockDevice> WriteCache<D> {
    /// An empty cache.
    pub fn new(device: D) -> Self {
        Self {
            device,
            unflushed: Mutex::default(),
        }
    }

    /// Cuts the power: of the blocks not flushed, those that `survives` says
    /// (asked by byte offset, in ascending order) reach the device below, the
    /// others are lost. Real disks keep any subset.
    ///
    /// Returns how many blocks were lost.
    pub fn power_cut(&self, mut survives: impl FnMut(u64) -> bool) -> Result<usize, BlockError> {
        let block = self.block();
        let mut lost = 0;
        for (number, data) in std::mem::take(&mut *self.lock()) {
            if survives(number * block) {
                self.device.write_at(number * block, &data)?;
            } else {
                lost += 1;
            }
        }
        Ok(lost)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Box<[u8]>>> {
        self.unflushed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn block(&self) -> u64 {
        u64::from(self.device.geometry().logical_block)
    }
}

impl<D: BlockDevice> BlockDevice for WriteCache<D> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let range = self.geometry().check(offset, into.len() as u64)?;
        let block = self.block();
        let unflushed = self.lock();
        self.device.read_at(offset, into)?;
        let (first, end) = (offset / block, (offset + range.length) / block);
        for (number, data) in unflushed.range(first..end) {
            let at = ((number - first) * block) as usize;
            into[at..at + data.len()].copy_from_slice(data);
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.geometry().check(offset, data.len() as u64)?;
        let block = self.block();
        let mut unflushed = self.lock();
        for (index, data) in data.chunks(block as usize).enumerate() {
            unflushed.insert(offset / block + index as u64, data.into());
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), BlockError> {
        let block = self.block();
        let mut unflushed = self.lock();
        while let Some((&number, data)) = unflushed.first_key_value() {
            self.device.write_at(number * block, data)?;
            unflushed.pop_first();
        }
        self.device.flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        let range = self.geometry().check(range.offset, range.length)?;
        let block = self.block();
        let mut unflushed = self.lock();
        self.device.discard(range)?;
        let (first, end) = (range.offset / block, (range.offset + range.length) / block);
        unflushed.retain(|number, _| !(first..end).contains(number));
        Ok(())
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(self, options, None)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RamDevice;

    fn blocks(device: &impl BlockDevice) -> Vec<u8> {
        let mut all = vec![0; 2048];
        device.read_at(0, &mut all).unwrap();
        all.chunks(512).map(|block| block[0]).collect()
    }

    #[test]
    fn a_power_cut_loses_what_was_not_flushed() {
        let ram = RamDevice::new(2048);
        let cache = WriteCache::new(&ram);
        cache.write_at(0, &[1; 1024]).unwrap();
        cache.flush().unwrap();
        cache.write_at(512, &[2; 1536]).unwrap();
        assert_eq!(blocks(&cache), [1, 2, 2, 2]);
        assert_eq!(blocks(&ram), [1, 1, 0, 0]);
        let lost = cache.power_cut(|offset| offset == 1024).unwrap();
        assert_eq!(lost, 2);
        assert_eq!(blocks(&cache), [1, 1, 2, 0]);
    }

    #[test]
    fn a_discard_is_not_undone_by_a_later_flush() {
        let cache = WriteCache::new(RamDevice::new(2048));
        cache.write_at(0, &[3; 2048]).unwrap();
        cache.discard(ByteRange::new(512, 1024)).unwrap();
        cache.flush().unwrap();
        assert_eq!(blocks(&cache), [3, 0, 0, 3]);
    }

    #[test]
    fn refuses_what_the_device_below_would_refuse() {
        let cache = WriteCache::new(RamDevice::new(2048));
        assert!(cache.write_at(2048, &[0; 512]).is_err());
        assert!(cache.write_at(1, &[0; 512]).is_err());
        assert!(cache.write_at(0, &[0; 100]).is_err());
    }
}
