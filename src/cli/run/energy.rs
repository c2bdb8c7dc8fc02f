//! The energy sensor of a run.

use super::{Failure, Progress, RunOptions};
use lab::energy::{Choice, Meter, Metering, SYSFS, sensors};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How soon a signal ends the measurement of the power at rest.
const TICK: Duration = Duration::from_millis(50);

/// Refuses a sensor that was named and cannot be read, before anything else takes time.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn check(options: &RunOptions) -> Result<(), Failure> {
    match &options.energy {
        Some(choice) => Ok(choice.of(&sensors(Path::new(SYSFS))).map(drop)?),
        None => Ok(()),
    }
}

/// Reads the chosen sensor from now on, and measures the machine's power at rest. `None` if there
/// is no sensor. If `fine`, another process times the visits.
///
/// # Errors
/// A sensor that was named gives no figure.
pub(super) fn metering(
    options: &RunOptions,
    fine: bool,
    stop: &AtomicBool,
    progress: &Progress,
) -> Result<Option<Metering>, Failure> {
    let choice = options.energy.clone().unwrap_or_default();
    if choice == Choice::Off {
        return Ok(None);
    }
    let Some(sensor) = choice.of(&sensors(Path::new(SYSFS)))? else {
        return Ok(None);
    };
    progress.doing("measuring the machine's power at rest");
    let rest = |time: Duration| {
        let begun = Instant::now();
        while let Some(left) = time.checked_sub(begun.elapsed())
            && !left.is_zero()
            && !stop.load(Ordering::Relaxed)
        {
            std::thread::sleep(left.min(TICK));
        }
    };
    match Metering::begin(Meter::start(sensor, fine), rest) {
        Ok(metering) => Ok(Some(metering)),
        // `doctor` says more of a sensor that was not asked for.
        Err(_) if choice == Choice::Auto || stop.load(Ordering::Relaxed) => Ok(None),
        Err(fault) => Err(fault.into()),
    }
}
