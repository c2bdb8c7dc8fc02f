//! [`CryptQueue`]: encrypts and decrypts the requests of a queue.
//!
//! If a large request is alone in the queue, the device waits for the cipher, and the cipher for
//! the device. So it goes down in parts:
//!
//! ```text
//! read    device │ 1 │ 2 │ 3 │ 4 │            write   cipher │ 1 │ 2 │ 3 │ 4 │
//!         cipher     │ 1 │ 2 │ 3 │ 4 │                device     │ 1 │ 2 │ 3 │ 4 │
//! ```

use super::CryptDevice;
use block::{
    AlignedBuffer, BlockDevice, BlockError, Completion, Geometry, Meter, Operation, Part, Queue,
    QueueOptions, Request, Timeline, Wait,
};
use cipher::SectorCipher;
use std::collections::VecDeque;
use std::rc::Rc;

/// The number of parts of a request that is alone.
const MOST_PARTS: usize = 8;

/// The most parts in a queue beyond one for each request. While n others are in flight, a request
/// gets `MOST_PARTS` / (n + 1) parts.
const MORE_PARTS: u32 = {
    let (mut more, mut others) = (0, 0);
    while others < MOST_PARTS {
        more += MOST_PARTS / (others + 1) - 1;
        others += 1;
    }
    more as u32
};

/// The least bytes of a part.
const PART: usize = 128 << 10;

/// The queue of a [`CryptDevice`].
pub(super) struct CryptQueue<'a, D, C> {
    crypt: &'a CryptDevice<D, C>,
    geometry: Geometry,
    inner: Box<dyn Queue + 'a>,
    /// As many as there may be requests in flight.
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Whether there may be more below than requests in flight, and what comes back has
    /// the buffers that went down.
    parts: bool,
    /// Requests that never went down, or are back already.
    finished: VecDeque<Completion>,
    meter: Rc<Meter>,
}

/// A request on its way.
#[derive(Default)]
struct Slot {
    tag: u64,
    offset: u64,
    timeline: Timeline,
    /// Until when it is known where its time went.
    told: u64,
    /// Those that are back.
    parts: [AlignedBuffer; MOST_PARTS],
    count: usize,
    /// Those that are not.
    away: usize,
    error: Option<BlockError>,
}

impl<'a, D: BlockDevice, C: SectorCipher> CryptQueue<'a, D, C> {
    pub(super) fn open(
        crypt: &'a CryptDevice<D, C>,
        options: QueueOptions,
    ) -> Result<Self, BlockError> {
        let depth = options.checked_depth()?;
        let parts = depth + MORE_PARTS <= QueueOptions::MAX_DEPTH;
        let meter = Rc::clone(&options.meter);
        Ok(Self {
            crypt,
            geometry: crypt.geometry(),
            inner: crypt.device.queue(QueueOptions {
                depth: depth + if parts { MORE_PARTS } else { 0 },
                ..options
            })?,
            slots: (0..depth).map(|_| Slot::default()).collect(),
            free: (0..depth as usize).rev().collect(),
            parts,
            finished: VecDeque::new(),
            meter,
        })
    }

    fn refuse(&mut self, request: Request, error: BlockError) {
        self.finished.push_back(Completion {
            request,
            result: Err(error),
        });
    }

    /// Bytes of each part of a request but the last.
    fn part_of(&self, request: &Request) -> usize {
        let others = self.slots.len() - self.free.len();
        let transfers = matches!(request.operation, Operation::Read | Operation::Write);
        let count = match self.parts && transfers {
            true => MOST_PARTS / (others + 1),
            false => 1,
        };
        match request.buffer.len().checked_div(count) {
            Some(part) if count > 1 => {
                let unit = PART.max(self.geometry.logical_block as usize);
                part.next_multiple_of(unit).max(unit)
            }
            _ => usize::MAX,
        }
    }

