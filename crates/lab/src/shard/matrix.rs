//! [`Matrix`]: an experiment as combinations of values.

use super::ShardError;
use serde::{Deserialize, Serialize};

/// Every combination of these values is a shard, and a run of its own; an axis
/// without values is the plan's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Matrix {
    /// Systems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<String>,
    /// Ciphers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ciphers: Vec<String>,
    /// Names of workloads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<String>,
    /// Seeds: the first and the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<(u64, u64)>,
}

impl Matrix {
    /// Adds a value to an axis: `system=drive:hdd-wd`, `seed=1..20`.
    ///
    /// # Errors
    /// [`ShardError::Axis`].
    pub fn add(&mut self, text: &str) -> Result<(), ShardError> {
        let wrong = || ShardError::Axis(text.to_owned());
        let (axis, value) = text.split_once('=').ok_or_else(wrong)?;
        let values = match axis {
            "system" => &mut self.systems,
            "cipher" => &mut self.ciphers,
            "workload" => &mut self.workloads,
            "seed" => {
                let (first, last) = value.split_once("..").unwrap_or((value, value));
                let number = |text: &str| text.parse::<u64>().ok().filter(|n| *n < 1 << 63);
                let range = number(first).zip(number(last));
                let range = range.filter(|(first, last)| first <= last);
                self.seeds = Some(range.ok_or_else(wrong)?);
                return Ok(());
            }
            _ => return Err(wrong()),
        };
        if value.is_empty() {
            return Err(wrong());
        }
        values.push(value.to_owned());
        Ok(())
    }

    /// The matrix of a file, where the seeds may stand in any order.
    pub(super) fn checked(self) -> Result<Self, ShardError> {
        match self.seeds {
            Some((first, last)) if first > last => {
                Err(ShardError::Axis(format!("seed={first}..{last}")))
            }
            _ => Ok(self),
        }
    }

    /// Values of every axis that has some.
    pub(super) fn sizes(&self) -> [u64; 4] {
        let of = |values: &Vec<String>| values.len().max(1) as u64;
        let seeds = self.seeds.map_or(1, |(first, last)| last - first + 1);
        [
            of(&self.systems),
            of(&self.ciphers),
            of(&self.workloads),
            seeds,
        ]
    }
}
