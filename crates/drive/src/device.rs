//! [`SimulatedDevice`]: a simulated drive, as a device like any other.
//!
//! ```text
//! submit ─▶ a core encrypts ─▶ the drive works ─▶ a core decrypts ─▶ reap
//!    now        (a write)          arrival … done     (a read)          back
//! ```
//!
//! That is the driver [`Driver::Queue`]. Other drivers stand between host and drive, and send the
//! drive requests of their own (`filter.rs`).
//!
//! Nothing waits: [`time::now`] jumps to the end of the request that is reaped. Each stretch of the
//! wait is charged to the stage that the request is in at the time: as crypto, or as waiting for
//! the device.

use crate::demand::{Demand, Drive};
use crate::filter::{Filter, Filtered, TrueCrypt};
use crate::processor::Workers;
use crate::{DriveError, Driver, Processor, time};
use block::{
    BlockDevice, BlockError, ByteRange, Completion, Geometry, Meter, Operation, OperationKind,
    Part, Queue, QueueOptions, Request, Wait,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A simulated drive that keeps its bytes on another device: in memory where
/// they are to be read again, nowhere where only the time counts.
///
/// Its first request comes when the drive's own time begins, whatever the
/// thread's virtual time is then. It is made for one thread, which may have
/// several queues; others are served, but their virtual times have nothing to
/// do with each other.
pub struct SimulatedDevice<D> {
    content: D,
    geometry: Geometry,
    /// Virtual time at which the drive's begins.
    epoch: u64,
    road: Mutex<Road>,
}

/// Between the host and the drive, and back; times are the drive's.
struct Road {
    drive: Box<dyn Drive>,
    encryption: Encryption,
    /// Requests that the drive has completed, by the time of completion.
    served: BinaryHeap<Reverse<(u64, Demand)>>,
    /// Requests that are back with the host, by the time of return.
    back: BinaryHeap<Reverse<Finished>>,
    /// Completions that one queue found while it looked for its own, by their tags.
    found: HashMap<u64, Finished>,
    /// Queues opened so far.
    queues: u64,
}

/// The encryption between the host and the drive.
enum Encryption {
    None,
    Workers(Workers),
    Filter(Filter),
}

impl From<Option<Processor>> for Encryption {
    fn from(processor: Option<Processor>) -> Self {
        let Some(processor) = processor else {
            return Self::None;
        };
        match processor.driver() {
            Driver::Queue => Self::Workers(Workers::new(processor)),
            Driver::InTurn => Self::Filter(Filter::InTurn(processor)),
            Driver::TrueCrypt => {
                let driver = Box::new(TrueCrypt::new(processor));
                Self::Filter(Filter::TrueCrypt(driver))
            }
        }
    }
}

/// A request that is done; in the order in which they come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finished {
    back: u64,
    done: u64,
    demand: Demand,
    /// How long it was encrypted; of a filter, how much of the wait that was.
    crypto: u64,
}

/// The tag of a request that belongs to no queue.
const ALONE: u64 = u64::MAX;

/// A queue's number stands above the bits of its slots.
const SLOT_BITS: u32 = 32;

impl<D: BlockDevice> SimulatedDevice<D> {
    /// The beginning of `drive`, as large as `content`, which keeps the bytes.
    /// With a `processor`, what is written is encrypted in time, and what is
    /// read decrypted; the bytes are left as they are.
    ///
    /// # Errors
    /// [`DriveError::TooSmall`] where the drive is smaller than its content.
    pub fn new(
        drive: Box<dyn Drive>,
        content: D,
        processor: Option<Processor>,
    ) -> Result<Self, DriveError> {
        let below = content.geometry();
        let capacity = drive.capacity();
        if below.size > capacity {
            return Err(DriveError::TooSmall {
                capacity,
                needed: below.size,
            });
        }
        let discards = drive.discard_granularity().zip(below.discard_granularity);
        Ok(Self {
            geometry: Geometry {
                discard_granularity: discards.map(|(drive, content)| drive.max(content)),
                ..below
            },
            content,
            epoch: time::now(),
            road: Mutex::new(Road {
                drive,
                encryption: processor.into(),
                served: BinaryHeap::new(),
                back: BinaryHeap::new(),
                found: HashMap::new(),
                queues: 0,
            }),
        })
    }

    /// Share of the time since the beginning in which the drive's busiest part
    /// was at work, as the calling thread sees it.
    pub fn utilisation(&self) -> f64 {
        self.road().drive.utilisation(self.now().max(1))
    }

