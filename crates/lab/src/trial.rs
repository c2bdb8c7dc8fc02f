//! One repetition of one workload on one device: the only timed code of the lab. It prints nothing
//! and allocates nothing between its two stamps.
//!
//! Every driving thread keeps `queue_depth` requests in flight and refills them one by one. Its
//! time is cut at two stamps a request:
//!
//! ```text
//!  … reap ─▶│ record, choose the next request │─▶ submit, reap ─▶│ record …
//!           leave          = other            enter   crypto, copy, submit,
//!                                                     wait: charged by the layers
//! ```
//!
//! `other` is therefore measured, not the remainder. Time that a layer fails to charge shows as a
//! gap between the parts and wall × threads.
//!
//! If requests are so short that reading the clock for the parts would cost more than a per cent,
//! the parts are sampled. They are metered a thirtieth of the time, in windows of a millisecond,
//! and scaled up. The two stamps that bound each request's latency are always taken.

pub mod bare;
mod full;
mod lane;
#[cfg(target_os = "linux")]
pub mod operation;
mod samples;
mod source;
pub mod unlock;

pub use samples::Samples;

use crate::clock::{self, Clock};
use crate::energy::Spent;
use crate::error::LabError;
use crate::probe::CpuTimes;
use crate::workload::Workload;
use block::BlockDevice;
use hdrhistogram::Histogram;
use lane::Lane;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;

/// The measurements of one repetition, over all its threads.
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
    /// The time of the threads, by activity.
    pub ledger: Ledger,
    /// CPU time of the process during the repetition.
    pub cpu: Option<CpuTimes>,
    /// Frequency of the threads' cores during the repetition, hertz, if it was read.
    pub core_hz: Option<f64>,
    /// The rates while the queue was full; `None` if it was full for fewer than two requests.
    pub full: Option<Rates>,
    /// Its energy, if a sensor was read around it.
    pub energy: Option<Spent>,
}

/// How fast requests were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Throughput, 10⁶ bytes a second.
    pub mb_s: f64,
    /// Requests a second.
    pub iops: f64,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            wall: 0.0,
            bytes: 0,
            requests: 0,
            latency: histogram(),
            ledger: Ledger::default(),
            cpu: None,
            core_hz: None,
            full: None,
            energy: None,
        }
    }
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
            ..Self::default()
        }
    }

    /// From the first submission to the last completion.
    pub fn rates(&self) -> Rates {
        Rates {
            mb_s: self.mb_s(),
            iops: self.iops(),
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

/// A repetition that the user asked to stop.
pub(crate) fn interrupted() -> LabError {
    LabError::interrupted("Run it again to get the whole result.")
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
    /// The clock that times it.
    pub clock: &'a Clock,
    /// Whether it is a slice of a longer repetition: a stream begins anywhere.
    pub slice: bool,
}

/// Runs `workload` once on `device`.
///
/// In virtual time the workload's threads are one: it keeps as many requests in
/// flight as all of them, each from its own share.
///
/// # Errors
/// [`LabError`]; every buffer is back by then and nothing is in flight.
pub fn run(
    device: &dyn BlockDevice,
    workload: &Workload,
    options: Options<'_>,
) -> Result<Sample, LabError> {
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
                total.full = total.full.zip(sample.full).map(|(a, b)| Rates {
                    mb_s: a.mb_s + b.mb_s,
                    iops: a.iops + b.iops,
                });
            }
        }
    }
    Ok(total.expect("a workload has at least one thread"))
}

/// An empty latency histogram: 1 ns to 1 h, three digits (error below 0.1 %).
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are valid")
}
