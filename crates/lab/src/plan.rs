//! [`Plan`]: an experiment as data, one TOML file each.
//!
//! A plan names systems, ciphers and workloads; the session measures every
//! combination, interleaved, `repetitions` times. The plans that ship are
//! embedded in the program.

use crate::file_system::OperationError;
use crate::file_system::plan::FileSystemPlan;
use crate::published::repeats::{Beside, Repeats, RepeatsError, ScoredBy};
use crate::record::{Conditioning, Tier};
use crate::stats::STEADY_ROUNDS;
use crate::target::simulated::{CipherRate, Driver, rate_of};
use crate::target::unlock::{BENCHMARK, ITER_TIME_MS, Recipe};
use crate::target::{Backend, Encryption, EncryptionError, System, VolumeFormat};
use crate::workload::{Workload, WorkloadError};
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Plans that ship with the program: (name, TOML).
const EMBEDDED: &[(&str, &str)] = &[
    ("quick", include_str!("../../../plans/quick.toml")),
    ("advice", include_str!("../../../plans/advice.toml")),
    ("ciphers", include_str!("../../../plans/ciphers.toml")),
    ("java-os", include_str!("../../../plans/java-os.toml")),
    (
        "storage-ciphers",
        include_str!("../../../plans/storage-ciphers.toml"),
    ),
    (
        "fde-passmark",
        include_str!("../../../plans/fde-passmark.toml"),
    ),
    (
        "ssd-truecrypt",
        include_str!("../../../plans/ssd-truecrypt.toml"),
    ),
    (
        "crystaldiskmark",
        include_str!("../../../plans/crystaldiskmark.toml"),
    ),
    (
        "crystaldiskmark-nvme",
        include_str!("../../../plans/crystaldiskmark-nvme.toml"),
    ),
    ("snia", include_str!("../../../plans/snia.toml")),
    ("as-ssd", include_str!("../../../plans/as-ssd.toml")),
    (
        "cryptsetup-benchmark",
        include_str!("../../../plans/cryptsetup-benchmark.toml"),
    ),
    ("crypto-fs", include_str!("../../../plans/crypto-fs.toml")),
    (
        "crypto-fs-short",
        include_str!("../../../plans/crypto-fs-short.toml"),
    ),
    (
        "file-systems",
        include_str!("../../../plans/file-systems.toml"),
    ),
    (
        "dm-crypt-options",
        include_str!("../../../plans/dm-crypt-options.toml"),
    ),
];

/// Plans by the names that they had, or that the tools have which they follow.
const ALIASES: &[(&str, &str)] = &[
    ("anvil", "storage-ciphers"),
    ("passmark", "fde-passmark"),
    ("ssd-blog", "ssd-truecrypt"),
];

