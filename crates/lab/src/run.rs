//! [`Request`]: a plan run by another program, without a process of `cryptmark`.
//!
//! A request names a plan, changes to it, and a directory. It measures ciphers, devices and key
//! derivations, and gives the record. It stores and prints nothing, and handles no signals. The
//! [`store`](crate::store) keeps the record if the caller wants that.
//!
//! A request never overwrites what is there. It makes a file of its own in the directory, or takes
//! memory. The file has no name on most systems, and it is gone when the run ends, however it ends.
//!
//! # Example
//!
//! ```
//! use cryptmark_lab::experiment::Changes;
//! use cryptmark_lab::run::Request;
//! use std::ops::ControlFlow;
//!
//! # fn main() -> Result<(), cryptmark_lab::run::RunError> {
//! let changes = Changes {
//!     ciphers: vec!["aes".into()],
//!     systems: vec!["builtin".parse().expect("a known system")],
//!     sector_sizes: vec![4096],
//!     threads: vec![1],
//!     repetitions: Some(3),
//!     trial_seconds: Some(0.001),
//!     ..Changes::default()
//! };
//! let request = Request::load("ciphers")?.changed(&changes)?.seed(1)?;
//! let run = request.measure(&mut |step| {
//!     println!("{step}");
//!     ControlFlow::Continue(())
//! })?;
//! assert!(!run.partial);
//! for trial in &run.trials {
//!     println!("{}: {:.0} MB/s", trial.workload, trial.throughput_mb_s.median);
//! }
//! # Ok(())
//! # }
//! ```

mod error;
mod id;
mod prepare;

pub use self::error::RunError;
pub use self::id::{new_id, seed_of_now};
pub use self::prepare::{Filling, Step, Told, prepare};

use self::error::only_by_the_program;
use crate::error::LabError;
use crate::experiment::{Changes, Experiment};
use crate::record::Run;
use crate::session::{Observer, Session, Visit};
use crate::system::Storage;
use std::error::Error;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// An experiment that is to be measured.
#[derive(Clone, Debug)]
pub struct Request {
    experiment: Experiment,
    at: Option<PathBuf>,
    seed: Option<u64>,
}

impl Request {
    /// Reads a shipped plan by name, or a file by a path that ends in `.toml`.
    ///
    /// # Errors
    /// [`RunError::Refused`], also for what only the program measures.
    pub fn load(name_or_path: &str) -> Result<Self, RunError> {
        Self::of(Experiment::load(name_or_path)?)
    }

    /// Reads a plan from TOML; `name` stands in the record.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(name: &str, text: &str) -> Result<Self, RunError> {
        Self::of(Experiment::parse(name, text)?)
    }

    fn of(experiment: Experiment) -> Result<Self, RunError> {
        match experiment {
            Experiment::FileSystems(plan) => Err(only_by_the_program(&plan.name).into()),
            experiment => Ok(Self {
                experiment,
                at: None,
                seed: None,
            }),
        }
    }

    /// Changes the experiment. Devices are measured by a file in the directory `at` if one is
    /// given, and in memory otherwise. Without a `seed`, each run has its own.
    ///
    /// # Errors
    /// [`RunError::Refused`] for an impossible value, for what would have no effect, and for
    /// overwriting and an energy sensor.
    pub fn changed(mut self, changes: &Changes) -> Result<Self, RunError> {
        if changes.overwrite || changes.energy.is_some() {
            let what =
                "only the program cryptmark overwrites what is there, or reads an energy sensor";
            return Err(LabError::invalid(what, "Leave it out.").into());
        }
        self.experiment = self.experiment.changed(changes)?;
        self.at = changes.at.clone().or(self.at);
        self.seed = changes.seed.or(self.seed);
        Ok(self)
    }

    /// Measures devices by a file in this directory, and not in memory.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the experiment uses no storage.
    pub fn at(self, directory: impl Into<PathBuf>) -> Result<Self, RunError> {
        self.changed(&Changes {
            at: Some(directory.into()),
            ..Changes::default()
        })
    }

    /// Sets the seed of offsets and data; the same seed visits the same blocks.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the experiment has no use for one.
    pub fn seed(self, seed: u64) -> Result<Self, RunError> {
        self.changed(&Changes {
            seed: Some(seed),
            ..Changes::default()
        })
    }

    /// The experiment, with all changes.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Measures, and tells `told` of each step. If `told` stops it, the record is `partial` and
    /// has the cells that were measured.
    ///
    /// # Errors
    /// [`RunError::Refused`] for a place that is no directory, and if no system can be opened;
    /// [`RunError::Failed`], with what was measured before; [`RunError::Stopped`] if nothing was.
    pub fn measure(&self, told: &mut Told<'_>) -> Result<Run, RunError> {
        let stop = AtomicBool::new(false);
        let mut told = |step: Step<'_>| {
            let flow = told(step);
            stop.fetch_or(flow.is_break(), Ordering::Relaxed);
            flow
        };
        let prepared = self.prepare(&mut told);
        let (session, _storage) = prepared.map_err(|error| match stop.load(Ordering::Relaxed) {
            true => RunError::Stopped,
            false => error.into(),
        })?;
        let session = session.built_as(env!("CARGO_PKG_VERSION"));
        let (run, outcome) = session.measure(&stop, &mut Watcher(&mut told));
        match (outcome, stop.load(Ordering::Relaxed)) {
            (Ok(()), _) => Ok(run),
            (Err(_), true) if run.trials.is_empty() => Err(RunError::Stopped),
            (Err(_), true) => Ok(run),
            (Err(source), false) => {
                let run = Box::new(run);
                Err(RunError::Failed { run, source })
            }
        }
    }

    fn prepare(&self, told: &mut Told<'_>) -> Result<(Session<'static>, Storage), LabError> {
        let seed = self.seed.unwrap_or_else(seed_of_now);
        let place = |filling: &mut Filling<'_>| {
            let Experiment::Devices(devices) = &self.experiment else {
                return Ok(Storage::none());
            };
            let size = devices.extent_bytes();
            match &self.at {
                Some(directory) => Storage::in_directory(directory, size, seed, None, filling),
                None => Storage::memory(size, seed),
            }
        };
        prepare(&self.experiment, seed, place, told)
    }
}

/// Tells the caller of each visit.
struct Watcher<'a, 'b>(&'a mut Told<'b>);

impl Observer for Watcher<'_, '_> {
    fn visiting(&mut self, visit: &Visit<'_>) {
        // The flag that the session looks at is set before the answer comes back.
        let _: ControlFlow<()> = (self.0)(Step::Visiting(visit));
    }

    fn keep(&mut self, _: &Run, _: &[usize]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}
