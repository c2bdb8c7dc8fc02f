//! Measures the cost of the crypto timers: the same work with and without them.

use crate::clock::Clock;
use crate::error::LabError;
use crate::record::Interval;
use crate::stats;
use crate::system::{Encryption, Storage, Target};
use crate::trial::{self, Options};
use crate::workload::{Mix, Pattern, Workload};
use bytesize::ByteSize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Rate with timers ÷ rate without, in alternation, for 4 KiB requests of
/// `encryption` over memory; 1 − 0.01 is a cost of 1 %.
///
/// # Errors
/// [`LabError`].
pub fn timer_cost(
    encryption: Encryption,
    pairs: u32,
    seconds: f64,
) -> Result<Option<Interval>, LabError> {
    let storage =
        Storage::memory(8 << 20, 1).expect("eight megabytes of memory are always to be had");
    let target = Target::builtin(Arc::clone(&storage.device), encryption)?;
    let workload = Workload {
        seconds: Some(seconds),
        ..Workload::new("timer-cost", Pattern::Random, Mix::Write, ByteSize::kib(4))
    };
    let stop = AtomicBool::new(false);
    let rate = |metered: bool, seed: u64| -> Result<f64, LabError> {
        let options = Options {
            seed,
            metered,
            stop: &stop,
            clock: Clock::get(),
            slice: false,
        };
        Ok(trial::run(target.device(), &workload, options)?.mb_s())
    };
    rate(true, 0)?;
    stats::in_turns(u64::from(pairs), rate)
}
