//! [`Session`]: a plan run on one extent, interleaved, kept as it goes.
//!
//! Every workload is measured on every system in one round, and rounds are
//! repeated. Odd rounds visit the systems in reverse (A B C, C B A, …), so
//! that a machine that slows down or warms up hits all of them alike. The
//! plain system stands at both ends of a round: its second visit is the A/A
//! pair that says what the machine's noise is.

use crate::plan::{Plan, PlanError};
use crate::probe::{self, StealMeter};
use crate::record::{Noise, Run, SCHEMA};
use crate::stats;
use crate::summary::{self, Identity, Reference};
use crate::target::{Backend, Storage, System, Target, TargetError};
use crate::trial::{self, Options, Sample, TrialError};
use crate::workload::Workload;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// Seconds of the uncounted visit that warms a cell up.
const WARM_UP: f64 = 0.05;

/// Steal above which a run on a virtual machine is worth a warning.
const STEAL: f64 = 0.02;

/// Why a session ended before its plan was done.
#[derive(Debug, Error)]
pub enum SessionError {
    /// A target cannot be opened or failed its self-check.
    #[error(transparent)]
    Target(#[from] TargetError),
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
    /// A cipher of the plan cannot be used.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Every system that was asked for is absent.
    #[error("none of the systems asked for is present: {}", .0.join("; "))]
    Absent(Vec<String>),
    /// The observer could not keep what was measured.
    #[error("what was measured could not be stored")]
    Keep(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl SessionError {
    /// What the user can do about it, one sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Target(error) => error.remedy(),
            Self::Trial { source, .. } => source.remedy().to_owned(),
            Self::Plan(error) => error.remedy(),
            Self::Absent(_) => {
                "`cryptmark doctor` says what this machine can measure and what is missing.".into()
            }
            Self::Keep(_) => "Check the store's path and free space, then run again.".into(),
            Self::Interrupted => {
                "What was measured so far is stored: `cryptmark show latest`.".into()
            }
        }
    }
}

/// One visit of a cell, for progress.
#[derive(Clone, Debug)]
pub struct Visit<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The system and its cipher, `builtin aes-xts-plain64`.
    pub label: &'a str,
    /// Round, from 1.
    pub round: u32,
    /// Rounds in all.
    pub rounds: u32,
    /// Visits done so far.
    pub done: u64,
    /// Visits in all.
    pub visits: u64,
}

