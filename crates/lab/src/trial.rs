//! One repetition of one workload on one device: the only timed code of the
//! lab. It prints nothing and allocates nothing between its two stamps.
//!
//! Every driving thread keeps `queue_depth` requests in flight and refills
//! them one by one. Its time is cut at two stamps a request:
//!
//! ```text
//!  … reap ─▶│ record, choose the next request │─▶ submit, reap ─▶│ record …
//!           leave          = other            enter   crypto, copy, submit,
//!                                                     wait: charged by the layers
//! ```
//!
//! `other` is therefore measured, not the remainder: what layers forget to
//! charge shows as a gap between the parts and wall × threads.
//!
//! Where requests are so short that reading the clock for the parts would
//! cost more than a per cent, the parts are metered a thirtieth of the time, in
//! windows of a millisecond, and scaled up; the two stamps that bound each
//! request's latency are taken always.

pub mod bare;
#[cfg(target_os = "linux")]
pub mod operation;
pub mod unlock;

use crate::clock::{self, Clock};
use crate::probe::CpuTimes;
use crate::target::java::JavaError;
use crate::workload::{Extent, Pattern, Workload};
use block::{
    AlignedBuffer, BlockDevice, BlockError, Meter, Operation, Part, Queue, QueueOptions, Request,
    Wait,
};
use hdrhistogram::Histogram;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;

/// What one repetition measured, over all its threads.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Seconds from the first submission to the last completion, of the slowest thread.
    pub wall: f64,
    /// Bytes moved.
    pub bytes: u64,
    /// Requests completed.
    pub requests: u64,
    /// Latency of every request, nanoseconds.
    pub latency: Histogram<u64>,
    /// Where the threads' time went.
    pub ledger: Ledger,
    /// CPU time of the process meanwhile.
    pub cpu: Option<CpuTimes>,
}

impl Sample {
    /// A request of `bytes` that another process timed.
    pub fn timed_elsewhere(bytes: u64, seconds: f64) -> Self {
        let mut latency = histogram();
        latency.saturating_record((seconds * 1e9) as u64);
        Self {
            wall: seconds,
            bytes,
            requests: 1,
            latency,
            ledger: Ledger {
                threads: seconds,
                crypto: seconds,
                latency: seconds,
                request_crypto: seconds,
                ..Ledger::default()
            },
            cpu: None,
        }
    }

    /// Throughput, 10⁶ bytes a second.
    pub fn mb_s(&self) -> f64 {
        self.bytes as f64 / self.wall / 1e6
    }

    /// Requests a second.
    pub fn iops(&self) -> f64 {
        self.requests as f64 / self.wall
    }
}

/// Seconds of driving threads by part, and sums over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Wall time of every thread, added up.
    pub threads: f64,
    /// Encrypting and decrypting.
    pub crypto: f64,
    /// Copying between buffers.
    pub copy: f64,
    /// System calls that hand requests over.
    pub submit: f64,
    /// Nothing to do until the device answers.
    pub wait: f64,
    /// Choosing the next request and recording the last.
    pub other: f64,
    /// Latency of all requests, added up.
    pub latency: f64,
    /// Crypto time of all requests, added up.
    pub request_crypto: f64,
    /// Time at the device of all requests, added up.
    pub request_device: f64,
}

impl Ledger {
    /// The parts, added up; equals [`threads`](Self::threads) but for what no layer charged.
    pub fn sum(&self) -> f64 {
        self.crypto + self.copy + self.submit + self.wait + self.other
    }

    /// Adds another ledger, part by part.
    pub fn add(&mut self, other: &Self) {
        self.threads += other.threads;
        self.crypto += other.crypto;
        self.copy += other.copy;
        self.submit += other.submit;
        self.wait += other.wait;
        self.other += other.other;
        self.latency += other.latency;
        self.request_crypto += other.request_crypto;
        self.request_device += other.request_device;
    }
}

/// Why a repetition did not finish.
#[derive(Debug, Error)]
pub enum TrialError {
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A request failed.
    #[error("{operation} of {length} bytes at byte {offset} failed")]
    Request {
        /// What was asked for.
        operation: &'static str,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Why.
        source: BlockError,
    },
    /// The queue could not be opened.
    #[error(transparent)]
    Queue(#[from] BlockError),
    /// Java did not measure.
    #[error(transparent)]
    Java(#[from] JavaError),
}

impl TrialError {
    /// What the user can do about it, one sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Interrupted => "Run it again to get the whole result.",
            Self::Request { source, .. } | Self::Queue(source) => source.remedy(),
            Self::Java(error) => error.remedy(),
        }
    }
}

