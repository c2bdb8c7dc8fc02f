//! Looks for foreign data on a device, outside the ranges that are a volume's own.

use crate::{VolumeError, unaligned};
use block::signature;
use block::{BlockDevice, BlockError, ByteRange, Geometry, InlineQueue, Queue, QueueOptions};

/// Bytes that are read at a time, if some of them may be unreadable.
const UNIT: u64 = 4096;

/// The name of the data in `area` of `device`, if they have one. Ranges that are `hidden` or cannot
/// be read don't count.
///
/// # Errors
/// Those of reading that concern the whole device.
pub(crate) fn stranger(
    device: &dyn BlockDevice,
    area: ByteRange,
    hidden: Vec<ByteRange>,
) -> Result<Option<String>, VolumeError> {
    let geometry = device.geometry();
    let end = (area.offset + area.length).min(geometry.size);
    let start = area.offset / UNIT * UNIT;
    let rest = Rest {
        device,
        hidden,
        start,
        geometry: Geometry {
            size: end.saturating_sub(start) / UNIT * UNIT,
            ..geometry
        },
    };
    let found = signature::names(&rest)?;
    Ok(found.first().map(|found| found.name.to_owned()))
}

/// The bytes of `range`, as far as the device has them, with zeros for those that cannot be read.
///
/// # Errors
/// Those of reading that concern the whole device.
pub(crate) fn read_what_can_be(
    device: &dyn BlockDevice,
    range: ByteRange,
) -> Result<Vec<u8>, VolumeError> {
    match unaligned::read_up_to(device, range.offset, range.length) {
        Err(error) if error.is_of_place() => {}
        bytes => return Ok(bytes?.to_vec()),
    }
    let mut bytes = Vec::new();
    for done in (0..range.length).step_by(UNIT as usize) {
        let length = UNIT.min(range.length - done);
        match unaligned::read_up_to(device, range.offset + done, length) {
            Err(error) if error.is_of_place() => bytes.resize(bytes.len() + length as usize, 0),
            part => bytes.extend_from_slice(&part?),
        }
    }
    Ok(bytes)
}

/// A part of a device without what is hidden of it, and without what cannot be
/// read: zeros are there. It is for reading only.
struct Rest<'a> {
    device: &'a dyn BlockDevice,
    /// Ranges of the device below.
    hidden: Vec<ByteRange>,
    start: u64,
    geometry: Geometry,
}

impl Rest<'_> {
    fn read_below(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        match self.device.read_at(offset, into) {
            Err(error) if error.is_of_place() => {}
            read => return read,
        }
        for (part, at) in into.chunks_mut(UNIT as usize).zip(0..) {
            match self.device.read_at(offset + at * UNIT, part) {
                Err(error) if error.is_of_place() => part.fill(0),
                read => read?,
            }
        }
        Ok(())
    }
}

impl BlockDevice for Rest<'_> {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.geometry.check(offset, into.len() as u64)?;
        let offset = self.start + offset;
        self.read_below(offset, into)?;
        let end = offset + into.len() as u64;
        for hidden in &self.hidden {
            let from = hidden.offset.max(offset);
            let to = hidden.offset.saturating_add(hidden.length).min(end);
            if from < to {
                into[(from - offset) as usize..(to - offset) as usize].fill(0);
            }
        }
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<(), BlockError> {
        Err(BlockError::ReadOnly)
    }

    fn flush(&self) -> Result<(), BlockError> {
        Ok(())
    }

    fn discard(&self, _: ByteRange) -> Result<(), BlockError> {
        Err(BlockError::ReadOnly)
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(self, options, None)?))
    }
}
