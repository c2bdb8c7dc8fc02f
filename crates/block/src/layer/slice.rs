//! [`Slice`]: a part of a device as a device.

use crate::{
    BlockDevice, BlockError, ByteRange, Completion, Extent, Geometry, Queue, QueueOptions, Request,
    Wait,
};
use std::collections::VecDeque;

/// A byte range of another device.
///
/// Failures of the device below carry its offsets, not the slice's.
#[derive(Debug)]
pub struct Slice<D> {
    device: D,
    start: u64,
    geometry: Geometry,
}

impl<D: BlockDevice> Slice<D> {
    /// The bytes of `range`, which must be aligned to the device's logical
    /// block and inside it; anything else is refused as a request would be.
    pub fn new(device: D, range: ByteRange) -> Result<Self, BlockError> {
        let whole = device.geometry();
        let range = whole.check(range.offset, range.length)?;
        Ok(Self {
            geometry: Geometry {
                size: range.length,
                ..whole
            },
            start: range.offset,
            device,
        })
    }
}

impl<D: BlockDevice> BlockDevice for Slice<D> {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.geometry.check(offset, into.len() as u64)?;
        self.device.read_at(self.start + offset, into)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.geometry.check(offset, data.len() as u64)?;
        self.device.write_at(self.start + offset, data)
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.device.flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        let range = self.geometry.check(range.offset, range.length)?;
        self.device
            .discard(ByteRange::new(self.start + range.offset, range.length))
    }

    fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        let there = ByteRange::new(self.start + range.offset, range.length);
        let mut found = self.device.extents(there)?;
        for extent in &mut found {
            extent.range.offset -= self.start;
        }
        Ok(found)
    }

    fn reserve(&self, range: ByteRange) -> Result<(), BlockError> {
        self.device
            .reserve(ByteRange::new(self.start + range.offset, range.length))
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(SliceQueue {
            depth: options.checked_depth()?,
            below: self.device.queue(options)?,
            geometry: self.geometry,
            start: self.start,
            refused: VecDeque::new(),
        }))
    }
}

struct SliceQueue<'a> {
    below: Box<dyn Queue + 'a>,
    geometry: Geometry,
    start: u64,
    depth: u32,
    refused: VecDeque<Completion>,
}

impl Queue for SliceQueue<'_> {
    fn submit(&mut self, mut request: Request) {
        let checked = if self.in_flight() >= self.depth {
            Err(BlockError::QueueFull { depth: self.depth })
        } else {
            self.geometry.check_request(&request)
        };
        match checked {
            Ok(_) => {
                // Wraps only for a flush, whose offset is never read; `reap` wraps it back.
                request.offset = request.offset.wrapping_add(self.start);
                self.below.submit(request);
            }
            Err(error) => self.refused.push_back(Completion {
                request,
                result: Err(error),
            }),
        }
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        if let Some(completion) = self.refused.pop_front() {
            return Some(completion);
        }
        let mut completion = self.below.reap(wait)?;
        let offset = &mut completion.request.offset;
        *offset = offset.wrapping_sub(self.start);
        Some(completion)
    }

    fn in_flight(&self) -> u32 {
        self.below.in_flight() + self.refused.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RamDevice;

    #[test]
    fn refuses_ranges_that_are_misaligned_or_outside() {
        for (offset, length) in [(1, 512), (512, 100)] {
            assert!(matches!(
                Slice::new(RamDevice::new(4096), ByteRange::new(offset, length)),
                Err(BlockError::Misaligned { .. })
            ));
        }
        assert!(matches!(
            Slice::new(RamDevice::new(4096), ByteRange::new(512, 4096)),
            Err(BlockError::OutOfRange { .. })
        ));
    }

    #[test]
    fn touches_nothing_outside_its_range() {
        let ram = RamDevice::new(4096);
        let slice = Slice::new(&ram, ByteRange::new(1024, 1024)).unwrap();
        slice.write_at(0, &[7; 1024]).unwrap();
        assert!(slice.write_at(512, &[7; 1024]).is_err());
        let mut all = [0; 4096];
        ram.read_at(0, &mut all).unwrap();
        assert!(
            all[..1024]
                .iter()
                .chain(&all[2048..])
                .all(|&byte| byte == 0)
        );
        assert!(all[1024..2048].iter().all(|&byte| byte == 7));
    }
}
