//! [`ClosedLoop`]: a host that keeps so many requests on their way, with a
//! processor that encrypts what it writes and decrypts what it reads.

use crate::DriveError;
use crate::demand::{Demand, Drive};
use block::OperationKind;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Where requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One behind the other.
    Sequential,
    /// Anywhere.
    Random,
}

/// A host's demands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedLoop {
    /// First byte of the extent.
    pub offset: u64,
    /// Bytes of the extent.
    pub extent: u64,
    /// Bytes of a request.
    pub request: u64,
    /// Where they go.
    pub pattern: Pattern,
    /// Share of them that is written.
    pub writes: f64,
    /// Requests on their way.
    pub queue_depth: u32,
    /// Requests in all.
    pub requests: u64,
    /// Rate of the cipher on one core, 10⁶ bytes a second; `None` is plain.
    pub cipher_mb_s: Option<f64>,
    /// Same seed, same requests.
    pub seed: u64,
}

/// What came of it; times are virtual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// From the first request to the last, seconds.
    pub seconds: f64,
    /// 10⁶ bytes a second.
    pub mb_s: f64,
    /// Requests a second.
    pub iops: f64,
    /// Of a request from the host and back to it, mean, microseconds.
    pub latency_us: f64,
    /// Share of the time in which the processor encrypted or decrypted.
    pub crypto: f64,
    /// Share of the time in which the drive's busiest part was at work.
    pub drive: f64,
}

/// What happens at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The host can make another request.
    Ready,
    /// The drive is done with one: its number, and whether it was written.
    Done { tag: u64, write: bool },
}

impl ClosedLoop {
    /// Lets `drive`, which is at rest, serve it.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names what does not fit.
    pub fn run(&self, drive: &mut dyn Drive) -> Result<Rates, DriveError> {
        self.check(drive.capacity())?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let blocks = self.extent / self.request;
        let crypto = self
            .cipher_mb_s
            .map_or(0, |rate| (self.request as f64 * 1e3 / rate) as u64);
        let threshold = (self.writes * 2.0_f64.powi(64)) as u64;
        let mut started: Vec<u64> = Vec::new();
        let ready = Reverse((0_u64, Event::Ready));
        let mut events = BinaryHeap::from(vec![ready; self.queue_depth as usize]);
        let (mut cpu_free, mut cpu_busy) = (0_u64, 0_u64);
        let (mut latency, mut end, mut done) = (0_u64, 0_u64, 0_u64);
        while done < self.requests {
            let next = events.peek().map(|Reverse((time, _))| *time);
            // What comes before the drive's next start is taken in first.
            let drives_turn = match (next, drive.next_start()) {
                (Some(next), Some(start)) => start < next,
                (None, _) => true,
                (Some(_), None) => false,
            };
            if drives_turn {
                let (demand, finished) = drive.serve().expect("what is not done is with the drive");
                let write = demand.operation == OperationKind::Write;
                let tag = demand.tag;
                events.push(Reverse((finished, Event::Done { tag, write })));
                continue;
            }
            let Some(Reverse((now, event))) = events.pop() else {
                continue;
            };
            match event {
                Event::Ready if started.len() as u64 == self.requests => {}
                Event::Ready => {
                    let tag = started.len() as u64;
                    let write = rng.next_u64() < threshold;
                    let block = match self.pattern {
                        Pattern::Sequential => tag % blocks,
                        Pattern::Random => {
                            ((u128::from(rng.next_u64()) * u128::from(blocks)) >> 64) as u64
                        }
                    };
                    let mut arrival = now;
                    if write {
                        cpu_free = cpu_free.max(now) + crypto;
                        cpu_busy += crypto;
                        arrival = cpu_free;
                    }
                    drive.submit(Demand {
                        arrival,
                        tag,
                        operation: match write {
                            true => OperationKind::Write,
                            false => OperationKind::Read,
                        },
                        offset: self.offset + block * self.request,
                        bytes: self.request,
                    });
                    started.push(now);
                }
                Event::Done { tag, write } => {
                    let mut back = now;
                    if !write {
                        cpu_free = cpu_free.max(now) + crypto;
                        cpu_busy += crypto;
                        back = cpu_free;
                    }
                    latency += back - started[tag as usize];
                    end = end.max(back);
                    done += 1;
                    events.push(Reverse((back, Event::Ready)));
                }
            }
        }
        let seconds = end as f64 / 1e9;
        let requests = self.requests as f64;
        Ok(Rates {
            seconds,
            mb_s: requests * self.request as f64 / 1e6 / seconds,
            iops: requests / seconds,
            latency_us: latency as f64 / requests / 1e3,
            crypto: cpu_busy as f64 / end as f64,
            drive: drive.utilisation(end),
        })
    }

    fn check(&self, capacity: u64) -> Result<(), DriveError> {
        let fits = self
            .offset
            .checked_add(self.extent)
            .is_some_and(|end| end <= capacity);
        for (name, value, within, possible) in [
            ("extent", self.extent as f64, fits, "within the drive"),
            (
                "request",
                self.request as f64,
                self.request > 0 && self.request <= self.extent,
                "1 byte at least, and no more than the extent",
            ),
            (
                "queue depth",
                f64::from(self.queue_depth),
                (1..=4096).contains(&self.queue_depth),
                "1 to 4096",
            ),
            (
                "requests",
                self.requests as f64,
                self.requests > 0,
                "1 at least",
            ),
            (
                "writes",
                self.writes,
                (0.0..=1.0).contains(&self.writes),
                "0 to 1",
            ),
            (
                "cipher rate",
                self.cipher_mb_s.unwrap_or(1.0),
                self.cipher_mb_s
                    .is_none_or(|rate| rate > 0.0 && rate.is_finite()),
                "more than 0",
            ),
        ] {
            if !within {
                return Err(DriveError::OutOfRange {
                    name,
                    value: value.to_string(),
                    possible,
                });
            }
        }
        Ok(())
    }
}
