//! [`Guarded`]: a device of which a guard may refuse what is asked.

use crate::{
    BlockDevice, BlockError, ByteRange, Completion, Geometry, OperationKind, Queue, QueueOptions,
    Request, Wait,
};
use std::collections::VecDeque;

/// Looks at every request before it is made.
pub trait Guard: Send + Sync {
    /// Refuses a request for `range`, which is within the device; a flush has an empty one.
    ///
    /// # Errors
    /// Why it is refused.
    fn check(&self, operation: OperationKind, range: ByteRange) -> Result<(), BlockError>;

    /// Hears that such a request, which it let pass, has ended.
    fn ended(&self, operation: OperationKind) {
        let _ = operation;
    }
}

/// A device, and the guard that its requests pass. Only what would change something is looked at:
/// reads pass.
#[derive(Debug)]
pub struct Guarded<D, G> {
    device: D,
    guard: G,
}

impl<D: BlockDevice, G: Guard> Guarded<D, G> {
    /// `device` as far as `guard` allows.
    pub fn by(device: D, guard: G) -> Self {
        Self { device, guard }
    }

    /// The guard.
    pub fn guard(&self) -> &G {
        &self.guard
    }

    fn check(&self, operation: OperationKind, range: ByteRange) -> Result<(), BlockError> {
        match operation {
            OperationKind::Read => Ok(()),
            _ => self.guard.check(operation, range),
        }
    }

    fn ended(&self, operation: OperationKind) {
        if operation != OperationKind::Read {
            self.guard.ended(operation);
        }
    }
}

impl<D: BlockDevice, G: Guard> BlockDevice for Guarded<D, G> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.device.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        let range = self.geometry().check(offset, data.len() as u64)?;
        self.check(OperationKind::Write, range)?;
        let done = self.device.write_at(offset, data);
        self.ended(OperationKind::Write);
        done
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.check(OperationKind::Flush, ByteRange::new(0, 0))?;
        let done = self.device.flush();
        self.ended(OperationKind::Flush);
        done
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        let range = self.geometry().check(range.offset, range.length)?;
        self.check(OperationKind::Discard, range)?;
        let done = self.device.discard(range);
        self.ended(OperationKind::Discard);
        done
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(GuardedQueue {
            depth: options.checked_depth()?,
            below: self.device.queue(options)?,
            device: self,
            geometry: self.geometry(),
            refused: VecDeque::new(),
        }))
    }
}

struct GuardedQueue<'a, D, G> {
    below: Box<dyn Queue + 'a>,
    device: &'a Guarded<D, G>,
    geometry: Geometry,
    depth: u32,
    refused: VecDeque<Completion>,
}

impl<D: BlockDevice, G: Guard> Queue for GuardedQueue<'_, D, G> {
    fn submit(&mut self, request: Request) {
        let checked = if self.in_flight() >= self.depth {
            Err(BlockError::QueueFull { depth: self.depth })
        } else {
            self.geometry
                .check_request(&request)
                .and_then(|range| self.device.check(request.operation.kind(), range))
        };
        match checked {
            Ok(()) => self.below.submit(request),
            Err(error) => self.refused.push_back(Completion {
                request,
                result: Err(error),
            }),
        }
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        if let Some(refused) = self.refused.pop_front() {
            return Some(refused);
        }
        let done = self.below.reap(wait)?;
        self.device.ended(done.request.operation.kind());
        Some(done)
    }

    fn in_flight(&self) -> u32 {
        self.below.in_flight() + self.refused.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AlignedBuffer, Operation, RamDevice};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Lets everything pass in the first half of the device, and counts what has not ended.
    #[derive(Default)]
    struct Counting(AtomicU32);

    impl Guard for Counting {
        fn check(&self, operation: OperationKind, range: ByteRange) -> Result<(), BlockError> {
            if range.offset >= 4096 {
                return Err(BlockError::Changed { operation });
            }
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn ended(&self, _: OperationKind) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_passes_ends_once() {
        let device = Guarded::by(RamDevice::new(8192), Counting::default());
        let left = || device.guard().0.load(Ordering::Relaxed);
        device.write_at(0, &[1; 512]).unwrap();
        device.write_at(4096, &[1; 512]).unwrap_err();
        device.discard(ByteRange::new(0, 512)).unwrap();
        device.flush().unwrap();
        assert_eq!(left(), 0);
        let discard = Operation::Discard { length: 512 };
        let mut queue = device.queue(QueueOptions::new(8)).unwrap();
        for operation in [Operation::Read, Operation::Write, Operation::Flush, discard] {
            for offset in [0, 4096] {
                let offset = if operation == Operation::Flush {
                    0
                } else {
                    offset
                };
                queue.submit(Request::new(operation, offset, AlignedBuffer::new(512), 0));
            }
        }
        assert!(left() > 0);
        while queue.reap(Wait::Yes).is_some() {}
        drop(queue);
        assert_eq!(left(), 0);
    }
}
