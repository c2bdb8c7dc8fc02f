//! [`Format`]: which kind of trace it is.

use crate::DriveError;
use std::fmt;
use std::str::FromStr;

/// A text format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// fio's `write_iolog`, version 2 (without times) and 3 (times in microseconds).
    Fio {
        /// 2 or 3.
        version: u32,
    },
    /// DiskSim's: time, device, sector, sectors, flags; the time in milliseconds,
    /// with a decimal point.
    DiskSim,
    /// MQSim's: the same five, the time in whole nanoseconds.
    MqSim,
    /// Microsoft Research Cambridge: comma-separated, times in 100 ns.
    Msr,
    /// The default output of `blkparse`.
    Blkparse,
}

impl Format {
    /// The words for them.
    pub const KNOWN: &'static str = "fio, disksim, mqsim, msr and blkparse";

    /// The format that a first line is of.
    pub(super) fn detect(line: &str) -> Option<Self> {
        match line {
            "fio version 2 iolog" => return Some(Self::Fio { version: 2 }),
            "fio version 3 iolog" => return Some(Self::Fio { version: 3 }),
            _ => {}
        }
        let fields: Vec<&str> = line.split(',').collect();
        let action = fields.get(3).map_or("", |field| field.trim());
        if fields.len() >= 6
            && ["read", "write"]
                .iter()
                .any(|word| action.eq_ignore_ascii_case(word))
        {
            return Some(Self::Msr);
        }
        // What a terminal shows before the first event.
        if line.starts_with("Input file ") || line.contains("blkparse") {
            return Some(Self::Blkparse);
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (device, rest) = words.split_first()?;
        let is_pair = device
            .split_once(',')
            .is_some_and(|(major, minor)| is_number(major) && is_number(minor));
        if is_pair && rest.len() >= 5 {
            return Some(Self::Blkparse);
        }
        let numbers = words.len() == 5 && words[..4].iter().all(|word| word.parse::<f64>().is_ok());
        numbers.then_some(match device.contains('.') {
            true => Self::DiskSim,
            false => Self::MqSim,
        })
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

impl FromStr for Format {
    type Err = DriveError;

    fn from_str(given: &str) -> Result<Self, DriveError> {
        match given {
            "fio" => Ok(Self::Fio { version: 3 }),
            "disksim" => Ok(Self::DiskSim),
            "mqsim" => Ok(Self::MqSim),
            "msr" => Ok(Self::Msr),
            "blkparse" => Ok(Self::Blkparse),
            _ => Err(DriveError::Unknown {
                what: "format of traces",
                given: given.to_owned(),
                known: Self::KNOWN,
            }),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fio { .. } => "fio",
            Self::DiskSim => "disksim",
            Self::MqSim => "mqsim",
            Self::Msr => "msr",
            Self::Blkparse => "blkparse",
        })
    }
}