/// How a repetition is measured.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Same seed, same offsets and data.
    pub seed: u64,
    /// Whether layers charge their parts; off only to measure what charging costs.
    pub metered: bool,
    /// Set from outside to end the repetition early.
    pub stop: &'a AtomicBool,
    /// What times it.
    pub clock: &'a Clock,
}

/// Runs `workload` once on `device`.
///
/// In virtual time the workload's threads are one: it keeps as many requests in
/// flight as all of them, each from its own share.
///
/// # Errors
/// [`TrialError`]; every buffer is back by then and nothing is in flight.
pub fn run(
    device: &dyn BlockDevice,
    workload: &Workload,
    options: Options<'_>,
) -> Result<Sample, TrialError> {
    let threads = workload.threads;
    let start_line = Barrier::new(threads as usize);
    let clock = options.clock;
    let in_virtual_time = clock.source == clock::Source::Virtual;
    let cpu = CpuTimes::now().filter(|_| !in_virtual_time);
    let lanes = if threads == 1 || in_virtual_time {
        vec![Lane::drive(device, workload, options, 0..threads, None)]
    } else {
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|index| {
                    let start_line = &start_line;
                    scope.spawn(move || {
                        let one = index..index + 1;
                        Lane::drive(device, workload, options, one, Some(start_line))
                    })
                })
                .collect();
            handles
                .into_iter()
                .map(|handle| match handle.join() {
                    Ok(lane) => lane,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
                .collect()
        })
    };
    let cpu = CpuTimes::now()
        .zip(cpu)
        .map(|(after, before)| after.since(before));

    let mut total: Option<Sample> = None;
    for lane in lanes {
        let lane = lane?;
        let sample = lane.sample(clock, cpu);
        match &mut total {
            None => total = Some(sample),
            Some(total) => {
                total.wall = total.wall.max(sample.wall);
                total.bytes += sample.bytes;
                total.requests += sample.requests;
                total.ledger.add(&sample.ledger);
                total.latency += sample.latency;
            }
        }
    }
    Ok(total.expect("a workload has at least one thread"))
}

/// An empty latency histogram: 1 ns to 1 h, three digits (error below 0.1 %).
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are valid")
}

/// Most readings of the clock that the layers take for one request.
const READINGS: f64 = 6.0;

/// Share of a request's time that metering may cost before it is done in windows.
const METERING: f64 = 0.01;

/// Length of a window in which the parts are metered, and of the pause after it.
const WINDOW: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_millis(29);

/// When the parts are metered.
struct Windows {
    window: u64,
    pause: u64,
    /// Ticks a request must last to be metered always.
    long: u64,
    metering: bool,
    since: u64,
    until: u64,
    /// Ticks metered in windows that are over.
    metered: u64,
    /// Counts windows, so that a request knows whether it began in this one.
    epoch: u64,
}

impl Windows {
    fn new(clock: &Clock, start: u64) -> Self {
        let window = clock.ticks(WINDOW);
        let reading = clock.cost_ns / 1e9 * clock.hz;
        Self {
            window,
            pause: clock.ticks(PAUSE),
            long: (reading * READINGS / METERING) as u64,
            metering: true,
            since: start,
            until: start + window,
            metered: 0,
            epoch: 1,
        }
    }

    /// Ends a window or a pause; `mean` is the time of a request so far.
    #[cold]
    fn turn(&mut self, now: u64, mean: u64, meter: &Meter) {
        if !self.metering {
            self.metering = true;
            self.epoch += 1;
            self.since = now;
            self.until = now + self.window;
        } else if mean < self.long {
            self.metering = false;
            self.metered += now - self.since;
            self.until = now + self.pause;
        } else {
            self.until = now + self.window;
        }
        meter.pause(!self.metering);
    }

    /// Ticks metered until `now`, the end of the repetition.
    fn total(&self, now: u64) -> u64 {
        match self.metering {
            // The last request may have opened a window after its own end.
            true => self.metered + now.saturating_sub(self.since),
            false => self.metered,
        }
    }
}

/// What one driving thread measured; times are ticks.
struct Lane {
    wall: u64,
    /// Part of the wall time in which the parts were metered.
    metered: u64,
    bytes: u64,
    requests: u64,
    metered_requests: u64,
    latency: Histogram<u64>,
    crypto: u64,
    copy: u64,
    submit: u64,
    wait: u64,
    other: u64,
    latency_sum: u64,
    crypto_sum: u64,
    device_sum: u64,
}

