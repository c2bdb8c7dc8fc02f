//! [`Session`]: a plan run on one extent, interleaved, kept as it goes.
//!
//! Every workload is measured on every system in one round, and rounds are repeated. Odd rounds
//! visit the systems in reverse (A B C, C B A, …). A machine that slows down or warms up therefore
//! affects all of them alike. The plain system stands at both ends of a round. Its second visit is
//! the A/A pair that measures the machine's noise. Each simulated drive is a place of its own, with
//! a plain system at both ends. Bare ciphers have no plain system. The first cipher is therefore
//! visited twice, the engine is compared with the fastest library, and every library with the
//! engine. A library that takes seconds for one request is left out of the later rounds.
//!
//! A plan that measures [until](crate::experiment::Until) all is decided has slices instead of such
//! rounds, in a random order.

mod cell;
mod energy;
#[cfg(target_os = "linux")]
pub mod file_system;
mod lives;
mod observer;
mod opened;
mod records;
mod rounds;
#[cfg(target_os = "linux")]
mod served;
#[cfg(not(target_os = "linux"))]
#[path = "session/unserved.rs"]
mod served;
pub mod simulated;
mod slices;
mod subject;
#[cfg(test)]
mod toy;
pub mod unlock;

pub use self::observer::{Observer, Unwatched, Visit};

use self::cell::Cell;
#[cfg(target_os = "linux")]
use self::file_system::Jobs;
use self::lives::AllLives;
use self::opened::Opened;
use crate::clock::Clock;
use crate::energy::Metering;
use crate::error::LabError;
use crate::experiment::{Ciphers, Derivations, Devices, Schedule};
use crate::probe::{self, StealMeter};
use crate::published::repeats::Beside;
use crate::record::{Host, Run};
use crate::system::unlock::Recipe;
use crate::system::{Storage, Target};
use crate::workload::Workload;
use std::collections::BTreeSet;
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Seconds of the uncounted visit that warms a cell up.
const WARM_UP: f64 = 0.05;

/// A cell is slow if its visits take this many times the planned duration.
const SLOW: f64 = 5.0;

/// Maximum time between two handovers of measured data to the observer.
const KEPT_EVERY: Duration = Duration::from_secs(2);

/// Steal above which a run on a virtual machine is worth a warning.
const STEAL: f64 = 0.02;

/// A run that begins now, named `id`; nothing is measured yet.
fn begun(plan: &str, seed: u64, id: String, warnings: Vec<String>) -> Run {
    Run {
        run: id,
        plan: plan.to_owned(),
        started: jiff::Zoned::now()
            .strftime("%Y-%m-%dT%H:%M:%S%:z")
            .to_string(),
        partial: true,
        seed,
        host: probe::host(),
        warnings,
        ..Run::default()
    }
}

/// Has `run` state that it was measured by this `version`.
fn state_build(run: &mut Run, version: &str) {
    let versions = &mut run.host.versions;
    versions.insert("cryptmark".to_owned(), version.to_owned());
}

/// The run at its end; `whole` if nothing of its plan is missing. `steal` is what
/// a hypervisor took of the time.
fn ended(mut run: Run, steal: Option<f64>, whole: bool) -> Run {
    run.partial = !whole;
    run.host.steal = steal;
    if let Some(steal) = run.host.steal.filter(|steal| *steal > STEAL) {
        run.warnings.push(format!(
            "the hypervisor took {:.0} % of the CPU time; run again when the host is less busy",
            steal * 100.0
        ));
    }
    run
}

/// The refusal of a session without any system.
fn all_absent<T: AsRef<str>>(absent: &[T]) -> LabError {
    let absent: Vec<&str> = absent.iter().map(T::as_ref).collect();
    LabError::invalid(
        format!(
            "none of the requested systems is available: {}",
            absent.join("; ")
        ),
        "`cryptmark doctor` shows what this machine can measure and what is missing.",
    )
}

/// The end of a session whose observer could not keep what was measured.
fn not_kept(error: Box<dyn Error + Send + Sync>) -> LabError {
    LabError::failed(
        "the measurements could not be stored",
        "Check the store's path and free space, then run again.",
    )
    .because(error)
}

