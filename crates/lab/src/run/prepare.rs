//! [`prepare`]: the storage and the systems of a plan, ready to be measured.

use super::error::only_by_the_program;
use super::new_id;
use crate::error::LabError;
use crate::experiment::{Devices, Experiment};
use crate::session::{Session, Visit};
use crate::system::unlock::RECIPES;
use crate::system::{Storage, SystemId};
use std::fmt;
use std::num::NonZeroUsize;
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

/// Prepares the storage of an experiment, and opens its systems on it. Real devices have the
/// storage that `place` makes; nothing else needs storage.
///
/// The storage must live until the session has measured.
///
/// # Errors
/// [`LabError`], also if `told` stops it.
pub fn prepare(
    experiment: &Experiment,
    seed: u64,
    place: impl FnOnce(&mut Filling<'_>) -> Result<Storage, LabError>,
    told: &mut Told<'_>,
) -> Result<(Session<'static>, Storage), LabError> {
    let session = match experiment {
        Experiment::Devices(devices) => return open(devices, seed, place, told),
        Experiment::Ciphers(ciphers) => {
            if ciphers.cores > 1 {
                go_on(told(Step::Sharing))?;
            }
            Session::of_ciphers(ciphers, seed, new_id())?
        }
        Experiment::Derivations(all) => Session::of_derivations(all, RECIPES, seed, new_id())?,
        Experiment::Lives(lives) => {
            let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            Session::of_lives(lives, cores, seed, new_id())?
        }
        Experiment::FileSystems(plan) => {
            return Err(only_by_the_program(&plan.name));
        }
    };
    Ok((session, Storage::none()))
}

fn open(
    devices: &Devices,
    seed: u64,
    place: impl FnOnce(&mut Filling<'_>) -> Result<Storage, LabError>,
    told: &mut Told<'_>,
) -> Result<(Session<'static>, Storage), LabError> {
    let total = devices.extent_bytes();
    let storage = match devices.is_simulated() {
        true => Storage::none(),
        false if devices.in_memory => Storage::memory(total, seed)?,
        false => place(&mut |done| told(Step::Filling { done, total }))?,
    };
    if devices
        .systems
        .iter()
        .any(|system| system.drive().is_some())
    {
        go_on(told(Step::FillingDrive { done: 0, total }))?;
    } else if devices.cores > 1 && devices.systems.contains(&SystemId::Builtin) {
        go_on(told(Step::Sharing))?;
    }
    let filling = &mut |done| told(Step::FillingDrive { done, total });
    let session = Session::of_devices(devices, &storage, seed, new_id(), filling)?;
    Ok((session, storage))
}

fn go_on(flow: ControlFlow<()>) -> Result<(), LabError> {
    match flow.is_break() {
        true => Err(LabError::session_interrupted()),
        false => Ok(()),
    }
}