impl Lane {
    /// Drives the requests of some of the workload's threads.
    fn drive(
        device: &dyn BlockDevice,
        workload: &Workload,
        options: Options<'_>,
        threads: Range<u32>,
        start_line: Option<&Barrier>,
    ) -> Result<Self, TrialError> {
        let clock = options.clock;
        let meter = Rc::new(if options.metered {
            Meter::new(clock.reader())
        } else {
            Meter::off()
        });
        let queue = device.queue(QueueOptions {
            depth: workload.queue_depth * threads.len() as u32,
            meter: Rc::clone(&meter),
        });
        let size = device.geometry().size;
        let sources = threads.map(|index| Source::new(size, workload, options, index));
        let sources: Vec<Source> = sources.collect();
        // Every thread must arrive, also one that got no queue.
        if let Some(start_line) = start_line {
            start_line.wait();
        }
        let mut lane = Self {
            wall: 0,
            metered: 0,
            bytes: 0,
            requests: 0,
            metered_requests: 0,
            latency: histogram(),
            crypto: 0,
            copy: 0,
            submit: 0,
            wait: 0,
            other: 0,
            latency_sum: 0,
            crypto_sum: 0,
            device_sum: 0,
        };
        lane.timed_loop(clock, &meter, &mut *queue?, sources, options.stop)?;
        lane.crypto = meter.spent(Part::Crypto);
        lane.copy = meter.spent(Part::Copy);
        lane.submit = meter.spent(Part::Submit);
        lane.wait = meter.spent(Part::Wait);
        Ok(lane)
    }

    /// The timed loop; returns when nothing is in flight any more.
    fn timed_loop(
        &mut self,
        clock: &Clock,
        meter: &Meter,
        queue: &mut dyn Queue,
        mut sources: Vec<Source>,
        stop: &AtomicBool,
    ) -> Result<(), TrialError> {
        let nanoseconds = 1e9 / clock.hz;
        // (time, window) of submission
        let depth = sources[0].depth as usize;
        let mut started = vec![(0_u64, 0_u64); depth * sources.len()];
        let mut buffers: Vec<_> = sources.iter_mut().flat_map(Source::buffers).collect();
        let mut outcome = Ok(());

        let start = clock.now();
        let mut leave = start;
        let mut windows = Windows::new(clock, start);
        let mut tag = 0;
        while let Some(buffer) = buffers.pop() {
            let source = &mut sources[tag / depth];
            if let Some(request) = source.next(buffer, tag as u64, 0, clock) {
                let enter = clock.now();
                self.other += enter - leave;
                started[tag] = (enter, windows.epoch);
                queue.submit(request);
                leave = clock.now();
            }
            tag += 1;
        }
        while let Some(completion) = queue.reap(Wait::Yes) {
            leave = clock.now();
            let request = completion.request;
            let (submitted, epoch) = started[request.tag as usize];
            let latency = leave - submitted;
            self.latency
                .saturating_record((latency as f64 * nanoseconds) as u64);
            self.requests += 1;
            // Only the layers' stamps of requests that were metered from
            // beginning to end mean anything.
            if windows.metering && epoch == windows.epoch {
                self.metered_requests += 1;
                self.latency_sum += latency;
                self.crypto_sum += request.timeline.crypto;
                self.device_sum += request.timeline.device;
            }
            self.bytes += request.buffer.len() as u64;
            if let Err(error) = completion.result {
                outcome = outcome.and(Err(TrialError::Request {
                    operation: match request.operation {
                        Operation::Read => "reading",
                        Operation::Write => "writing",
                        Operation::Flush => "flushing",
                        Operation::Discard { .. } => "discarding",
                    },
                    offset: request.offset,
                    length: request.buffer.len() as u64,
                    source: error,
                }));
            } else if stop.load(Ordering::Relaxed) {
                outcome = outcome.and(Err(TrialError::Interrupted));
            }
            let source = &mut sources[request.tag as usize / depth];
            let next = match outcome {
                Ok(()) => source.next(request.buffer, request.tag, leave - start, clock),
                Err(_) => None,
            };
            let enter = clock.now();
            if windows.metering {
                self.other += enter - leave;
            }
            if enter >= windows.until {
                windows.turn(enter, (enter - start) / self.requests, meter);
            }
            if let Some(request) = next {
                started[request.tag as usize] = (enter, windows.epoch);
                queue.submit(request);
            }
        }
        self.wall = leave - start;
        self.metered = windows.total(leave);
        outcome
    }

    fn sample(self, clock: &Clock, cpu: Option<CpuTimes>) -> Sample {
        let wall = clock.seconds(self.wall);
        let scaled = |ticks: u64, share: f64| match share > 0.0 {
            true => clock.seconds(ticks) / share,
            false => 0.0,
        };
        let time = self.metered as f64 / self.wall as f64;
        let requests = self.metered_requests as f64 / self.requests as f64;
        Sample {
            wall,
            bytes: self.bytes,
            requests: self.requests,
            latency: self.latency,
            ledger: Ledger {
                threads: wall,
                crypto: scaled(self.crypto, time),
                copy: scaled(self.copy, time),
                submit: scaled(self.submit, time),
                wait: scaled(self.wait, time),
                other: scaled(self.other, time),
                latency: scaled(self.latency_sum, requests),
                request_crypto: scaled(self.crypto_sum, requests),
                request_device: scaled(self.device_sum, requests),
            },
            cpu,
        }
    }
}