/// One experiment: systems × ciphers × workloads, repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// File stem or embedded name; not part of the TOML.
    #[serde(skip)]
    pub name: String,
    /// One line for the list of plans.
    pub title: String,
    /// Which stretch of the road is timed.
    #[serde(default = "block_tier")]
    pub tier: Tier,
    /// Bytes of the test extent.
    pub size: ByteSize,
    /// Repetitions of every cell, 1 to 1000.
    #[serde(default = "ten")]
    pub repetitions: u32,
    /// Repetitions that are enough of a bare cipher whose requests take far
    /// longer than a workload's `seconds`; as many as of any other when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_repetitions: Option<u32>,
    /// Systems beside `none`, which every plan measures.
    #[serde(default = "builtin")]
    pub systems: Vec<System>,
    /// dm-crypt notation.
    pub ciphers: Vec<String>,
    /// Key size in bits as cryptsetup counts; the cipher's default when absent.
    /// Of several every cipher is measured with those that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_size: Option<Sizes>,
    /// Encryption sector size, bytes; several are measured side by side.
    #[serde(default = "sectors_of_4096")]
    pub sector_size: Sizes,
    /// Formats in which the built-in engine's volumes are made, each measured;
    /// without any, all of the extent is data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<VolumeFormat>,
    /// Cores that share a large request of the built-in engine where that is
    /// measured to be faster, and cores before simulated drives, each of which
    /// encrypts a request; one when absent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cores: u32,
    /// Key derivations beside bare ciphers, by `cryptsetup benchmark`'s names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derivations: Vec<String>,
    /// What those that are calibrated shall take, ms, 1 to 60,000.
    #[serde(default = "two_seconds", skip_serializing_if = "is_two_seconds")]
    pub iter_time: u32,
    /// Rounds until a steady state instead of so many repetitions, which are then
    /// the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Conditioning>,
    /// Scores that are made of the rates.
    #[serde(default, rename = "mark", skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<ScoredBy>,
    /// The published figures that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Repeats>,
    /// Rates of ciphers on a core of the machine before simulated drives, by
    /// name or notation; this machine's are measured when absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu: BTreeMap<String, CipherRate>,
    /// What a driver that encrypts does before simulated drives.
    #[serde(default, skip_serializing_if = "Driver::is_queue")]
    pub driver: Driver,
    /// What is asked of every system.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
}

