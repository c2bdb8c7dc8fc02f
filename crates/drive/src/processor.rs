//! [`Processor`]: cores that encrypt what is written, and decrypt what is read.

use crate::DriveError;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

/// Rates that make sense, 10⁶ bytes a second; slower ones take more time than there is.
const RATES: RangeInclusive<f64> = 1e-3..=1e9;

/// Cores between a host and its drive. A request is encrypted or decrypted by
/// one of them; requests are served in the order in which they come. One core
/// is a filter driver with a thread, several are a queue with workers.
#[derive(Clone, Debug)]
pub struct Processor {
    /// Nanoseconds for a byte, on one core.
    byte: f64,
    /// When each core is free.
    free: Vec<u64>,
}

impl Processor {
    /// `cores` that encrypt at `mb_s` each, 10⁶ bytes a second.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] where the rate is none.
    pub fn new(cores: NonZeroU32, mb_s: f64) -> Result<Self, DriveError> {
        if !RATES.contains(&mb_s) {
            return Err(DriveError::OutOfRange {
                name: "cipher rate",
                value: mb_s.to_string(),
                possible: "0.001 to 1000000000 MB/s",
            });
        }
        Ok(Self {
            byte: 1e3 / mb_s,
            free: vec![0; cores.get() as usize],
        })
    }

    /// Nanoseconds for so many bytes.
    pub(crate) fn time(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.byte) as u64
    }

    /// Takes a request that comes at `now`; when it is done.
    pub(crate) fn take(&mut self, now: u64, bytes: u64) -> u64 {
        let time = self.time(bytes);
        let core = self.free.iter_mut().min().expect("a core at least");
        *core = now.max(*core) + time;
        *core
    }
}