/// Chooses one thread's requests.
struct Source {
    rng: Xoshiro256PlusPlus,
    pattern: Pattern,
    block: u64,
    depth: u32,
    /// First block and number of blocks of this thread's share.
    first: u64,
    blocks: u64,
    next_block: u64,
    /// Requests still to be made, where size bounds the repetition.
    left: u64,
    /// Ticks after which no more requests are made, where time bounds it.
    limit: u64,
    read_threshold: u64,
    /// Bytes at the start of every written block that are zero.
    zeros: usize,
    /// Data that written blocks are refilled from where part must compress.
    pristine: Option<AlignedBuffer>,
}

/// Distance of the marks that make written blocks differ from each other.
const MARK: usize = 512;

impl Source {
    fn new(size: u64, workload: &Workload, options: Options<'_>, index: u32) -> Self {
        let block = workload.block_bytes();
        let threads = u64::from(workload.threads);
        let all = size / block;
        let (first, blocks) = match workload.pattern {
            // Each thread streams through its own share.
            Pattern::Sequential if all >= threads => {
                let share = all / threads;
                (share * u64::from(index), share)
            }
            _ => (0, all),
        };
        let (left, limit) = match workload.extent() {
            Extent::Bytes(bytes) => ((bytes / block / threads).max(1), u64::MAX),
            Extent::Time(time) => (u64::MAX, options.clock.ticks(time)),
        };
        let mut source = Self {
            // Threads of one seed must not visit the same blocks in step.
            rng: Xoshiro256PlusPlus::seed_from_u64(
                options
                    .seed
                    .wrapping_add(u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            ),
            pattern: workload.pattern,
            block,
            depth: workload.queue_depth,
            first,
            blocks,
            next_block: 0,
            left,
            limit,
            read_threshold: workload.read_threshold(),
            zeros: (block * u64::from(workload.compressible) / 100) as usize,
            pristine: None,
        };
        if source.zeros > 0 && workload.writes() {
            source.pristine = Some(source.incompressible());
        }
        source
    }

    fn incompressible(&mut self) -> AlignedBuffer {
        AlignedBuffer::noise(self.block as usize, &mut self.rng)
    }

    fn buffers(&mut self) -> Vec<AlignedBuffer> {
        let mut buffers = AlignedBuffer::several(self.depth as usize, self.block as usize);
        for buffer in &mut buffers {
            buffer.fill_with_noise(&mut self.rng);
        }
        buffers
    }

    /// The next request, or `None` when the repetition is over.
    #[inline]
    fn next(
        &mut self,
        mut buffer: AlignedBuffer,
        tag: u64,
        elapsed: u64,
        clock: &Clock,
    ) -> Option<Request> {
        if self.left == 0 || elapsed >= self.limit || self.blocks == 0 {
            return None;
        }
        self.left -= 1;
        let block = match self.pattern {
            Pattern::Sequential => {
                let block = self.next_block;
                self.next_block = if block + 1 == self.blocks {
                    0
                } else {
                    block + 1
                };
                block
            }
            Pattern::Random => {
                ((u128::from(self.rng.next_u64()) * u128::from(self.blocks)) >> 64) as u64
            }
        };
        let reads = match self.read_threshold {
            0 => false,
            always if always >= 1 << 32 => true,
            threshold => self.rng.next_u64() >> 32 < threshold,
        };
        let operation = if reads {
            Operation::Read
        } else {
            // Nothing looks at what is written to a simulated drive.
            if clock.source != clock::Source::Virtual {
                self.freshen(&mut buffer, clock.now());
            }
            Operation::Write
        };
        Some(Request {
            operation,
            offset: (self.first + block) * self.block,
            buffer,
            tag,
            timeline: Default::default(),
        })
    }

    /// Makes a buffer worth writing: no two writes alike, so that nothing
    /// below deduplicates them, and compressible only as asked.
    fn freshen(&self, buffer: &mut AlignedBuffer, mark: u64) {
        if let Some(pristine) = &self.pristine {
            buffer[..self.zeros].fill(0);
            buffer[self.zeros..].copy_from_slice(&pristine[self.zeros..]);
        }
        for chunk in buffer[self.zeros..].chunks_exact_mut(MARK) {
            chunk[..8].copy_from_slice(&mark.to_le_bytes());
        }
    }
}