fn block_tier() -> Tier {
    Tier::Block
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

fn ten() -> u32 {
    10
}

fn two_seconds() -> u32 {
    ITER_TIME_MS
}

fn is_two_seconds(ms: &u32) -> bool {
    *ms == ITER_TIME_MS
}

fn builtin() -> Vec<System> {
    vec![System::Builtin]
}

/// One size, or several: `4096` or `[512, 4096]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a size must be a number or a list of numbers")]
pub enum Sizes {
    /// The same for every cell.
    One(u32),
    /// Every cipher with each of them.
    Several(Vec<u32>),
}

impl Sizes {
    /// The sizes, in the plan's order.
    pub fn all(&self) -> &[u32] {
        match self {
            Self::One(size) => std::slice::from_ref(size),
            Self::Several(sizes) => sizes,
        }
    }
}

fn sectors_of_4096() -> Sizes {
    Sizes::One(4096)
}

/// What is wrong with a plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// No shipped plan has this name and no file has this path.
    #[error("there is no plan {name:?}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// A shipped plan with a similar name.
        suggestion: Option<&'static str>,
    },
    /// The file cannot be read.
    #[error("cannot read the plan {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no valid plan.
    #[error("{name}, line {line}: {problem}")]
    Syntax {
        /// Plan or file name.
        name: String,
        /// Line, from 1.
        line: usize,
        /// The parser's words.
        problem: String,
        /// A known key with a similar name.
        suggestion: Option<String>,
    },
    /// A workload has an impossible value.
    #[error("workload {workload:?}: {source}")]
    Workload {
        /// Its name.
        workload: String,
        /// Which value.
        source: WorkloadError,
    },
    /// Two workloads share a name.
    #[error("two workloads are named {0:?}")]
    DuplicateWorkload(String),
    /// A list that must not be empty is.
    #[error("the plan has no {0}")]
    Empty(&'static str),
    /// A number is out of its range.
    #[error("{key} = {value} is not between {low} and {high}")]
    Range {
        /// The key.
        key: &'static str,
        /// What was given.
        value: u64,
        /// Smallest allowed value.
        low: u64,
        /// Largest allowed value.
        high: u64,
    },
    /// A workload's blocks are not whole encryption sectors.
    #[error("workload {workload:?}: its blocks are not whole {sector}-byte sectors")]
    BlockSector {
        /// Its name.
        workload: String,
        /// The plan's sector size.
        sector: u32,
    },
    /// A workload asks for a bare cipher beside others that ask for a device,
    /// or in a tier of devices.
    #[error("workload {0:?} encrypts in memory, and the plan is not of ciphers alone")]
    NotBare(String),
    /// A workload's blocks do not fit the test extent often enough.
    #[error("workload {workload:?} needs a test extent of {needed}, the plan has {size}")]
    TooSmall {
        /// Its name.
        workload: String,
        /// Smallest extent.
        needed: ByteSize,
        /// The plan's extent.
        size: ByteSize,
    },
    /// An operation on a file system has an impossible value.
    #[error("operation {operation:?}: {source}")]
    Operation {
        /// Its name.
        operation: String,
        /// Which value.
        source: OperationError,
    },
    /// A system does not belong to the plan's tier.
    #[error("{system} is not measured in the tier {tier}")]
    NotOfTier {
        /// The contract's word.
        system: String,
        /// The tier's.
        tier: &'static str,
    },
    /// A rate of a cipher is given that nothing asks for.
    #[error("the rate of {0:?} is given, and no simulated drive of the plan has this cipher")]
    UnusedRate(String),
    /// A driver is given that stands before nothing.
    #[error("the driver {0} stands before simulated drives, and the plan has none")]
    UnusedDriver(Driver),
    /// A driver that encrypts on one core has more of them.
    #[error("the driver {driver} encrypts on one core, and is given {cores}")]
    DriverCores {
        /// The driver.
        driver: Driver,
        /// Its cores.
        cores: u32,
    },
    /// The tests of a steady state are not made of the plan's workloads.
    #[error("steady: {0:?} is not in exactly one test, or no test tracks a workload of its own")]
    SteadyWorkload(String),
    /// Fewer rounds than a steady state is judged by.
    #[error("a steady state takes {needed} rounds, and the plan has {rounds}")]
    SteadyRounds {
        /// What the rule needs.
        needed: u32,
        /// The plan's repetitions.
        rounds: u32,
    },
    /// No key derivation has this name.
    #[error("there is no key derivation {0:?}")]
    Derivation(String),
    /// Key derivations in a plan of devices.
    #[error("the plan has key derivations, and is not of ciphers alone")]
    DerivationsNotBare,
    /// A cipher, key size or sector size cannot be used.
    #[error(transparent)]
    Encryption(#[from] EncryptionError),
    /// Published figures are not to be found.
    #[error(transparent)]
    Published(#[from] RepeatsError),
}

impl PlanError {
    /// What the user can do about it, one sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Unknown {
                suggestion: Some(plan),
                ..
            } => format!("Did you mean {plan:?}? `cryptmark plans` lists them all."),
            Self::Unknown { .. } => {
                "`cryptmark plans` lists the plans that ship; a file name ends in .toml.".into()
            }
            Self::Read { .. } => "Check the path and its permissions.".into(),
            Self::Syntax {
                suggestion: Some(key),
                ..
            } => {
                format!("Did you mean `{key}`? `cryptmark plans show quick` prints a plan to copy.")
            }
            Self::Syntax { .. } => "`cryptmark plans show quick` prints a plan to copy.".into(),
            Self::Workload { .. } | Self::Range { .. } => {
                "Change the value; `cryptmark plans show quick` prints a plan to copy.".into()
            }
            Self::Operation { .. } => {
                "Change the value; `cryptmark plans show crypto-fs` prints a plan to copy.".into()
            }
            Self::NotOfTier { .. } => {
                "File systems are measured on none, dm-crypt, cryptoloop, builtin-fuse, and the same in the lab kernel, as lab:dm-crypt.".into()
            }
            Self::DuplicateWorkload(_) => "Give every workload a name of its own.".into(),
            Self::Empty(what) => format!("Name at least one of the {what}."),
            Self::UnusedRate(_) => {
                "Name the cipher by its name or its whole notation, and a system drive:NAME.".into()
            }
            Self::UnusedDriver(_) => "Name a system drive:NAME as well, or no driver.".into(),
            Self::DriverCores { .. } => {
                "Leave the cores away, or use the driver queue or truecrypt.".into()
            }
            Self::BlockSector { .. } => {
                "Use a block_size that is a multiple of sector_size.".into()
            }
            Self::SteadyWorkload(_) => {
                "Give each workload to one test, and let each test track one of its own; `cryptmark plans show snia` prints a plan to copy.".into()
            }
            Self::SteadyRounds { needed, .. } => format!("Use --repeat {needed} or more."),
            Self::Derivation(_) => {
                let names: Vec<&str> = BENCHMARK.iter().map(|recipe| recipe.name).collect();
                format!("Known are {}.", names.join(", "))
            }
            Self::NotBare(_) | Self::DerivationsNotBare => {
                "Use tier = \"cipher\", and op = \"encrypt\" or \"decrypt\" in every workload."
                    .into()
            }
            Self::TooSmall { needed, .. } => {
                format!("Use --size {} or more.", needed.display().si_short())
            }
            Self::Encryption(error) => error.remedy(),
            Self::Published(error) => error.remedy(),
        }
    }
}