    /// The drive's time, for the calling thread.
    fn now(&self) -> u64 {
        time::now().saturating_sub(self.epoch)
    }

    fn road(&self) -> MutexGuard<'_, Road> {
        // A thread that panicked has left requests behind, and nothing half done.
        self.road.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a request be served while the thread waits.
    fn alone(&self, operation: OperationKind, range: ByteRange) {
        if range.length == 0 && operation != OperationKind::Flush {
            return;
        }
        let mut road = self.road();
        road.submit(self.now(), ALONE, operation, range);
        let finished = road.wait(u64::MAX, |tag| tag == ALONE);
        let finished = finished.expect("what was submitted is served");
        time::pass_until(self.epoch + finished.back);
    }
}

impl Road {
    fn submit(&mut self, now: u64, tag: u64, operation: OperationKind, range: ByteRange) {
        let demand = Demand {
            arrival: now,
            tag,
            operation,
            offset: range.offset,
            bytes: range.length,
        };
        match &mut self.encryption {
            Encryption::Workers(workers) if operation == OperationKind::Write => {
                let arrival = workers.take(now, range.length);
                self.drive.submit(Demand { arrival, ..demand });
            }
            Encryption::None | Encryption::Workers(_) => self.drive.submit(demand),
            Encryption::Filter(filter) => filter.submit(&mut *self.drive, demand),
        }
    }

    /// When the drive, or the filter before it, begins with its next request.
    fn next_start(&self) -> Option<u64> {
        match &self.encryption {
            Encryption::Filter(filter) => filter.next_start(&*self.drive),
            Encryption::None | Encryption::Workers(_) => self.drive.next_start(),
        }
    }

    /// Lets it begin, where it has a request.
    fn serve(&mut self) -> Option<()> {
        match &mut self.encryption {
            Encryption::None | Encryption::Workers(_) => {
                let (demand, done) = self.drive.serve()?;
                self.served.push(Reverse((done, demand)));
            }
            Encryption::Filter(filter) => {
                let Filtered {
                    demand,
                    done,
                    crypto,
                } = filter.serve(&mut *self.drive)?;
                self.back.push(Reverse(Finished {
                    back: done,
                    done: done - crypto,
                    demand,
                    crypto,
                }));
            }
        }
        Some(())
    }

    /// The first request of `mine` that is back, if one is until `limit`.
    fn wait(&mut self, limit: u64, mine: impl Fn(u64) -> bool) -> Option<Finished> {
        let found = self.found.values().filter(|other| mine(other.demand.tag));
        if let Some(first) = found.min().copied()
            && first.back <= limit
        {
            return self.found.remove(&first.demand.tag);
        }
        loop {
            let finished = self.next(limit)?;
            if mine(finished.demand.tag) {
                return Some(finished);
            }
            self.found.insert(finished.demand.tag, finished);
        }
    }

    /// The next request that is back, if one is until `limit`.
    fn next(&mut self, limit: u64) -> Option<Finished> {
        loop {
            let served = self.served.peek().map(|Reverse((done, _))| *done);
            let back = self.back.peek().map(|Reverse(finished)| finished.back);
            let event = served.into_iter().chain(back).min();
            // The host may react to an event before the drive begins anew.
            if let Some(start) = self.next_start()
                && event.is_none_or(|event| start < event)
            {
                if start > limit {
                    return None;
                }
                self.serve().expect("it has a request");
                continue;
            }
            if event? > limit {
                return None;
            }
            if served.is_some_and(|done| back.is_none_or(|back| done <= back)) {
                let Reverse((done, demand)) = self.served.pop()?;
                let (back, crypto) = match (&mut self.encryption, demand.operation) {
                    (Encryption::Workers(workers), OperationKind::Read) => {
                        (workers.take(done, demand.bytes), workers.time(demand.bytes))
                    }
                    (Encryption::Workers(workers), OperationKind::Write) => {
                        (done, workers.time(demand.bytes))
                    }
                    _ => (done, 0),
                };
                self.back.push(Reverse(Finished {
                    back,
                    done,
                    demand,
                    crypto,
                }));
                continue;
            }
            let Reverse(finished) = self.back.pop()?;
            return Some(finished);
        }
    }
}

