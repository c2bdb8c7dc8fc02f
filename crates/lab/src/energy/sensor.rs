//! [`Sensor`]: something of a machine that tells its energy.

use super::gauge::{Gauge, Part, Value};
use super::{Fault, battery, hwmon, powercap};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Where a sensor is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// RAPL, in `/sys/class/powercap`.
    Powercap,
    /// `/sys/class/hwmon`.
    Hwmon,
    /// `/sys/class/power_supply`.
    Battery,
}

impl Source {
    /// Its name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Powercap => "powercap",
            Self::Hwmon => "hwmon",
            Self::Battery => "battery",
        }
    }
}

/// A sensor, whose parts are added.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensor {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) parts: Vec<Part>,
    /// Whether it is known to measure a whole processor or machine.
    pub(super) is_known: bool,
}

impl Sensor {
    /// The name by which it is chosen, such as `package` or `battery:BAT0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it was found.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The parts that are added, and where it was found: `package-0 + dram (powercap)`.
    pub fn describe(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        format!("{} ({})", parts.join(" + "), self.source.as_str())
    }

    /// Whether it counts joules so fast that short visits have a figure. Only such a sensor of a
    /// whole processor or machine is used without being named.
    pub fn is_chosen_by_itself(&self) -> bool {
        let counts = |part: &Part| matches!(part.gauge, Gauge::Counter { .. });
        self.is_known && self.parts.iter().all(counts)
    }

    /// Time from one refresh of its slowest part to the next, seconds.
    pub fn refresh(&self) -> f64 {
        let refreshes = self.parts.iter().map(|part| part.refresh);
        refreshes.fold(0.0, f64::max)
    }

    /// Longest time between two readings, seconds.
    pub(super) fn longest(&self) -> f64 {
        let longest = self.parts.iter().map(Part::longest);
        longest.fold(1.0, f64::min)
    }

    /// Reads every part once.
    ///
    /// # Errors
    /// The first fault of a part.
    pub(super) fn values(&self) -> Result<Vec<Value>, Fault> {
        self.parts.iter().map(Part::read).collect()
    }

    /// Whether it can be read now.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check(&self) -> Result<(), Fault> {
        self.values().map(drop)
    }
}

/// A sensor, and whether it can be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The sensor.
    pub sensor: Sensor,
    /// Why it cannot be read now.
    pub fault: Option<Fault>,
}

/// The sensors of the tree at `root`, which is [`SYSFS`](super::SYSFS) of this machine. The ones
/// that are preferred come first.
pub fn sensors(root: &Path) -> Vec<Found> {
    let mut sensors = powercap::sensors(root);
    sensors.extend(hwmon::sensors(root));
    sensors.extend(battery::sensors(root));
    let found = |sensor: Sensor| Found {
        fault: sensor.check().err(),
        sensor,
    };
    sensors.into_iter().map(found).collect()
}

/// The sensor that a user wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The first that can be read and counts joules fast enough, if there is one.
    #[default]
    Auto,
    /// None.
    Off,
    /// The one with this name.
    Named(String),
}

impl FromStr for Choice {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "auto" => Self::Auto,
            "none" => Self::Off,
            name => Self::Named(name.to_owned()),
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Auto => "auto",
            Self::Off => "none",
            Self::Named(name) => name,
        })
    }
}

impl Choice {
    /// The chosen sensor of `found`; `None` if there is none.
    ///
    /// # Errors
    /// The fault of a sensor that was named. [`Fault::Absent`] if no sensor has the name.
    pub fn of(&self, found: &[Found]) -> Result<Option<Sensor>, Fault> {
        match self {
            Self::Off => Ok(None),
            Self::Auto => {
                let mut readable = found.iter().filter(|found| found.fault.is_none());
                let chosen = readable.find(|found| found.sensor.is_chosen_by_itself());
                Ok(chosen.map(|found| found.sensor.clone()))
            }
            Self::Named(name) => match found.iter().find(|found| found.sensor.name == *name) {
                Some(Found {
                    fault: Some(fault), ..
                }) => Err(fault.clone()),
                Some(found) => Ok(Some(found.sensor.clone())),
                None => Err(Fault::Absent {
                    name: name.clone(),
                    known: found
                        .iter()
                        .map(|found| found.sensor.name.clone())
                        .collect(),
                }),
            },
        }
    }
}