impl Plan {
    /// Names and titles of the plans that ship.
    pub fn shipped() -> Vec<(&'static str, String)> {
        EMBEDDED
            .iter()
            .map(|(name, toml)| {
                let title = Experiment::parse(name, toml);
                (
                    *name,
                    title.map_or_else(|_| String::new(), |plan| plan.title().to_owned()),
                )
            })
            .collect()
    }

    /// The TOML of a shipped plan.
    ///
    /// # Errors
    /// [`PlanError::Unknown`].
    pub fn toml(name: &str) -> Result<&'static str, PlanError> {
        let name = shipped_name(name);
        EMBEDDED
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, toml)| *toml)
            .ok_or_else(|| PlanError::Unknown {
                name: name.to_owned(),
                suggestion: EMBEDDED
                    .iter()
                    .map(|(known, _)| *known)
                    .filter(|known| strsim::jaro_winkler(known, name) > 0.8)
                    .max_by(|a, b| {
                        strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name))
                    }),
            })
    }

    /// Reads a shipped plan by name, or a file by path; one of devices or ciphers.
    ///
    /// # Errors
    /// Any [`PlanError`].
    pub fn load(name_or_path: &str) -> Result<Self, PlanError> {
        let (name, text) = read(name_or_path)?;
        Self::parse(&name, &text)
    }

    /// Reads a plan from TOML and checks every value.
    ///
    /// # Errors
    /// [`PlanError::Syntax`] with line and suggestion, or whatever value is impossible.
    pub fn parse(name: &str, text: &str) -> Result<Self, PlanError> {
        let mut plan: Self = toml::from_str(text).map_err(|error| syntax(name, text, &error))?;
        plan.name = name.to_owned();
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        for workload in &mut plan.workloads {
            if workload.threads == 0 {
                workload.threads = cores;
            }
        }
        plan.validate()?;
        if let Some(published) = &plan.published {
            published.validate(plan.workloads.iter().map(|workload| workload.name.as_str()))?;
        }
        for name in plan.marks.iter().flat_map(|mark| mark.weights.keys()) {
            if !plan.workloads.iter().any(|workload| workload.name == *name) {
                return Err(RepeatsError::Workload(name.clone()).into());
            }
        }
        Beside::of(plan.published.as_ref())?.marks(&plan.marks)?;
        Ok(plan)
    }

    /// Whether the plan asks for bare ciphers in memory and not for a device.
    pub fn is_bare(&self) -> bool {
        self.workloads.iter().all(|workload| workload.op.is_bare())
    }

    /// Whether all its systems are simulated drives: nothing of this machine's
    /// storage takes part.
    pub fn is_simulated(&self) -> bool {
        let drives = |system: &System| *system == System::None || system.drive().is_some();
        !self.is_bare()
            && self.systems.iter().all(drives)
            && self.systems.iter().any(|system| system.drive().is_some())
    }

    /// Leaves only the ciphers that have keys of `bits` bits; none is left out
    /// where no cipher has them, so that the error says what is possible.
    pub fn keep_key_size(&mut self, bits: u32) {
        let has = |cipher: &String| Encryption::parse(cipher, Some(bits), 512, None).is_ok();
        if self.ciphers.iter().any(has) {
            self.ciphers.retain(has);
        }
        self.key_size = Some(Sizes::One(bits));
    }

    /// Asks every workload once with each number of `threads`.
    pub fn with_threads(&mut self, threads: &[u32]) {
        let mut workloads: Vec<Workload> = Vec::new();
        for workload in &self.workloads {
            for &threads in threads {
                let mut other = Workload {
                    threads,
                    ..workload.clone()
                };
                if threads != workload.threads {
                    other.name = format!("{}-t{threads}", workload.name);
                }
                workloads.push(other);
            }
        }
        self.workloads = workloads;
    }

    /// Bytes of the test extent: the plan's size, cut to whole sectors of any size.
    pub fn extent_bytes(&self) -> u64 {
        self.size.as_u64() / 4096 * 4096
    }

    /// Every cipher of the plan with the plan's key sizes and each of its sector
    /// sizes, on `backend` where one is forced.
    ///
    /// # Errors
    /// [`PlanError::Encryption`]; also where a cipher has none of several key sizes.
    pub fn encryptions(&self, backend: Option<Backend>) -> Result<Vec<Encryption>, PlanError> {
        let mut encryptions = Vec::new();
        for cipher in &self.ciphers {
            for bits in self.key_sizes_of(cipher) {
                for size in self.sector_size.all() {
                    encryptions.push(Encryption::parse(cipher, bits, *size, backend)?);
                }
            }
        }
        Ok(encryptions)
    }

    /// Every workload is in one test, whose tracked ones are its own.
    fn check_steady(&self) -> Result<(), PlanError> {
        let Some(steady) = &self.steady else {
            return Ok(());
        };
        if self.is_bare() {
            return Err(PlanError::NotBare(self.workloads[0].name.clone()));
        }
        let needed = STEADY_ROUNDS as u32;
        if self.repetitions < needed {
            let rounds = self.repetitions;
            return Err(PlanError::SteadyRounds { needed, rounds });
        }
        if !(1..=16).contains(&steady.precondition) {
            return Err(PlanError::Range {
                key: "precondition",
                value: u64::from(steady.precondition),
                low: 1,
                high: 16,
            });
        }
        let wrong = |name: &String| PlanError::SteadyWorkload(name.clone());
        for test in &steady.tests {
            let is_own = |name: &&String| test.workloads.contains(name);
            if test.tracked.is_empty() {
                return Err(wrong(&test.name));
            }
            if let Some(foreign) = test.tracked.iter().find(|name| !is_own(name)) {
                return Err(wrong(foreign));
            }
            let known = |name: &&String| self.workloads.iter().any(|w| w.name == **name);
            if let Some(unknown) = test.workloads.iter().find(|name| !known(name)) {
                return Err(wrong(unknown));
            }
        }
        for workload in &self.workloads {
            let tests = steady.tests.iter().flat_map(|test| &test.workloads);
            if tests.filter(|name| **name == workload.name).count() != 1 {
                return Err(wrong(&workload.name));
            }
        }
        Ok(())
    }

    /// The plan's key derivations.
    ///
    /// # Errors
    /// [`PlanError::Derivation`].
    pub fn recipes(&self) -> Result<Vec<Recipe>, PlanError> {
        let recipe = |name: &String| {
            let found = BENCHMARK.iter().find(|recipe| recipe.name == name);
            found
                .copied()
                .ok_or_else(|| PlanError::Derivation(name.clone()))
        };
        self.derivations.iter().map(recipe).collect()
    }

    /// The key sizes to measure a cipher with; one that it lacks where it has none
    /// of them, so that the error says what is possible.
    fn key_sizes_of(&self, cipher: &str) -> Vec<Option<u32>> {
        let Some(sizes) = &self.key_size else {
            return vec![None];
        };
        let has = |bits: &&u32| Encryption::parse(cipher, Some(**bits), 512, None).is_ok();
        let possible: Vec<_> = sizes.all().iter().filter(has).copied().map(Some).collect();
        match possible.is_empty() {
            true => vec![sizes.all().first().copied()],
            false => possible,
        }
    }

    /// Checks every value; called again after a command line changed some.
    ///
    /// # Errors
    /// Whatever value is impossible.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.workloads.is_empty() {
            return Err(PlanError::Empty("workloads"));
        }
        if !(1..=1000).contains(&self.repetitions) {
            return Err(PlanError::Range {
                key: "repetitions",
                value: u64::from(self.repetitions),
                low: 1,
                high: 1000,
            });
        }
        if let Some(slow) = self.slow_repetitions
            && !(1..=1000).contains(&slow)
        {
            return Err(PlanError::Range {
                key: "slow_repetitions",
                value: u64::from(slow),
                low: 1,
                high: 1000,
            });
        }
        if !(1..=1024).contains(&self.cores) {
            return Err(PlanError::Range {
                key: "cores",
                value: u64::from(self.cores),
                low: 1,
                high: 1024,
            });
        }
        if self.sector_size.all().is_empty() {
            return Err(PlanError::Empty("sector sizes"));
        }
        if self.key_size.as_ref().is_some_and(|s| s.all().is_empty()) {
            return Err(PlanError::Empty("key sizes"));
        }
        self.check_steady()?;
        if !self.recipes()?.is_empty() && !self.is_bare() {
            return Err(PlanError::DerivationsNotBare);
        }
        if !(1..=60_000).contains(&self.iter_time) {
            return Err(PlanError::Range {
                key: "iter_time",
                value: u64::from(self.iter_time),
                low: 1,
                high: 60_000,
            });
        }
        if self.systems.iter().any(System::takes_ciphers) && self.ciphers.is_empty() {
            return Err(PlanError::Empty("ciphers"));
        }
        let encryptions = self.encryptions(None)?;
        let simulated = self.systems.iter().any(|system| system.drive().is_some());
        let used: Vec<&str> = encryptions
            .iter()
            .filter(|_| simulated)
            .filter_map(|encryption| Some(rate_of(encryption, &self.cpu)?.0))
            .collect();
        if let Some(unused) = self.cpu.keys().find(|name| !used.contains(&name.as_str())) {
            return Err(PlanError::UnusedRate(unused.clone()));
        }
        if !self.driver.is_queue() && !simulated {
            return Err(PlanError::UnusedDriver(self.driver));
        }
        if self.driver == Driver::InTurn && self.cores > 1 {
            return Err(PlanError::DriverCores {
                driver: self.driver,
                cores: self.cores,
            });
        }
        for (index, workload) in self.workloads.iter().enumerate() {
            workload.validate().map_err(|source| PlanError::Workload {
                workload: workload.name.clone(),
                source,
            })?;
            if self.workloads[..index]
                .iter()
                .any(|other| other.name == workload.name)
            {
                return Err(PlanError::DuplicateWorkload(workload.name.clone()));
            }
            if workload.op.is_bare() {
                if self.tier != Tier::Cipher || !self.is_bare() {
                    return Err(PlanError::NotBare(workload.name.clone()));
                }
                // Sectors that a request does not hold are left out.
                continue;
            }
            let torn = |sector: &&u32| !workload.block_bytes().is_multiple_of(u64::from(**sector));
            if let Some(sector) = self.sector_size.all().iter().find(torn)
                && !self.ciphers.is_empty()
            {
                return Err(PlanError::BlockSector {
                    workload: workload.name.clone(),
                    sector: *sector,
                });
            }
            let needed = workload.buffer_bytes();
            if self.extent_bytes() < needed {
                return Err(PlanError::TooSmall {
                    workload: workload.name.clone(),
                    needed: ByteSize(needed),
                    size: self.size,
                });
            }
        }
        Ok(())
    }
}

