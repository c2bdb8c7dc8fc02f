//! One repetition of a key derivation.
//!
//! Derivations that are over soon are repeated until the repetition is long
//! enough to be read off any clock. All of the time is the derivation's.

use super::{Ledger, Sample, histogram};
use crate::clock::Clock;
use crate::error::LabError;
use crate::probe::CpuTimes;
use crate::system::unlock::{Purpose, Unlock};
use hdrhistogram::Histogram;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Length of a repetition, at least.
const LENGTH: Duration = Duration::from_millis(200);

/// Derives keys for `purpose` in `at_once` threads.
///
/// # Errors
/// [`LabError`]; a derivation that is under way is finished first.
pub fn run(
    unlock: &Unlock,
    purpose: Purpose,
    at_once: u32,
    stop: &AtomicBool,
) -> Result<Sample, LabError> {
    let start_line = Barrier::new(at_once as usize);
    let cpu = CpuTimes::now();
    let lanes: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..at_once)
            .map(|index| {
                let start_line = &start_line;
                scope.spawn(move || drive(unlock, purpose, index, start_line, stop))
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
    let mut total = Sample {
        cpu,
        ..Sample::default()
    };
    for lane in lanes {
        let lane = lane?;
        let wall = Clock::get().seconds(lane.wall);
        total.wall = total.wall.max(wall);
        total.bytes += lane.keys * unlock.key_bytes(purpose) as u64;
        total.requests += lane.keys;
        total.latency += lane.latency;
        total.ledger.add(&Ledger {
            threads: wall,
            crypto: wall,
            latency: wall,
            request_crypto: wall,
            ..Ledger::default()
        });
    }
    Ok(total)
}

/// The measurements of one thread; times are in ticks.
struct Measured {
    wall: u64,
    keys: u64,
    latency: Histogram<u64>,
}

fn drive(
    unlock: &Unlock,
    purpose: Purpose,
    index: u32,
    start_line: &Barrier,
    stop: &AtomicBool,
) -> Result<Measured, LabError> {
    let clock = Clock::get();
    let length = clock.ticks(LENGTH);
    let nanoseconds = 1e9 / clock.hz;
    let mut measured = Measured {
        wall: 0,
        keys: 0,
        latency: histogram(),
    };
    start_line.wait();
    let start = clock.now();
    let mut before = start;
    while before - start < length {
        unlock.once(purpose, u64::from(index) << 32 | measured.keys)?;
        let after = clock.now();
        measured
            .latency
            .saturating_record(((after - before) as f64 * nanoseconds) as u64);
        measured.keys += 1;
        before = after;
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::session_interrupted());
        }
    }
    measured.wall = before - start;
    Ok(measured)
}
