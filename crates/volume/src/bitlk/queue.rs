//! The queue of a [`BitlkDevice`].
//!
//! Nearly every request lies in one encrypted run that is stored in its own place. Such a request
//! goes to the queue of the [`CryptDevice`](crate::CryptDevice) as it is. The others are carried
//! out at once, by the synchronous methods.

use super::device::BitlkDevice;
use block::{
    BlockDevice, BlockError, ByteRange, Completion, Operation, Queue, QueueOptions, Request, Wait,
};
use std::collections::VecDeque;

pub(super) struct BitlkQueue<'a, D> {
    device: &'a BitlkDevice<D>,
    below: Box<dyn Queue + 'a>,
    depth: u32,
    done: VecDeque<Completion>,
}

impl<'a, D: BlockDevice> BitlkQueue<'a, D> {
    pub(super) fn open(
        device: &'a BitlkDevice<D>,
        options: QueueOptions,
    ) -> Result<Self, BlockError> {
        Ok(Self {
            depth: options.checked_depth()?,
            below: device.encrypted().queue(options)?,
            device,
            done: VecDeque::new(),
        })
    }

    fn carry_out(&self, request: &mut Request) -> Result<(), BlockError> {
        let device = self.device;
        match request.operation {
            Operation::Read => device.read_at(request.offset, &mut request.buffer),
            Operation::Write => device.write_at(request.offset, &request.buffer),
            Operation::Flush => device.flush(),
            Operation::Discard { length } => device.discard(ByteRange::new(request.offset, length)),
        }
    }
}

impl<D: BlockDevice> Queue for BitlkQueue<'_, D> {
    fn submit(&mut self, mut request: Request) {
        let is_flush = request.operation == Operation::Flush;
        let result = if self.in_flight() >= self.depth {
            Err(BlockError::QueueFull { depth: self.depth })
        } else if is_flush || self.device.is_encrypted(request.offset, request.length()) {
            return self.below.submit(request);
        } else {
            self.carry_out(&mut request)
        };
        self.done.push_back(Completion { request, result });
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        self.done.pop_front().or_else(|| self.below.reap(wait))
    }

    fn in_flight(&self) -> u32 {
        self.below.in_flight() + self.done.len() as u32
    }
}
