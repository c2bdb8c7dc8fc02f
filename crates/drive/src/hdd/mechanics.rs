//! [`Mechanics`]: where bytes lie, and how long the arm takes to be there.

use super::HddPreset;
use crate::DriveError;

/// The arm over the turning medium.
#[derive(Clone, Debug)]
pub(super) struct Mechanics {
    /// Nanoseconds of a revolution.
    revolution: f64,
    /// From a track to the next, and a and b of the seek curve, nanoseconds.
    track_seek: f64,
    curve: (f64, f64),
    /// Longer before a write, nanoseconds.
    settle: f64,
    tracks: f64,
    capacity: f64,
    outer: f64,
    inner: f64,
    /// Share of the stroke where the arm is.
    arm: f64,
    /// Byte behind the last one that passed the head.
    behind: Option<u64>,
}

/// Where a byte lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// Share of the stroke, whole tracks.
    pub stroke: f64,
    /// Share of the revolution.
    angle: f64,
    /// Bytes of its track.
    track_bytes: f64,
}

/// A task for the arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub offset: u64,
    pub bytes: u64,
    pub write: bool,
    pub spot: Spot,
}

impl Mechanics {
    pub fn new(preset: &HddPreset) -> Result<Self, DriveError> {
        let (root, linear) = preset.curve()?;
        let revolution = 60e9 / preset.rpm;
        let capacity = preset.capacity.as_u64() as f64;
        let middle = (preset.outer_mb_s + preset.inner_mb_s) / 2.0;
        Ok(Self {
            tracks: capacity / (middle * revolution / 1e3),
            revolution,
            track_seek: preset.track_seek_ms * 1e6,
            curve: (root * 1e6, linear * 1e6),
            settle: preset.write_settle_ms * 1e6,
            capacity,
            outer: preset.outer_mb_s,
            inner: preset.inner_mb_s,
            arm: 0.0,
            behind: None,
        })
    }

    pub fn job(&self, offset: u64, bytes: u64, write: bool) -> Job {
        let spot = self.spot(offset);
        Job {
            offset,
            bytes,
            write,
            spot,
        }
    }

    /// Whether a place lies behind the arm on its way inwards.
    pub fn passed(&self, job: &Job) -> bool {
        job.spot.stroke < self.arm
    }

    /// Whether a job goes on where the last one ended.
    pub fn goes_on(&self, job: &Job) -> bool {
        self.behind == Some(job.offset)
    }

    /// When the head is over the first byte of what it sets out for at `now`.
    pub fn positioned(&self, now: u64, job: &Job) -> u64 {
        let Job { spot, .. } = job;
        let mut arrived = now as f64 + self.seek((spot.stroke - self.arm).abs());
        if job.write {
            arrived += self.settle;
        }
        let angle = (arrived / self.revolution).fract();
        let wait = (spot.angle - angle).rem_euclid(1.0);
        (arrived + wait * self.revolution) as u64
    }

    /// Moves a job's bytes past the head from `start` on; when that is done.
    pub fn pass(&mut self, start: u64, job: &Job) -> u64 {
        let done = start + (job.bytes as f64 / self.rate(job.offset)) as u64;
        self.leave_at(job.offset + job.bytes);
        done
    }

    /// The head has read up to there.
    pub fn leave_at(&mut self, end: u64) {
        self.arm = self.spot(end.saturating_sub(1)).stroke;
        self.behind = Some(end);
    }

    /// Bytes a nanosecond at a place.
    pub fn rate(&self, offset: u64) -> f64 {
        self.spot(offset).track_bytes / self.revolution
    }

    /// Nanoseconds over a share of the stroke.
    fn seek(&self, distance: f64) -> f64 {
        if distance * self.tracks < 0.5 {
            return 0.0;
        }
        let (root, linear) = self.curve;
        self.track_seek + root * distance.sqrt() + linear * distance
    }

    fn spot(&self, offset: u64) -> Spot {
        let share = offset as f64 / self.capacity;
        let (outer, inner) = (self.outer, self.inner);
        // Bytes up to a share r of the stroke go with outer·r − (outer − inner)·r²/2.
        let middle = (outer + inner) / 2.0;
        let less = outer - inner;
        let position = match less.abs() < 1e-9 {
            true => share,
            false => {
                let root = (outer * outer - 2.0 * less * middle * share).max(0.0);
                (outer - root.sqrt()) / less
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
