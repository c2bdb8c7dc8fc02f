//! [`NbdQueue`]: requests of one owner. One that is longer than the server takes goes in parts.

use super::NbdDevice;
use block::{
    AlignedBuffer, BlockError, Completion, Operation, Part, Queue, QueueOptions, Request, Timeline,
    Wait,
};
use std::collections::VecDeque;

pub(super) struct NbdQueue<'a> {
    device: &'a NbdDevice,
    owner: u64,
    options: QueueOptions,
    /// As many as there may be requests in flight.
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Requests that were never sent.
    refused: VecDeque<Completion>,
}

/// A request under way.
#[derive(Default)]
struct Slot {
    tag: u64,
    offset: u64,
    timeline: Timeline,
    /// Those that are back.
    parts: Vec<AlignedBuffer>,
    /// Those that are not.
    away: usize,
    error: Option<BlockError>,
}

/// The tag of a part: its number, below that of its slot.
const PART_BITS: u32 = 32;

impl<'a> NbdQueue<'a> {
    pub(super) fn open(device: &'a NbdDevice, options: QueueOptions) -> Result<Self, BlockError> {
        let depth = options.checked_depth()?;
        Ok(Self {
            device,
            owner: device.owner(),
            options,
            slots: (0..depth).map(|_| Slot::default()).collect(),
            free: (0..depth as usize).rev().collect(),
            refused: VecDeque::new(),
        })
    }

    /// Takes an answered part back; returns the whole request once all its parts are answered.
    fn put_back(&mut self, completion: Completion) -> Option<Completion> {
        let Completion { request, result } = completion;
        let index = (request.tag >> PART_BITS) as usize;
        let nth = request.tag as u32 as usize;
        let slot = &mut self.slots[index];
        slot.parts[nth] = request.buffer;
        slot.away -= 1;
        if let Err(error) = result {
            slot.error.get_or_insert(error);
        }
        if slot.away > 0 {
            return None;
        }
        self.free.push(index);
        let (buffer, _) = AlignedBuffer::joined(slot.parts.drain(..));
        let request = Request {
            operation: request.operation,
            offset: slot.offset,
            buffer,
            tag: slot.tag,
            timeline: slot.timeline,
        };
        let result = slot.error.take().map_or(Ok(()), Err);
        Some(Completion { request, result })
    }
}

impl Queue for NbdQueue<'_> {
    fn submit(&mut self, mut request: Request) {
        let Some(index) = self.free.pop() else {
            let depth = self.options.depth;
            let result = Err(BlockError::QueueFull { depth });
            return self.refused.push_back(Completion { request, result });
        };
        let most = match request.operation {
            Operation::Read | Operation::Write => self.device.most(),
            Operation::Flush | Operation::Discard { .. } => usize::MAX,
        };
        let count = request.buffer.len().div_ceil(most).max(1);
        let slot = &mut self.slots[index];
        (slot.tag, slot.offset, slot.timeline) = (request.tag, request.offset, request.timeline);
        slot.away = count;
        slot.parts.resize_with(count, AlignedBuffer::empty);
        let since = self.options.meter.now();
        for nth in 0..count {
            let mut rest = AlignedBuffer::empty();
            if request.buffer.len() > most {
                rest = request.buffer.split_off(most);
            }
            let tag = (index as u64) << PART_BITS | nth as u64;
            let offset = request.offset.wrapping_add((nth * most) as u64);
            let part = std::mem::replace(&mut request.buffer, rest);
            let part = Request::new(request.operation, offset, part, tag);
            self.device.submit(self.owner, part);
        }
        self.options.meter.charge(Part::Submit, since);
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        if let Some(refused) = self.refused.pop_front() {
            return Some(refused);
        }
        while self.free.len() < self.slots.len() {
            let since = self.options.meter.now();
            let done = self.device.reap(self.owner, wait);
            self.options.meter.charge(Part::Wait, since);
            if let Some(whole) = self.put_back(done?) {
                return Some(whole);
            }
        }
        None
    }

    fn in_flight(&self) -> u32 {
        (self.slots.len() - self.free.len() + self.refused.len()) as u32
    }
}

impl Drop for NbdQueue<'_> {
    fn drop(&mut self) {
        while self.reap(Wait::Yes).is_some() {}
        self.device.line(self.owner).lock().leave(self.owner);
    }
}
