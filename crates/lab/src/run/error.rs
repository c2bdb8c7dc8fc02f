//! [`RunError`].

use crate::error::LabError;
use crate::record::Run;
use thiserror::Error;

/// Why a plan could not be run.
#[derive(Debug, Error)]
pub enum RunError {
    /// The plan, the storage or the systems cannot be had.
    #[error(transparent)]
    Refused(#[from] LabError),
    /// The measurement failed before its end.
    #[error("the run failed after {} measured cells", run.trials.len())]
    Failed {
        /// What was measured before, `partial`.
        run: Box<Run>,
        /// Why.
        source: LabError,
    },
    /// The caller stopped it before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
}

impl RunError {
    /// The remedy, as one sentence for the user.
    pub fn remedy(&self) -> &str {
        match self {
            Self::Refused(error) | Self::Failed { source: error, .. } => error.remedy(),
            Self::Stopped => "Run it again.",
        }
    }
}

/// The refusal of a plan of file systems, which are mounted by agents: processes of the program.
pub(super) fn only_by_the_program(plan: &str) -> LabError {
    LabError::invalid(
        format!("the plan {plan} measures file systems, which only the program cryptmark does"),
        format!("Run it: `cryptmark run {plan}`."),
    )
}