impl<D: BlockDevice> BlockDevice for SimulatedDevice<D> {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let range = self.geometry.check(offset, into.len() as u64)?;
        self.content.read_at(offset, into)?;
        self.alone(OperationKind::Read, range);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        let range = self.geometry.check(offset, data.len() as u64)?;
        self.content.write_at(offset, data)?;
        self.alone(OperationKind::Write, range);
        Ok(())
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.content.flush()?;
        self.alone(OperationKind::Flush, ByteRange::new(0, 0));
        Ok(())
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        if self.geometry.discard_granularity.is_none() {
            return Err(BlockError::Unsupported {
                operation: OperationKind::Discard,
            });
        }
        let range = self.geometry.check(range.offset, range.length)?;
        self.content.discard(range)?;
        self.alone(OperationKind::Discard, range);
        Ok(())
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        let depth = options.checked_depth()?;
        let mut road = self.road();
        let number = road.queues;
        road.queues += 1;
        Ok(Box::new(SimulatedQueue {
            device: self,
            meter: options.meter,
            number,
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            at_once: VecDeque::new(),
        }))
    }
}

/// The queue of a [`SimulatedDevice`].
struct SimulatedQueue<'a, D: BlockDevice> {
    device: &'a SimulatedDevice<D>,
    meter: Rc<Meter>,
    number: u64,
    /// Requests on their way.
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
    /// Requests that the drive has nothing to do with.
    at_once: VecDeque<Completion>,
}

impl<D: BlockDevice> SimulatedQueue<'_, D> {
    /// Carries a request out where the bytes are.
    fn carry_out(&self, request: &mut Request) -> Result<ByteRange, BlockError> {
        let range = self.device.geometry.check_request(request)?;
        let content = &self.device.content;
        match request.operation {
            Operation::Read => content.read_at(range.offset, &mut request.buffer)?,
            Operation::Write => content.write_at(range.offset, &request.buffer)?,
            Operation::Flush => content.flush()?,
            Operation::Discard { .. } => content.discard(range)?,
        }
        Ok(range)
    }

    /// Lets time pass until a request is back, and charges what it was in.
    fn pass(&self, finished: &Finished) {
        let Finished {
            back, done, demand, ..
        } = *finished;
        for (until, part) in [
            (demand.arrival, Part::Crypto),
            (done, Part::Wait),
            (back, Part::Crypto),
        ] {
            let since = self.meter.now();
            time::pass_until(self.device.epoch + until);
            self.meter.charge(part, since);
        }
    }
}

impl<D: BlockDevice> Queue for SimulatedQueue<'_, D> {
    fn submit(&mut self, mut request: Request) {
        let depth = self.slots.len();
        let carried_out = match self.in_flight() as usize >= depth {
            true => Err(BlockError::QueueFull {
                depth: depth as u32,
            }),
            false => self.carry_out(&mut request),
        };
        let kind = request.operation.kind();
        match (carried_out, self.free.pop()) {
            (Ok(range), Some(slot)) if range.length > 0 || kind == OperationKind::Flush => {
                let now = self.device.now();
                let tag = self.number << SLOT_BITS | u64::from(slot);
                self.device.road().submit(now, tag, kind, range);
                self.slots[slot as usize] = Some(request);
            }
            (carried_out, slot) => {
                self.free.extend(slot);
                let result = carried_out.map(drop);
                self.at_once.push_back(Completion { request, result });
            }
        }
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        if let Some(completion) = self.at_once.pop_front() {
            return Some(completion);
        }
        if self.in_flight() == 0 {
            return None;
        }
        let limit = match wait {
            Wait::Yes => u64::MAX,
            Wait::No => self.device.now(),
        };
        let mut road = self.device.road();
        let finished = road.wait(limit, |tag| tag >> SLOT_BITS == self.number)?;
        let Finished {
            done,
            demand,
            crypto,
            ..
        } = finished;
        let slot = demand.tag as u32;
        let mut request = self.slots[slot as usize].take()?;
        drop(road);
        request.timeline.crypto += crypto;
        self.free.push(slot);
        self.pass(&finished);
        request.timeline.device += done - demand.arrival;
        Some(Completion {
            request,
            result: Ok(()),
        })
    }

    fn in_flight(&self) -> u32 {
        (self.slots.len() - self.free.len() + self.at_once.len()) as u32
    }
}

impl<D: BlockDevice> Drop for SimulatedQueue<'_, D> {
    fn drop(&mut self) {
        self.at_once.clear();
        while self.in_flight() > 0 {
            self.reap(Wait::Yes);
        }
    }
}
