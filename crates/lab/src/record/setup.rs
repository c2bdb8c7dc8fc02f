//! [`Setup`] and [`Load`]: what tells the cells of runs apart. Two cells with the same set-up and
//! the same load are the same measurement, in one run or in two.

use super::{Life, Tier, Trial, TrimPolicy};
use serde::Serialize;

/// The measured system with its cipher, and the settings of both.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Setup {
    /// The record's word for the system.
    pub system: String,
    /// dm-crypt notation.
    pub cipher: Option<String>,
    /// Key length in bits.
    pub key_bits: Option<u32>,
    /// Encryption sector size, bytes.
    pub sector_bytes: Option<u32>,
    /// On-disk format.
    pub format: Option<String>,
    /// The options that the kernel's dm-crypt was given, such as `no_read_workqueue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
    /// Cores that share a large request of the engine.
    pub cores: u32,
    /// Driver that encrypts before a simulated drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The handling of discards, in a sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim_policy: Option<TrimPolicy>,
}

/// The work that a set-up was given, and the place where it ran.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Load {
    /// The tier that was timed.
    pub tier: Tier,
    /// Name of the workload.
    pub workload: String,
    /// The operation that was done.
    pub op: String,
    /// Bytes of one request, if they are known and all alike.
    pub block_bytes: Option<u64>,
    /// Requests in flight per thread, if they are known.
    pub queue_depth: Option<u32>,
    /// Driving threads, if they are known.
    pub threads: Option<u32>,
    /// Whether nothing was cached, or started, before.
    pub cold: bool,
    /// Whether each write was done only when it was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fsync: Option<bool>,
    /// File system under test.
    pub fs: Option<String>,
    /// Bytes of the device that this file system is on.
    pub fs_bytes: Option<u64>,
    /// The device.
    pub place: Place,
    /// How a drive of a sweep has lived before.
    pub life: Option<Lived>,
}

/// A device, as far as two of them in one run differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Its kind.
    pub kind: String,
    /// The model of the device, if it is known.
    pub model: Option<String>,
    /// Whether requests went around the page cache.
    pub cache: String,
}

/// The properties in which two lives of a drive differ, apart from their handling of discards.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Lived {
    /// Share of the file system that holds files, millionths.
    pub fill: u64,
    /// Pages beyond those that the host can write, millionths of these.
    pub over_provisioning: u64,
    /// The drive's policy for choosing the next block to clean.
    pub gc: String,
    /// Bytes that the host writes a day.
    pub daily_bytes: u64,
    /// Length of the life, millionths of a year.
    pub years: u64,
    /// The first seed.
    pub first_seed: u64,
}

impl From<&Life> for Lived {
    fn from(life: &Life) -> Self {
        let millionths = |number: f64| (number * 1e6).round() as u64;
        Self {
            fill: millionths(life.fill),
            over_provisioning: millionths(life.over_provisioning),
            gc: life.gc.clone(),
            daily_bytes: life.daily_bytes,
            years: millionths(life.years),
            first_seed: life.first_seed,
        }
    }
}

impl Trial {
    /// The set-up that the trial measured.
    pub fn setup(&self) -> Setup {
        let is_dm_crypt = self.system.ends_with("dm-crypt");
        Setup {
            system: self.system.clone(),
            cipher: self.cipher.clone(),
            key_bits: self.key_bits,
            sector_bytes: self.sector_bytes,
            format: self.format.clone(),
            options: self.backend.clone().filter(|_| is_dm_crypt),
            cores: self.cores(),
            driver: self.device.driver.clone(),
            trim_policy: self.life().map(|life| life.policy),
        }
    }

    /// The cipher with its key and its sectors: trials with the same encrypt the same.
    pub fn encryption(&self) -> (Option<&str>, Option<u32>, Option<u32>) {
        (self.cipher.as_deref(), self.key_bits, self.sector_bytes)
    }

    /// The load that the trial measured.
    pub fn load(&self) -> Load {
        Load {
            tier: self.tier,
            workload: self.workload.clone(),
            op: self.op.clone(),
            block_bytes: self.block_bytes,
            queue_depth: self.queue_depth,
            threads: self.threads,
            cold: self.cold,
            fsync: self.fsync,
            fs: self.fs().map(str::to_owned),
            fs_bytes: (self.tier == Tier::Fs).then_some(self.device.size),
            place: Place {
                kind: self.device.kind.clone(),
                model: self.device.model.clone(),
                cache: self.device.cache.clone(),
            },
            life: self.life().map(Lived::from),
        }
    }
}
