//! [`Processor`]: cores that encrypt what is written, and decrypt what is read,
//! and the [`Driver`] that hands it to them.

use crate::DriveError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Rates that make sense, 10⁶ bytes a second; slower ones take more time than there is.
const RATES: RangeInclusive<f64> = 1e-3..=1e9;

/// The order in which an encrypting driver handles requests, and the work of the drive meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Driver {
    /// A core encrypts or decrypts a whole request, first come, first served, while the drive works
    /// on other requests. One core is a filter driver with a thread; several are a queue with
    /// workers.
    #[default]
    Queue,
    /// The drive waits: data are encrypted where its interrupt is served, as
    /// simple filter drivers do, on one core. No thread is woken.
    InTurn,
    /// As TrueCrypt's driver for Windows, versions 5.0 and later. Its first thread takes a request,
    /// cuts it into pieces of 256 KiB and encrypts writes, into one of two buffers. Its second
    /// thread reads or writes a piece at a time. Its third thread decrypts the data read. All cores
    /// encrypt a piece together. After the last piece of a read the second thread reads as much
    /// again, unless it has something else to do. A stream finds that data there; a random read
    /// waits for it.
    TrueCrypt,
}

impl Driver {
    /// Whether this is the default driver before a drive.
    pub fn is_queue(&self) -> bool {
        *self == Self::Queue
    }
}

impl FromStr for Driver {
    type Err = DriveError;

    fn from_str(given: &str) -> Result<Self, DriveError> {
        match given {
            "queue" => Ok(Self::Queue),
            "in-turn" => Ok(Self::InTurn),
            "truecrypt" => Ok(Self::TrueCrypt),
            _ => Err(DriveError::Unknown {
                what: "driver",
                given: given.to_owned(),
                known: "queue, in-turn and truecrypt",
            }),
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::InTurn => "in-turn",
            Self::TrueCrypt => "truecrypt",
        })
    }
}

impl TryFrom<String> for Driver {
    type Error = DriveError;

    fn try_from(text: String) -> Result<Self, DriveError> {
        text.parse()
    }
}

impl From<Driver> for String {
    fn from(driver: Driver) -> Self {
        driver.to_string()
    }
}

/// The cores that encrypt between a host and its drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processor {
    driver: Driver,
    cores: NonZeroU32,
    mb_s: f64,
}

impl Processor {
    /// `cores` that encrypt at `mb_s` each, 10⁶ bytes a second.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] where the rate is none, or a driver has more
    /// cores than it can use.
    pub fn new(driver: Driver, cores: NonZeroU32, mb_s: f64) -> Result<Self, DriveError> {
        DriveError::require(
            RATES.contains(&mb_s),
            "cipher rate",
            mb_s,
            "0.001 to 1000000000 MB/s",
        )?;
        DriveError::require(
            driver != Driver::InTurn || cores.get() == 1,
            "cores",
            cores,
            "1 for the driver in-turn",
        )?;
        Ok(Self {
            driver,
            cores,
            mb_s,
        })
    }

    /// The driver that hands it the requests.
    pub(crate) fn driver(&self) -> Driver {
        self.driver
    }

    /// Nanoseconds of one core for so many bytes.
    pub(crate) fn time(&self, bytes: u64) -> u64 {
        (bytes as f64 * (1e3 / self.mb_s)) as u64
    }

    /// Nanoseconds of all cores together for so many bytes.
    pub(crate) fn shared_time(&self, bytes: u64) -> u64 {
        self.time(bytes) / u64::from(self.cores.get())
    }
}

/// The cores behind a queue, each with a request of its own.
#[derive(Debug)]
pub(crate) struct Workers {
    processor: Processor,
    /// When each core is free.
    free: Vec<u64>,
}

impl Workers {
    pub(crate) fn new(processor: Processor) -> Self {
        Self {
            processor,
            free: vec![0; processor.cores.get() as usize],
        }
    }

    /// Nanoseconds that one of them takes for so many bytes.
    pub(crate) fn time(&self, bytes: u64) -> u64 {
        self.processor.time(bytes)
    }

    /// Takes a request that comes at `now`; when it is done.
    pub(crate) fn take(&mut self, now: u64, bytes: u64) -> u64 {
        let core = self.free.iter_mut().min().expect("a core at least");
        *core = now.max(*core) + self.processor.time(bytes);
        *core
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        for word in ["queue", "in-turn", "truecrypt"] {
            let driver: Driver = word.parse().expect(word);
            assert_eq!(driver.to_string(), word);
        }
        for word in ["", "Queue", "inturn", "veracrypt"] {
            assert!(word.parse::<Driver>().is_err(), "{word}");
        }
    }

    #[test]
    fn impossible_processors() {
        let with = |driver, cores, mb_s| {
            let cores = NonZeroU32::new(cores).expect("not none");
            Processor::new(driver, cores, mb_s).map_err(|error| error.to_string())
        };
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9] {
            let error = with(Driver::Queue, 1, rate).expect_err("it is no rate");
            assert!(error.contains("cipher rate"), "{error}");
        }
        let error = with(Driver::InTurn, 2, 100.0).expect_err("it has one core");
        assert!(error.contains("cores = 2"), "{error}");
        assert!(with(Driver::TrueCrypt, 2, 100.0).is_ok());
    }
}
