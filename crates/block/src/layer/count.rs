//! [`Count`]: a device that counts what it did.

use crate::{
    BlockDevice, BlockError, ByteRange, Completion, Geometry, OperationKind, Queue, QueueOptions,
    Request, Wait,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// Finished operations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Operations that succeeded.
    pub operations: u64,
    /// Their bytes; 0 for flushes.
    pub bytes: u64,
    /// Operations that failed.
    pub failures: u64,
}

/// Counts operations and bytes by kind, from any number of threads. Queued
/// requests count when they are reaped.
#[derive(Debug)]
pub struct Count<D> {
    device: D,
    counters: [Counters; 4],
}

#[derive(Debug, Default)]
struct Counters {
    operations: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
}

impl<D: BlockDevice> Count<D> {
    /// All counters at 0.
    pub fn new(device: D) -> Self {
        Self {
            device,
            counters: Default::default(),
        }
    }

    /// The operations of one kind so far.
    pub fn of(&self, kind: OperationKind) -> Counted {
        let counters = &self.counters[kind as usize];
        Counted {
            operations: counters.operations.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            failures: counters.failures.load(Ordering::Relaxed),
        }
    }

    fn count(&self, kind: OperationKind, bytes: u64, succeeded: bool) {
        let counters = &self.counters[kind as usize];
        if succeeded {
            counters.operations.fetch_add(1, Ordering::Relaxed);
            counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        } else {
            counters.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<D: BlockDevice> BlockDevice for Count<D> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let result = self.device.read_at(offset, into);
        self.count(OperationKind::Read, into.len() as u64, result.is_ok());
        result
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        let result = self.device.write_at(offset, data);
        self.count(OperationKind::Write, data.len() as u64, result.is_ok());
        result
    }

    fn flush(&self) -> Result<(), BlockError> {
        let result = self.device.flush();
        self.count(OperationKind::Flush, 0, result.is_ok());
        result
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        let result = self.device.discard(range);
        self.count(OperationKind::Discard, range.length, result.is_ok());
        result
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(CountQueue {
            below: self.device.queue(options)?,
            count: self,
        }))
    }
}

struct CountQueue<'a, D> {
    below: Box<dyn Queue + 'a>,
    count: &'a Count<D>,
}

impl<D: BlockDevice> Queue for CountQueue<'_, D> {
    fn submit(&mut self, request: Request) {
        self.below.submit(request);
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        let completion = self.below.reap(wait)?;
        let request = &completion.request;
        self.count.count(
            request.operation.kind(),
            request.length(),
            completion.result.is_ok(),
        );
        Some(completion)
    }

    fn in_flight(&self) -> u32 {
        self.below.in_flight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AlignedBuffer, Operation, RamDevice};

    #[test]
    fn counts_by_kind_and_outcome() {
        let count = Count::new(RamDevice::new(1 << 20));
        count.write_at(0, &[0; 1024]).unwrap();
        count.write_at(1 << 20, &[0; 512]).unwrap_err();
        let mut queue = count.queue(QueueOptions::new(1)).unwrap();
        queue.submit(Request::new(
            Operation::Read,
            0,
            AlignedBuffer::new(4096),
            0,
        ));
        assert_eq!(count.of(OperationKind::Read), Counted::default());
        queue.reap(Wait::Yes).unwrap();
        assert_eq!(
            count.of(OperationKind::Read),
            Counted {
                operations: 1,
                bytes: 4096,
                failures: 0
            }
        );
        assert_eq!(
            count.of(OperationKind::Write),
            Counted {
                operations: 1,
                bytes: 1024,
                failures: 1
            }
        );
        assert_eq!(count.of(OperationKind::Flush), Counted::default());
    }
}
