//! The record of a run: plain data, serialised as `cryptmark/2`.
//!
//! The record holds everything that a report may say about a run. A field that was not measured is
//! `None` (JSON `null`), never zero. Throughput counts 10⁶ bytes. An [`Interval`] is a median with
//! its 95 % interval.

mod detail;
mod energy;
mod exposure;
mod setup;
mod trial;

pub use detail::{Detail, FileOperation, Kdf, Life, Moved, TrimPolicy};
pub use energy::{Energy, EnergyCost, EnergyVerdict};
pub use exposure::{Entry, Exposure, Shown, Space};
pub use setup::{Lived, Load, Place, Setup};
pub use trial::{
    Bottleneck, Device, Latency, LatencySplit, Measure, Overhead, Paper, Published, Tier,
    TimeSplit, Trial, Verdict,
};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema that this program writes and reads.
pub const SCHEMA: &str = "cryptmark/2";

/// One stored run: the header and a [`Trial`] for every cell of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Always [`SCHEMA`] for a run written by this version.
    pub schema: String,
    /// Unique id, sortable by start time.
    pub run: String,
    /// Name of the plan that was run.
    pub plan: String,
    /// Start of the run, RFC 3339 with offset.
    pub started: String,
    /// True while the run is under way and when it was interrupted or failed.
    pub partial: bool,
    /// The command line's seed: same seed, same extents and data.
    pub seed: u64,
    /// The part of an experiment that the run is, if many hosts share the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// SHA-256 of the run's definition, hexadecimal, if an interrupted run of it can be continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The machine, as far as it influences the figures.
    pub host: Host,
    /// The measured difference between two measurements of the same target.
    pub noise: Noise,
    /// The document that the plan repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<Paper>,
    /// The preparation of the device, if rounds went on until it was steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditioning: Option<Conditioning>,
    /// Scores that are made of rates, as other programs make them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// The part of files that each system leaves visible, if files were encrypted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exposures: Vec<Exposure>,
    /// One entry a cell of the plan, in the order of the plan.
    pub trials: Vec<Trial>,
    /// Remarks on the run as a whole, each with what to do about it.
    pub warnings: Vec<String>,
}

impl Default for Run {
    /// One of which nothing is known.
    fn default() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            run: String::new(),
            plan: String::new(),
            started: String::new(),
            partial: false,
            seed: 0,
            shard: None,
            fingerprint: None,
            host: Host::default(),
            noise: Noise::default(),
            paper: None,
            conditioning: None,
            marks: Vec::new(),
            exposures: Vec::new(),
            trials: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// A part of an experiment that many hosts share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Name of the experiment.
    pub experiment: String,
    /// Number of the shard, from 1.
    pub index: u32,
    /// Number of shards.
    pub of: u32,
    /// SHA-256 of what the whole experiment measures, hexadecimal.
    pub fingerprint: String,
    /// Which of the experiment's portions it has, in the order of its trials, from 0; empty for a
    /// run of its own. A portion is a workload on one simulated drive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub portions: Vec<u32>,
}

/// Rounds until a steady state, as SNIA's Performance Test Specification has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditioning {
    /// How often the extent is written in order before each test.
    pub precondition: u32,
    /// Whether all of it was discarded before that; `None` before it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purged: Option<bool>,
    /// The tests, one after the other.
    #[serde(rename = "test")]
    pub tests: Vec<SteadyTest>,
}

/// A score: a weighted sum of rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// The name of the score.
    pub name: String,
    /// The source of its formula.
    pub source: String,
    /// Points for each MB/s, by workload.
    pub weights: BTreeMap<String, f64>,
    /// The value that a document prints for it.
    pub published: Option<f64>,
    /// Its share of a whole suite, if it is a part of one.
    pub share: Option<f64>,
    /// Loss of the whole suite through encryption according to the document, per cent.
    pub published_loss: Option<f64>,
}

/// A test of its own, which begins with a prepared device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadyTest {
    /// As the specification calls it: `IOPS`, `throughput`, `latency`.
    pub name: String,
    /// Names of its workloads.
    pub workloads: Vec<String>,
    /// Those whose rates say that the device is steady.
    pub tracked: Vec<String>,
}

/// The environment of a run. Two runs whose [`Host::key`] differ are not
/// compared unless the user asks for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Model name of the processor.
    pub cpu: String,
    /// The instruction-set features that matter to ciphers, as the kernel names them.
    pub features: Vec<String>,
    /// Measured core clock under load, hertz.
    pub clock_hz: Option<f64>,
    /// Calibrated frequency of the time-stamp counter, hertz.
    pub tsc_hz: Option<f64>,
    /// Resolution of the clock used, nanoseconds.
    pub clock_resolution_ns: f64,
    /// Cost of one reading of the clock used, nanoseconds.
    pub clock_cost_ns: f64,
    /// Logical processors that this process may use.
    pub cores: u32,
    /// Kernel name and release.
    pub kernel: String,
    /// Distribution or system name.
    pub os: String,
    /// CPU frequency governor, if there is one.
    pub governor: Option<String>,
    /// Total memory, bytes.
    pub memory: u64,
    /// One-minute load average at the start of the run.
    pub load_average: Option<f64>,
    /// Share of CPU time stolen by the hypervisor during the run, 0 to 1.
    pub steal: Option<f64>,
    /// Hypervisor, if the processor reports one.
    pub hypervisor: Option<String>,
    /// Versions of this program and of what it measured with.
    pub versions: BTreeMap<String, String>,
}

impl Host {
    /// The properties that must be equal for two runs to be compared without a label.
    pub fn key(&self) -> String {
        format!(
            "{} · {} cores · {} · {}",
            self.cpu, self.cores, self.os, self.kernel
        )
    }
}

/// The noise floor of a run, from its A/A pairs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Ratio of the same target measured twice, over all pairs of the run.
    pub aa_ratio: Option<Interval>,
    /// Whether the A/A pairs say "no difference".
    pub verdict: NoiseVerdict,
}

/// The verdict of the A/A pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseVerdict {
    /// The same target measured twice shows no difference.
    Quiet,
    /// The same target shows a difference or a wide spread; read the other figures with that in
    /// mind.
    Noisy,
    /// There are too few A/A pairs.
    #[default]
    Unknown,
}

/// A median with its 95 % interval, as `stats` says; of one look with fewer than six values, the
/// least and the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Median of the `n` values.
    pub median: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Number of values.
    pub n: u32,
}
