//! The combined results of the trials of many hosts. They are plain data, which the crate `fleet`
//! queries and this crate shows.
//!
//! A ratio is an encrypted rate ÷ the plain one on the same host, to a thousandth; below 1 is
//! slower. A quantile is the smallest ratio that this share of the trials does not exceed. Trials
//! are alike if they have the same tier, system, cipher, key, workload, file system, processor and
//! model of the device.

mod report;

use crate::figure;
use crate::render::{self, text::Style};
use lab::record::Tier;
use serde::{Deserialize, Serialize};

/// The report for a terminal.
pub fn text(report: &FleetReport, style: &Style) -> String {
    render::text::render(&report::document(report), style)
}

/// The report as one HTML file.
pub fn page(report: &FleetReport) -> String {
    render::html::render(&report::document(report))
}

/// A report on the trials of many hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetReport {
    /// The place where the trials are stored.
    pub place: String,
    /// Trials there.
    pub trials: u64,
    /// Their runs.
    pub runs: u64,
    /// Trials that were compared with plain.
    pub compared: u64,
    /// Overhead by what hosts differ in.
    pub overhead: Vec<Breakdown>,
    /// The trials that are far from all similar ones.
    pub outliers: Outliers,
    /// The losses that came with a version of the program; the largest loss first.
    pub regressions: Vec<Regression>,
}

/// Overhead by one property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// The property: `CPU`, `device`, `kernel`, `cipher`.
    pub by: String,
    /// Its values; that with the most trials first.
    pub groups: Vec<Quantiles>,
}

/// Quantiles of the overhead of trials that have something in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The property that the trials share.
    pub name: String,
    /// The number of trials.
    pub trials: u64,
    /// The 5 % quantile of the ratios.
    pub p5: f64,
    /// The lower quartile.
    pub p25: f64,
    /// The median.
    pub p50: f64,
    /// The upper quartile.
    pub p75: f64,
    /// The 95 % quantile.
    pub p95: f64,
}

/// The common properties of similar trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alike {
    /// `cipher`, `block` or `fs`.
    pub tier: Tier,
    /// The system.
    pub system: String,
    /// dm-crypt notation; empty if there is none.
    pub cipher: String,
    /// Key length, bits; 0 if there is none.
    pub key_bits: u32,
    /// The system that it is compared with.
    pub against: String,
    /// The file system under test; empty below that tier.
    pub fs: String,
    /// Name of the workload.
    pub workload: String,
    /// The operation of the workload.
    pub op: String,
    /// Bytes of a request, if they are known.
    pub block_bytes: Option<u64>,
    /// Requests in flight a thread, if they are known.
    pub queue_depth: Option<u32>,
    /// Threads, if they are known.
    pub threads: Option<u32>,
    /// Model of the device, or its kind.
    pub device: String,
    /// Model of the processor.
    pub cpu: String,
}

impl Alike {
    /// The cipher and the system: `AES-256 XTS, builtin`.
    pub(crate) fn name(&self) -> String {
        match self.cipher.as_str() {
            "" => self.system.clone(),
            cipher => {
                let bits = Some(self.key_bits).filter(|bits| *bits > 0);
                format!("{}, {}", figure::cipher(cipher, bits), self.system)
            }
        }
    }

    /// The workload, the machine and the device.
    pub(crate) fn place(&self) -> String {
        format!("{} · {} · {}", self.workload, self.cpu, self.device)
    }
}

/// Trials that are far from all alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outliers {
    /// How many there are.
    pub found: u64,
    /// Those that are the farthest away.
    pub farthest: Vec<Outlier>,
}

/// A trial that lies outside of the quartiles of at least eight that are alike by
/// more than three times their distance, and by more than 0.02.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    /// Its run.
    pub run: String,
    /// The properties of the measurement.
    #[serde(flatten)]
    pub alike: Alike,
    /// Its ratio.
    pub ratio: f64,
    /// The lower quartile of all alike.
    pub p25: f64,
    /// Their median.
    pub p50: f64,
    /// The upper quartile.
    pub p75: f64,
    /// How many there are, with it.
    pub trials: u64,
}

/// A version of the program with which all alike became slower: the 95 % intervals
/// of the medians do not touch, and these differ by 0.02 or more. There are at least
/// six trials of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    /// The properties of the slower trials.
    #[serde(flatten)]
    pub alike: Alike,
    /// The version that was seen before on such machines.
    pub before: String,
    /// Trials of it.
    pub before_trials: u64,
    /// Median ratio of it.
    pub before_ratio: f64,
    /// The version that is slower.
    pub after: String,
    /// Trials of it.
    pub after_trials: u64,
    /// Median ratio of it.
    pub after_ratio: f64,
}

/// A ratio in words: `−12.3 %`, `+1.0 %`.
pub(crate) fn change(ratio: f64) -> String {
    match ((ratio - 1.0) * 1000.0).round() / 10.0 {
        percent if percent < 0.0 => format!("−{:.1} %", -percent),
        percent if percent > 0.0 => format!("+{percent:.1} %"),
        _ => "0.0 %".to_owned(),
    }
}
