//! [`Hdd`]: a disk with its arm, its turning medium, its queue and its memory.
//!
//! ```text
//! service = overhead + seek(distance) [+ settle] + wait for the sector + transfer
//! seek(f) = track + a·√f + b·f          f: share of the stroke
//! ```
//!
//! a and b are such that seeks between random places take the average, and
//! over the whole stroke the full seek. Outer tracks hold more than inner ones,
//! linearly; rates are those that last, with head switches in them.
//!
//! Behind a read the head goes on reading, until it is sent elsewhere or half of the memory is full
//! of it. With write-back, a write is done when it is in the other half. The disk writes it out
//! while it is idle, and when there is no room, in the order of its queue. Data in the memory, or
//! in the flash of a hybrid disk, is read without the arm.

mod cache;
mod mechanics;
mod nand;
mod preset;

pub use preset::{HddPreset, NandPreset, Order, Placement};

use crate::DriveError;
use crate::demand::{Demand, Drive};
use block::OperationKind;
use cache::{Ahead, Written};
use mechanics::{Job, Mechanics};
use nand::Learnt;

/// A disk at work.
#[derive(Clone, Debug)]
pub struct Hdd {
    preset: HddPreset,
    mechanics: Mechanics,
    ahead: Ahead,
    written: Written,
    learnt: Option<Learnt>,
    /// In the order in which they were submitted.
    waiting: Vec<Demand>,
    /// When the arm is free, and when the interface is.
    free_at: u64,
    interface_free: u64,
    /// Nanoseconds of the arm at work.
    busy: u64,
}

/// The next task of the arm.
enum Next {
    /// A request of the host, by its place among those that wait.
    Host(usize),
    /// A write in the memory, by its place there.
    Memory(usize),
}

impl Hdd {
    /// A disk at rest over its first track.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number.
    pub fn new(preset: HddPreset) -> Result<Self, DriveError> {
        let half = preset.cache.as_u64() / 2;
        Ok(Self {
            mechanics: Mechanics::new(&preset)?,
            ahead: Ahead::new(half),
            written: Written::new(if preset.write_back { half } else { 0 }),
            learnt: preset.nand.clone().map(Learnt::new),
            waiting: Vec::new(),
            free_at: 0,
            interface_free: 0,
            busy: 0,
            preset,
        })
    }

    /// Its numbers.
    pub fn preset(&self) -> &HddPreset {
        &self.preset
    }

    fn overhead(&self) -> u64 {
        (self.preset.overhead_ms * 1e6) as u64
    }

    fn job(&self, demand: &Demand) -> Job {
        let write = demand.operation == OperationKind::Write;
        self.mechanics.job(demand.offset, demand.bytes, write)
    }

    /// Whether a request needs the arm, as far as is known at `now`.
    fn needs_arm(&self, now: u64, demand: &Demand) -> bool {
        let Demand { offset, bytes, .. } = *demand;
        match demand.operation {
            OperationKind::Read => {
                let learnt = self.learnt.as_ref();
                let in_flash = learnt.is_some_and(|learnt| learnt.has(offset, bytes));
                !in_flash && !self.ahead.has(now, offset, bytes) && !self.written.has(offset, bytes)
            }
            OperationKind::Write => {
                !self.written.takes(bytes) || !self.written.fits(now, &self.job(demand))
            }
            OperationKind::Flush => self.written.has_before(demand.arrival),
            OperationKind::Discard => false,
        }
    }

    /// A request that the arm has nothing to do with; when it is done.
    fn without_arm(&mut self, now: u64, demand: &Demand) -> u64 {
        let Demand { offset, bytes, .. } = *demand;
        let begun = now + self.overhead();
        let mut there = begun;
        match demand.operation {
            OperationKind::Read if self.ahead.has(now, offset, bytes) => {
                let capacity = self.preset.capacity.as_u64();
                let (ready, spent) = self.ahead.take(now, offset, bytes, capacity);
                there = ready.max(begun);
                self.busy += spent;
                if ready > now {
                    self.free_at = self.free_at.max(ready);
                }
            }
            OperationKind::Read if self.written.has(offset, bytes) => {}
            OperationKind::Read => {
                let flash = self.learnt.as_mut();
                there += flash.map_or(0, |learnt| learnt.read(offset, bytes));
            }
            OperationKind::Write => {
                let job = self.job(demand);
                self.overwrite(&job);
                let transfer = bytes as f64 * 1e3 / self.preset.interface_mb_s;
                self.written.push(begun + transfer as u64, job);
            }
            OperationKind::Flush => return begun.max(self.written.on_medium()),
            OperationKind::Discard => return begun,
        }
        let transfer = (bytes as f64 * 1e3 / self.preset.interface_mb_s) as u64;
        // Data from the medium passes the interface while it arrives.
        self.interface_free = there.max(begun + transfer);
        self.interface_free
    }

    fn overwrite(&mut self, job: &Job) {
        self.ahead.written(job.offset, job.bytes);
        if let Some(learnt) = &mut self.learnt {
            learnt.written(job.offset, job.bytes);
        }
    }

    /// Sends the arm out at `now`; when it is done.
    fn move_arm(&mut self, now: u64, job: &Job) -> u64 {
        if let Some(end) = self.ahead.stop(now) {
            self.mechanics.leave_at(end);
        }
        let start = match self.mechanics.goes_on(job) {
            true => now,
            false => self.mechanics.positioned(now + self.overhead(), job),
        };
        let done = self.mechanics.pass(start, job);
        self.busy += done - now;
        self.free_at = done;
        done
    }

