//! [`Metering`]: a meter with the power of the machine at rest.

use super::{Fault, Mark, Meter, REFRESHES_AT_REST};
use crate::record::Interval;
use crate::stats;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// Stretches of rest, each of which has a power.
const STRETCHES: u32 = 12;

/// Stretches of a sensor that takes seconds to refresh. Fewer have no 95 % interval.
const FEWEST_STRETCHES: u32 = 6;

/// Length of a stretch, seconds, unless the sensor needs longer.
const STRETCH: f64 = 0.25;

/// Smallest share of a visit that must be timed. The rest is its preparation.
const TIMED: f64 = 0.8;

/// The energy of one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// Joules, with those that the machine takes at rest.
    pub joules: f64,
    /// The time over which they were counted, seconds.
    pub seconds: f64,
}

/// A meter of a run, and the machine's power at rest, measured before the run.
#[derive(Debug)]
pub struct Metering {
    meter: Meter,
    source: String,
    idle: Interval,
    /// How often there was no figure, by reason.
    missing: Mutex<BTreeMap<String, u32>>,
}

impl Metering {
    /// Measures the power of the machine at rest: for three seconds, or longer with a sensor that
    /// is slow. `rest` lets time pass.
    ///
    /// # Errors
    /// Why the sensor gives no figure.
    pub fn begin(meter: Meter, rest: impl Fn(Duration)) -> Result<Self, Fault> {
        let needed = meter.refresh() * REFRESHES_AT_REST;
        let (stretches, seconds) = match needed > STRETCH {
            true => (FEWEST_STRETCHES, needed),
            false => (STRETCHES, STRETCH),
        };
        let stretch = Duration::from_secs_f64(seconds);
        // The first stretch shows which parts move.
        let begun = meter.mark();
        rest(stretch);
        meter.between_idle(begun, meter.mark())?;
        meter.leave_out_what_stands();
        let mut watts = Vec::new();
        for _ in 0..stretches {
            let from = meter.mark();
            rest(stretch);
            let to = meter.mark();
            watts.push(meter.between_idle(from, to)? / to.since(from));
        }
        Ok(Self {
            source: meter.describe(),
            idle: stats::interval(&watts).ok_or(Fault::Unread)?,
            meter,
            missing: Mutex::default(),
        })
    }

    /// The parts that are added, and where it was found.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The machine's power at rest, watts.
    pub fn idle_watts(&self) -> Interval {
        self.idle
    }

    /// Reads the sensor now.
    pub fn mark(&self) -> Mark {
        self.meter.mark()
    }

    /// The energy since `from` of a visit that timed `timed` seconds; `None` if it is not known.
    pub fn spent(&self, from: Mark, timed: f64) -> Option<Spent> {
        let to = self.meter.mark();
        let seconds = to.since(from);
        let joules = match timed < TIMED * seconds {
            true => Err(Fault::Untimed),
            false => self.meter.between(from, to),
        };
        self.known(joules, seconds)
    }

    /// The energy of a stretch that ended `ago` seconds ago and took `seconds`; `None` if it is
    /// not known.
    pub fn spent_over(&self, ago: f64, seconds: f64) -> Option<Spent> {
        self.known(self.meter.over(ago, seconds), seconds)
    }

    fn known(&self, joules: Result<f64, Fault>, seconds: f64) -> Option<Spent> {
        match joules {
            Ok(joules) => Some(Spent { joules, seconds }),
            Err(fault) => {
                if let Ok(mut missing) = self.missing.lock() {
                    *missing.entry(fault.to_string()).or_default() += 1;
                }
                None
            }
        }
    }

    /// A remark for each reason for which visits have no figure.
    pub fn warnings(&self) -> Vec<String> {
        let Ok(missing) = self.missing.lock() else {
            return Vec::new();
        };
        let warning = |(reason, count): (&String, &u32)| match count {
            1 => format!("energy: one visit has no figure, because {reason}"),
            _ => format!("energy: {count} visits have no figure, because {reason}"),
        };
        missing.iter().map(warning).collect()
    }
}
