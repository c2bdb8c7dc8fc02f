//! [`FleetPlan`]: an experiment that many hosts share, cut into shards.
//!
//! A shard depends only on the experiment and its number, so every host measures the same, and a
//! shard can be run again. A simulated drive begins every visit in its filled state. Its workloads
//! can therefore be distributed one by one, and so can the places of a sweep. Merged, those shards
//! are the run that one machine would have made, trial by trial (`merge`). Real storage, file
//! systems on it and key derivations are not distributed, because every host measures its own.

mod error;
mod matrix;
mod merge;
mod number;

pub use self::error::ShardError;
pub use self::matrix::Matrix;
pub use self::merge::merge;
pub use self::number::ShardNumber;

use crate::experiment::file_systems::FileSystems;
use crate::experiment::{Changes, Devices, Experiment, are_drives};
use crate::record::Shard;
use crate::system::simulated;
use crate::system::{Encryption, SystemId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::Path;

/// Shards of an experiment, at most.
const MOST: u32 = 1_000_000;

/// Combinations of a matrix without its seeds, at most. Each is a plan to be checked.
const MOST_COMBINATIONS: u64 = 10_000;

/// How an experiment is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cut {
    /// Simulated drives: portions dealt out. All else: a whole run each.
    Hosts(u32),
    /// A combination each.
    Matrix(Matrix),
}

/// The experiment as a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<NonZeroU32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matrix: Option<Matrix>,
    plan: toml::Table,
}

/// An experiment that many hosts share.
#[derive(Clone, Debug)]
pub struct FleetPlan {
    name: String,
    seed: u64,
    cut: Cut,
    table: toml::Table,
    experiment: Experiment,
}

/// The part of the experiment that one shard measures.
#[derive(Clone, Debug)]
pub struct Part {
    /// The plan, or the part of one.
    pub experiment: Experiment,
    /// The seed.
    pub seed: u64,
    /// The entry of the shard in the record.
    pub shard: Shard,
}

impl FleetPlan {
    /// An experiment of its own `name`, that `hosts` measure, each its own storage,
    /// or simulated drives together.
    ///
    /// # Errors
    /// Any [`ShardError`].
    pub fn of_hosts(
        name: Option<&str>,
        plan: &str,
        seed: u64,
        hosts: u32,
    ) -> Result<Self, ShardError> {
        Self::new(name, plan, seed, Cut::Hosts(hosts))
    }

    /// An experiment of every combination of a matrix.
    ///
    /// # Errors
    /// Any [`ShardError`].
    pub fn of_matrix(
        name: Option<&str>,
        plan: &str,
        seed: u64,
        matrix: Matrix,
    ) -> Result<Self, ShardError> {
        Self::new(name, plan, seed, Cut::Matrix(matrix))
    }

    fn new(name: Option<&str>, plan: &str, seed: u64, cut: Cut) -> Result<Self, ShardError> {
        let (of_plan, text) = crate::experiment::read(plan)?;
        let experiment = Experiment::parse(&of_plan, &text)?;
        let table = text.parse().map_err(|error| syntax(&of_plan, &error))?;
        let name = name.map_or(of_plan, str::to_owned);
        Self::checked(name, seed, cut, table, experiment)
    }

    /// The experiment in a file that [`FleetPlan::to_toml`] has written; `None` if the file is a
    /// plan.
    ///
    /// # Errors
    /// Any [`ShardError`].
    pub fn load(path: &str) -> Result<Option<Self>, ShardError> {
        let (name, text) = crate::experiment::read(path)?;
        // Text that is not TOML is not a fleet plan either. The plan parser reports it.
        let is_one = text
            .parse::<toml::Table>()
            .is_ok_and(|table| table.contains_key("plan"));
        if !is_one {
            return Ok(None);
        }
        Self::parse(&name, &text).map(Some)
    }