/// A plan of any tier.
#[derive(Clone, Debug, PartialEq)]
pub enum Experiment {
    /// Ciphers in memory, or devices.
    Storage(Plan),
    /// File systems.
    FileSystems(FileSystemPlan),
}

impl Experiment {
    /// Reads a shipped plan by name, or a file by path.
    ///
    /// # Errors
    /// Any [`PlanError`].
    pub fn load(name_or_path: &str) -> Result<Self, PlanError> {
        let (name, text) = read(name_or_path)?;
        Self::parse(&name, &text)
    }

    /// Reads a plan from TOML; its `tier` says of which kind it is.
    ///
    /// # Errors
    /// Any [`PlanError`].
    pub fn parse(name: &str, text: &str) -> Result<Self, PlanError> {
        let tier = text.parse::<toml::Table>().ok().and_then(|plan| {
            let tier = plan.get("tier")?.as_str()?;
            Some(tier == "fs")
        });
        match tier {
            Some(true) => FileSystemPlan::parse(name, text).map(Self::FileSystems),
            _ => Plan::parse(name, text).map(Self::Storage),
        }
    }

    /// One line for the list of plans.
    pub fn title(&self) -> &str {
        match self {
            Self::Storage(plan) => &plan.title,
            Self::FileSystems(plan) => &plan.title,
        }
    }
}

