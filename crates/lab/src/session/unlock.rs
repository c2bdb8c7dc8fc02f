//! [`Unlocks`]: the key derivations of the volume formats, in rounds.
//!
//! Every round visits every recipe as its owner unlocks and as somebody
//! guesses; odd rounds in reverse. The first recipe is unlocked again at the
//! other end of the round: the A/A pair.

use super::{Observer, SessionError, Visit, begun, ended, state_build};
use crate::probe::{self, StealMeter};
use crate::record::{Device, Host, Run, Tier, Trial};
use crate::stats::{self, Looks};
use crate::summary::{self, Identity, Reference};
use crate::target::unlock::{ITER_TIME_MS, Purpose, Recipe, Unlock, UnlockError};
use crate::trial::{self, Samples};
use crate::workload::{Mix, Pattern, Workload};
use bytesize::ByteSize;
use std::sync::atomic::{AtomicBool, Ordering};

/// The name of the run's plan.
pub const PLAN: &str = "kdf";

/// Key derivations on their way through their rounds.
pub struct Unlocks {
    recipes: Vec<Recipe>,
    cells: Vec<Cell>,
    rounds: u32,
    /// Visits done.
    done: u64,
    run: Run,
    steal: StealMeter,
}

/// A recipe for one purpose, with its samples.
struct Cell {
    unlock: Unlock,
    purpose: Purpose,
    at_once: u32,
    samples: Samples,
}

impl Unlocks {
    /// A session over `recipes`; `id` names the run. Costs are settled when it
    /// measures.
    pub fn new(recipes: &[Recipe], rounds: u32, seed: u64, id: String) -> Self {
        Self {
            recipes: recipes.to_vec(),
            cells: Vec::new(),
            rounds,
            done: 0,
            run: begun(PLAN, seed, id, Vec::new()),
            steal: StealMeter::start(),
        }
    }

    /// States which build of the program measures: its version and commit.
    pub fn built_as(mut self, version: &str) -> Self {
        state_build(&mut self.run, version);
        self
    }

    /// What is known before anything is measured; to be stored first.
    pub fn header(&self) -> &Run {
        &self.run
    }