    /// The experiment in the text of such a file, which errors call `name`.
    ///
    /// # Errors
    /// Any [`ShardError`].
    pub fn parse(name: &str, text: &str) -> Result<Self, ShardError> {
        let file: File = toml::from_str(text).map_err(|error| syntax(name, &error))?;
        let cut = match (file.hosts, file.matrix) {
            (Some(hosts), None) => Cut::Hosts(hosts.get()),
            (None, Some(matrix)) => Cut::Matrix(matrix.checked()?),
            _ => {
                let problem = "it needs either `hosts` or `matrix`";
                return Err(ShardError::Syntax {
                    name: name.to_owned(),
                    problem: problem.to_owned(),
                });
            }
        };
        let experiment = Experiment::parse(&file.name, &file.plan.to_string())?;
        Self::checked(file.name, file.seed, cut, file.plan, experiment)
    }

    /// Everything in one file, to be read on every host.
    pub fn to_toml(&self) -> String {
        let (hosts, matrix) = match &self.cut {
            Cut::Hosts(hosts) => (NonZeroU32::new(*hosts), None),
            Cut::Matrix(matrix) => (None, Some(matrix.clone())),
        };
        let file = File {
            name: self.name.clone(),
            seed: self.seed,
            hosts,
            matrix,
            plan: self.table.clone(),
        };
        toml::to_string(&file).expect("a plan that was read can be written")
    }

    fn checked(
        name: String,
        seed: u64,
        cut: Cut,
        table: toml::Table,
        experiment: Experiment,
    ) -> Result<Self, ShardError> {
        let letters = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let first = name.chars().next();
        if name.len() > 60
            || !first.is_some_and(|c| c.is_ascii_alphanumeric())
            || !name.chars().all(letters)
        {
            return Err(ShardError::Name(name));
        }
        let fleet = Self {
            name,
            seed,
            cut,
            table,
            experiment,
        };
        let ((portions, portion), shards) = match &fleet.cut {
            Cut::Hosts(hosts) => (fleet.portions()?, u64::from(*hosts)),
            Cut::Matrix(matrix) => {
                let [systems, ciphers, workloads, seeds] = matrix.sizes();
                let plans = systems * ciphers * workloads;
                match plans > MOST_COMBINATIONS {
                    true => (
                        (MOST_COMBINATIONS, "one combination without its seeds"),
                        plans,
                    ),
                    false => (
                        (u64::from(MOST), "one combination"),
                        plans.saturating_mul(seeds),
                    ),
                }
            }
        };
        if shards > portions.min(u64::from(MOST)) {
            return Err(ShardError::TooMany {
                shards,
                portions,
                portion,
            });
        }
        fleet.check_shards()?;
        Ok(fleet)
    }

    /// The number of pieces that hosts can share, and a description of one piece.
    fn portions(&self) -> Result<(u64, &'static str), ShardError> {
        match &self.experiment {
            Experiment::Devices(plan) if plan.is_simulated() => match plan.steady {
                Some(_) => Err(ShardError::Steady),
                None => {
                    let portions = drives(plan).len() * plan.workloads.len();
                    Ok((portions as u64, "one workload on one simulated drive"))
                }
            },
            Experiment::Lives(lives) => Ok((
                u64::from(lives.places()),
                "one drive with one over-provisioning, cleaning and fill, and up to 100 seeds",
            )),
            _ => Ok((u64::from(MOST), "the whole plan")),
        }
    }

    /// Checks all shards now, so that an impossible one does not fail on a host.
    fn check_shards(&self) -> Result<(), ShardError> {
        let of = self.shards();
        match (&self.cut, &self.experiment) {
            // Its specification was checked whole, and each shard is a part of it.
            (Cut::Hosts(_), Experiment::Lives(_)) => return Ok(()),
            (Cut::Matrix(_), Experiment::FileSystems(_)) => {
                return Err(ShardError::NoMatrix("file systems"));
            }
            (Cut::Matrix(_), Experiment::Derivations(_)) => {
                return Err(ShardError::NoMatrix("key derivations"));
            }
            (Cut::Matrix(_), Experiment::Lives(_)) => return Err(ShardError::NoMatrix("lives")),
            _ => {}
        }
        // Seeds, and shards of a plan that isn't cut, change nothing that is checked.
        let alike = match &self.cut {
            Cut::Matrix(matrix) => matrix.sizes()[3],
            Cut::Hosts(_) => u64::from(of),
        };
        for index in (1..=of).step_by(alike.max(1) as usize) {
            if let Experiment::Devices(plan) = self.shard(ShardNumber { index, of })?.experiment {
                check_rates(&plan)?;
            }
        }
        Ok(())
    }

