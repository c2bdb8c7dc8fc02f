//! [`RunError`].

use crate::experiment::PlanError;
use crate::record::Run;
use crate::session::SessionError;
use crate::system::StorageError;
use thiserror::Error;

/// Why a plan could not be run.
#[derive(Debug, Error)]
pub enum RunError {
    /// The plan is not valid, or not with these changes.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// File systems are mounted by agents, which are processes of the program.
    #[error("the plan {plan} measures file systems, which only the program cryptmark does")]
    FileSystems {
        /// The plan's name.
        plan: String,
    },
    /// A library overwrites nothing of a user's, and reads no energy sensor.
    #[error("only the program cryptmark overwrites what is there, or reads an energy sensor")]
    OnlyTheProgram,
    /// The storage cannot be had.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The systems cannot be opened.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The measurement failed before its end.
    #[error("the run failed after {} measured cells", run.trials.len())]
    Failed {
        /// What was measured before, `partial`.
        run: Box<Run>,
        /// Why.
        source: SessionError,
    },
    /// The caller stopped it before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
}

impl RunError {
    /// The remedy, as one sentence for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::Plan(error) => error.remedy(),
            Self::FileSystems { plan } => format!("Run it: `cryptmark run {plan}`."),
            Self::OnlyTheProgram => "Leave it out.".into(),
            Self::Storage(error) => error.remedy(),
            Self::Session(error) | Self::Failed { source: error, .. } => error.remedy(),
            Self::Stopped => "Run it again.".into(),
        }
    }
}
