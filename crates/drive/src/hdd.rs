//! [`Hdd`]: a disk with its arm, its turning medium and its queue.
//!
//! ```text
//! service = overhead + seek(distance) [+ settle] + wait for the sector + transfer
//! seek(f) = track + a·√f + b·f          f: share of the stroke
//! ```
//!
//! a and b are such that seeks between random places take the average, and
//! over the whole stroke the full seek. Outer tracks hold more than inner ones,
//! linearly; rates are those that last, with head switches in them.

use crate::DriveError;
use crate::demand::{Demand, Drive};
use crate::preset::Kind;
use block::OperationKind;
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
    /// `hdd`.
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
    /// Which of several requests comes next.
    pub queue: Order,
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

/// A disk at work.
#[derive(Clone, Debug)]
pub struct Hdd {
    preset: HddPreset,
    /// Nanoseconds of a revolution.
    revolution: f64,
    /// a and b of the seek curve, nanoseconds.
    curve: (f64, f64),
    tracks: f64,
    waiting: Vec<Demand>,
    /// When the arm is free.
    free_at: u64,
    /// Nanoseconds at work.
    busy: u64,
    /// Share of the stroke where the arm is.
    arm: f64,
    /// Byte behind the last one read: the medium goes on from there.
    behind: Option<u64>,
}

/// Where a byte lies.
#[derive(Clone, Copy, Debug)]
struct Spot {
    /// Share of the stroke, whole tracks.
    stroke: f64,
    /// Share of the revolution.
    angle: f64,
    /// Bytes of its track.
    track_bytes: f64,
}

impl Hdd {
    /// A disk at rest over its first track.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number.
    pub fn new(preset: HddPreset) -> Result<Self, DriveError> {
        let refused = |name, value: f64, possible| {
            Err(DriveError::OutOfRange {
                name,
                value: value.to_string(),
                possible,
            })
        };
        for (name, value) in [
            ("rpm", preset.rpm),
            ("track_seek_ms", preset.track_seek_ms),
            ("outer_mb_s", preset.outer_mb_s),
            ("inner_mb_s", preset.inner_mb_s),
        ] {
            if !(value > 0.0 && value < 1e6) {
                return refused(name, value, "more than 0, and less than 1000000");
            }
        }
        if preset.capacity.as_u64() < 1_000_000 {
            let capacity = preset.capacity.as_u64() as f64;
            return refused("capacity", capacity, "1 MB at least");
        }
        for (name, value) in [
            ("overhead_ms", preset.overhead_ms),
            ("write_settle_ms", preset.write_settle_ms),
        ] {
            if !(0.0..1e3).contains(&value) {
                return refused(name, value, "0 to 1000");
            }
        }
        let HddPreset {
            track_seek_ms: track,
            average_seek_ms: average,
            full_seek_ms: full,
            ..
        } = preset;
        if average.is_nan() || average <= track {
            return refused("average_seek_ms", average, "more than track_seek_ms");
        }
        if !(full > average && full < 1e3) {
            return refused(
                "full_seek_ms",
                full,
                "more than average_seek_ms, less than 1000",
            );
        }
        let root = (average - track - (full - track) / 3.0) / (MEAN_ROOT - 1.0 / 3.0);
        let linear = full - track - root;
        if root < 0.0 || linear < 0.0 {
            let possible = "1.4 to 3 times average_seek_ms, or the seeks between would be no curve";
            return refused("full_seek_ms", full, possible);
        }
        let revolution = 60e9 / preset.rpm;
        let middle = (preset.outer_mb_s + preset.inner_mb_s) / 2.0;
        Ok(Self {
            tracks: preset.capacity.as_u64() as f64 / (middle * revolution / 1e3),
            revolution,
            curve: (root * 1e6, linear * 1e6),
            waiting: Vec::new(),
            free_at: 0,
            busy: 0,
            arm: 0.0,
            behind: None,
            preset,
        })
    }

    /// Its numbers.
    pub fn preset(&self) -> &HddPreset {
        &self.preset
    }

