//! [`Ciphers`]: an experiment on ciphers in memory, with `tier = "cipher"`.

use super::derivations::{check_iter_time, two_seconds};
use super::encryptions::{encryptions, sectors_of_4096, with_key_size};
use super::error::{empty, other_tier};
use super::schedule::{
    check_published, check_workloads, extent_of, last, on_all_cores, shorten, with_threads,
};
use super::{
    Changes, Schedule, Setting, Sizes, builtin, from_toml, is_one, one, ten, within, words,
};
use crate::error::LabError;
use crate::published::repeats::{Repeats, ScoredBy};
use crate::system::unlock::{BENCHMARK, ITER_TIME_MS, Recipe};
use crate::system::{Backend, Encryption, SystemId, notation};
use crate::workload::Workload;
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Systems × ciphers × workloads in memory, repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ciphers {
    /// File stem or embedded name; not part of the TOML.
    #[serde(skip)]
    pub name: String,
    /// One line for the list of plans.
    pub title: String,
    /// Always `cipher`.
    tier: String,
    /// Bytes of memory that is encrypted.
    pub size: ByteSize,
    /// Repetitions of every cell, 1 to 1000.
    #[serde(default = "ten")]
    pub repetitions: u32,
    /// Repetitions that are enough of a cipher whose requests take far longer than a workload's
    /// `seconds`; as many as of any other when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_repetitions: Option<u32>,
    /// The engine, libraries and Java.
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
    /// Cores that share a large request of the engine if that is measured to be faster.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cores: u32,
    /// Key derivations in addition, by `cryptsetup benchmark`'s names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derivations: Vec<String>,
    /// Target duration of calibrated key derivations, ms, 1 to 60,000.
    #[serde(default = "two_seconds", skip_serializing_if = "is_two_seconds")]
    pub iter_time: u32,
    /// Scores that are made of the rates.
    #[serde(default, rename = "mark", skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<ScoredBy>,
    /// The published figures that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Repeats>,
    /// The workloads that every cipher gets.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    /// The backend of the engine that is forced.
    #[serde(skip)]
    pub backend: Option<Backend>,
}

fn is_two_seconds(ms: &u32) -> bool {
    *ms == ITER_TIME_MS
}

/// What does not apply to any cipher in memory.
fn refuses(setting: Setting) -> Option<&'static str> {
    use Setting as S;
    let never = [
        S::TimeLimit,
        S::InMemory,
        S::Precision,
        S::Cpu,
        S::Driver,
        S::Commands,
        S::Jobs,
        S::Place,
        S::Overwrite,
    ];
    never.contains(&setting).then_some("ciphers in memory")
}

