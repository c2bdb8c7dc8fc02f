//! [`Energy`]: what a trial took, above what the machine takes at rest.

use super::Interval;
use serde::{Deserialize, Serialize};

/// The energy of a trial. All figures but `idle_w` are without the power at rest, and their
/// intervals contain its uncertainty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// The domains that are added, and where they were read: `package-0 + dram (powercap)`.
    pub source: String,
    /// Joules for 10⁹ bytes; `None` if no bytes move.
    pub j_per_gb: Option<Interval>,
    /// Millijoules of one operation: a request, or an operation on a file system.
    pub mj_per_operation: Option<Interval>,
    /// The same target unencrypted, in the same pairs; `None` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<EnergyCost>,
    /// Power of the machine at rest, measured before the run, watts.
    pub idle_w: Interval,
    /// Joules of every repetition in order; `None` if the sensor gave no figure.
    pub samples_j: Vec<Option<f64>>,
}

/// Energy in pairs with another system. It is the cost of encryption if the other system is the
/// same target unencrypted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyCost {
    /// The system compared with.
    pub system: String,
    /// This energy ÷ the other's for the same work, pair by pair: above 1 is more. `None` if the
    /// other may have taken nothing above the power at rest.
    pub ratio: Option<Interval>,
    /// This energy less the other's, joules for 10⁹ bytes; `None` if no bytes move.
    pub more_j_per_gb: Option<Interval>,
    /// The verdict that the ratio supports, or the difference if there is no ratio.
    pub verdict: EnergyVerdict,
}

/// The verdict that an interval of paired energies supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnergyVerdict {
    /// More energy, beyond the noise floor.
    #[serde(rename = "more")]
    More,
    /// Less energy, beyond the noise floor.
    #[serde(rename = "less")]
    Less,
    /// The difference is not larger than that of the same target against itself.
    #[serde(rename = "not distinguishable")]
    NotDistinguishable,
    /// Fewer than three pairs, of which nothing can be said.
    #[serde(rename = "too few")]
    TooFew,
}