/// The end of a session by a repetition that failed.
fn failed_trial(workload: &Workload, label: &str, error: LabError) -> LabError {
    let remedy = error.remedy().to_owned();
    LabError::failed(format!("{} on {label}", workload.name), remedy).because(error)
}

/// How a session comes to its samples.
enum Way<'a> {
    /// In rounds, or in slices until all is decided, as the plan says.
    Turns,
    /// From lives of drives.
    Lives(Box<AllLives>),
    /// From agents that mount file systems.
    #[cfg(target_os = "linux")]
    Jobs(Jobs<'a>),
}

/// A plan on its way through one extent.
pub struct Session<'a> {
    plan: Arc<Schedule>,
    way: Way<'a>,
    cells: Vec<Cell>,
    run: Run,
    /// Places in `run.trials`, by workload and cell.
    places: Vec<Vec<Option<usize>>>,
    /// Workloads measured since the last summary.
    fresh: BTreeSet<usize>,
    /// Places in `run.trials` that the observer has not been given yet.
    changed: BTreeSet<usize>,
    /// Clock reading of the last handover to the observer.
    kept: u64,
    /// Ticks that the observer took before visits: a user may pause there.
    paused: u64,
    core_hz: Option<f64>,
    /// The published figures that the plan's cells repeat.
    beside: Beside,
    steal: StealMeter,
    /// Key derivations that are measured first, each alone on the machine, and the target of
    /// those that are calibrated, ms.
    alone: (Vec<Recipe>, u32),
    /// Reads the energy of visits, if a sensor is there.
    metering: Option<Metering>,
}

impl<'a> Session<'a> {
    /// Opens every system of `devices` over `storage`, and checks that the encrypted ones encrypt.
    /// `id` names the run. `filling` hears the bytes written so far to each simulated drive, and
    /// may end the session.
    ///
    /// # Errors
    /// [`LabError`], also if `filling` ended it.
    pub fn of_devices(
        devices: &Devices,
        storage: &Storage,
        seed: u64,
        id: String,
        filling: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, LabError> {
        let plan = Arc::new(devices.schedule());
        let mut opened = Opened::over(storage, devices, &plan, seed, filling)?;
        opened.warnings.splice(0..0, storage.warnings.clone());
        Self::opened(plan, seed, id, opened)
    }

    /// Opens every cipher by every system.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn of_ciphers(ciphers: &Ciphers, seed: u64, id: String) -> Result<Self, LabError> {
        let plan = Arc::new(ciphers.schedule());
        let opened = Opened::bare(ciphers, &plan)?;
        let alone = (ciphers.recipes()?, ciphers.iter_time);
        Ok(Self {
            alone,
            ..Self::opened(plan, seed, id, opened)?
        })
    }

    fn opened(
        plan: Arc<Schedule>,
        seed: u64,
        id: String,
        opened: Opened,
    ) -> Result<Self, LabError> {
        if opened.cells.is_empty() {
            return Err(all_absent(&opened.absent));
        }
        let mut warnings = opened.warnings;
        let absent = opened.absent.into_iter();
        warnings.extend(absent.map(|system| format!("absent: {system}")));
        Self::of(plan, seed, id, warnings, |_| opened.cells)
    }

