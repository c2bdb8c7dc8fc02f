//! The energy that a machine takes, read from its own sensors.
//!
//! A [`Sensor`] is found in a tree of `sysfs`, whose root is a parameter. A [`Meter`] reads it in
//! the background and whenever it is asked, and knows the joules of any stretch of time since its
//! start. A [`Metering`] is a meter with the machine's idle power, which was measured before.
//!
//! A sensor that cannot be trusted gives no figure. Its [`Fault`] says why.
//! docs/method/energy.md has the rules and the formulas.

mod battery;
mod fault;
mod gauge;
mod hwmon;
mod meter;
mod metering;
mod powercap;
mod sensor;
mod sysfs;
mod tally;
#[cfg(test)]
pub(crate) mod tests;

pub use fault::Fault;
pub use meter::{Mark, Meter, Time};
pub use metering::{Metering, Spent};
pub use sensor::{Choice, Found, Sensor, Source, sensors};

/// The root of this machine's tree.
pub const SYSFS: &str = "/sys";

/// Watts above which a single counter is not believed. No processor, memory or laptop takes as
/// much.
pub const MOST_WATTS: f64 = 1000.0;

/// Refreshes of a sensor that a stretch must last. Shorter stretches have no figure, because the
/// sensor's last refresh before each end decides too much of it.
pub const REFRESHES: f64 = 10.0;

/// The same of a machine at rest, whose power hardly changes.
pub const REFRESHES_AT_REST: f64 = 2.0;
