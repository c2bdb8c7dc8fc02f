//! [`ShardError`].

use super::{MOST, ShardNumber};
use crate::error::LabError;
use thiserror::Error;

/// The reason why a sharded experiment is invalid.
#[derive(Debug, Error)]
pub enum ShardError {
    /// The text is not a shard number.
    #[error("{0:?} isn't a shard")]
    Number(String),
    /// No shard has this number.
    #[error("there is no shard {number}: the experiment has {of}")]
    OutOfRange {
        /// The requested shard.
        number: ShardNumber,
        /// The number of shards.
        of: u32,
    },
    /// Its plan has a fault.
    #[error(transparent)]
    Plan(#[from] LabError),
    /// The file is not one of `cryptmark fleet plan`.
    #[error("{name} isn't an experiment: {problem}")]
    Syntax {
        /// The file.
        name: String,
        /// The parser's message.
        problem: String,
    },
    /// There is nothing to measure for some of the shards.
    #[error("{shards} shards are requested, but the plan has only {portions} portions")]
    TooMany {
        /// Shards asked for.
        shards: u64,
        /// The most there can be.
        portions: u64,
        /// The description of a portion.
        portion: &'static str,
    },
    /// Every host would take its own rate of a cipher.
    #[error("the plan gives no rate for {0}, so every host would measure its own")]
    NoRate(String),
    /// Rounds go on until all systems are steady, so none can be left out.
    #[error("the plan runs until all of its drives are steady, so it cannot be divided")]
    Steady,
    /// It has no axes of systems, ciphers and workloads.
    #[error("{0} have no matrix")]
    NoMatrix(&'static str),
    /// The text is not an axis of a matrix with a value.
    #[error("{0:?} isn't an axis of a matrix")]
    Axis(String),
    /// A name that is not fit for files and scripts.
    #[error("{0:?} cannot name an experiment")]
    Name(String),
}

impl ShardError {
    /// The remedy, as one sentence for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::Number(_) => "Write the number of the shard and the number of all shards, \
                                as in 3/40."
                .into(),
            Self::OutOfRange { of, .. } => format!("Give `shard` 1/{of} to {of}/{of}."),
            Self::Plan(error) => error.remedy().to_owned(),
            Self::Syntax { .. } => {
                "Write the file again: `cryptmark fleet plan PLAN -o FILE.toml`.".into()
            }
            Self::TooMany {
                portions, portion, ..
            } => format!(
                "Ask for at most {} shards. A portion is {portion}.",
                (*portions).min(u64::from(MOST))
            ),
            Self::NoRate(cipher) => {
                format!("Write the rate into the plan: cpu = {{ \"{cipher}\" = \"1500MB/s\" }}.")
            }
            Self::Steady => "Give every drive its own run: `matrix` system=drive:NAME.".into(),
            Self::NoMatrix(_) => "Use `hosts` N. The plan itself says what to combine.".into(),
            Self::Axis(_) => {
                "Write system=NAME, cipher=NAME, workload=NAME or seed=1..20. You can repeat each \
                 of them."
                    .into()
            }
            Self::Name(_) => {
                "Use up to 60 letters, digits, dots, underscores and hyphens. Begin with a letter \
                 or digit."
                    .into()
            }
        }
    }
}
