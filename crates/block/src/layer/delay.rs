//! [`Delay`]: a device that is later than it was.

use crate::{
    BlockDevice, BlockError, ByteRange, Completion, Geometry, Meter, OperationKind, Part, Queue,
    QueueOptions, Request, Wait,
};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The thread spins for the end of a delay. A sleeping thread would wake up late, by the kernel's
/// 50 µs of timer slack and the time to get the processor back. With 60 µs here, delays were 15 to
/// 30 µs too long.
const AWAKE: Duration = Duration::from_micros(150);

/// Adds a fixed time to each read and each write of another device.
///
/// Delays of queued requests overlap, as on a device that works on many at once. Each delay begins
/// when the queue sees the completion of the device below, at the earliest in `submit`, else in
/// `reap`. Waiting costs the processor: a queue with requests below polls them. Flush and discard
/// are not delayed.
#[derive(Debug)]
pub struct Delay<D> {
    device: D,
    read: Duration,
    write: Duration,
}

impl<D: BlockDevice> Delay<D> {
    /// `read` and `write` are added to the time that the device takes.
    pub fn new(device: D, read: Duration, write: Duration) -> Self {
        Self {
            device,
            read,
            write,
        }
    }

    fn of(&self, kind: OperationKind) -> Duration {
        match kind {
            OperationKind::Read => self.read,
            OperationKind::Write => self.write,
            OperationKind::Flush | OperationKind::Discard => Duration::ZERO,
        }
    }
}

impl<D: BlockDevice> BlockDevice for Delay<D> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.device.read_at(offset, into)?;
        await_instant(Instant::now() + self.read);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.device.write_at(offset, data)?;
        await_instant(Instant::now() + self.write);
        Ok(())
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.device.flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.device.discard(range)
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        let depth = options.checked_depth()?;
        Ok(Box::new(DelayQueue {
            delay: self,
            depth,
            meter: Rc::clone(&options.meter),
            held: VecDeque::with_capacity(depth as usize),
            below: self.device.queue(options)?,
        }))
    }
}

/// Sleeps for the bulk, then spins.
fn await_instant(due: Instant) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > AWAKE {
            std::thread::sleep(left - AWAKE);
        } else {
            std::hint::spin_loop();
        }
    }
}

/// A completion of the device below that is not visible yet.
struct Held {
    completion: Completion,
    due: Instant,
    /// Tick of the meter when the device below was seen to be done.
    since: u64,
}

struct DelayQueue<'a, D> {
    delay: &'a Delay<D>,
    below: Box<dyn Queue + 'a>,
    meter: Rc<Meter>,
    depth: u32,
    /// By `due`, earliest first.
    held: VecDeque<Held>,
}

impl<D: BlockDevice> DelayQueue<'_, D> {
    /// Starts the delays of what the device below has finished.
    fn collect(&mut self) {
        while let Some(completion) = self.below.reap(Wait::No) {
            self.hold(completion);
        }
    }

    fn hold(&mut self, completion: Completion) {
        let delay = match completion.result {
            Ok(()) => self.delay.of(completion.request.operation.kind()),
            Err(_) => Duration::ZERO,
        };
        // First, so that the time between both readings makes the delay no shorter.
        let since = self.meter.now();
        let due = Instant::now() + delay;
        let held = Held {
            completion,
            due,
            since,
        };
        // Reads and writes may differ in delay; a request overtakes only those
        // that are due later.
        let at = self.held.partition_point(|other| other.due <= due);
        self.held.insert(at, held);
    }

    /// The earliest completion, if its time has come.
    fn release(&mut self) -> Option<Completion> {
        if self.held.front()?.due > Instant::now() {
            return None;
        }
        let Held {
            mut completion,
            since,
            ..
        } = self.held.pop_front()?;
        completion.request.timeline.device += self.meter.now().saturating_sub(since);
        Some(completion)
    }
}

impl<D: BlockDevice> Queue for DelayQueue<'_, D> {
    fn submit(&mut self, request: Request) {
        if self.in_flight() >= self.depth {
            let depth = self.depth;
            return self.hold(Completion {
                request,
                result: Err(BlockError::QueueFull { depth }),
            });
        }
        self.below.submit(request);
        self.collect();
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        self.collect();
        if wait == Wait::No {
            return self.release();
        }
        if self.held.is_empty() {
            let completion = self.below.reap(Wait::Yes)?;
            self.hold(completion);
        }
        let since = self.meter.now();
        loop {
            if self.below.in_flight() == 0 {
                await_instant(self.held.front()?.due);
            } else {
                // The next below may be due earlier, and its own delay begins
                // when it is seen.
                self.collect();
            }
            if let Some(completion) = self.release() {
                self.meter.charge(Part::Wait, since);
                return Some(completion);
            }
        }
    }

    fn in_flight(&self) -> u32 {
        self.below.in_flight() + self.held.len() as u32
    }
}
