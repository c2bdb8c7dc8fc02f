//! [`Detail`]: what only trials of one kind have.

use super::{Interval, Trial};
use serde::{Deserialize, Serialize};

/// The part of a record that only trials of one kind have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub enum Detail {
    /// Requests to a device or a cipher, which have no detail.
    #[default]
    Requests,
    /// An operation on a file system, or a command.
    Operation(Box<FileOperation>),
    /// A trial with the op `unlock` or `guess`.
    Kdf(Box<Kdf>),
    /// Lives of a drive, each of which is a repetition.
    Life(Box<Life>),
}

/// An operation on a file system. Times are as at the full pace of the core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileOperation {
    /// File system under test; `None` of a command of another program's.
    pub fs: Option<String>,
    /// Bytes and requests that all repetitions moved between the file system and its device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
    /// Time of every repetition in order, seconds. It is recorded because repetitions need not move
    /// bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples_s: Vec<f64>,
    /// Relative speed of the core in every repetition, where 1 is full speed, if it is known. The
    /// elapsed time is `samples_s` divided by this value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples_pace: Vec<f64>,
    /// Time of encryption in every repetition, seconds, if it is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples_crypto_s: Vec<f64>,
    /// System time of every repetition, seconds, likewise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples_sys_s: Vec<f64>,
}

/// A [`Detail`] as it stands among the fields of a trial.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<Box<FileOperation>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kdf: Option<Box<Kdf>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    life: Option<Box<Life>>,
}

impl From<Written> for Detail {
    fn from(written: Written) -> Self {
        match (written.operation, written.kdf, written.life) {
            (Some(operation), ..) => Self::Operation(operation),
            (None, Some(kdf), _) => Self::Kdf(kdf),
            (None, None, Some(life)) => Self::Life(life),
            (None, None, None) => Self::Requests,
        }
    }
}

impl From<Detail> for Written {
    fn from(detail: Detail) -> Self {
        let mut written = Self::default();
        match detail {
            Detail::Requests => {}
            Detail::Operation(operation) => written.operation = Some(operation),
            Detail::Kdf(kdf) => written.kdf = Some(kdf),
            Detail::Life(life) => written.life = Some(life),
        }
        written
    }
}

impl Trial {
    /// The operation on a file system that it is.
    pub fn operation(&self) -> Option<&FileOperation> {
        match &self.detail {
            Detail::Operation(operation) => Some(operation),
            _ => None,
        }
    }

    /// The same, to be changed; what was another kind of trial becomes one.
    pub fn operation_mut(&mut self) -> &mut FileOperation {
        if self.operation().is_none() {
            self.detail = Detail::Operation(Box::default());
        }
        match &mut self.detail {
            Detail::Operation(operation) => operation,
            _ => unreachable!("it was made one"),
        }
    }

    /// File system under test.
    pub fn fs(&self) -> Option<&str> {
        self.operation()?.fs.as_deref()
    }

    /// Time of every repetition of an operation on a file system, seconds; nothing of others.
    pub fn samples_s(&self) -> &[f64] {
        self.operation()
            .map_or(&[], |operation| &operation.samples_s)
    }

    /// The key derivation that it is.
    pub fn kdf(&self) -> Option<&Kdf> {
        match &self.detail {
            Detail::Kdf(kdf) => Some(kdf),
            _ => None,
        }
    }

    /// The lives that it is of.
    pub fn life(&self) -> Option<&Life> {
        match &self.detail {
            Detail::Life(life) => Some(life),
            _ => None,
        }
    }
}

/// How a volume on an SSD is made, and what becomes of the file system's discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrimPolicy {
    /// No encryption; discards reach the drive.
    Plain,
    /// Encrypted; discards reach the drive.
    Pass,
    /// Encrypted; discards do not.
    Block,
    /// The same, after the volume was filled with noise as it was made.
    Filled,
    /// The same, on a part of the drive only.
    Unpartitioned,
}

/// Lives of a simulated SSD under a file system, from as many seeds as the trial has repetitions.
/// The trial's other figures measure the aged drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// How the volume is made.
    pub policy: TrimPolicy,
    /// Pages beyond those that the host can write, 0.07 for 7 %.
    pub over_provisioning: f64,
    /// Which block the drive cleans next, by `drive run --gc`'s name.
    pub gc: String,
    /// Share of the file system that holds files.
    pub fill: f64,
    /// Share of the writes that goes to pages within files.
    pub overwrites: f64,
    /// Share of the drive that [`TrimPolicy::Unpartitioned`] leaves.
    pub unpartitioned: f64,
    /// Bytes that the host writes a day.
    pub daily_bytes: u64,
    /// Years that were looked at.
    pub years: f64,
    /// The first seed; the others follow it.
    pub first_seed: u64,
    /// Flash writes ÷ host writes over all the years.
    pub write_amplification: Interval,
    /// Time until the blocks have reached their erase limit, years.
    pub lifetime_years: Interval,
    /// Bytes that the host has written by then, in units of 10¹² bytes.
    pub terabytes_written: Interval,
    /// The write amplification of every life, by seed.
    pub samples_write_amplification: Vec<f64>,
    /// The years of every life, by seed.
    pub samples_lifetime_years: Vec<f64>,
}

/// Bytes and requests that went to a device and came from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests that read.
    pub reads: u64,
    /// Requests that wrote.
    pub writes: u64,
}

impl Moved {
    /// The difference between these counts and `earlier` ones.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            reads: self.reads.saturating_sub(earlier.reads),
            writes: self.writes.saturating_sub(earlier.writes),
        }
    }
}

impl std::iter::Sum for Moved {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            read_bytes: sum.read_bytes + one.read_bytes,
            written_bytes: sum.written_bytes + one.written_bytes,
            reads: sum.reads + one.reads,
            writes: sum.writes + one.writes,
        })
    }
}

/// A key derivation with its costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kdf {
    /// `pbkdf2`, `argon2i` or `argon2id`.
    pub name: String,
    /// The hash of PBKDF2, by cryptsetup's name.
    pub hash: Option<String>,
    /// Iterations of PBKDF2, passes of Argon2.
    pub iterations: u32,
    /// Memory of Argon2, KiB; 0 for PBKDF2.
    pub memory_kib: u32,
    /// Lanes of Argon2; 1 for PBKDF2.
    pub lanes: u32,
    /// The duration for which the costs were calibrated on this machine, ms; `None` if the format
    /// fixes the costs.
    pub calibrated_ms: Option<u32>,
}
