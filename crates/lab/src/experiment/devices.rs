//! [`Devices`]: an experiment on block devices, real or simulated.

use super::encryptions::{encryptions, sectors_of_4096, with_key_size};
use super::error::{driver_cores, empty, unused_rate};
use super::schedule::{
    check_on_device, check_published, check_workloads, extent_of, last, on_all_cores, shorten,
    with_threads,
};
use super::{
    Changes, Schedule, Setting, Sizes, Until, builtin, from_toml, is_one, one, settings, ten,
    within, words,
};
use crate::error::LabError;
use crate::published::repeats::{Repeats, ScoredBy};
use crate::record::{Conditioning, Tier};
use crate::stats::STEADY_ROUNDS;
use crate::system::simulated::{CipherRate, Driver, rate_of, whole_size};
use crate::system::{Backend, Encryption, SHARED_FROM, SystemId, VolumeFormat, notation};
use crate::workload::Workload;
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// The time after which a first look is done in any case, seconds, and the largest extent that it
/// fills.
const LOOK_SECONDS: f64 = 8.0;
const LOOK_SIZE: ByteSize = ByteSize::mb(256);

/// The size of a first look at a steady state, which writes all of it more than once.
const LOOK_STEADY_SIZE: ByteSize = ByteSize::mib(256);

/// Systems × ciphers × workloads on block devices, repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Devices {
    /// File stem or embedded name; not part of the TOML.
    #[serde(skip)]
    pub name: String,
    /// One line for the list of plans.
    pub title: String,
    /// Always `block`.
    #[serde(default = "block")]
    tier: String,
    /// Bytes of the test extent.
    pub size: ByteSize,
    /// Repetitions of every cell, 1 to 1000.
    #[serde(default = "ten")]
    pub repetitions: u32,
    /// Systems in addition to `none`, which every plan measures.
    #[serde(default = "builtin")]
    pub systems: Vec<SystemId>,
    /// dm-crypt notation.
    pub ciphers: Vec<String>,
    /// Key size in bits as cryptsetup counts; the cipher's default when absent.
    /// Of several every cipher is measured with those that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_size: Option<Sizes>,
    /// Encryption sector size, bytes; several are measured side by side.
    #[serde(default = "sectors_of_4096")]
    pub sector_size: Sizes,
    /// Formats in which the built-in engine's volumes are made, each measured. Without any, the
    /// whole extent is data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<VolumeFormat>,
    /// Cores that share a large request of the built-in engine if that is measured to be faster.
    /// Before simulated drives, cores each of which encrypts a request. One when absent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cores: u32,
    /// Whether large requests are measured a second time, shared among all cores of the machine, as
    /// dm-crypt and VeraCrypt encrypt them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_cores: bool,
    /// Rounds until a steady state, instead of a fixed number of repetitions, which then is the
    /// maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Conditioning>,
    /// Slices until every cell is decided, instead of a fixed number of repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Scores that are made of the rates.
    #[serde(default, rename = "mark", skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<ScoredBy>,
    /// The published figures that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Repeats>,
    /// Rates of ciphers on a core of the machine before simulated drives, by name or notation;
    /// this machine's are measured when absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu: BTreeMap<String, CipherRate>,
    /// The way in which an encrypting driver works before simulated drives.
    #[serde(default, skip_serializing_if = "Driver::is_queue")]
    pub driver: Driver,
    /// The workloads that every system gets.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    /// The only workloads that simulated drives get, by system; all of them when absent. Shards set
    /// it, plans do not.
    #[serde(skip)]
    pub only: Option<Vec<(SystemId, String)>>,
    /// Whether memory is the storage, so that nothing but the cipher takes time.
    #[serde(skip)]
    pub in_memory: bool,
    /// The backend of the engine that is forced.
    #[serde(skip)]
    pub backend: Option<Backend>,
}

/// Whether all `systems` are simulated drives.
pub(crate) fn are_drives(systems: &[SystemId]) -> bool {
    let drives = |system: &SystemId| *system == SystemId::None || system.drive().is_some();
    systems.iter().all(drives) && systems.iter().any(|system| system.drive().is_some())
}