    /// Measures all rounds.
    ///
    /// Whatever happens, the returned run holds what was measured; it says
    /// `partial` unless all rounds were completed.
    pub fn measure(
        mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> (Run, Result<(), SessionError>) {
        let outcome = self
            .first_round(stop, observer)
            .and_then(|()| self.more_rounds(stop, observer));
        (
            ended(self.run, self.steal.share(), outcome.is_ok()),
            outcome,
        )
    }

    /// Settles the costs of each recipe and visits it, so that something is
    /// measured soon. Cells and records come to be in the same order.
    fn first_round(
        &mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let cores = self.run.host.cores;
        let free = probe::available_memory().unwrap_or(self.run.host.memory);
        for recipe in self.recipes.clone() {
            if recipe.is_calibrated() {
                observer.visiting(&self.next_visit(recipe.name, "calibrating"));
            }
            let unlock = recipe.prepare(cores, self.run.host.memory, ITER_TIME_MS)?;
            if stop.load(Ordering::Relaxed) {
                return Err(SessionError::Interrupted);
            }
            for purpose in [Purpose::Unlock, Purpose::Guess] {
                self.cells.push(Cell {
                    unlock,
                    purpose,
                    at_once: unlock.at_once(purpose, cores, free),
                    samples: Samples::new(Looks::Once),
                });
                self.visit(self.cells.len() - 1, stop, observer)?;
            }
        }
        if let Some(first) = self.cells.first() {
            let again = Cell {
                samples: Samples::new(Looks::Once),
                ..*first
            };
            self.cells.push(again);
            self.visit(self.again(), stop, observer)?;
        }
        Ok(())
    }

    fn more_rounds(
        &mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        for round in 1..self.rounds {
            let mut order: Vec<usize> = (0..self.cells.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for place in order {
                self.visit(place, stop, observer)?;
            }
        }
        Ok(())
    }

    /// The place of the first recipe's second unlock.
    fn again(&self) -> usize {
        2 * self.recipes.len()
    }

    fn next_visit<'a>(&self, workload: &'a str, label: &'a str) -> Visit<'a> {
        let a_round = self.again() as u64 + 1;
        Visit {
            workload,
            label,
            round: (self.done / a_round) as u32 + 1,
            rounds: Some(self.rounds),
            done: self.done,
            visits: u64::from(self.rounds) * a_round,
        }
    }

    /// One visit; it takes seconds, so what it cost is handed over at once.
    fn visit(
        &mut self,
        place: usize,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let cell = &self.cells[place];
        observer.visiting(&self.next_visit(cell.unlock.recipe.name, cell.purpose.name()));
        let sample = trial::unlock::run(&cell.unlock, cell.purpose, cell.at_once, stop)?;
        self.cells[place].samples.push(sample);
        self.done += 1;

        let first = self.cells[0].samples.iops();
        let second = self.cells.get(self.again());
        let second = second.map(|cell| cell.samples.iops()).unwrap_or_default();
        let pairs: Vec<f64> = second.iter().zip(&first).map(|(b, a)| b / a).collect();
        self.run.noise = stats::noise(&pairs, Looks::Once);
        let reference = (place == self.again()).then_some(Reference {
            against: SYSTEM,
            rates: self.cells[0].samples.rates(),
            floor: stats::noise_floor(stats::paired_ratio(&second, &first)),
        });
        let Some(trial) = self.cells[place].trial(reference) else {
            return Ok(());
        };
        match self.run.trials.get_mut(place) {
            Some(record) => *record = trial,
            None => self.run.trials.push(trial),
        }
        observer
            .keep(&self.run, &[place])
            .map_err(SessionError::Keep)
    }
}

/// The contract's word for what derives here.
const SYSTEM: &str = "builtin";

impl Cell {
    /// The record of the visits so far. Rates are bytes of derived keys and
    /// keys a second; a latency is the time of one derivation.
    fn trial(&self, reference: Option<Reference<'_>>) -> Option<Trial> {
        let kdf = self.unlock.record();
        let key_bytes = self.unlock.key_bytes(self.purpose);
        let identity = Identity {
            tier: Tier::Cipher,
            system: SYSTEM.to_owned(),
            system_version: env!("CARGO_PKG_VERSION").to_owned(),
            backend: None,
            cipher: None,
            key_bits: Some(key_bytes as u32 * 8),
            sector_bytes: None,
            format: None,
            constant_time: None,
            served: false,
            device: Device {
                kind: "ram".into(),
                path_kind: "memory".into(),
                engine: "memory".into(),
                size: u64::from(kdf.memory_kib) * 1024,
                ..Device::default()
            },
        };
        // The summary takes name, size and threads from a workload; there is
        // no pattern to a derivation.
        let workload = Workload {
            name: self.unlock.recipe.name.to_owned(),
            pattern: Pattern::Sequential,
            op: Mix::Encrypt,
            read_percent: None,
            block_size: ByteSize(key_bytes as u64),
            queue_depth: 1,
            threads: self.at_once,
            seconds: None,
            bytes: None,
            cold: false,
            compressible: 0,
        };
        let mut trial = summary::trial(&identity, &workload, &self.samples, reference, None)?;
        trial.op = self.purpose.name().to_owned();
        let format = Some(self.unlock.recipe.format).filter(|format| !format.is_empty());
        trial.format = format.map(str::to_owned);
        trial.kdf = Some(kdf);
        Some(trial)
    }
}

/// One derivation alone on the machine, `rounds` times, as its owner unlocks.
pub(super) fn alone(
    recipe: &Recipe,
    iter_time: u32,
    rounds: u32,
    host: &Host,
    stop: &AtomicBool,
) -> Result<Option<Trial>, SessionError> {
    let mut cell = Cell {
        unlock: recipe.prepare(host.cores, host.memory, iter_time)?,
        purpose: Purpose::Unlock,
        at_once: 1,
        samples: Samples::new(Looks::Once),
    };
    for _ in 0..rounds {
        let sample = trial::unlock::run(&cell.unlock, cell.purpose, cell.at_once, stop)?;
        cell.samples.push(sample);
    }
    Ok(cell.trial(None))
}

impl From<UnlockError> for SessionError {
    fn from(error: UnlockError) -> Self {
        match error {
            UnlockError::Interrupted => Self::Interrupted,
            other => Self::Unlock(other),
        }
    }
}
