//! [`Protected`]: a device with a write-protected range.

use super::guarded::{Guard, Guarded};
use crate::{BlockDevice, BlockError, ByteRange, OperationKind};
use std::sync::atomic::{AtomicBool, Ordering};

/// A device that refuses writes and discards of a range: VeraCrypt's protection of a
/// hidden volume while the outer one is written.
pub type Protected<D> = Guarded<D, Protection>;

/// The range of a [`Protected`] device.
///
/// From the first refusal on, all writes and discards are refused, because who
/// sent it lives in a state that the device does not have. Reads and flushes
/// pass.
#[derive(Debug)]
pub struct Protection {
    range: ByteRange,
    refused: AtomicBool,
}

impl<D: BlockDevice> Guarded<D, Protection> {
    /// Keeps `range` of `device` as it is.
    pub fn new(device: D, range: ByteRange) -> Self {
        let refused = AtomicBool::new(false);
        Self::by(device, Protection { range, refused })
    }

    /// Whether something was refused, and the device is for reading only since.
    pub fn has_refused(&self) -> bool {
        self.guard().refused.load(Ordering::Relaxed)
    }
}

impl Guard for Protection {
    fn check(&self, operation: OperationKind, range: ByteRange) -> Result<(), BlockError> {
        let changes = matches!(operation, OperationKind::Write | OperationKind::Discard);
        if !changes || range.length == 0 {
            return Ok(());
        }
        if range.overlaps(self.range) {
            self.refused.store(true, Ordering::Relaxed);
        }
        match self.refused.load(Ordering::Relaxed) {
            true => Err(BlockError::Protected {
                operation,
                offset: range.offset,
                length: range.length,
            }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Discarded, Model};
    use crate::{AlignedBuffer, Operation, QueueOptions, RamDevice, Request, Wait};

    const RANGE: ByteRange = ByteRange::new(4096, 4096);

    fn all(device: &RamDevice) -> Vec<u8> {
        let mut bytes = vec![0; device.geometry().size as usize];
        device.read_at(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn is_any_device_where_nothing_is_protected() {
        let device = Protected::new(RamDevice::new(1 << 17), ByteRange::new(4096, 0));
        Model {
            discarded: Discarded::Zeros,
            ..Model::new(5)
        }
        .run(&device);
        assert!(!device.has_refused());
    }

    #[test]
    fn writes_up_to_the_range_pass() {
        let ram = RamDevice::new(16_384);
        let device = Protected::new(&ram, RANGE);
        device.write_at(0, &[1; 4096]).unwrap();
        device.write_at(8192, &[2; 4096]).unwrap();
        device.write_at(4096, &[]).unwrap();
        device.discard(ByteRange::new(3584, 512)).unwrap();
        device.flush().unwrap();
        assert!(!device.has_refused());
        assert_eq!(all(&ram)[3584..8193], [&[0; 4608][..], &[2]].concat());
    }

    #[test]
    fn after_a_refusal_nothing_is_written_any_more() {
        for (offset, length) in [(4096, 512), (7680, 512), (3584, 1024), (0, 16_384)] {
            let ram = RamDevice::new(16_384);
            let device = Protected::new(&ram, RANGE);
            let refused = device.write_at(offset, &vec![1; length]).unwrap_err();
            assert!(matches!(refused, BlockError::Protected { .. }), "{refused}");
            assert!(device.has_refused());
            assert!(device.write_at(0, &[1; 512]).is_err());
            assert!(device.discard(ByteRange::new(12_288, 512)).is_err());
            assert!(device.read_at(4096, &mut [0; 512]).is_ok());
            assert!(device.flush().is_ok());
            assert_eq!(all(&ram), vec![0; 16_384]);
        }
    }

    #[test]
    fn queued_requests_are_refused_alike() {
        let ram = RamDevice::new(16_384);
        let device = Protected::new(&ram, RANGE);
        let mut queue = device.queue(QueueOptions::new(4)).unwrap();
        let buffer = || {
            let mut buffer = AlignedBuffer::new(512);
            buffer.fill(9);
            buffer
        };
        for (tag, offset) in [(0, 0), (1, 4096), (2, 512), (3, 1024)] {
            queue.submit(Request::new(Operation::Write, offset, buffer(), tag));
        }
        let mut written = Vec::new();
        while let Some(completion) = queue.reap(Wait::Yes) {
            match completion.result {
                Ok(()) => written.push(completion.request.tag),
                Err(error) => assert_eq!(error.errno(), 30),
            }
        }
        assert_eq!(written, [0]);
        assert!(all(&ram)[512..].iter().all(|&byte| byte == 0));
    }
}
