//! [`InlineQueue`]: a queue for devices that answer at once.

use crate::{
    BlockDevice, BlockError, ByteRange, Completion, Operation, Part, Queue, QueueOptions, Request,
    Wait,
};
use std::collections::VecDeque;

/// Carries each request out inside `submit`, through the device's own
/// synchronous methods, and hands completions back in order.
///
/// Allocates nothing after it was opened, unless more than `depth` requests
/// are submitted.
pub struct InlineQueue<'a, D: ?Sized> {
    device: &'a D,
    options: QueueOptions,
    charge: Option<Part>,
    finished: VecDeque<Completion>,
}

impl<'a, D: BlockDevice + ?Sized> InlineQueue<'a, D> {
    /// A queue on `device` whose work is charged to `charge` and to
    /// `timeline.device`; with `None` the clock is never read.
    ///
    /// The device's methods must check their arguments: the queue does not.
    pub fn open(
        device: &'a D,
        options: QueueOptions,
        charge: Option<Part>,
    ) -> Result<Self, BlockError> {
        let depth = options.checked_depth()? as usize;
        Ok(Self {
            device,
            options,
            charge,
            finished: VecDeque::with_capacity(depth),
        })
    }
}

/// Carries one request out on a device, synchronously.
#[inline]
pub(crate) fn carry_out<D: BlockDevice + ?Sized>(
    device: &D,
    request: &mut Request,
) -> Result<(), BlockError> {
    match request.operation {
        Operation::Read => device.read_at(request.offset, &mut request.buffer),
        Operation::Write => device.write_at(request.offset, &request.buffer),
        Operation::Flush => device.flush(),
        Operation::Discard { length } => device.discard(ByteRange::new(request.offset, length)),
    }
}

impl<D: BlockDevice + ?Sized> Queue for InlineQueue<'_, D> {
    #[inline]
    fn submit(&mut self, mut request: Request) {
        let result = if self.finished.len() >= self.options.depth as usize {
            Err(BlockError::QueueFull {
                depth: self.options.depth,
            })
        } else if let Some(part) = self.charge {
            let meter = &self.options.meter;
            let since = meter.now();
            let result = carry_out(self.device, &mut request);
            request.timeline.device += meter.charge(part, since).saturating_sub(since);
            result
        } else {
            carry_out(self.device, &mut request)
        };
        self.finished.push_back(Completion { request, result });
    }

    #[inline]
    fn reap(&mut self, _: Wait) -> Option<Completion> {
        self.finished.pop_front()
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        self.finished.len() as u32
    }
}