    /// `targets` that are open over `storage`: the first is what the others are compared with,
    /// and the last is the first again.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn over_targets(
        devices: &Devices,
        storage: &Storage,
        targets: Vec<Target>,
        seed: u64,
        id: String,
    ) -> Result<Self, LabError> {
        let plan = Arc::new(devices.schedule());
        let cell = |target| Cell::device(target, devices, &plan, storage);
        let cells = targets.into_iter().map(cell).collect();
        let warnings = storage.warnings.clone();
        Self::of(Arc::clone(&plan), seed, id, warnings, |_| cells)
    }

    /// Key derivations by `recipes`.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn of_derivations(
        derivations: &Derivations,
        recipes: &[Recipe],
        seed: u64,
        id: String,
    ) -> Result<Self, LabError> {
        let plan = Arc::new(derivations.schedule(recipes));
        let cells = |host: &Host| unlock::cells(recipes, derivations.iter_time, &plan, host);
        Self::of(Arc::clone(&plan), seed, id, Vec::new(), cells)
    }

    /// A session of `cells` on this host.
    fn of(
        plan: Arc<Schedule>,
        seed: u64,
        id: String,
        warnings: Vec<String>,
        cells: impl FnOnce(&Host) -> Vec<Cell>,
    ) -> Result<Self, LabError> {
        let beside = Beside::of(plan.published.as_ref())?;
        let run = Run {
            paper: beside.paper(),
            conditioning: plan.steady.as_ref().map(|(steady, _)| steady.clone()),
            marks: beside.marks(&plan.marks)?,
            ..begun(&plan.name, seed, id, warnings)
        };
        let cells = cells(&run.host);
        Ok(Self {
            core_hz: run.host.clock_hz,
            way: Way::Turns,
            places: vec![vec![None; cells.len()]; plan.workloads.len()],
            cells,
            fresh: BTreeSet::new(),
            changed: BTreeSet::new(),
            kept: Clock::get().now(),
            paused: 0,
            steal: StealMeter::start(),
            alone: (Vec::new(), 0),
            metering: None,
            beside,
            plan,
            run,
        })
    }

    /// States which build of the program measures: its version and commit.
    pub fn built_as(mut self, version: &str) -> Self {
        state_build(&mut self.run, version);
        self
    }

    /// The header of the run: the facts known before the measurement, to be stored first.
    pub fn header(&self) -> &Run {
        &self.run
    }

    /// Measures the whole plan.
    ///
    /// The returned run holds all measured data, even after an error. It says `partial` unless the
    /// plan was completed.
    pub fn measure(
        mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> (Run, Result<(), LabError>) {
        let done = self.places_done();
        let way = std::mem::replace(&mut self.way, Way::Turns);
        let outcome = match (way, self.plan.until) {
            (Way::Lives(lives), _) => self.lives(&lives, done, stop, observer),
            #[cfg(target_os = "linux")]
            (Way::Jobs(jobs), _) => self.jobs(&jobs, stop, observer),
            (Way::Turns, Some(until)) => self.slices(&until, stop, observer),
            (Way::Turns, None) => self
                .derivations(stop, observer)
                .and_then(|()| self.rounds(stop, observer)),
        };
        // An observer that learns of a failure to store can still store the run elsewhere.
        let outcome = self.hand_over(observer).and(outcome);
        let missing = self.metering.iter().flat_map(Metering::warnings);
        self.run.warnings.extend(missing);
        // It takes nothing of virtual time.
        let steal = match self.plan.is_simulated {
            true => None,
            false => self.steal.share(),
        };
        (ended(self.run, steal, outcome.is_ok()), outcome)
    }

    /// The plan's key derivations, one after the other.
    fn derivations(
        &mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), LabError> {
        let (recipes, iter_time) = std::mem::take(&mut self.alone);
        for (done, recipe) in recipes.iter().enumerate() {
            observer.visiting(&Visit {
                workload: recipe.name,
                label: "key derivation",
                round: 1,
                rounds: Some(1),
                done: done as u64,
                visits: recipes.len() as u64,
            });
            let host = &self.run.host;
            let trial = unlock::alone(recipe, iter_time, self.plan.repetitions, host, stop)?;
            let place = self.run.trials.len();
            self.run.trials.extend(trial);
            observer.keep(&self.run, &[place]).map_err(not_kept)?;
        }
        Ok(())
    }

    /// Hands over the measured data if the last handover is long enough ago.
    fn hand_over_in_time(&mut self, observer: &mut dyn Observer) -> Result<(), LabError> {
        let clock = Clock::get();
        if clock.now() - self.kept >= clock.ticks(KEPT_EVERY) {
            self.hand_over(observer)?;
            self.kept = clock.now();
        }
        Ok(())
    }

    /// The cells that `workload` can be asked of.
    fn cells_of(&self, workload: &Workload) -> Vec<usize> {
        (0..self.cells.len())
            .filter(|&cell| self.cells[cell].subject.takes(workload))
            .filter(|&cell| self.cells[cell].is_asked(&self.plan, workload))
            .collect()
    }
}