    /// The same under another name.
    ///
    /// # Errors
    /// [`ShardError::Name`].
    pub fn named(&self, name: String) -> Result<Self, ShardError> {
        let this = self.clone();
        Self::checked(name, this.seed, this.cut, this.table, this.experiment)
    }

    /// Its name, under which it is stored.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Every system that a shard may measure.
    pub fn systems(&self) -> Vec<SystemId> {
        match (&self.cut, &self.experiment) {
            (Cut::Matrix(matrix), _) if !matrix.systems.is_empty() => {
                let systems = matrix.systems.iter();
                systems.filter_map(|system| system.parse().ok()).collect()
            }
            (_, experiment) => experiment.systems().to_vec(),
        }
    }

    /// Whether file systems are mounted on the host's own kernel.
    pub fn mounts(&self) -> bool {
        let here = |plan: &FileSystems| plan.systems.iter().any(|system| !system.is_in_lab());
        matches!(&self.experiment, Experiment::FileSystems(plan) if here(plan))
    }

    /// How many shards it has.
    pub fn shards(&self) -> u32 {
        match &self.cut {
            Cut::Hosts(hosts) => *hosts,
            Cut::Matrix(matrix) => matrix.sizes().iter().product::<u64>() as u32,
        }
    }

    /// Whether nothing of a host's storage takes part.
    pub fn is_simulated(&self) -> bool {
        match &self.experiment {
            Experiment::Devices(_) => are_drives(&self.systems()),
            experiment => experiment.is_simulated(),
        }
    }

    /// Refuses a place that no shard measures.
    ///
    /// # Errors
    /// [`ShardError::Plan`], as `run` has it.
    pub fn check_place(&self, at: &Path) -> Result<(), ShardError> {
        let systems = match &self.experiment {
            Experiment::Devices(_) => self.systems(),
            _ => Vec::new(),
        };
        let at = Some(at.to_owned());
        let changes = Changes {
            at,
            systems,
            ..Changes::default()
        };
        self.experiment.clone().changed(&changes)?;
        Ok(())
    }

