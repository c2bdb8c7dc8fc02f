//! [`Workload`]: what is asked of a device, as plain data.

use crate::error::LabError;
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The order in which a workload visits its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// One block after the other, starting over at the end.
    Sequential,
    /// Uniformly random blocks.
    Random,
}

/// The operation of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Reads and writes, half of each unless `read_percent` says otherwise.
    Mixed,
    /// A bare cipher encrypts in memory; no device takes part.
    Encrypt,
    /// A bare cipher decrypts in memory; no device takes part.
    Decrypt,
}

impl Mix {
    /// The word used in plans and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Mixed => "mixed",
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
        }
    }

    /// Whether it is asked of a bare cipher and not of a device.
    pub fn is_bare(self) -> bool {
        matches!(self, Self::Encrypt | Self::Decrypt)
    }
}

/// One workload: a pattern of requests kept in flight at a fixed depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Name in the plan and in records, `rand-4k-read`.
    pub name: String,
    /// Order of visits.
    pub pattern: Pattern,
    /// Reads, writes or both.
    pub op: Mix,
    /// Share of reads in a mixed workload, per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<u8>,
    /// Bytes of one request: a multiple of 512, at most 64 MiB.
    pub block_size: ByteSize,
    /// Requests in flight per thread, 1 to 1024.
    #[serde(default = "one")]
    pub queue_depth: u32,
    /// Driving threads, 1 to 256; in a plan 0 stands for one on every core.
    #[serde(default = "one")]
    pub threads: u32,
    /// Length of one repetition, 0.001 s to a day, for workloads bounded by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Bytes of one repetition, for workloads bounded by size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ByteSize>,
    /// The first operation of a fresh process; asked of Java only, which
    /// compiles its ciphers while they run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cold: bool,
    /// Whether a write is done only when it is stored: each is followed by a flush of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fsync: bool,
    /// Share of every written block that compresses to nothing, per cent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compressible: u8,
}

fn one() -> u32 {
    1
}

fn is_zero(value: &u8) -> bool {
    *value == 0
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// When a repetition ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// After this time.
    Time(Duration),
    /// After this many bytes, over all threads.
    Bytes(u64),
}

impl Workload {
    /// One request of `block_size` at a time, by one thread; it has no end yet.
    pub fn new(name: &str, pattern: Pattern, op: Mix, block_size: ByteSize) -> Self {
        Self {
            name: name.to_owned(),
            pattern,
            op,
            read_percent: None,
            block_size,
            queue_depth: 1,
            threads: 1,
            seconds: None,
            bytes: None,
            cold: false,
            fsync: false,
            compressible: 0,
        }
    }

    /// Most bytes of buffers that a workload may hold.
    const MEMORY: u64 = 4 << 30;

    /// Checks every value once, when a plan is read.
    ///
    /// # Errors
    /// [`LabError`] names the key.
    pub fn validate(&self) -> Result<(), LabError> {
        let refused = |problem: &str| {
            Err(LabError::invalid(
                format!("workload {:?}: {problem}", self.name),
                "Change the value. `cryptmark plans show quick` prints a plan to copy.",
            ))
        };
        let block = self.block_bytes();
        if !(512..=64 << 20).contains(&block) || !block.is_multiple_of(512) {
            return refused("block_size must be a multiple of 512 B from 512 B to 64 MiB");
        }
        if !(1..=1024).contains(&self.queue_depth) {
            return refused("queue_depth must lie between 1 and 1024");
        }
        if !(1..=256).contains(&self.threads) {
            return refused("threads must lie between 1 and 256");
        }
        if self
            .read_percent
            .is_some_and(|percent| percent > 100 || self.op != Mix::Mixed)
        {
            return refused(
                "read_percent must lie between 0 and 100 and is only for op = \"mixed\"",
            );
        }
        if self.fsync && (!self.writes() || self.op.is_bare()) {
            return refused("fsync is only for workloads that write to a device");
        }
        if self.compressible > 100 {
            return refused("compressible must lie between 0 and 100");
        }
        let bare = self.queue_depth == 1 && self.compressible == 0;
        if self.op.is_bare() && !bare || self.cold && !self.op.is_bare() {
            return refused(
                "op = \"encrypt\" and \"decrypt\" need queue_depth = 1 and no compressible; cold is only \
                 for them",
            );
        }
        match (self.seconds, self.bytes) {
            (Some(seconds), None) if (0.001..=86_400.0).contains(&seconds) => {}
            (None, Some(bytes)) if bytes.as_u64() >= block => {}
            _ => {
                return refused(
                    "give either seconds (0.001 to 86400) or bytes (at least one block)",
                );
            }
        }
        if self.buffer_bytes() > Self::MEMORY {
            return refused("queue_depth × threads × block_size must stay below 4 GiB");
        }
        Ok(())
    }

