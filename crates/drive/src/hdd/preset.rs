//! [`HddPreset`]: the numbers of a disk.

use crate::DriveError;
use crate::preset::{Kind, no_limit};
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Mean of √f over random pairs of places: 8/15; that of f is 1/3.
const MEAN_ROOT: f64 = 8.0 / 15.0;

/// Numbers of a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddPreset {
    /// One line for the list of drives.
    pub title: String,
    /// `hdd`, or `sshd` where it has `nand`.
    pub kind: Kind,
    /// Bytes.
    pub capacity: ByteSize,
    /// Revolutions a minute.
    pub rpm: f64,
    /// From a track to the next, milliseconds.
    pub track_seek_ms: f64,
    /// Between random places, milliseconds.
    pub average_seek_ms: f64,
    /// From the first track to the last, milliseconds.
    pub full_seek_ms: f64,
    /// Longer that a head needs to be still before it writes, milliseconds.
    pub write_settle_ms: f64,
    /// Rate of the outermost track, 10⁶ bytes a second.
    pub outer_mb_s: f64,
    /// Rate of the innermost track, 10⁶ bytes a second.
    pub inner_mb_s: f64,
    /// Of a command beside all that moves, milliseconds.
    pub overhead_ms: f64,
    /// Memory, half of it for data read ahead and half for writes. Without any, a request that
    /// continues the last one costs no overhead.
    #[serde(default)]
    pub cache: ByteSize,
    /// Whether a write is done when it is in the memory.
    #[serde(default)]
    pub write_back: bool,
    /// Rate between host and memory, 10⁶ bytes a second.
    #[serde(default = "no_limit")]
    pub interface_mb_s: f64,
    /// Which of several requests comes next.
    pub queue: Order,
    /// Requests and writes in the memory among which that is chosen, the oldest ones.
    #[serde(default = "native_queue")]
    pub reorders: u32,
    /// Flash that learns what is read often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nand: Option<NandPreset>,
    /// Where on the disk the file lies that is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Where each number comes from.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

/// Where a file lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Share of the disk, from its outermost track on, that is used: pieces lie
    /// all over it, a file in one piece behind it.
    pub used: f64,
    /// Mean bytes of its pieces, whose lengths are distributed geometrically;
    /// without it the file is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<ByteSize>,
}

impl Placement {
    /// A disk that was defragmented a month ago: half of it used, files in pieces
    /// of half a megabyte on average. The whitepaper shows such a disk in a
    /// picture, without a number; these are assumed.
    pub const ONE_MONTH: Self = Self {
        used: 0.5,
        pieces: Some(ByteSize::kib(512)),
    };
}

/// Numbers of a disk's flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NandPreset {
    /// Bytes that it holds.
    pub capacity: ByteSize,
    /// Bytes that are learnt at once.
    pub block: ByteSize,
    /// Blocks whose first reading is remembered; a second one within them brings
    /// a block into the flash, where the least recently read one makes room.
    pub window: u64,
    /// Longest read that is learnt from: streams are not.
    pub longest: ByteSize,
    /// Until a read's first byte comes, microseconds.
    pub read_us: f64,
    /// Rate of reads, 10⁶ bytes a second.
    pub read_mb_s: f64,
    /// Where each number comes from.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

/// Which of several requests comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The first that came.
    Fifo,
    /// The next one in the direction of the arm, which turns back at the last.
    Elevator,
    /// The one that the head can be at first, as native command queueing does.
    Sptf,
}

/// Commands in SATA's native queue.
fn native_queue() -> u32 {
    32
}

impl HddPreset {
    /// Coefficients a and b of its seek curve, milliseconds.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number that is not possible.
    pub(crate) fn curve(&self) -> Result<(f64, f64), DriveError> {
        let require = DriveError::require;
        let nand = self.nand.as_ref();
        for (name, value) in [
            ("rpm", self.rpm),
            ("track_seek_ms", self.track_seek_ms),
            ("outer_mb_s", self.outer_mb_s),
            ("inner_mb_s", self.inner_mb_s),
            ("interface_mb_s", self.interface_mb_s),
            ("reorders", f64::from(self.reorders)),
            ("nand.read_us", nand.map_or(1.0, |nand| nand.read_us)),
            ("nand.read_mb_s", nand.map_or(1.0, |nand| nand.read_mb_s)),
        ] {
            let fits = value > 0.0 && value < 1e6;
            require(fits, name, value, "more than 0, and less than 1000000")?;
        }
        let capacity = self.capacity.as_u64() as f64;
        require(capacity >= 1e6, "capacity", capacity, "at least 1 MB")?;
        for (name, value) in [
            ("overhead_ms", self.overhead_ms),
            ("write_settle_ms", self.write_settle_ms),
        ] {
            require((0.0..1e3).contains(&value), name, value, "0 to 1000")?;
        }
        if let Some(nand) = nand {
            let (block, capacity) = (nand.block.as_u64(), nand.capacity.as_u64());
            require(
                (512..=capacity).contains(&block),
                "nand.block",
                block as f64,
                "at least 512 bytes, and no more than the flash",
            )?;
        }
        DriveError::require(
            nand.is_some() == (self.kind == Kind::Sshd),
            "kind",
            format!("{:?}", self.kind).to_lowercase(),
            "hdd for a disk without [nand], or sshd for a disk with it",
        )?;
        self.seeks()
    }

    /// The same with another seek curve, track + root·√f + linear·f milliseconds
    /// over a share f of the stroke.
    ///
    /// # Errors
    /// As [`Hdd::new`](super::Hdd::new).
    pub(crate) fn with_curve(self, track: f64, root: f64, linear: f64) -> Result<Self, DriveError> {
        let disk = Self {
            track_seek_ms: track,
            average_seek_ms: track + root * MEAN_ROOT + linear / 3.0,
            full_seek_ms: track + root + linear,
            ..self
        };
        disk.curve()?;
        Ok(disk)
    }

    fn seeks(&self) -> Result<(f64, f64), DriveError> {
        let require = DriveError::require;
        let (track, average) = (self.track_seek_ms, self.average_seek_ms);
        let full = self.full_seek_ms;
        require(
            average > track,
            "average_seek_ms",
            average,
            "more than track_seek_ms",
        )?;
        require(
            full > average && full < 1e3,
            "full_seek_ms",
            full,
            "more than average_seek_ms, less than 1000",
        )?;
        let root = (average - track - (full - track) / 3.0) / (MEAN_ROOT - 1.0 / 3.0);
        let linear = full - track - root;
        require(
            root >= 0.0 && linear >= 0.0,
            "full_seek_ms",
            full,
            "1.4 to 3 times average_seek_ms, so that the seek times form a curve",
        )?;
        Ok((root, linear))
    }
}