    /// SHA-256 of everything that decides what is measured.
    fn fingerprint(&self) -> String {
        let canonical = File {
            name: String::new(),
            seed: self.seed,
            hosts: match &self.cut {
                Cut::Hosts(hosts) => NonZeroU32::new(*hosts),
                Cut::Matrix(_) => None,
            },
            matrix: match &self.cut {
                Cut::Hosts(_) => None,
                Cut::Matrix(matrix) => Some(matrix.clone()),
            },
            // Its keys are sorted, regardless of the order in which they were written.
            plan: self.table.clone(),
        };
        let text = serde_json::to_string(&canonical).expect("TOML can be written as JSON");
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The part of the experiment that a shard measures.
    ///
    /// # Errors
    /// [`ShardError::OutOfRange`], and of a matrix [`ShardError::Plan`].
    pub fn shard(&self, number: ShardNumber) -> Result<Part, ShardError> {
        let of = self.shards();
        if number.of != of || number.index < 1 || number.index > of {
            return Err(ShardError::OutOfRange { number, of });
        }
        let place = number.index - 1;
        let mut part = Part {
            experiment: self.experiment.clone(),
            seed: self.seed,
            shard: Shard {
                experiment: self.name.clone(),
                index: number.index,
                of,
                fingerprint: self.fingerprint(),
                portions: Vec::new(),
            },
        };
        match (&self.cut, &mut part.experiment) {
            (Cut::Hosts(hosts), Experiment::Devices(plan)) if plan.is_simulated() => {
                part.shard.portions = deal(plan, place, *hosts);
            }
            (Cut::Hosts(hosts), Experiment::Lives(lives)) => {
                let numbers: Vec<u32> = share(lives.places(), place, *hosts).collect();
                lives.only = Some(numbers.clone());
                part.shard.portions = numbers;
            }
            (Cut::Matrix(matrix), _) => {
                let (system, cipher, workload, seed) = self.combination(place);
                let wrong = |axis: &str, name: &str| ShardError::Axis(format!("{axis}={name}"));
                if let Experiment::Devices(plan) = &mut part.experiment
                    && let Some(cipher) = matrix.ciphers.get(cipher)
                {
                    let encryption = Encryption::parse(cipher, None, 512, None).ok();
                    plan.cpu.retain(|given, _| {
                        encryption.is_some_and(|e| {
                            *given == simulated::name_of(&e) || *given == e.spec.to_string()
                        })
                    });
                }
                let Some((systems, ciphers, workloads)) = part.experiment.axes() else {
                    return Ok(part);
                };
                if let Some(system) = matrix.systems.get(system) {
                    *systems = vec![system.parse().map_err(|_| wrong("system", system))?];
                }
                if let Some(cipher) = matrix.ciphers.get(cipher) {
                    *ciphers = vec![cipher.clone()];
                }
                if let Some(workload) = matrix.workloads.get(workload) {
                    workloads.retain(|known| known.name == *workload);
                    if workloads.is_empty() {
                        return Err(wrong("workload", workload));
                    }
                }
                if let Some((first, _)) = matrix.seeds {
                    part.seed = first + seed;
                }
                part.experiment.validate()?;
            }
            _ => {}
        }
        Ok(part)
    }

    /// Places on the axes of a matrix; the seed goes round first.
    fn combination(&self, place: u32) -> (usize, usize, usize, u64) {
        let Cut::Matrix(matrix) = &self.cut else {
            return (0, 0, 0, 0);
        };
        let [_, ciphers, workloads, seeds] = matrix.sizes();
        let place = u64::from(place);
        let (rest, seed) = (place / seeds, place % seeds);
        let (rest, workload) = (rest / workloads, rest % workloads);
        let (system, cipher) = (rest / ciphers, rest % ciphers);
        (system as usize, cipher as usize, workload as usize, seed)
    }
}

/// Simulated drives, in the plan's order.
fn drives(plan: &Devices) -> Vec<SystemId> {
    let systems = plan.systems.iter();
    let drives = systems.filter(|system| system.drive().is_some());
    drives.cloned().collect()
}

/// The portions of one host of `hosts`: consecutive ones, and as many as the others have.
fn share(portions: u32, place: u32, hosts: u32) -> Range<u32> {
    let before = |place: u32| (u64::from(place) * u64::from(portions) / u64::from(hosts)) as u32;
    before(place)..before(place + 1)
}

/// Leaves a host's share of a plan, and returns its portions: neighbours on the same drive
/// stay together, because every host has to fill the drives that it measures.
fn deal(plan: &mut Devices, place: u32, hosts: u32) -> Vec<u32> {
    let drives = drives(plan);
    let workloads = &plan.workloads;
    let all = (drives.len() * workloads.len()) as u32;
    let mut portions = Vec::new();
    let mut measured = Vec::new();
    let mut systems: Vec<SystemId> = Vec::new();
    for number in share(all, place, hosts) {
        let number = number as usize;
        let (drive, workload) = (number / workloads.len(), number % workloads.len());
        // In records trials stand workload by workload.
        portions.push((workload * drives.len() + drive) as u32);
        measured.push((drives[drive].clone(), workloads[workload].name.clone()));
        if !systems.contains(&drives[drive]) {
            systems.push(drives[drive].clone());
        }
    }
    portions.sort_unstable();
    let asked = |name: &String| measured.iter().any(|(_, workload)| workload == name);
    plan.workloads.retain(|workload| asked(&workload.name));
    plan.systems = systems;
    plan.only = Some(measured);
    portions
}

fn syntax(name: &str, error: &toml::de::Error) -> ShardError {
    ShardError::Syntax {
        name: name.to_owned(),
        problem: error.message().to_owned(),
    }
}

/// Every host would measure a rate of its own that is not given.
fn check_rates(plan: &Devices) -> Result<(), ShardError> {
    if plan.is_simulated() {
        for encryption in plan.encryptions()? {
            if simulated::rate_of(&encryption, &plan.cpu).is_none() {
                return Err(ShardError::NoRate(simulated::name_of(&encryption)));
            }
        }
    }
    Ok(())
}