impl Ciphers {
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
        if let Some(slow) = self.slow_repetitions {
            within("slow_repetitions", u64::from(slow), 1, 1000)?;
        }
        within("cores", u64::from(self.cores), 1, 1024)?;
        check_iter_time(self.iter_time)?;
        self.recipes()?;
        if self.ciphers.is_empty() {
            return Err(empty("ciphers"));
        }
        if let Some(other) = self.workloads.iter().find(|w| !w.op.is_bare()) {
            return Err(other_tier(&other.name));
        }
        self.encryptions().map(drop)
    }

    pub(super) fn apply(&mut self, changes: &Changes) {
        if let Some(size) = changes.size {
            self.size = size;
        }
        if changes.first_look {
            self.repetitions = 3;
            self.iter_time = self.iter_time.min(Changes::LOOK_ITER_TIME);
            shorten(&mut self.workloads);
        }
        if let Some(repetitions) = changes.repetitions {
            self.repetitions = repetitions;
            self.slow_repetitions = None;
        }
        last(&mut self.workloads, changes.trial_seconds);
        if !changes.systems.is_empty() {
            self.systems.clone_from(&changes.systems);
        }
        if !changes.ciphers.is_empty() {
            self.ciphers = changes.ciphers.iter().map(|name| notation(name)).collect();
            // The plan's key size belongs to the plan's ciphers.
            self.key_size = None;
        }
        if let Some(bits) = changes.key_size {
            if changes.ciphers.is_empty() {
                with_key_size(&mut self.ciphers, bits);
            }
            self.key_size = Some(Sizes::One(bits));
        }
        with_threads(&mut self.workloads, &changes.threads);
        if let Some(cores) = changes.cores {
            self.cores = cores;
        }
        if !changes.sector_sizes.is_empty() {
            self.sector_size = Sizes::Several(changes.sector_sizes.clone());
        }
        if changes.backend.is_some() {
            self.backend = changes.backend;
        }
    }

    pub(super) fn refuses(&self, setting: Setting) -> Option<&'static str> {
        let by_engine = self.systems.contains(&SystemId::Builtin);
        match setting {
            Setting::Cores | Setting::Backend if !by_engine => {
                Some("systems without the built-in engine")
            }
            setting => refuses(setting),
        }
    }

    /// Bytes that are encrypted: the plan's size, cut to whole sectors of any size.
    pub fn extent_bytes(&self) -> u64 {
        extent_of(self.size)
    }

    /// Every cipher of the plan with its key sizes and each of its sector sizes.
    ///
    /// # Errors
    /// [`LabError`], also if a cipher has none of several key sizes.
    pub fn encryptions(&self) -> Result<Vec<Encryption>, LabError> {
        let (key, sectors) = (self.key_size.as_ref(), &self.sector_size);
        encryptions(&self.ciphers, key, sectors, self.backend)
    }

    /// The plan's key derivations.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn recipes(&self) -> Result<Vec<Recipe>, LabError> {
        let recipe = |name: &String| {
            let found = BENCHMARK.iter().find(|recipe| recipe.name == name);
            found.copied().ok_or_else(|| {
                let names: Vec<&str> = BENCHMARK.iter().map(|recipe| recipe.name).collect();
                LabError::invalid(
                    format!("there is no key derivation {name:?}"),
                    format!("Use one of: {}.", names.join(", ")),
                )
            })
        };
        self.derivations.iter().map(recipe).collect()
    }

    pub(super) fn describe(&self) -> String {
        let encryptions = self.encryptions().unwrap_or_default();
        let sizes = (self.key_size.as_ref(), &self.sector_size);
        let asked = words::asked(
            &self.systems,
            SystemId::encrypts_memory,
            &[],
            &encryptions,
            sizes,
        );
        let systems: Vec<&str> = self.systems.iter().map(SystemId::as_str).collect();
        let mut text = format!(
            "plan {}: {}\n{} of memory\n",
            self.name,
            self.title,
            self.size.display().si()
        );
        words::workloads(&self.workloads, &mut text);
        let _ = writeln!(
            text,
            "by {}, the first of these twice: {}",
            systems.join(", "),
            words::ciphers(&encryptions, sizes)
        );
        words::engine(self.cores, self.backend, &self.sector_size, &mut text);
        if !self.derivations.is_empty() {
            let names = self.derivations.join(", ");
            let _ = writeln!(text, "and {names}, calibrated to {} ms", self.iter_time);
        }
        // Sectors that a request does not hold are left out.
        let cells = |workload: &Workload| {
            let is_whole = |sector: u64| workload.block_bytes().is_multiple_of(sector);
            1 + asked
                .iter()
                .filter(|asked| asked.sector.is_none_or(is_whole))
                .count()
        };
        text + &words::length(&self.workloads, self.repetitions, None, false, cells)
    }

    /// How a session measures it.
    pub fn schedule(&self) -> Schedule {
        Schedule {
            name: self.name.clone(),
            repetitions: self.repetitions,
            slow_repetitions: self.slow_repetitions,
            workloads: self.workloads.clone(),
            marks: self.marks.clone(),
            published: self.published.clone(),
            is_bare: true,
            ..Schedule::default()
        }
    }
}