/// Who watches a session.
pub trait Observer {
    /// A cell is about to be visited.
    fn visiting(&mut self, visit: &Visit<'_>);

    /// A round of one workload is complete: `run` holds everything measured
    /// so far, `changed` the places in `run.trials` that are new or different.
    ///
    /// # Errors
    /// Whatever kept it from storing them; the session ends.
    fn keep(
        &mut self,
        run: &Run,
        changed: &[usize],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// One system in a session, with its samples by workload.
struct Cell {
    target: Target,
    label: String,
    identity: Identity,
    samples: Vec<Vec<Sample>>,
}

/// A plan on its way through one extent.
pub struct Session<'a> {
    plan: &'a Plan,
    cells: Vec<Cell>,
    run: Run,
    core_hz: Option<f64>,
    steal: StealMeter,
}

/// The cell that every other is compared with; its second visit comes last.
const PLAIN: usize = 0;

impl<'a> Session<'a> {
    /// Opens every system of `plan` over `storage` and checks that the
    /// encrypted ones encrypt. `id` names the run.
    ///
    /// # Errors
    /// [`SessionError::Target`], [`SessionError::Plan`], [`SessionError::Absent`].
    pub fn open(
        plan: &'a Plan,
        storage: &'a Storage,
        backend: Option<Backend>,
        seed: u64,
        id: String,
    ) -> Result<Self, SessionError> {
        let mut absent = Vec::new();
        let mut targets = vec![Target::plain(Arc::clone(&storage.device))];
        for system in &plan.systems {
            match system {
                System::None => {}
                System::Builtin => {
                    for encryption in plan.encryptions(backend)? {
                        let target = Target::builtin(Arc::clone(&storage.device), encryption)?;
                        target.self_check(&*storage.device)?;
                        targets.push(target);
                    }
                }
                System::Absent(name) => absent.push(format!(
                    "{name} (this version has no support for {})",
                    system.needs().unwrap_or("it")
                )),
            }
        }
        if targets.len() == 1 && !absent.is_empty() {
            return Err(SessionError::Absent(absent));
        }
        targets.push(Target::plain(Arc::clone(&storage.device)));

        let mut run = Run {
            schema: SCHEMA.to_owned(),
            run: id,
            plan: plan.name.clone(),
            started: jiff::Zoned::now()
                .strftime("%Y-%m-%dT%H:%M:%S%:z")
                .to_string(),
            partial: true,
            seed,
            host: probe::host(),
            noise: Noise::default(),
            trials: Vec::new(),
            warnings: storage.warnings.clone(),
        };
        run.warnings
            .extend(absent.into_iter().map(|system| format!("absent: {system}")));
        Ok(Self {
            cells: targets
                .into_iter()
                .map(|target| Cell::new(target, plan, storage))
                .collect(),
            core_hz: run.host.clock_hz,
            steal: StealMeter::start(),
            plan,
            run,
        })
    }

    /// What is known before anything is measured; to be stored first.
    pub fn header(&self) -> &Run {
        &self.run
    }

    /// Measures the whole plan.
    ///
    /// Whatever happens, the returned run holds what was measured; it says
    /// `partial` unless the plan was completed.
    pub fn measure(
        mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> (Run, Result<(), SessionError>) {
        let outcome = self.rounds(stop, observer);
        self.run.partial = outcome.is_err();
        self.run.host.steal = self.steal.share();
        if let Some(steal) = self.run.host.steal.filter(|steal| *steal > STEAL) {
            self.run.warnings.push(format!(
                "the hypervisor took {:.0} % of the CPU time away; run again when the host is quieter",
                steal * 100.0
            ));
        }
        (self.run, outcome)
    }

    fn rounds(
        &mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let plan = self.plan;
        let rounds = plan.repetitions;
        let visits = u64::from(rounds) * plan.workloads.len() as u64 * self.cells.len() as u64;
        let mut done = 0;
        for round in 0..rounds {
            for (index, workload) in plan.workloads.iter().enumerate() {
                // The same extents for every system of a round, others in the next.
                let seed = self.run.seed.wrapping_add(u64::from(round) << 20);
                let mut order: Vec<usize> = (0..self.cells.len()).collect();
                if round % 2 == 1 {
                    order.reverse();
                }
                for cell in order {
                    observer.visiting(&Visit {
                        workload: &workload.name,
                        label: &self.cells[cell].label,
                        round: round + 1,
                        rounds,
                        done,
                        visits,
                    });
                    if round == 0 {
                        self.cells[cell].visit(&warm_up(workload), seed, stop)?;
                    }
                    let sample = self.cells[cell].visit(workload, seed, stop)?;
                    self.cells[cell].samples[index].push(sample);
                    done += 1;
                }
                let changed = self.summarise(index);
                observer
                    .keep(&self.run, &changed)
                    .map_err(SessionError::Keep)?;
            }
        }
        Ok(())
    }

    /// Brings the records of one workload up to date; returns their places.
    fn summarise(&mut self, workload: usize) -> Vec<usize> {
        let again = self.cells.len() - 1;
        let plain = &self.cells[PLAIN].samples[workload];
        let rates = |samples: &[Sample]| samples.iter().map(Sample::mb_s).collect::<Vec<_>>();
        let floor = stats::noise_floor(stats::paired_ratio(
            &rates(&self.cells[again].samples[workload]),
            &rates(plain),
        ));
        let mut changed = Vec::new();
        for (place, cell) in self.cells.iter().enumerate() {
            let reference = (place != PLAIN).then_some(Reference { plain, floor });
            let Some(trial) = summary::trial(
                &cell.identity,
                &self.plan.workloads[workload],
                &cell.samples[workload],
                reference,
                self.core_hz,
            ) else {
                continue;
            };
            let at = workload * self.cells.len() + place;
            if at < self.run.trials.len() {
                self.run.trials[at] = trial;
            } else {
                // The first round visits workloads and cells in this very order.
                self.run.trials.push(trial);
            }
            changed.push(at);
        }
        let pairs: Vec<f64> = self.cells[again]
            .samples
            .iter()
            .zip(&self.cells[PLAIN].samples)
            .flat_map(|(again, plain)| again.iter().zip(plain))
            .map(|(again, plain)| again.mb_s() / plain.mb_s())
            .collect();
        self.run.noise = stats::noise(&pairs);
        changed
    }
}

impl Cell {
    fn new(target: Target, plan: &Plan, storage: &Storage) -> Self {
        let encryption = target.encryption.as_ref();
        let label = match encryption {
            Some(encryption) => format!("{} {}", target.system.as_str(), encryption.spec),
            None => "plain".to_owned(),
        };
        let identity = Identity {
            tier: plan.tier,
            system: target.system.as_str().to_owned(),
            system_version: target.version.clone(),
            backend: target.backend.map(|backend| backend.to_string()),
            cipher: encryption.map(|encryption| encryption.spec.to_string()),
            key_bits: encryption.map(|encryption| encryption.key_bits),
            sector_bytes: encryption.map(|encryption| encryption.sector_size.bytes() as u32),
            constant_time: target.constant_time,
            device: storage.description.clone(),
        };
        Self {
            target,
            label,
            identity,
            samples: plan.workloads.iter().map(|_| Vec::new()).collect(),
        }
    }

    fn visit(
        &self,
        workload: &Workload,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Sample, SessionError> {
        let options = Options {
            seed,
            metered: true,
            stop,
        };
        match trial::run(self.target.device(), workload, options) {
            Ok(_) if stop.load(Ordering::Relaxed) => Err(SessionError::Interrupted),
            Ok(sample) => Ok(sample),
            Err(TrialError::Interrupted) => Err(SessionError::Interrupted),
            Err(source) => Err(SessionError::Trial {
                workload: workload.name.clone(),
                label: self.label.clone(),
                source: Box::new(source),
            }),
        }
    }
}

/// A short visit of the same kind, not counted.
fn warm_up(workload: &Workload) -> Workload {
    Workload {
        seconds: Some(WARM_UP),
        bytes: None,
        ..workload.clone()
    }
}