    /// Takes a completed part from the device below. Returns the caller's request once all of its
    /// parts are back.
    fn put_back(&mut self, mut completion: Completion) -> Option<Completion> {
        let request = &mut completion.request;
        let tag = request.tag as usize;
        let (index, nth) = (tag / MOST_PARTS, tag % MOST_PARTS);
        let offset = request.offset.wrapping_sub(self.crypt.data.offset);
        let slot = &mut self.slots[index];
        slot.away -= 1;
        let device = request.timeline.device;
        slot.timeline.device += match slot.count {
            1 => device,
            // Parts are below at the same time, and while others are in the cipher.
            _ => {
                let now = self.meter.now();
                let since = slot.told.max(now.saturating_sub(device));
                slot.told = now;
                now.saturating_sub(since)
            }
        };
        if request.operation == Operation::Read && completion.result.is_ok() {
            let start = self.meter.now();
            self.crypt.decrypt(offset, &mut request.buffer);
            slot.told = self.meter.charge(Part::Crypto, start);
            slot.timeline.crypto += slot.told - start;
        }
        if let Err(error) = completion.result {
            slot.error.get_or_insert(error);
        }
        slot.parts[nth] = std::mem::take(&mut request.buffer);
        if slot.away > 0 {
            return None;
        }
        let parts = slot.parts[..slot.count].iter_mut().map(std::mem::take);
        let (buffer, same) = AlignedBuffer::joined(parts);
        self.parts &= same;
        let result = slot.error.take().map_or(Ok(()), Err);
        let request = Request {
            operation: request.operation,
            offset: slot.offset,
            buffer,
            tag: slot.tag,
            timeline: slot.timeline,
        };
        self.free.push(index);
        Some(Completion { request, result })
    }
}

impl<D: BlockDevice, C: SectorCipher> Queue for CryptQueue<'_, D, C> {
    fn submit(&mut self, request: Request) {
        if let Err(error) = self.geometry.check_request(&request) {
            return self.refuse(request, error);
        }
        let part = self.part_of(&request);
        let Some(index) = self.free.pop() else {
            let depth = self.slots.len() as u32;
            return self.refuse(request, BlockError::QueueFull { depth });
        };
        let Request {
            operation,
            offset,
            buffer: mut rest,
            tag,
            timeline,
        } = request;
        let count = rest.len().div_ceil(part).max(1);
        let slot = &mut self.slots[index];
        (slot.tag, slot.offset, slot.timeline) = (tag, offset, timeline);
        (slot.count, slot.away, slot.told) = (count, count, 0);
        let mut at = offset;
        for nth in 0..count {
            let mut buffer = std::mem::take(&mut rest);
            if buffer.len() > part {
                rest = buffer.split_off(part);
            }
            if operation == Operation::Write {
                let start = self.meter.now();
                self.crypt.cipher.encrypt(self.crypt.iv_at(at), &mut buffer);
                let slot = &mut self.slots[index];
                slot.told = self.meter.charge(Part::Crypto, start);
                slot.timeline.crypto += slot.told - start;
            }
            // Nothing looks at a flush's offset; all others were checked to fit.
            let below = at.wrapping_add(self.crypt.data.offset);
            at = at.wrapping_add(buffer.len() as u64);
            let tag = (index * MOST_PARTS + nth) as u64;
            self.inner
                .submit(Request::new(operation, below, buffer, tag));
            // A device that answers at once has it in the core's cache now.
            if operation == Operation::Read
                && !rest.is_empty()
                && let Some(completion) = self.inner.reap(Wait::No)
            {
                let whole = self.put_back(completion);
                self.finished.extend(whole);
            }
        }
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        if let Some(completion) = self.finished.pop_front() {
            return Some(completion);
        }
        loop {
            let completion = self.inner.reap(wait)?;
            if let Some(whole) = self.put_back(completion) {
                return Some(whole);
            }
        }
    }

    fn in_flight(&self) -> u32 {
        (self.slots.len() - self.free.len() + self.finished.len()) as u32
    }
}
