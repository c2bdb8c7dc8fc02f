//! Key derivations as cells of a session: each recipe as its owner unlocks the volume, and as an
//! attacker guesses.

use super::cell::Cell;
use super::subject::{Once, Subject};
use crate::error::LabError;
use crate::experiment::{Schedule, derivation_workload as workload};
use crate::probe;
use crate::record::{Detail, Device, Host, Tier, Trial};
use crate::stats::Looks;
use crate::summary;
use crate::system::unlock::{Purpose, Recipe, Unlock};
use crate::trial::{self, Sample, Samples};
use crate::workload::Workload;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

/// The contract's word for what derives here.
const SYSTEM: &str = "builtin";

/// Every recipe as its owner unlocks and as an attacker guesses. The first recipe is unlocked
/// again, which is the A/A pair.
pub(super) fn cells(recipes: &[Recipe], iter_time: u32, plan: &Schedule, host: &Host) -> Vec<Cell> {
    let machine = Machine {
        cores: host.cores,
        memory: host.memory,
        free: probe::available_memory().unwrap_or(host.memory),
    };
    let mut cells = Vec::new();
    for (number, recipe) in recipes.iter().enumerate() {
        let settled = Rc::new(OnceCell::new());
        let cell = |purpose: Purpose| {
            let derivation = Derivation {
                recipe: *recipe,
                purpose,
                iter_time,
                machine,
                settled: Rc::clone(&settled),
            };
            derivation.cell(plan)
        };
        cells.push(cell(Purpose::Unlock));
        cells.push(cell(Purpose::Guess));
        if number == 0 {
            cells.push(cell(Purpose::Unlock));
        }
    }
    cells
}

/// The machine's properties that determine a derivation's costs and the number of parallel
/// derivations.
#[derive(Clone, Copy)]
struct Machine {
    cores: u32,
    memory: u64,
    free: u64,
}

/// A recipe for a purpose. The first visit settles its costs, which takes seconds if they are
/// calibrated.
struct Derivation {
    recipe: Recipe,
    purpose: Purpose,
    /// Target duration of a calibrated derivation, ms.
    iter_time: u32,
    machine: Machine,
    settled: Rc<OnceCell<Unlock>>,
}

impl Derivation {
    fn unlock(&self) -> Result<&Unlock, LabError> {
        if let Some(unlock) = self.settled.get() {
            return Ok(unlock);
        }
        let Machine { cores, memory, .. } = self.machine;
        let unlock = self.recipe.prepare(cores, memory, self.iter_time)?;
        Ok(self.settled.get_or_init(|| unlock))
    }

    fn at_once(&self, unlock: &Unlock) -> u32 {
        unlock.at_once(self.purpose, self.machine.cores, self.machine.free)
    }

    fn cell(self, plan: &Schedule) -> Cell {
        let (label, identity) = (self.purpose.name().to_owned(), identity());
        Cell::new(Box::new(self), label, identity, plan)
    }
}

impl Subject for Derivation {
    fn takes(&self, workload: &Workload) -> bool {
        workload.name == self.recipe.name
    }

    fn is_timed_here(&self) -> bool {
        false
    }

    fn visit(&self, _: &Workload, once: Once<'_>) -> Result<Sample, LabError> {
        let unlock = self.unlock()?;
        let at_once = self.at_once(unlock);
        trial::unlock::run(unlock, self.purpose, at_once, once.stop)
    }

    /// The first visit calibrates.
    fn is_metered(&self) -> bool {
        false
    }

    /// Rates are bytes of derived keys and keys a second; a latency is the time of one
    /// derivation.
    fn complete(&self, trial: &mut Trial) {
        let Some(unlock) = self.settled.get() else {
            return;
        };
        let key_bytes = unlock.key_bytes(self.purpose);
        let kdf = unlock.record();
        trial.op = self.purpose.name().to_owned();
        trial.block_bytes = Some(key_bytes as u64);
        trial.key_bits = Some(key_bytes as u32 * 8);
        trial.threads = Some(self.at_once(unlock));
        trial.cycles_per_byte = None;
        trial.device.size = u64::from(kdf.memory_kib) * 1024;
        let format = Some(self.recipe.format).filter(|format| !format.is_empty());
        trial.format = format.map(str::to_owned);
        trial.detail = Detail::Kdf(Box::new(kdf));
    }
}

fn identity() -> Trial {
    Trial {
        tier: Tier::Cipher,
        system: SYSTEM.to_owned(),
        system_version: env!("CARGO_PKG_VERSION").to_owned(),
        device: Device {
            kind: "ram".into(),
            path_kind: "memory".into(),
            engine: "memory".into(),
            ..Device::default()
        },
        ..Trial::default()
    }
}

/// One derivation alone on the machine, `rounds` times, as its owner unlocks.
pub(super) fn alone(
    recipe: &Recipe,
    iter_time: u32,
    rounds: u32,
    host: &Host,
    stop: &AtomicBool,
) -> Result<Option<Trial>, LabError> {
    let derivation = Derivation {
        recipe: *recipe,
        purpose: Purpose::Unlock,
        iter_time,
        machine: Machine {
            cores: host.cores,
            memory: host.memory,
            free: host.memory,
        },
        settled: Rc::default(),
    };
    let mut samples = Samples::new(Looks::Once);
    let unlock = derivation.unlock()?;
    for _ in 0..rounds {
        samples.push(trial::unlock::run(unlock, Purpose::Unlock, 1, stop)?);
    }
    let mut trial = summary::trial(&identity(), &workload(recipe), &samples, None, None);
    if let Some(trial) = &mut trial {
        summary::judge_steadiness(trial);
        derivation.complete(trial);
    }
    Ok(trial)
}
