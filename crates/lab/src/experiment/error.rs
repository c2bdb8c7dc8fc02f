//! The reasons why a plan is invalid, with their remedies.

use super::Setting;
use crate::file_system::OperationError;
use crate::published::repeats::RepeatsError;
use crate::system::EncryptionError;
use crate::system::simulated::{Driver, SimulatedError};
use crate::system::unlock::BENCHMARK;
use crate::workload::WorkloadError;
use bytesize::ByteSize;
use std::path::PathBuf;
use thiserror::Error;

/// The reason why a plan is invalid.
#[derive(Debug, Error)]
pub enum PlanError {
    /// No shipped plan has this name and no file has this path.
    #[error("there is no plan {name:?}")]
    Unknown {
        /// The requested name.
        name: String,
        /// A shipped plan with a similar name.
        suggestion: Option<&'static str>,
    },
    /// The file cannot be read.
    #[error("cannot read the plan {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a valid plan.
    #[error("{name}, line {line}: {problem}")]
    Syntax {
        /// Plan or file name.
        name: String,
        /// Line, from 1.
        line: usize,
        /// The parser's message.
        problem: String,
        /// A known key with a similar name.
        suggestion: Option<String>,
    },
    /// A workload has an impossible value.
    #[error("workload {workload:?}: {source}")]
    Workload {
        /// Its name.
        workload: String,
        /// Which value.
        source: WorkloadError,
    },
    /// Two workloads share a name.
    #[error("two workloads are named {0:?}")]
    DuplicateWorkload(String),
    /// A list that must not be empty is.
    #[error("the plan has no {0}")]
    Empty(&'static str),
    /// A number is out of its range.
    #[error("{key} = {value} is not between {low} and {high}")]
    Range {
        /// The key.
        key: &'static str,
        /// The given value.
        value: u64,
        /// Smallest allowed value.
        low: u64,
        /// Largest allowed value.
        high: u64,
    },
    /// A workload's blocks are not whole encryption sectors.
    #[error("workload {workload:?}: its blocks do not consist of whole {sector}-byte sectors")]
    BlockSector {
        /// Its name.
        workload: String,
        /// The plan's sector size.
        sector: u32,
    },
    /// A workload is not of the plan's tier.
    #[error("workload {0:?} is of another tier than the plan")]
    OtherTier(String),
    /// Flash has no erase blocks of this size.
    #[error("erase_size = {} is not a power of two", .0.as_u64())]
    EraseSize(ByteSize),
    /// File systems get several sector sizes.
    #[error("file systems are measured with one sector size at a time")]
    SectorSizes,
    /// What was chosen would have no effect.
    #[error("{} cannot be chosen for {of}", setting.name())]
    NotTaken {
        /// What was chosen.
        setting: Setting,
        /// What it does not apply to.
        of: &'static str,
        /// What can be chosen.
        others: Vec<Setting>,
    },
    /// A workload's blocks do not fit the test extent often enough.
    #[error("workload {workload:?} needs a test extent of {needed}, but the plan has {size}")]
    TooSmall {
        /// Its name.
        workload: String,
        /// Smallest extent.
        needed: ByteSize,
        /// The plan's extent.
        size: ByteSize,
    },
    /// An operation on a file system has an impossible value.
    #[error("operation {operation:?}: {source}")]
    Operation {
        /// Its name.
        operation: String,
        /// Which value.
        source: OperationError,
    },
    /// A system does not belong to the plan's tier.
    #[error("{system} is not measured in the tier {tier}")]
    NotOfTier {
        /// The contract's word.
        system: String,
        /// The tier's.
        tier: &'static str,
    },
    /// A rate of a cipher is given that nothing asks for.
    #[error("the plan gives a rate for {0:?}, but none of its simulated drives has this cipher")]
    UnusedRate(String),
    /// A driver that encrypts on one core has more of them.
    #[error("the driver {driver} encrypts on one core, but the plan gives it {cores}")]
    DriverCores {
        /// The driver.
        driver: Driver,
        /// Its cores.
        cores: u32,
    },
    /// The tests of a steady state are not made of the plan's workloads.
    #[error("steady: {0:?} is not in exactly one test, or no test tracks a workload of its own")]
    SteadyWorkload(String),
    /// Fewer rounds than a steady state is judged by.
    #[error("a steady state needs {needed} rounds, but the plan has {rounds}")]
    SteadyRounds {
        /// The rounds that the rule needs.
        needed: u32,
        /// The plan's repetitions.
        rounds: u32,
    },
    /// The end of a plan that is measured in slices is impossible.
    #[error("until: seconds must lie between 1 and 86400, precision between 0.1 and 50")]
    Until,
    /// The plain drive is not a policy, because it is measured with every
    /// policy anyway.
    #[error("plain isn't a policy: each drive is also simulated without encryption")]
    PlainPolicy,
    /// Every host would take its own rate of a cipher.
    #[error("the plan gives no rate for {0}, so every host would measure its own")]
    NoRate(String),
    /// A drive cannot live so.
    #[error(transparent)]
    Life(Box<SimulatedError>),
    /// No key derivation has this name.
    #[error("there is no key derivation {0:?}")]
    Derivation(String),
    /// A cipher, key size or sector size cannot be used.
    #[error(transparent)]
    Encryption(#[from] EncryptionError),
    /// Published figures are not to be found.
    #[error(transparent)]
    Published(#[from] RepeatsError),
}

impl PlanError {
    /// The remedy, as one sentence for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::Unknown {
                suggestion: Some(plan),
                ..
            } => format!("Did you mean {plan:?}? `cryptmark plans` lists them all."),
            Self::Unknown { .. } => {
                "`cryptmark plans` lists the built-in plans. The name of a plan file ends in .toml."
                    .into()
            }
            Self::Read { .. } => "Check the path and its permissions.".into(),
            Self::Syntax {
                suggestion: Some(key),
                ..
            } => {
                format!("Did you mean {key:?}? `cryptmark plans show quick` prints a plan to copy.")
            }
            Self::Syntax { .. } => "`cryptmark plans show quick` prints a plan to copy.".into(),
            Self::Workload { .. } | Self::Range { .. } => {
                "Change the value. `cryptmark plans show quick` prints a plan to copy.".into()
            }
            Self::Operation { .. } => {
                "Change the value. `cryptmark plans show crypto-fs` prints a plan to copy.".into()
            }
            Self::NotOfTier { .. } => {
                "Use one of: none, dm-crypt, cryptoloop, builtin-fuse. The lab kernel has the same \
                 systems with the prefix lab:, such as lab:dm-crypt."
                    .into()
            }
            Self::DuplicateWorkload(_) => "Give every workload its own name.".into(),
            Self::Empty(what) => format!("Name at least one of the {what}."),
            Self::UnusedRate(_) => {
                "Give the cipher by its name or its full notation, and add a system drive:NAME."
                    .into()
            }
            Self::DriverCores { .. } => {
                "Omit the cores, or use the driver `queue` or `truecrypt`.".into()
            }
            Self::BlockSector { .. } => {
                "Use a block_size that is a multiple of sector_size.".into()
            }
            Self::SteadyWorkload(_) => {
                "Put each workload into one test, and let each test track one of its own \
                 workloads. `cryptmark plans show snia` prints a plan to copy."
                    .into()
            }
            Self::SteadyRounds { needed, .. } => format!("Use `repeat` {needed} or more."),
            Self::Until => "Give numbers between these.".into(),
            Self::PlainPolicy => {
                "Omit it. The policies are pass, block, filled and unpartitioned.".into()
            }
            Self::NoRate(cipher) => {
                format!(
                    "Write the rate into the specification: cpu = {{ \"{cipher}\" = \"1500MB/s\" \
                     }}."
                )
            }
            Self::Life(error) => error.remedy(),
            Self::Derivation(_) => {
                let names: Vec<&str> = BENCHMARK.iter().map(|recipe| recipe.name).collect();
                format!("Use one of: {}.", names.join(", "))
            }
            Self::OtherTier(_) => {
                "Plans with tier = \"cipher\" have the operations encrypt and decrypt, those of \
                 devices have read, write and mixed."
                    .into()
            }
            Self::EraseSize(_) => "Use 4 KiB, 8 KiB, and so on up to 1 MiB.".into(),
            Self::SectorSizes => "Give one.".into(),
            Self::NotTaken {
                setting, others, ..
            } => {
                let of_drives = matches!(setting, Setting::Cpu | Setting::Driver)
                    && others.contains(&Setting::Systems);
                let or = match of_drives {
                    true => ", or choose a system drive:NAME",
                    false => "",
                };
                let others: Vec<&str> = others.iter().map(|setting| setting.name()).collect();
                format!(
                    "Leave it out{or}. Here one can choose: {}.",
                    others.join(", ")
                )
            }
            Self::TooSmall { needed, .. } => {
                format!("Use `size` {} or more.", needed.display().si_short())
            }
            Self::Encryption(error) => error.remedy(),
            Self::Published(error) => error.remedy(),
        }
    }
}

/// Turns the parser's error into a line and, for an unknown word, a suggestion.
pub(crate) fn syntax(name: &str, text: &str, error: &toml::de::Error) -> PlanError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1;
    let problem = error
        .message()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    // The parser names the unknown word and the known ones in back quotes.
    let mut words = problem.split('`').skip(1).step_by(2);
    let suggestion = words.next().and_then(|unknown| {
        words
            .map(|known| (strsim::jaro_winkler(unknown, known), known))
            .filter(|(likeness, _)| *likeness > 0.75)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| known.to_owned())
    });
    PlanError::Syntax {
        name: name.to_owned(),
        line,
        problem,
        suggestion,
    }
}