    /// When the head is over the first byte of what it sets out for at `now`.
    fn positioned(&self, now: u64, demand: &Demand) -> u64 {
        let spot = self.spot(demand.offset);
        let mut arrived = now as f64 + self.seek((spot.stroke - self.arm).abs());
        if demand.operation == OperationKind::Write {
            arrived += self.preset.write_settle_ms * 1e6;
        }
        let angle = (arrived / self.revolution).fract();
        let wait = (spot.angle - angle).rem_euclid(1.0);
        (arrived + wait * self.revolution) as u64
    }

    /// Nanoseconds over a share of the stroke.
    fn seek(&self, distance: f64) -> f64 {
        if distance * self.tracks < 0.5 {
            return 0.0;
        }
        let (root, linear) = self.curve;
        self.preset.track_seek_ms * 1e6 + root * distance.sqrt() + linear * distance
    }

    fn spot(&self, offset: u64) -> Spot {
        let share = offset as f64 / self.preset.capacity.as_u64() as f64;
        let (outer, inner) = (self.preset.outer_mb_s, self.preset.inner_mb_s);
        // Bytes up to a share r of the stroke go with outer·r − (outer − inner)·r²/2.
        let middle = (outer + inner) / 2.0;
        let less = outer - inner;
        let position = match less.abs() < 1e-9 {
            true => share,
            false => {
                (outer
                    - (outer * outer - 2.0 * less * middle * share)
                        .max(0.0)
                        .sqrt())
                    / less
            }
        };
        let track = (position * self.tracks).floor();
        let stroke = track / self.tracks;
        let track_bytes = (outer - less * stroke) * self.revolution / 1e3;
        Spot {
            stroke,
            angle: (position * self.tracks - track).clamp(0.0, 1.0),
            track_bytes,
        }
    }
}

/// Whether the arm has to do with it: what is written is on the medium when its
/// request is done, so a flush finds nothing to do.
fn moves(demand: &Demand) -> bool {
    matches!(demand.operation, OperationKind::Read | OperationKind::Write)
}

impl Drive for Hdd {
    fn duplicate(&self) -> Box<dyn Drive> {
        Box::new(self.clone())
    }

    fn capacity(&self) -> u64 {
        self.preset.capacity.as_u64()
    }

    fn discard_granularity(&self) -> Option<u32> {
        None
    }

    fn submit(&mut self, demand: Demand) {
        let end = demand.offset + demand.bytes;
        assert!(end <= self.capacity(), "within the disk");
        self.waiting.push(demand);
    }

    fn next_start(&self) -> Option<u64> {
        let first = self.waiting.iter().map(|demand| demand.arrival).min()?;
        Some(first.max(self.free_at))
    }

    fn serve(&mut self) -> Option<(Demand, u64)> {
        let now = self.next_start()?;
        let here = |demand: &&Demand| demand.arrival <= now;
        let candidates = self.waiting.iter().filter(here);
        // What moves nothing waits for nothing.
        let still = |demand: &&Demand| !moves(demand);
        let chosen = match self.preset.queue {
            _ if let Some(demand) = candidates.clone().find(still) => Some(demand),
            Order::Fifo => candidates.min_by_key(|demand| (demand.arrival, demand.tag)),
            Order::Elevator => {
                let ahead = |demand: &Demand| self.spot(demand.offset).stroke < self.arm;
                candidates.min_by_key(|demand| (ahead(demand), demand.offset))
            }
            Order::Sptf => candidates.min_by_key(|demand| self.positioned(now, demand)),
        };
        let demand = *chosen?;
        self.waiting.retain(|other| other.tag != demand.tag);
        let overhead = (self.preset.overhead_ms * 1e6) as u64;
        if !moves(&demand) {
            self.busy += overhead;
            self.free_at = now + overhead;
            return Some((demand, self.free_at));
        }
        let start = match self.behind {
            // The medium has gone on, and its buffer has what comes next.
            Some(next) if next == demand.offset => now,
            _ => self.positioned(now + overhead, &demand),
        };
        let spot = self.spot(demand.offset);
        let transfer = demand.bytes as f64 / spot.track_bytes * self.revolution;
        let done = start + transfer as u64;
        self.busy += done - now;
        self.free_at = done;
        self.arm = self.spot(demand.offset + demand.bytes - 1).stroke;
        self.behind = Some(demand.offset + demand.bytes);
        Some((demand, done))
    }

    fn utilisation(&self, end: u64) -> f64 {
        self.busy as f64 / end as f64
    }
}
