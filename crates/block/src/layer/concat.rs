//! [`Concat`]: several devices, one behind the other, as one.

use crate::{
    BlockDevice, BlockError, ByteRange, Extent, Geometry, InlineQueue, Queue, QueueOptions,
};

/// Devices one behind the other.
///
/// Blocks are as large as the largest of any part; discards work where all
/// parts can. Its queue carries requests out inside `submit`.
pub struct Concat<D> {
    /// Every part, and its first byte here.
    parts: Vec<(u64, D)>,
    geometry: Geometry,
}

impl<D: BlockDevice> Concat<D> {
    /// `parts` in their order.
    ///
    /// # Errors
    /// [`BlockError::Misaligned`] where a part is not made of whole blocks of
    /// another one.
    pub fn new(parts: Vec<D>) -> Result<Self, BlockError> {
        let geometries = || parts.iter().map(BlockDevice::geometry);
        let logical_block = geometries().map(|g| g.logical_block).max().unwrap_or(512);
        let mut size = 0;
        let mut placed = Vec::with_capacity(parts.len());
        let geometry = Geometry {
            size: 0,
            logical_block,
            physical_block: geometries()
                .map(|g| g.physical_block)
                .max()
                .unwrap_or(logical_block),
            discard_granularity: geometries()
                .map(|g| g.discard_granularity)
                .try_fold(logical_block, |most, granularity| {
                    Some(most.max(granularity?))
                }),
            discard_zeroes: geometries().all(|g| g.discard_zeroes),
        };
        for part in parts {
            let length = part.geometry().size;
            if !length.is_multiple_of(u64::from(logical_block)) {
                return Err(BlockError::Misaligned {
                    offset: size,
                    length,
                    logical_block,
                });
            }
            placed.push((size, part));
            size += length;
        }
        Ok(Self {
            parts: placed,
            geometry: Geometry { size, ..geometry },
        })
    }

    /// Calls `work` with each part that `range` touches, the range inside the
    /// part, and how far inside `range` that begins.
    fn each(
        &self,
        range: ByteRange,
        mut work: impl FnMut(&D, ByteRange, usize) -> Result<(), BlockError>,
    ) -> Result<(), BlockError> {
        let end = range.offset + range.length;
        for (start, part) in &self.parts {
            let from = range.offset.max(*start);
            let to = end.min(start + part.geometry().size);
            if from < to {
                let inside = ByteRange::new(from - start, to - from);
                work(part, inside, (from - range.offset) as usize)?;
            }
        }
        Ok(())
    }
}

impl<D: BlockDevice> BlockDevice for Concat<D> {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let range = self.geometry.check(offset, into.len() as u64)?;
        self.each(range, |part, inside, at| {
            part.read_at(inside.offset, &mut into[at..][..inside.length as usize])
        })
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        let range = self.geometry.check(offset, data.len() as u64)?;
        self.each(range, |part, inside, at| {
            part.write_at(inside.offset, &data[at..][..inside.length as usize])
        })
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.parts.iter().try_for_each(|(_, part)| part.flush())
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        let range = self.geometry.check(range.offset, range.length)?;
        self.each(range, |part, inside, _| part.discard(inside))
    }

    fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        let mut found = Vec::new();
        self.each(range, |part, inside, at| {
            for mut extent in part.extents(inside)? {
                extent.range.offset += range.offset + at as u64 - inside.offset;
                found.push(extent);
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn reserve(&self, range: ByteRange) -> Result<(), BlockError> {
        self.each(range, |part, inside, _| part.reserve(inside))
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(self, options, None)?))
    }
}
