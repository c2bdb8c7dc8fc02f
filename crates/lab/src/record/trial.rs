//! [`Trial`]: one cell of a plan, and what was found in it.

use super::{Detail, Energy, Interval};
use serde::{Deserialize, Serialize};

/// The tier of a trial: the part of the storage stack that it timed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// The bare cipher, over memory.
    Cipher,
    /// A block device.
    #[default]
    Block,
    /// A file system.
    Fs,
}

/// One cell of a plan: one system under one workload, all repetitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The tier that was timed.
    pub tier: Tier,
    /// The contract's word for the system: `none`, `builtin`, `dm-crypt`, …
    pub system: String,
    /// Version of that system.
    pub system_version: String,
    /// Backend of the built-in engine that served the cell.
    pub backend: Option<String>,
    /// dm-crypt notation; `None` for the plain system.
    pub cipher: Option<String>,
    /// Key length in bits, counted as cryptsetup does (both halves of an XTS key).
    pub key_bits: Option<u32>,
    /// Encryption sector size, bytes.
    pub sector_bytes: Option<u32>,
    /// On-disk format, `luks2` and so on; `None` for a bare mapping.
    pub format: Option<String>,
    /// The device that held the bytes.
    pub device: Device,
    /// Name of the workload in the plan.
    pub workload: String,
    /// The operation: `read`, `write`, `mixed`, `encrypt`, `decrypt`, …
    pub op: String,
    /// Bytes of one request; `None` of several sizes, and if another program does not say.
    pub block_bytes: Option<u64>,
    /// Requests in flight per thread; `None` if another program does not say.
    pub queue_depth: Option<u32>,
    /// Driving threads; `None` likewise.
    pub threads: Option<u32>,
    /// Whether each repetition was the first operation of a fresh process.
    pub cold: bool,
    /// Whether each write was done only when it was stored; `None` if not, and if another program
    /// does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsync: Option<bool>,
    /// Repetitions that this record summarises.
    pub repetitions: u32,
    /// Bytes moved in all repetitions; `None` if only rates are known.
    pub bytes: Option<u64>,
    /// Requests completed in all repetitions; `None` likewise.
    pub requests: Option<u64>,
    /// Throughput, 10⁶ bytes a second.
    pub throughput_mb_s: Interval,
    /// Requests a second.
    pub iops: Interval,
    /// Crypto cycles per byte at the core clock, of bare ciphers at that of every repetition.
    pub cycles_per_byte: Option<Interval>,
    /// Latency of a request from submission to completion, all repetitions together.
    pub latency_us: Option<Latency>,
    /// The ledger, summed over repetitions and threads.
    pub time_s: TimeSplit,
    /// Mean parts of one request's latency.
    pub latency_split_us: Option<LatencySplit>,
    /// Against the same target unencrypted; in the cipher tier the engine against the fastest
    /// library, and a library against the engine. `None` without anything to compare with.
    pub overhead: Option<Overhead>,
    /// The energy that it took; `None` if no sensor was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<Box<Energy>>,
    /// The activity that took most of the time.
    pub bottleneck: Bottleneck,
    /// SNIA's rule over the last five repetitions; `None` with fewer than five.
    pub steady_state: Option<bool>,
    /// Whether the backend does no secret-dependent load or branch; `None` for other systems.
    pub constant_time: Option<bool>,
    /// Throughput of every repetition in order, 10⁶ bytes a second.
    pub samples_mb_s: Vec<f64>,
    /// Remarks on this cell, each with what to do about it.
    pub warnings: Vec<String>,
    /// Published figures that this cell repeats.
    pub published: Vec<Published>,
    /// The detail that only trials of its kind have.
    #[serde(flatten)]
    pub detail: Detail,
}

impl Trial {
    /// The median latency, or time of an operation, microseconds.
    pub fn median_us(&self) -> Option<f64> {
        self.latency_us.as_ref().map(|latency| latency.p50)
    }

    /// Seconds of all driving threads together, if they are known.
    pub fn thread_seconds(&self) -> Option<f64> {
        Some(self.time_s.wall? * f64::from(self.threads?.max(1)))
    }

    /// Cores that share a large request of the engine.
    pub fn cores(&self) -> u32 {
        let backend = self.backend.as_deref().unwrap_or_default();
        let cores = backend.rsplit_once(" on ").map(|(_, cores)| cores);
        let cores = cores.and_then(|cores| cores.strip_suffix(" cores"));
        cores.and_then(|cores| cores.parse().ok()).unwrap_or(1)
    }
}