/// Name and TOML of a shipped plan, or of a file.
fn read(name_or_path: &str) -> Result<(String, String), PlanError> {
    let path = Path::new(name_or_path);
    if path.extension().is_some_and(|suffix| suffix == "toml") {
        let text = std::fs::read_to_string(path).map_err(|source| PlanError::Read {
            path: path.to_owned(),
            source,
        })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        return Ok((stem.into_owned(), text));
    }
    let text = Plan::toml(name_or_path)?;
    Ok((shipped_name(name_or_path).to_owned(), text.to_owned()))
}

/// The name of today of a shipped plan.
fn shipped_name(name: &str) -> &str {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, name)| *name)
}

/// Turns the parser's error into a line and, for an unknown word, a suggestion.
pub(crate) fn syntax(name: &str, text: &str, error: &toml::de::Error) -> PlanError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1;
    let problem = error
        .message()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    // The parser names the unknown word and the known ones in back quotes.
    let mut words = problem.split('`').skip(1).step_by(2);
    let suggestion = words.next().and_then(|unknown| {
        words
            .map(|known| (strsim::jaro_winkler(unknown, known), known))
            .filter(|(likeness, _)| *likeness > 0.75)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| known.to_owned())
    });
    PlanError::Syntax {
        name: name.to_owned(),
        line,
        problem,
        suggestion,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = r#"
title = "a plan"
size = "64 MiB"
ciphers = ["aes-xts-plain64"]

[[workload]]
name = "r"
pattern = "random"
op = "read"
block_size = "4 KiB"
seconds = 0.1
"#;

    #[test]
    fn every_shipped_plan_is_valid_and_has_a_title() {
        for (name, title) in Plan::shipped() {
            let plan = Experiment::load(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!title.is_empty(), "{name}");
            assert_eq!(plan.title(), title);
        }
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let plan = Plan::parse("x", VALID).unwrap();
        assert_eq!(
            (plan.repetitions, plan.sector_size.all()),
            (10, &[4096][..])
        );
        assert_eq!(plan.systems, [System::Builtin]);
        assert_eq!(plan.workloads[0].queue_depth, 1);
        assert_eq!(plan.size.as_u64(), 64 << 20);
    }

    /// As `cryptsetup benchmark` lists them: CBC with 128 and 256 bits, XTS with
    /// 256 and 512.
    #[test]
    fn every_cipher_takes_the_key_sizes_that_it_has() {
        let text = VALID.replacen(
            "ciphers = [\"aes-xts-plain64\"]",
            "ciphers = [\"aes-cbc-plain64\", \"aes-xts-plain64\"]\nkey_size = [128, 256, 512]",
            1,
        );
        let plan = Plan::parse("x", &text).unwrap();
        let encryptions = plan.encryptions(None).unwrap();
        let bits: Vec<u32> = encryptions.iter().map(|e| e.key_bits).collect();
        assert_eq!(bits, [128, 256, 256, 512]);
    }

    #[test]
    fn an_unknown_key_is_named_with_line_and_suggestion() {
        let text = VALID.replace("pattern", "patern");
        let Err(PlanError::Syntax {
            line,
            problem,
            suggestion,
            ..
        }) = Plan::parse("x", &text)
        else {
            panic!("accepted");
        };
        assert_eq!(line, 8);
        assert!(problem.contains("patern"), "{problem}");
        assert_eq!(suggestion.as_deref(), Some("pattern"));
    }

    #[test]
    fn bad_plans_are_refused() {
        let cases = [
            ("title", "size = 3"),
            ("64 MiB", "64 Mbananas"),
            ("64 MiB", "1 KiB"),
            ("random", "spiral"),
            ("seconds = 0.1", "seconds = -1.0"),
            ("seconds = 0.1", "seconds = 0.1\nbytes = \"1 MiB\""),
            ("seconds = 0.1", "seconds = 0.1\nqueue_depth = 0"),
            ("aes-xts-plain64", "ase-xts-plain64"),
            ("\"a plan\"", "\"a plan\"\nsector_size = 520"),
            ("\"a plan\"", "\"a plan\"\nsector_size = []"),
            ("\"a plan\"", "\"a plan\"\nsector_size = [512, \"x\"]"),
            ("\"a plan\"", "\"a plan\"\nrepetitions = 0"),
            ("\"a plan\"", "\"a plan\"\nslow_repetitions = 0"),
            ("\"a plan\"", "\"a plan\"\ncores = 0"),
            ("\"a plan\"", "\"a plan\"\nderivations = [\"argon2id\"]"),
            ("\"a plan\"", "\"a plan\"\nderivations = [\"md5\"]"),
            ("\"a plan\"", "\"a plan\"\niter_time = 0"),
            ("\"a plan\"", "\"a plan\"\nkey_size = 100"),
            ("\"a plan\"", "\"a plan\"\nkey_size = []"),
            ("\"a plan\"", "\"a plan\"\nkey_size = [100, 128]"),
            ("\"a plan\"", "\"a plan\"\nsystems = [\"truecrypt\"]"),
            ("4 KiB", "512 B"),
            ("[\"aes-xts-plain64\"]", "[]"),
        ];
        for (from, to) in cases {
            let text = VALID.replacen(from, to, 1);
            assert_ne!(text, VALID);
            let error = Plan::parse("x", &text).expect_err(to);
            assert!(!error.to_string().is_empty() && !error.remedy().is_empty());
        }
        let twice = format!(
            "{VALID}{}",
            VALID
                .split_once("[[")
                .unwrap()
                .1
                .replacen("workload", "[[workload", 1)
        );
        assert!(matches!(
            Plan::parse("x", &twice),
            Err(PlanError::DuplicateWorkload(_))
        ));
    }

    #[test]
    fn a_misspelt_name_gets_a_suggestion() {
        let error = Plan::load("quik").unwrap_err();
        assert!(error.remedy().contains("quick"), "{}", error.remedy());
        assert!(matches!(
            Plan::load("/nonexistent/x.toml"),
            Err(PlanError::Read { .. })
        ));
    }
}
