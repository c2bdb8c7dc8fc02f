//! [`Gauge`]: one number of a machine that tells its energy, and the joules between two readings.

use super::sysfs::{number, word};
use super::{Fault, MOST_WATTS};
use std::path::PathBuf;

/// Joules in a microwatt-hour.
const MICROWATT_HOUR: f64 = 3.6e-3;

/// A part of a sensor: a domain, a rail, or a battery.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// Its name, such as `package-0` or `BAT0`.
    pub(super) name: String,
    pub(super) gauge: Gauge,
    /// Time from one refresh of the number to the next, seconds.
    pub(super) refresh: f64,
    /// Whether the sum is told without it if it never moves.
    pub(super) optional: bool,
}

/// The content of a part's files.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Gauge {
    /// Energy taken so far, µJ, which begins again at zero after `range`.
    Counter { file: PathBuf, range: Option<f64> },
    /// Energy left in a battery, µWh.
    Stored { file: PathBuf, status: PathBuf },
    /// Charge left in a battery, µAh, at a voltage, µV.
    Charge {
        file: PathBuf,
        voltage: PathBuf,
        status: PathBuf,
    },
    /// Power now, µW; of a battery, also whether it discharges.
    Power {
        file: PathBuf,
        status: Option<PathBuf>,
    },
    /// Current now, µA, at a voltage, µV.
    Current {
        file: PathBuf,
        voltage: PathBuf,
        status: PathBuf,
    },
}

/// A reading of a [`Gauge`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// Joules taken so far.
    Taken(f64),
    /// Joules left.
    Left(f64),
    /// Coulombs left, and volts.
    Charge(f64, f64),
    /// Watts.
    Watts(f64),
}

impl Part {
    /// Reads it now.
    ///
    /// # Errors
    /// Why it has no number.
    pub(super) fn read(&self) -> Result<Value, Fault> {
        match &self.gauge {
            Gauge::Counter { file, .. } => Ok(Value::Taken(number(file)? as f64 / 1e6)),
            Gauge::Stored { file, status } => {
                self.discharges(status)?;
                Ok(Value::Left(number(file)? as f64 * MICROWATT_HOUR))
            }
            Gauge::Charge {
                file,
                voltage,
                status,
            } => {
                self.discharges(status)?;
                let (charge, volts) = (number(file)? as f64, number(voltage)? as f64 / 1e6);
                Ok(Value::Charge(charge * MICROWATT_HOUR, volts))
            }
            Gauge::Power { file, status } => {
                status
                    .as_ref()
                    .map_or(Ok(()), |status| self.discharges(status))?;
                // Some drivers count what leaves the battery as negative.
                Ok(Value::Watts(number(file)?.unsigned_abs() as f64 / 1e6))
            }
            Gauge::Current {
                file,
                voltage,
                status,
            } => {
                self.discharges(status)?;
                let amperes = number(file)?.unsigned_abs() as f64 / 1e6;
                Ok(Value::Watts(amperes * number(voltage)? as f64 / 1e6))
            }
        }
    }

    fn discharges(&self, status: &std::path::Path) -> Result<(), Fault> {
        match word(status).as_deref() {
            Some("Discharging") => Ok(()),
            _ => Err(Fault::NotDischarging {
                part: self.name.clone(),
            }),
        }
    }

    /// Joules from one reading to the next, which came `seconds` later.
    ///
    /// # Errors
    /// Why they are not known.
    pub(super) fn joules(&self, before: Value, after: Value, seconds: f64) -> Result<f64, Fault> {
        let part = || self.name.clone();
        let joules = match (before, after) {
            (Value::Taken(before), Value::Taken(after)) => self.counted(before, after, seconds)?,
            (Value::Left(before), Value::Left(after)) => before - after,
            (Value::Charge(before, volts), Value::Charge(after, then)) => {
                (before - after) * (volts + then) / 2.0
            }
            (Value::Watts(before), Value::Watts(after)) => (before + after) / 2.0 * seconds,
            _ => return Err(Fault::Unread),
        };
        if joules < 0.0 {
            return Err(Fault::Backwards { part: part() });
        }
        // A counter may have been refreshed just after one reading and just before the other.
        if joules > MOST_WATTS * (seconds + 2.0 * self.refresh) {
            return Err(Fault::Jump {
                part: part(),
                watts: joules / (seconds + 2.0 * self.refresh),
            });
        }
        Ok(joules)
    }

    /// The same of a counter that may have begun again at zero, once.
    fn counted(&self, before: f64, after: f64, seconds: f64) -> Result<f64, Fault> {
        let range = match self.gauge {
            Gauge::Counter { range, .. } => range,
            _ => None,
        };
        let part = || self.name.clone();
        if range.is_some_and(|range| seconds * MOST_WATTS > range) {
            return Err(Fault::Unwatched {
                part: part(),
                seconds,
            });
        }
        match range {
            _ if after >= before => Ok(after - before),
            // What would be a jump is a counter that went back.
            Some(range)
                if after - before + range <= MOST_WATTS * (seconds + 2.0 * self.refresh) =>
            {
                Ok(after - before + range)
            }
            _ => Err(Fault::Backwards { part: part() }),
        }
    }

    /// Longest time between two readings, seconds: a counter must not wrap twice, and a power must
    /// be seen as often as it changes.
    pub(super) fn longest(&self) -> f64 {
        match self.gauge {
            Gauge::Counter { range, .. } => {
                let range = range.unwrap_or(f64::INFINITY);
                (range / MOST_WATTS / 4.0).min(1.0)
            }
            Gauge::Power { .. } | Gauge::Current { .. } => (self.refresh / 2.0).clamp(0.02, 1.0),
            Gauge::Stored { .. } | Gauge::Charge { .. } => 1.0,
        }
    }
}