/// The device that held the bytes of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// `disk`, `ssd`, `hdd`, `ram`, `nbd`, `null`, `simulated`, `unknown`.
    pub kind: String,
    /// Model as the kernel names it.
    pub model: Option<String>,
    /// `file`, `block-device`, `memory`, `nbd` for an export of a server.
    pub path_kind: String,
    /// File system that holds the test file.
    pub filesystem: Option<String>,
    /// Share of it that is in use, 0 to 1, before the test file was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_use: Option<f64>,
    /// Whether requests went around the page cache: `direct` or `buffered`; `unknown` of a server.
    pub cache: String,
    /// The device's own write cache: `write back`, `write through`.
    pub write_cache: Option<String>,
    /// How requests reached the kernel: `io_uring`, `threads`, `pread`, `memory`, `nbd`.
    pub engine: String,
    /// I/O scheduler of the device below.
    pub scheduler: Option<String>,
    /// Driver that encrypts before a simulated drive: `queue`, `in-turn`, `truecrypt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Bytes of the test extent.
    pub size: u64,
}

/// Percentiles of a request's latency, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Slowest request.
    pub max: f64,
    /// Points (percentile, µs) of the whole distribution, ascending, for drawing.
    pub curve: Vec<(f64, f64)>,
}

/// The time by activity, seconds; the parts add up to `wall` × threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSplit {
    /// Elapsed time; `None` if only rates are known.
    pub wall: Option<f64>,
    /// User CPU time of the process.
    pub user: Option<f64>,
    /// System CPU time of the process.
    pub sys: Option<f64>,
    /// User and system time together, if the sum is known better than its parts.
    pub cpu: Option<f64>,
    /// CPU time of the kernel's own threads during the trial. These threads serve all programs.
    pub workers: Option<f64>,
    /// Encrypting and decrypting.
    pub crypto: Option<f64>,
    /// Copying between buffers.
    pub copy: Option<f64>,
    /// In system calls that hand requests over.
    pub submit: Option<f64>,
    /// Nothing to do until the device answers.
    pub wait: Option<f64>,
    /// The rest of the driving threads: choosing the next request, recording.
    pub other: Option<f64>,
}

/// Mean parts of one request's latency, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySplit {
    /// Waiting for the driving thread or for other requests.
    pub queue: f64,
    /// Encrypting or decrypting this request.
    pub crypto: f64,
    /// Between hand-over to the device and its answer.
    pub device: f64,
}

/// A ratio to another system measured in alternation. It is the cost of encryption if the other
/// system is the same target unencrypted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// The system compared with.
    pub against: String,
    /// This rate ÷ the other's, pair by pair: below 1 is slower.
    pub ratio: Interval,
    /// The verdict that the interval supports.
    pub verdict: Verdict,
    /// The smallest loss of the rate that could have been detected, as a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest: Option<f64>,
}

/// The verdict that an interval of paired ratios supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The rate is lower, beyond the noise floor.
    #[serde(rename = "slower")]
    Slower,
    /// The rate is higher, beyond the noise floor.
    #[serde(rename = "faster")]
    Faster,
    /// The difference is not larger than that of the same target against itself.
    #[serde(rename = "not distinguishable")]
    NotDistinguishable,
    /// Fewer than [`FEWEST`](Self::FEWEST) pairs, of which nothing can be said.
    #[serde(rename = "too few")]
    TooFew,
}

impl Verdict {
    /// Number of pairs below which no verdict is given.
    pub const FEWEST: u32 = 3;
}

/// The activity that took most of a trial's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bottleneck {
    /// Encrypting and decrypting.
    Cipher,
    /// Waiting for the device.
    Device,
    /// Copying between buffers.
    Copy,
    /// System calls.
    Syscall,
    /// No part stands out, or the parts are not known.
    #[default]
    Unknown,
}

/// A document whose experiment a run repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paper {
    /// The document.
    pub document: String,
    /// How the setting of the run differs from the document's.
    pub differs: String,
    /// The document's word for the cipher that the others are divided by.
    pub base: String,
}

/// A figure that a source document prints for this cell, in the document's words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The document.
    pub document: String,
    /// The value as printed.
    pub value: f64,
    /// The unit as printed.
    pub unit: String,
    /// Figure or table.
    pub figure: String,
    /// Its row in the document's file in `plans/published`.
    pub row: u32,
    /// The system.
    pub system: String,
    /// The machine or drive.
    pub device: String,
    /// The cipher; empty if the document names none.
    pub cipher: String,
    /// The figure of the cell that it is compared with.
    pub measure: Measure,
}

/// The figure of a cell with which a published one is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Throughput, 10⁶ bytes a second.
    Rate,
    /// Time of a request or an operation.
    Time,
    /// Time of encryption within an operation.
    Crypto,
    /// System time of an operation.
    Sys,
    /// Loss of the plain rate through encryption, per cent.
    Loss,
    /// Increase of the plain time through encryption, per cent.
    Slowdown,
}
