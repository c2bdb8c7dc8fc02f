//! One repetition of a bare cipher in memory.
//!
//! It has a loop of its own, because a queue takes as long as AES takes for
//! 512 bytes. Every thread encrypts or decrypts requests in place, one after
//! the other through an extent of its own, and reads the clock once a batch:
//!
//! ```text
//! │ request │ request │ … │ request │ clock, stop? │ request │ …
//! └───────── about 20 µs ───────────┘
//! ```
//!
//! All of its time is the cipher's; a latency is the mean of a batch. The core's
//! frequency is taken before and after, because it drifts from one repetition to
//! the next.

use super::{Ledger, Options, Sample, histogram, interrupted};
use crate::clock::{self, Clock};
use crate::error::LabError;
use crate::probe::{self, CpuTimes};
use crate::system::Bare;
use crate::workload::{Extent, Mix, Workload};
use block::AlignedBuffer;
use hdrhistogram::Histogram;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Length of a batch: reading the clock and looking at the stop flag take
/// about a thousandth of it.
const BATCH: Duration = Duration::from_micros(20);

/// Offset of the data in its page, by repetition: at cache lines, as I/O
/// buffers have it, and once as an allocator may place it.
const ALIGNMENTS: [usize; 4] = [0, 64, 16, 192];

/// Runs `workload` once on `cipher`, over `extent` bytes in every thread, or
/// over one request if that is longer. Repetitions differ in alignment.
///
/// # Errors
/// [`LabError`].
///
/// # Panics
/// If requests are not whole sectors.
pub fn run(
    cipher: &Bare,
    workload: &Workload,
    extent: u64,
    repetition: u32,
    options: Options<'_>,
) -> Result<Sample, LabError> {
    let start_line = Barrier::new(workload.threads as usize);
    let cpu = CpuTimes::now();
    // Always threads of their own, because they are pinned.
    let lanes: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workload.threads)
            .map(|index| {
                let start_line = &start_line;
                scope.spawn(move || {
                    probe::pin_to_core(index);
                    let mut data = Data::new(workload, extent, repetition, options.seed, index);
                    warm_up(cipher, workload.op == Mix::Encrypt, &mut data);
                    start_line.wait();
                    let before = clock::core_hz_now();
                    let lane = drive(cipher, data, workload, options);
                    let core_hz = before.zip(clock::core_hz_now());
                    (lane, core_hz.map(|(before, after)| (before + after) / 2.0))
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
    });
    let cpu = CpuTimes::now()
        .zip(cpu)
        .map(|(after, before)| after.since(before));
    let clock = Clock::get();
    let mut total = Sample {
        cpu,
        ..Sample::default()
    };
    let mut clocks = Vec::new();
    for (lane, core_hz) in lanes {
        let lane = lane?;
        clocks.extend(core_hz);
        let wall = clock.seconds(lane.wall);
        total.wall = total.wall.max(wall);
        total.bytes += lane.requests * workload.block_bytes();
        total.requests += lane.requests;
        total.latency += lane.latency;
        total.ledger.add(&Ledger {
            threads: wall,
            crypto: wall,
            latency: wall,
            request_crypto: wall,
            ..Ledger::default()
        });
    }
    total.core_hz = (!clocks.is_empty()).then(|| clocks.iter().sum::<f64>() / clocks.len() as f64);
    Ok(total)
}

/// Bytes that a thread encrypts or decrypts first of all: enough for a library's
/// handle and the tables.
const HEAD: usize = 64 << 10;

/// Whole requests that take less are encrypted or decrypted once before the first
/// stamp. A repetition may be two of them, and the first would find the caches as
/// the noise in the buffer has left them.
const WARM_UP: Duration = Duration::from_millis(50);

fn warm_up(cipher: &Bare, encrypts: bool, data: &mut Data) {
    let bytes = data.request_bytes.min(HEAD);
    let begun = Instant::now();
    cipher.crypt(encrypts, 0, &mut data.request(0)[..bytes]);
    let all = begun.elapsed() * (data.request_bytes / bytes) as u32;
    if all < WARM_UP {
        cipher.crypt(encrypts, 0, data.request(0));
    }
}

/// The data that one thread works on.
struct Data {
    buffer: AlignedBuffer,
    /// Offset of the first request in the buffer.
    offset: usize,
    request_bytes: usize,
    /// Requests that the buffer holds.
    requests: usize,
}

impl Data {
    fn new(workload: &Workload, extent: u64, repetition: u32, seed: u64, index: u32) -> Self {
        let request_bytes = workload.block_bytes() as usize;
        let requests = (extent as usize / request_bytes).max(1);
        let offset = ALIGNMENTS[repetition as usize % ALIGNMENTS.len()];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ u64::from(index));
        Self {
            buffer: AlignedBuffer::noise(offset + requests * request_bytes, &mut random),
            offset,
            request_bytes,
            requests,
        }
    }

    fn request(&mut self, nth: usize) -> &mut [u8] {
        let start = self.offset + nth * self.request_bytes;
        &mut self.buffer[start..start + self.request_bytes]
    }
}

/// The measurements of one thread; times are in ticks.
struct Measured {
    wall: u64,
    requests: u64,
    latency: Histogram<u64>,
}

fn drive(
    cipher: &Bare,
    mut data: Data,
    workload: &Workload,
    options: Options<'_>,
) -> Result<Measured, LabError> {
    let clock = Clock::get();
    let encrypts = workload.op == Mix::Encrypt;
    let (limit, most) = match workload.extent() {
        Extent::Time(time) => (clock.ticks(time), u64::MAX),
        Extent::Bytes(bytes) => {
            let share = bytes / workload.block_bytes() / u64::from(workload.threads);
            (u64::MAX, share.max(1))
        }
    };
    let target = clock.ticks(BATCH);
    let nanoseconds = 1e9 / clock.hz;
    let mut measured = Measured {
        wall: 0,
        requests: 0,
        latency: histogram(),
    };
    let mut nth = 0;
    let mut batch = 1;
    let start = clock.now();
    let mut before = start;
    while before - start < limit && measured.requests < most {
        let now = batch.min(most - measured.requests);
        for _ in 0..now {
            let sector = (nth * data.request_bytes / 512) as u64;
            cipher.crypt(encrypts, sector, data.request(nth));
            nth = if nth + 1 == data.requests { 0 } else { nth + 1 };
        }
        let after = clock.now();
        let mean = (after - before) / now;
        measured
            .latency
            .saturating_record_n((mean as f64 * nanoseconds) as u64, now);
        measured.requests += now;
        batch = (target / mean.max(1)).max(1);
        before = after;
        if options.stop.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
    }
    measured.wall = before - start;
    Ok(measured)
}
