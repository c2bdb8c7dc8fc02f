//! [`Trace`]: a device that remembers what it was asked.

use crate::{
    BlockDevice, BlockError, ByteRange, Completion, Geometry, OperationKind, Queue, QueueOptions,
    Request, Wait,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One request as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// The operation asked for.
    pub operation: OperationKind,
    /// First byte; 0 for a flush.
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub length: u64,
}

/// Records every request in the order of arrival, before the device below sees
/// it and whatever becomes of it.
#[derive(Debug)]
pub struct Trace<D> {
    device: D,
    entries: Mutex<Vec<TraceEntry>>,
}

impl<D: BlockDevice> Trace<D> {
    /// A trace that is empty so far.
    pub fn new(device: D) -> Self {
        Self {
            device,
            entries: Mutex::default(),
        }
    }

    /// Everything recorded so far, oldest first; the record starts anew.
    pub fn take(&self) -> Vec<TraceEntry> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TraceEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, operation: OperationKind, offset: u64, length: u64) {
        self.lock().push(TraceEntry {
            operation,
            offset,
            length,
        });
    }
}

impl<D: BlockDevice> BlockDevice for Trace<D> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.record(OperationKind::Read, offset, into.len() as u64);
        self.device.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.record(OperationKind::Write, offset, data.len() as u64);
        self.device.write_at(offset, data)
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.record(OperationKind::Flush, 0, 0);
        self.device.flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.record(OperationKind::Discard, range.offset, range.length);
        self.device.discard(range)
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(TraceQueue {
            below: self.device.queue(options)?,
            trace: self,
        }))
    }
}

struct TraceQueue<'a, D> {
    below: Box<dyn Queue + 'a>,
    trace: &'a Trace<D>,
}

impl<D: BlockDevice> Queue for TraceQueue<'_, D> {
    fn submit(&mut self, request: Request) {
        let kind = request.operation.kind();
        let offset = match kind {
            OperationKind::Flush => 0,
            _ => request.offset,
        };
        self.trace.record(kind, offset, request.length());
        self.below.submit(request);
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        self.below.reap(wait)
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
    fn records_both_roads_in_order() {
        let trace = Trace::new(RamDevice::new(1 << 20));
        trace.write_at(512, &[1; 1024]).unwrap();
        trace.flush().unwrap();
        let mut queue = trace.queue(QueueOptions::new(4)).unwrap();
        queue.submit(Request::new(
            Operation::Discard { length: 4096 },
            8192,
            AlignedBuffer::empty(),
            0,
        ));
        queue.submit(Request::new(
            Operation::Read,
            1, // misaligned: recorded all the same
            AlignedBuffer::new(512),
            1,
        ));
        drop(queue);
        let entry = |operation, offset, length| TraceEntry {
            operation,
            offset,
            length,
        };
        assert_eq!(
            trace.take(),
            [
                entry(OperationKind::Write, 512, 1024),
                entry(OperationKind::Flush, 0, 0),
                entry(OperationKind::Discard, 8192, 4096),
                entry(OperationKind::Read, 1, 512),
            ]
        );
        assert!(trace.take().is_empty());
    }
}
