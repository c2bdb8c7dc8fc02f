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
        self.device.write_at(offset, data)
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.check(OperationKind::Flush, ByteRange::new(0, 0))?;
        self.device.flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        let range = self.geometry().check(range.offset, range.length)?;
        self.check(OperationKind::Discard, range)?;
        self.device.discard(range)
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
        self.refused.pop_front().or_else(|| self.below.reap(wait))
    }

    fn in_flight(&self) -> u32 {
        self.below.in_flight() + self.refused.len() as u32
    }
}
