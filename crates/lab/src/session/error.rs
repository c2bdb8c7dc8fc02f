//! [`SessionError`].

use crate::experiment::PlanError;
use crate::file_system::FileSystemError;
#[cfg(target_os = "linux")]
use crate::system::served::ServedError;
use crate::system::simulated::SimulatedError;
use crate::system::unlock::UnlockError;
use crate::system::{BareError, TargetError};
use crate::trial::TrialError;
use thiserror::Error;

/// Why a session ended before its plan was done.
#[derive(Debug, Error)]
pub enum SessionError {
    /// A target cannot be opened or failed its self-check.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Our own server cannot be reached.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Served(#[from] ServedError),
    /// A drive cannot be simulated.
    #[error(transparent)]
    Simulated(#[from] SimulatedError),
    /// A bare cipher cannot be opened or failed its self-check.
    #[error(transparent)]
    Bare(#[from] BareError),
    /// A key cannot be derived.
    #[error(transparent)]
    Unlock(UnlockError),
    /// A repetition failed.
    #[error("{workload} on {label}")]
    Trial {
        /// The workload.
        workload: String,
        /// The cell's system and cipher.
        label: String,
        /// Why.
        source: Box<TrialError>,
    },
    /// File systems cannot be measured.
    #[error(transparent)]
    FileSystem(#[from] FileSystemError),
    /// The process that measured file systems has failed.
    #[error("{what}")]
    Agent {
        /// The failure, in the agent's words.
        what: String,
        /// The remedy, in the agent's words.
        remedy: String,
    },
    /// A cipher of the plan cannot be used.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Every system that was asked for is absent.
    #[error("none of the requested systems is available: {}", .0.join("; "))]
    Absent(Vec<String>),
    /// The observer could not keep what was measured.
    #[error("the measurements could not be stored")]
    Keep(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl SessionError {
    /// The remedy, as one sentence for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::Target(error) => error.remedy(),
            #[cfg(target_os = "linux")]
            Self::Served(error) => error.remedy(),
            Self::Simulated(error) => error.remedy(),
            Self::Bare(error) => error.remedy(),
            Self::Unlock(error) => error.remedy(),
            Self::Trial { source, .. } => source.remedy(),
            Self::FileSystem(error) => error.remedy(),
            Self::Agent { remedy, .. } => remedy.clone(),
            Self::Plan(error) => error.remedy(),
            Self::Absent(_) => {
                "`cryptmark doctor` shows what this machine can measure and what is missing.".into()
            }
            Self::Keep(_) => "Check the store's path and free space, then run again.".into(),
            Self::Interrupted => "The finished trials are stored: `cryptmark show latest`.".into(),
        }
    }
}