    /// Writes from the memory in the time before `now` in which the disk was idle.
    fn use_idle_time(&mut self, now: u64) {
        loop {
            let first = self.written.waiting.iter().map(|write| write.since).min();
            let Some(start) = first.map(|first| first.max(self.free_at)) else {
                return;
            };
            if start >= now {
                return;
            }
            if let Some(Next::Memory(place)) = self.choose(start, &[], true) {
                self.write_out(start, place);
            }
        }
    }

    fn write_out(&mut self, now: u64, place: usize) {
        let mut written = std::mem::take(&mut self.written);
        written.leave(place, |job| self.move_arm(now, job));
        self.written = written;
    }

    /// The next of what has come by `now`, in the order of the queue.
    fn choose(&self, now: u64, host: &[usize], memory: bool) -> Option<Next> {
        let of_host = host.iter().take(self.preset.reorders as usize);
        let of_host = of_host.map(|&place| {
            let demand = &self.waiting[place];
            let since = (demand.arrival, demand.tag);
            (Next::Host(place), since, self.job(demand))
        });
        let of_memory = self.written.waiting.iter().enumerate();
        let of_memory = of_memory.filter(|(_, write)| memory && write.since <= now);
        let of_memory = of_memory.take(self.preset.reorders as usize);
        let of_memory =
            of_memory.map(|(place, write)| (Next::Memory(place), (write.since, 0), write.job));
        let all = of_host.chain(of_memory);
        let best = match self.preset.queue {
            Order::Fifo => all.min_by_key(|(_, since, _)| *since),
            Order::Elevator => {
                all.min_by_key(|(_, _, job)| (self.mechanics.passed(job), job.offset))
            }
            Order::Sptf => all.min_by_key(|(_, _, job)| match self.mechanics.goes_on(job) {
                true => now,
                false => self.mechanics.positioned(now + self.overhead(), job),
            }),
        };
        best.map(|(next, ..)| next)
    }

    /// The first that has come by `now` and waits for no arm.
    fn quick(&self, now: u64) -> Option<usize> {
        let here = |demand: &Demand| demand.arrival <= now && !self.needs_arm(now, demand);
        let all = self.waiting.iter().enumerate();
        let quick = all.filter(|(_, demand)| here(demand));
        let first = quick.min_by_key(|(_, demand)| (demand.arrival, demand.tag));
        first.map(|(place, _)| place)
    }
}

impl Drive for Hdd {
    fn duplicate(&self) -> Box<dyn Drive> {
        Box::new(self.clone())
    }

    fn capacity(&self) -> u64 {
        self.preset.capacity.as_u64()
    }

    fn discard_granularity(&self) -> Option<u32> {
        None
    }

    fn submit(&mut self, demand: Demand) {
        let end = demand.offset + demand.bytes;
        assert!(end <= self.capacity(), "within the disk");
        self.waiting.push(demand);
    }

    fn hold(&mut self, until: u64) {
        self.free_at = self.free_at.max(until);
        self.interface_free = self.interface_free.max(until);
    }

    fn next_start(&self) -> Option<u64> {
        let start = |demand: &Demand| {
            let quick = demand.arrival.max(self.interface_free);
            match self.needs_arm(quick, demand) {
                true => demand.arrival.max(self.free_at),
                false => quick,
            }
        };
        self.waiting.iter().map(start).min()
    }

    fn serve(&mut self) -> Option<(Demand, u64)> {
        loop {
            let now = self.next_start()?;
            self.use_idle_time(now);
            if let Some(place) = self.quick(now) {
                let demand = self.waiting.remove(place);
                let done = self.without_arm(now, &demand);
                return Some((demand, done));
            }
            let now = now.max(self.free_at);
            let here = |demand: &Demand| demand.arrival <= now;
            // A write that waits for room in the memory, and a flush, wait for what is there.
            let for_memory = |demand: &Demand| match demand.operation {
                OperationKind::Write => self.written.takes(demand.bytes),
                operation => operation == OperationKind::Flush,
            };
            let (mut host, mut memory) = (Vec::new(), false);
            for (place, demand) in self.waiting.iter().enumerate() {
                match for_memory(demand) {
                    _ if !here(demand) => {}
                    true => memory = true,
                    false => host.push(place),
                }
            }
            match self.choose(now, &host, memory) {
                Some(Next::Host(place)) => {
                    let demand = self.waiting.remove(place);
                    let job = self.job(&demand);
                    let done = self.move_arm(now, &job);
                    if job.write {
                        self.overwrite(&job);
                    } else {
                        let (rate, end) = (self.mechanics.rate(job.offset), self.capacity());
                        self.ahead.begin(job.offset, job.bytes, done, rate, end);
                        if let Some(learnt) = &mut self.learnt {
                            learnt.learn(job.offset, job.bytes);
                        }
                    }
                    return Some((demand, done));
                }
                Some(Next::Memory(place)) => self.write_out(now, place),
                // The waiting writes are still on their way into the memory.
                None => {
                    let first = self.written.waiting.iter().map(|write| write.since).min();
                    self.free_at = first.unwrap_or(0).max(now + 1);
                }
            }
        }
    }

    fn utilisation(&self, end: u64) -> f64 {
        self.busy as f64 / end as f64
    }
}
