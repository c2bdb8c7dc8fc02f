//! A host that keeps so many requests on their way to a simulated drive, as
//! the lab does.

use block::{
    AlignedBuffer, BlockDevice, Meter, NullDevice, Operation, Part, QueueOptions, Request, Wait,
};
use drive::demand::Drive;
use drive::{Driver, Processor, SimulatedDevice, time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::num::NonZeroU32;
use std::rc::Rc;

/// Where requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    Sequential,
    Random,
}

/// A host's demands.
#[derive(Clone, Copy, Debug)]
pub struct ClosedLoop {
    /// First byte of the extent.
    pub offset: u64,
    pub extent: u64,
    pub request: u64,
    pub pattern: Pattern,
    /// Share of them that is written.
    pub writes: f64,
    pub queue_depth: u32,
    pub requests: u64,
    /// Rate of the cipher on each core; `None` is plain.
    pub cipher_mb_s: Option<f64>,
    pub cores: u32,
    pub driver: Driver,
    pub seed: u64,
}

/// The results of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    pub seconds: f64,
    pub mb_s: f64,
    pub iops: f64,
    pub latency_us: f64,
    /// Share of the time in which the host waited for the processor.
    pub crypto: f64,
    /// Share of the time in which it waited for the drive.
    pub wait: f64,
    /// Share of the time in which the drive's busiest part was at work.
    pub utilisation: f64,
}

impl ClosedLoop {
    /// Lets `drive` serve it.
    pub fn run(&self, drive: Box<dyn Drive>) -> Rates {
        let cores = NonZeroU32::new(self.cores).unwrap();
        let processor = self
            .cipher_mb_s
            .map(|rate| Processor::new(self.driver, cores, rate).unwrap());
        let nowhere = NullDevice::new(drive.capacity());
        let device = SimulatedDevice::new(drive, nowhere, processor).unwrap();
        let meter = Rc::new(Meter::new(time::now));
        let mut queue = device
            .queue(QueueOptions {
                depth: self.queue_depth,
                meter: Rc::clone(&meter),
            })
            .unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let blocks = self.extent / self.request;
        let threshold = (self.writes * 2.0_f64.powi(64)) as u64;
        let mut next = |number: u64, buffer, slot| {
            let operation = match rng.next_u64() < threshold {
                true => Operation::Write,
                false => Operation::Read,
            };
            let block = match self.pattern {
                Pattern::Sequential => number % blocks,
                Pattern::Random => ((u128::from(rng.next_u64()) * u128::from(blocks)) >> 64) as u64,
            };
            let offset = self.offset + block * self.request;
            Request::new(operation, offset, buffer, slot)
        };
        let begin = time::now();
        let mut started = vec![begin; self.queue_depth as usize];
        let mut submitted = 0;
        for slot in 0..u64::from(self.queue_depth).min(self.requests) {
            let buffer = AlignedBuffer::new(self.request as usize);
            queue.submit(next(submitted, buffer, slot));
            submitted += 1;
        }
        let mut latency = 0;
        while let Some(completion) = queue.reap(Wait::Yes) {
            completion.result.unwrap();
            let Request { buffer, tag, .. } = completion.request;
            let now = time::now();
            latency += now - std::mem::replace(&mut started[tag as usize], now);
            if submitted < self.requests {
                queue.submit(next(submitted, buffer, tag));
                submitted += 1;
            }
        }
        let wall = (time::now() - begin) as f64;
        let requests = self.requests as f64;
        Rates {
            seconds: wall / 1e9,
            mb_s: requests * self.request as f64 * 1e3 / wall,
            iops: requests * 1e9 / wall,
            latency_us: latency as f64 / requests / 1e3,
            crypto: meter.spent(Part::Crypto) as f64 / wall,
            wait: meter.spent(Part::Wait) as f64 / wall,
            utilisation: device.utilisation(),
        }
    }
}