    /// Bytes of one request.
    pub fn block_bytes(&self) -> u64 {
        self.block_size.as_u64()
    }

    /// Bytes of all buffers in flight.
    pub fn buffer_bytes(&self) -> u64 {
        self.block_bytes() * u64::from(self.queue_depth) * u64::from(self.threads)
    }

    /// When a repetition ends.
    pub fn extent(&self) -> Extent {
        match (self.seconds, self.bytes) {
            (_, Some(bytes)) => Extent::Bytes(bytes.as_u64()),
            (seconds, None) => Extent::Time(Duration::from_secs_f64(seconds.unwrap_or(1.0))),
        }
    }

    /// Probability of a read, in 2⁻³² units.
    pub(crate) fn read_threshold(&self) -> u64 {
        let percent = match self.op {
            Mix::Read | Mix::Decrypt => 100,
            Mix::Write | Mix::Encrypt => 0,
            Mix::Mixed => u64::from(self.read_percent.unwrap_or(50)),
        };
        (percent << 32) / 100
    }

    /// Whether the workload stores anything.
    pub fn writes(&self) -> bool {
        self.read_threshold() < 1 << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid() -> Workload {
        Workload {
            queue_depth: 32,
            seconds: Some(0.4),
            ..Workload::new("rand-4k-read", Pattern::Random, Mix::Read, ByteSize::kib(4))
        }
    }

    #[test]
    fn impossible_values_are_named() {
        type Spoil = fn(&mut Workload);
        valid().validate().unwrap();
        let cases: [(&str, Spoil); 18] = [
            ("block_size must be", |w| w.block_size = ByteSize::b(0)),
            ("block_size must be", |w| w.block_size = ByteSize::b(513)),
            ("block_size must be", |w| w.block_size = ByteSize::mib(65)),
            ("queue_depth must", |w| w.queue_depth = 0),
            ("queue_depth must", |w| w.queue_depth = 1025),
            ("threads must lie", |w| w.threads = 0),
            ("threads must lie", |w| w.threads = 257),
            ("read_percent must", |w| w.read_percent = Some(50)),
            ("compressible must", |w| w.compressible = 101),
            ("fsync is only", |w| w.fsync = true),
            ("give either", |w| w.seconds = None),
            ("give either", |w| w.seconds = Some(f64::NAN)),
            ("give either", |w| w.seconds = Some(0.0)),
            ("give either", |w| w.bytes = Some(ByteSize::mib(1))),
            ("need queue_depth = 1", |w| w.op = Mix::Encrypt),
            ("need queue_depth = 1", |w| w.cold = true),
            ("need queue_depth = 1", |w| {
                (w.op, w.queue_depth, w.compressible) = (Mix::Decrypt, 1, 1);
            }),
            ("below 4 GiB", |w| {
                w.block_size = ByteSize::mib(64);
                w.queue_depth = 1024;
            }),
        ];
        for (error, spoil) in cases {
            let mut workload = valid();
            spoil(&mut workload);
            let refused = workload.validate().unwrap_err().to_string();
            assert!(refused.contains(error), "{workload:?}: {refused}");
        }
    }

    #[test]
    fn the_mix_decides_what_is_written() {
        let mut workload = valid();
        assert!(!workload.writes());
        workload.op = Mix::Write;
        assert!(workload.writes() && workload.read_threshold() == 0);
        workload.op = Mix::Mixed;
        assert_eq!(workload.read_threshold(), 1 << 31);
        workload.read_percent = Some(100);
        assert!(!workload.writes());
    }
}
