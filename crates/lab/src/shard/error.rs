//! [`ShardError`].

use super::{MOST, ShardNumber};
use crate::plan::PlanError;
use thiserror::Error;

/// What is wrong with an experiment in shards.
#[derive(Debug, Error)]
pub enum ShardError {
    /// The words are not a number of shards.
    #[error("{0:?} isn't a shard")]
    Number(String),
    /// No shard has this number.
    #[error("there is no shard {number}: the experiment has {of}")]
    OutOfRange {
        /// What was asked for.
        number: ShardNumber,
        /// How many there are.
        of: u32,
    },
    /// Its plan has a fault.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The file is not one of `cryptmark fleet plan`.
    #[error("{name} isn't an experiment: {problem}")]
    Syntax {
        /// The file.
        name: String,
        /// The parser's words.
        problem: String,
    },
    /// There is nothing to measure for some of the shards.
    #[error("{shards} shards are asked for, and there are {portions} portions to deal out")]
    TooMany {
        /// Shards asked for.
        shards: u64,
        /// The most there can be.
        portions: u64,
        /// What a portion is.
        portion: &'static str,
    },
    /// Every host would take its own rate of a cipher.
    #[error("the rate of {0} is not given: every host would measure its own")]
    NoRate(String),
    /// Rounds go on until all systems are steady, so none can be left out.
    #[error("the plan goes on until all of its drives are steady, and cannot be dealt out")]
    Steady,
    /// It has no axes of systems, ciphers and workloads.
    #[error("{0} have no matrix")]
    NoMatrix(&'static str),
    /// The words are no axis of a matrix with a value.
    #[error("{0:?} isn't an axis of a matrix")]
    Axis(String),
    /// A name that is not fit for files and scripts.
    #[error("{0:?} cannot name an experiment")]
    Name(String),
}

impl ShardError {
    /// What the user can do about it, one sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Number(_) => "Write the number and how many there are: --shard 3/40.".into(),
            Self::OutOfRange { of, .. } => format!("Give --shard 1/{of} to {of}/{of}."),
            Self::Plan(error) => error.remedy(),
            Self::Syntax { .. } => "Write it anew: cryptmark fleet plan PLAN -o FILE.toml.".into(),
            Self::TooMany {
                portions, portion, ..
            } => format!(
                "Ask for at most {}; a portion is {portion}.",
                (*portions).min(u64::from(MOST))
            ),
            Self::NoRate(cipher) => {
                format!("Write it into the plan: cpu = {{ \"{cipher}\" = \"1500MB/s\" }}.")
            }
            Self::Steady => "Give every drive a run of its own: --matrix system=drive:NAME.".into(),
            Self::NoMatrix(_) => {
                "Use --hosts N; what is to be combined stands in the plan itself.".into()
            }
            Self::Axis(_) => {
                "Write system=NAME, cipher=NAME, workload=NAME or seed=1..20; each can be repeated.".into()
            }
            Self::Name(_) => {
                "Use up to 60 letters, digits, dots, underscores and hyphens, a letter or digit first.".into()
            }
        }
    }
}
