//! [`prepare`]: the storage and the systems of a plan, ready to be measured.

use super::{RunError, new_id};
use crate::plan::Plan;
use crate::record::Tier;
use crate::session::{Session, SessionError, Visit};
use crate::target::{Backend, Storage, StorageError};
use std::fmt;
use std::ops::ControlFlow;

/// A step of a run, for progress. Its `Display` says what is done, in words.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// The test extent is filled.
    Filling {
        /// Bytes so far.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// A simulated drive is filled.
    FillingDrive {
        /// Bytes so far; 0 before the first.
        done: u64,
        /// Bytes of the extent. A drive may need more.
        total: u64,
    },
    /// Requests are looked for that several cores encrypt faster.
    Sharing,
    /// A cell is about to be visited. The time that the caller takes is no measuring time.
    Visiting(&'a Visit<'a>),
}

impl Step<'_> {
    /// How much of the step is done, and how much there is: bytes, or visits as [`Visit`] counts
    /// them. Both are 0 if that is not known.
    pub fn counts(&self) -> (u64, u64) {
        match *self {
            Self::Filling { done, total } | Self::FillingDrive { done, total } => (done, total),
            Self::Sharing => (0, 0),
            Self::Visiting(visit) => (visit.done, visit.visits),
        }
    }
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filling { .. } => to.write_str("filling the test file"),
            Self::FillingDrive { .. } => to.write_str("filling the simulated drive"),
            Self::Sharing => {
                to.write_str("finding the requests that several cores are faster with")
            }
            Self::Visiting(visit) => write!(to, "{} · {}", visit.workload, visit.label),
        }
    }
}

/// A caller that hears of each step and may stop the run.
pub type Told<'a> = dyn FnMut(Step<'_>) -> ControlFlow<()> + 'a;

/// A listener that hears the bytes filled so far and may stop the filling.
pub type Filling<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// Prepares the storage of a plan of ciphers or devices, and opens its systems on it. A plan of
/// ciphers gets memory, and one of simulated drives needs no storage. Any other has the storage
/// that `place` makes. `backend` forces one of the built-in engine.
///
/// The storage must live until the session has measured.
///
/// # Errors
/// [`RunError::Storage`] and [`RunError::Session`], also if `told` stops it.
pub fn prepare<'a>(
    plan: &'a Plan,
    backend: Option<Backend>,
    seed: u64,
    place: impl FnOnce(&mut Filling<'_>) -> Result<Storage, StorageError>,
    told: &mut Told<'_>,
) -> Result<(Session<'a>, Storage), RunError> {
    let total = plan.extent_bytes();
    let storage = match plan.tier {
        Tier::Cipher => Storage::memory(total, seed)?,
        _ if plan.is_simulated() => Storage::none(),
        _ => place(&mut |done| told(Step::Filling { done, total }))?,
    };
    let flow = if plan.systems.iter().any(|system| system.drive().is_some()) {
        told(Step::FillingDrive { done: 0, total })
    } else if plan.cores > 1 {
        told(Step::Sharing)
    } else {
        ControlFlow::Continue(())
    };
    if flow.is_break() {
        return Err(SessionError::Interrupted.into());
    }
    let filling = &mut |done| told(Step::FillingDrive { done, total });
    let session = Session::open_watched(plan, &storage, backend, seed, new_id(), filling)?;
    Ok((session, storage))
}
