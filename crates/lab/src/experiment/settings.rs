//! [`Setting`]: what can be chosen for an experiment, by the same name wherever it is chosen.

use super::error::not_taken;
use crate::error::LabError;

/// What can be chosen for an experiment, beyond its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Bytes of the test extent.
    Size,
    /// A first look.
    FirstLook,
    /// Repetitions.
    Repetitions,
    /// The length of a repetition.
    TrialSeconds,
    /// The most time for the whole.
    TimeLimit,
    /// The precision at which to stop.
    Precision,
    /// Memory in place of storage.
    InMemory,
    /// Systems in addition to the plain one.
    Systems,
    /// Ciphers.
    Ciphers,
    /// Bits of the key.
    KeySize,
    /// Bytes of an encryption sector.
    SectorSizes,
    /// Threads that send requests.
    Threads,
    /// Cores that encrypt.
    Cores,
    /// Rates of ciphers on another machine's cores.
    Cpu,
    /// The model of an encrypting driver.
    Driver,
    /// A backend of the engine.
    Backend,
    /// Shell commands that are timed.
    Commands,
    /// Jobs at the same time.
    Jobs,
    /// The sensor that is read.
    Energy,
    /// The seed of offsets and data.
    Seed,
    /// The storage.
    Place,
    /// Whether what is there may be overwritten.
    Overwrite,
}

impl Setting {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Size,
        Self::FirstLook,
        Self::Repetitions,
        Self::TrialSeconds,
        Self::TimeLimit,
        Self::Precision,
        Self::InMemory,
        Self::Systems,
        Self::Ciphers,
        Self::KeySize,
        Self::SectorSizes,
        Self::Threads,
        Self::Cores,
        Self::Cpu,
        Self::Driver,
        Self::Backend,
        Self::Commands,
        Self::Jobs,
        Self::Energy,
        Self::Seed,
        Self::Place,
        Self::Overwrite,
    ];

    /// Its name in a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Size => "a size",
            Self::FirstLook => "a first look",
            Self::Repetitions => "repetitions",
            Self::TrialSeconds => "the length of a repetition",
            Self::TimeLimit => "a time limit",
            Self::Precision => "a precision",
            Self::InMemory => "memory in place of storage",
            Self::Systems => "systems",
            Self::Ciphers => "ciphers",
            Self::KeySize => "a key size",
            Self::SectorSizes => "a sector size",
            Self::Threads => "threads",
            Self::Cores => "cores",
            Self::Cpu => "cipher rates",
            Self::Driver => "a driver model",
            Self::Backend => "a backend",
            Self::Commands => "commands",
            Self::Jobs => "jobs",
            Self::Energy => "an energy sensor",
            Self::Seed => "a seed",
            Self::Place => "a place",
            Self::Overwrite => "overwriting",
        }
    }

    /// The one that a key of a plan's TOML chooses; `None` if the key chooses what is no setting.
    pub(super) fn of_key(key: &str) -> Option<Self> {
        Some(match key {
            "size" => Self::Size,
            "repetitions" => Self::Repetitions,
            "until" => Self::TimeLimit,
            "systems" => Self::Systems,
            "ciphers" => Self::Ciphers,
            "key_size" => Self::KeySize,
            "sector_size" => Self::SectorSizes,
            "cores" | "all_cores" => Self::Cores,
            "cpu" => Self::Cpu,
            "driver" => Self::Driver,
            "operation" => Self::Commands,
            "jobs" => Self::Jobs,
            _ => return None,
        })
    }
}

/// Refuses the first of `given` for which `refuses` says to what it cannot apply.
pub(super) fn check(
    given: impl IntoIterator<Item = Setting>,
    refuses: impl Fn(Setting) -> Option<&'static str>,
) -> Result<(), LabError> {
    for setting in given {
        if let Some(of) = refuses(setting) {
            let others = Setting::ALL.into_iter().filter(|s| refuses(*s).is_none());
            return Err(not_taken(setting, of, &others.collect::<Vec<_>>()));
        }
    }
    Ok(())
}