fn block() -> String {
    "block".to_owned()
}

/// What does not apply to any block device.
fn refuses(setting: Setting) -> Option<&'static str> {
    let never = [Setting::Commands, Setting::Jobs];
    never.contains(&setting).then_some("block devices")
}

impl Devices {
    /// Reads a shipped plan by name, or a file by path.
    ///
    /// # Errors
    /// Any [`LabError`].
    pub fn load(name_or_path: &str) -> Result<Self, LabError> {
        let (name, text) = super::read(name_or_path)?;
        Self::parse(&name, &text)
    }

    /// Reads a plan from TOML and checks every value.
    ///
    /// # Errors
    /// [`LabError`] with line and suggestion, or the error of an impossible value.
    pub fn parse(name: &str, text: &str) -> Result<Self, LabError> {
        let mut plan: Self = from_toml(name, text, refuses)?;
        plan.name = name.to_owned();
        on_all_cores(&mut plan.workloads);
        plan.validate()?;
        check_published(plan.published.as_ref(), &plan.marks, &plan.workloads)?;
        Ok(plan)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// Whatever value is impossible.
    pub fn validate(&self) -> Result<(), LabError> {
        check_workloads(&self.workloads)?;
        within("repetitions", u64::from(self.repetitions), 1, 1000)?;
        within("cores", u64::from(self.cores), 1, 1024)?;
        // Ciphers and their sizes may be there for systems that are named another time.
        let chosen = [
            (Setting::Cores, self.cores > 1),
            (Setting::Cpu, !self.cpu.is_empty()),
            (Setting::Driver, !self.driver.is_queue()),
            (Setting::Backend, self.backend.is_some()),
            (Setting::TimeLimit, self.until.is_some()),
        ];
        let chosen = chosen.into_iter().filter(|(_, chosen)| *chosen);
        settings::check(chosen.map(|(setting, _)| setting), |s| self.refuses(s))?;
        self.check_steady()?;
        self.until.as_ref().map_or(Ok(()), Until::validate)?;
        if self.systems.iter().any(SystemId::takes_ciphers) && self.ciphers.is_empty() {
            return Err(empty("ciphers"));
        }
        let encryptions = self.encryptions()?;
        let used: BTreeSet<&str> = encryptions
            .iter()
            .filter_map(|encryption| Some(rate_of(encryption, &self.cpu)?.0))
            .collect();
        if let Some(unused) = self.cpu.keys().find(|name| !used.contains(name.as_str())) {
            return Err(unused_rate(unused));
        }
        if self.driver == Driver::InTurn && self.cores > 1 {
            return Err(driver_cores(self.driver, self.cores));
        }
        let sectors = (!self.ciphers.is_empty()).then_some(&self.sector_size);
        check_on_device(&self.workloads, sectors, self.size)
    }

    /// Every workload is in one test, whose tracked ones are its own.
    fn check_steady(&self) -> Result<(), LabError> {
        let Some(steady) = &self.steady else {
            return Ok(());
        };
        let needed = STEADY_ROUNDS as u32;
        if self.repetitions < needed {
            let rounds = self.repetitions;
            return Err(LabError::invalid(
                format!("a steady state needs {needed} rounds, but the plan has {rounds}"),
                format!("Use `repeat` {needed} or more."),
            ));
        }
        within("precondition", u64::from(steady.precondition), 1, 16)?;
        let wrong = |name: &String| {
            LabError::invalid(
                format!(
                    "steady: {name:?} is not in exactly one test, or no test tracks a workload of \
                     its own"
                ),
                "Put each workload into one test, and let each test track one of its own \
                 workloads. `cryptmark plans show snia` prints a plan to copy.",
            )
        };
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

    pub(super) fn apply(&mut self, changes: &Changes) -> Result<(), LabError> {
        if let Some(size) = changes.size {
            self.size = size;
        }
        if changes.first_look {
            self.shorten(changes.size.is_some());
        }
        if let Some(repetitions) = changes.repetitions {
            self.repetitions = repetitions;
            self.until = None;
        }
        last(&mut self.workloads, changes.trial_seconds);
        if !changes.systems.is_empty() {
            self.systems.clone_from(&changes.systems);
            // What the plan chooses for its own systems belongs to these.
            if !self.systems.iter().any(SystemId::takes_ciphers) {
                self.ciphers.clear();
                self.key_size = None;
            }
            if self.refuses(Setting::Cores).is_some() {
                self.cores = 1;
            }
        }
        if !changes.ciphers.is_empty() {
            self.ciphers = changes.ciphers.iter().map(|name| notation(name)).collect();
            // The plan's key size belongs to the plan's ciphers.
            self.key_size = None;
        }
        if let Some(bits) = changes.key_size {
            self.key_size = Some(Sizes::One(bits));
        }
        with_threads(&mut self.workloads, &changes.threads);
        if let Some(cores) = changes.cores {
            self.cores = cores;
            self.all_cores = false;
        }
        if self.has_drives() {
            // Time that is simulated need not be spared.
            self.until = None;
        }
        self.until = Until::changed(self.until, changes.time_limit, changes.precision);
        self.cpu.extend(changes.cpu.iter().cloned());
        if let Some(driver) = changes.driver {
            self.driver = driver;
        }
        self.in_memory |= changes.in_memory;
        if changes.backend.is_some() {
            self.backend = changes.backend;
        }
        if !changes.sector_sizes.is_empty() {
            self.sector_size = Sizes::Several(changes.sector_sizes.clone());
        }
        if self.steady.is_some() && changes.size.is_none() {
            for drive in self.systems.iter().filter_map(SystemId::drive) {
                self.size = whole_size(drive, self.size)?;
            }
        }
        Ok(())
    }

    /// Takes a first look only. The size stays if it `is_given`.
    fn shorten(&mut self, is_given: bool) {
        self.repetitions = match self.steady {
            Some(_) => STEADY_ROUNDS as u32,
            None => 3,
        };
        if self.steady.is_some() && !is_given {
            self.size = self.size.min(LOOK_STEADY_SIZE);
        }
        if let Some(until) = &mut self.until {
            until.seconds = until.seconds.min(LOOK_SECONDS);
            if !is_given {
                self.size = self.size.min(LOOK_SIZE);
            }
        }
        shorten(&mut self.workloads);
    }

    pub(super) fn refuses(&self, setting: Setting) -> Option<&'static str> {
        use Setting as S;
        let any = |is: fn(&SystemId) -> bool| self.systems.iter().any(is);
        let engine = any(|system| *system == SystemId::Builtin);
        match setting {
            S::Ciphers | S::KeySize | S::SectorSizes if !any(SystemId::takes_ciphers) => {
                Some("systems without ciphers of their own")
            }
            S::Backend if !any(SystemId::is_ours) && !self.has_drives() => {
                Some("systems without the built-in engine")
            }
            S::Cores if !engine && !self.has_drives() => {
                Some("systems without the built-in engine")
            }
            S::Cpu | S::Driver if !self.has_drives() => {
                Some("systems that are no simulated drives")
            }
            S::TimeLimit | S::Precision if self.has_drives() => Some("simulated drives"),
            S::TimeLimit | S::Precision | S::Threads if self.steady.is_some() => {
                Some("a steady state")
            }
            S::InMemory | S::Energy | S::Place | S::Overwrite if self.is_simulated() => {
                Some("simulated drives")
            }
            S::Place | S::Overwrite if self.in_memory => Some("storage in memory"),
            setting => refuses(setting),
        }
    }

    fn has_drives(&self) -> bool {
        self.systems.iter().any(|system| system.drive().is_some())
    }

    /// Whether all its systems are simulated drives: nothing of this machine's
    /// storage takes part.
    pub fn is_simulated(&self) -> bool {
        are_drives(&self.systems)
    }

    /// Sets the key size to `bits` and keeps only the ciphers that have it. If no cipher has it,
    /// all are kept, so that the error names the possible sizes.
    pub fn keep_key_size(&mut self, bits: u32) {
        with_key_size(&mut self.ciphers, bits);
        self.key_size = Some(Sizes::One(bits));
    }

    /// The tier that is timed.
    pub fn tier(&self) -> Tier {
        match self.in_memory {
            true => Tier::Cipher,
            false => Tier::Block,
        }
    }

    /// Bytes of the test extent: the plan's size, cut to whole sectors of any size.
    pub fn extent_bytes(&self) -> u64 {
        extent_of(self.size)
    }

    /// Every cipher of the plan with its key sizes and each of its sector sizes, on the engine's
    /// forced backend.
    ///
    /// # Errors
    /// [`LabError`], also if a cipher has none of several key sizes.
    pub fn encryptions(&self) -> Result<Vec<Encryption>, LabError> {
        self.encryptions_on(self.backend)
    }

    /// The same, on `backend` if one is forced.
    ///
    /// # Errors
    /// As [`encryptions`](Self::encryptions).
    pub fn encryptions_on(&self, backend: Option<Backend>) -> Result<Vec<Encryption>, LabError> {
        let (key, sectors) = (self.key_size.as_ref(), &self.sector_size);
        encryptions(&self.ciphers, key, sectors, backend)
    }

    pub(super) fn describe(&self, at: &Path) -> String {
        let encryptions = self.encryptions().unwrap_or_default();
        let sizes = (self.key_size.as_ref(), &self.sector_size);
        let asked = words::asked(
            &self.systems,
            SystemId::takes_ciphers,
            &self.formats,
            &encryptions,
            sizes,
        );
        let simulated = self.is_simulated();
        let size = self.size.display().si();
        let place = at.display();
        let mut text = format!("plan {}: {}\n", self.name, self.title);
        let _ = match simulated {
            true => writeln!(text, "the first {size} of simulated drives"),
            false if self.in_memory => writeln!(text, "{size} of memory"),
            false if at.exists() && !at.is_dir() => {
                writeln!(text, "the first {size} of {place}, overwritten")
            }
            false => writeln!(
                text,
                "{size} at {place}, filled first and removed afterwards"
            ),
        };
        words::workloads(&self.workloads, &mut text);
        let _ = writeln!(text, "on: plain (twice), {}", words::names(&asked));
        words::engine(self.cores, self.backend, &self.sector_size, &mut text);
        if self.has_drives() {
            let rates = self
                .cpu
                .iter()
                .map(|(name, rate)| format!("{name} at {}", rate.0));
            let rates: Vec<String> = rates.collect();
            let rates = match rates.is_empty() {
                true => "measured here".to_owned(),
                false => format!("{} MB/s", rates.join(", ")),
            };
            let _ = writeln!(
                text,
                "before the drives: driver {}, rates {rates}",
                self.driver
            );
        }
        // The engine's cells a second time, of large requests.
        let several = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
        let shared = match self.all_cores && several && !simulated {
            true => asked.iter().filter(|asked| asked.by_engine).count(),
            false => 0,
        };
        if shared > 0 {
            text.push_str("large requests by builtin also on all cores\n");
        }
        // Each drive has its own plain side, and what is not simulated another one.
        let drives = self.systems.iter().filter(|s| s.drive().is_some()).count();
        let plain = 2 * (drives + usize::from(!simulated));
        let cells = |workload: &Workload| match workload.block_bytes() >= SHARED_FROM {
            true => plain + asked.len() + shared,
            false => plain + asked.len(),
        };
        let until = self.until.as_ref();
        text + &words::length(&self.workloads, self.repetitions, until, simulated, cells)
    }

    /// How a session measures it.
    pub fn schedule(&self) -> Schedule {
        Schedule {
            name: self.name.clone(),
            repetitions: self.repetitions,
            workloads: self.workloads.clone(),
            until: self.until,
            steady: self.steady.clone().map(|steady| (steady, self.size)),
            marks: self.marks.clone(),
            published: self.published.clone(),
            only: self.only.clone(),
            is_simulated: self.is_simulated(),
            ..Schedule::default()
        }
    }
}
