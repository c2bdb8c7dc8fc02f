//! [`Plan`]: an experiment as data, one TOML file each.
//!
//! A plan names systems, ciphers and workloads; the session measures every
//! combination, interleaved, `repetitions` times. The plans that ship are
//! embedded in the program.

mod changes;
mod error;
mod shipped;
mod validate;

pub use changes::Changes;
pub use error::PlanError;
pub(crate) use error::syntax;
pub(crate) use shipped::read;

use crate::file_system::plan::FileSystemPlan;
use crate::published::repeats::{Beside, Repeats, RepeatsError, ScoredBy};
use crate::record::{Conditioning, Tier};
use crate::session::unlock;
use crate::stats::Looks;
use crate::sweep::Sweep;
use crate::target::simulated::{CipherRate, Driver};
use crate::target::unlock::{BENCHMARK, ITER_TIME_MS, Recipe};
use crate::target::{Backend, Encryption, System, VolumeFormat};
use crate::workload::Workload;
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Workloads of a plan, at most. Their names are compared with others.
pub(crate) const MOST_CELLS: u64 = 1000;

/// Ciphers of a plan, times key sizes and sector sizes, at most.
const MOST_ENCRYPTIONS: u64 = 10_000;

/// One experiment: systems × ciphers × workloads, repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// File stem or embedded name; not part of the TOML.
    #[serde(skip)]
    pub name: String,
    /// One line for the list of plans.
    pub title: String,
    /// The tier that is timed.
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
    /// Systems in addition to `none`, which every plan measures.
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
    /// Key derivations in addition to bare ciphers, by `cryptsetup benchmark`'s names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derivations: Vec<String>,
    /// Target duration of calibrated key derivations, ms, 1 to 60,000.
    #[serde(default = "two_seconds", skip_serializing_if = "is_two_seconds")]
    pub iter_time: u32,
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
    /// Rates of ciphers on a core of the machine before simulated drives, by
    /// name or notation; this machine's are measured when absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu: BTreeMap<String, CipherRate>,
    /// The way in which an encrypting driver works before simulated drives.
    #[serde(default, skip_serializing_if = "Driver::is_queue")]
    pub driver: Driver,
    /// The only workloads that simulated drives get, by system; all of them when absent. Shards set
    /// it, plans do not.
    #[serde(skip)]
    pub only: Option<Vec<(System, String)>>,
    /// The workloads that every system gets.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
}

/// The end of a plan that is measured in slices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Maximum duration, seconds, 1 to 86,400.
    pub seconds: f64,
    /// Precision required of each ratio, percentage points, 0.1 to 50.
    pub precision: f64,
}

impl Until {
    /// Whether both numbers lie in their ranges.
    pub(crate) fn is_possible(&self) -> bool {
        (1.0..=86_400.0).contains(&self.seconds) && (0.1..=50.0).contains(&self.precision)
    }
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

impl Plan {
    /// One that asks for nothing.
    pub(crate) fn empty() -> Self {
        Self {
            name: String::new(),
            title: String::new(),
            tier: Tier::Block,
            size: ByteSize(0),
            repetitions: 1,
            slow_repetitions: None,
            systems: Vec::new(),
            ciphers: Vec::new(),
            key_size: None,
            sector_size: sectors_of_4096(),
            formats: Vec::new(),
            cores: 1,
            all_cores: false,
            derivations: Vec::new(),
            iter_time: ITER_TIME_MS,
            steady: None,
            until: None,
            marks: Vec::new(),
            published: None,
            cpu: BTreeMap::new(),
            driver: Driver::default(),
            only: None,
            workloads: Vec::new(),
        }
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
    /// [`PlanError::Syntax`] with line and suggestion, or the error of an impossible value.
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

    /// How often what is measured is looked at.
    pub fn looks(&self) -> Looks {
        match self.until {
            Some(_) => Looks::Always,
            None => Looks::Once,
        }
    }

    /// Whether all its systems are simulated drives: nothing of this machine's
    /// storage takes part.
    pub fn is_simulated(&self) -> bool {
        let drives = |system: &System| *system == System::None || system.drive().is_some();
        !self.is_bare()
            && self.systems.iter().all(drives)
            && self.systems.iter().any(|system| system.drive().is_some())
    }

    /// Whether a workload is asked of the simulated drive `name`.
    pub fn asks(&self, name: &str, workload: &str) -> bool {
        let is =
            |(system, asked): &(System, String)| system.drive() == Some(name) && asked == workload;
        self.only.as_ref().is_none_or(|only| only.iter().any(is))
    }

    /// Sets the key size to `bits` and keeps only the ciphers that have it. If no cipher has it,
    /// all are kept, so that the error names the possible sizes.
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

    /// Every cipher of the plan with the plan's key sizes and each of its sector sizes, on
    /// `backend` if one is forced.
    ///
    /// # Errors
    /// [`PlanError::Encryption`], also if a cipher has none of several key sizes.
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

    /// The key sizes to measure a cipher with. If it has none of the plan's sizes, one of these is
    /// returned, so that the error names the possible ones.
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
}

/// A plan of any tier.
#[derive(Clone, Debug, PartialEq)]
pub enum Experiment {
    /// Ciphers in memory, or devices.
    Storage(Plan),
    /// File systems.
    FileSystems(FileSystemPlan),
    /// The key derivations of the volume formats.
    KeyDerivations,
    /// Lives of simulated drives.
    Sweep(Sweep),
}

/// The tier that says that key derivations are measured: all of an experiment that is
/// built in and has no other numbers.
pub(crate) const KEY_DERIVATIONS: &str = "kdf";

impl Experiment {
    /// Reads a shipped plan by name, or a file by path.
    ///
    /// # Errors
    /// Any [`PlanError`].
    pub fn load(name_or_path: &str) -> Result<Self, PlanError> {
        if name_or_path == unlock::PLAN {
            return Ok(Self::KeyDerivations);
        }
        let (name, text) = read(name_or_path)?;
        Self::parse(&name, &text)
    }

    /// Reads a plan from TOML; its `tier` says of which kind it is, and `devices`
    /// that it is a sweep.
    ///
    /// # Errors
    /// Any [`PlanError`].
    pub fn parse(name: &str, text: &str) -> Result<Self, PlanError> {
        // Text that is not TOML is reported by the parser that is called below.
        let table: toml::Table = text.parse().unwrap_or_default();
        let tier = table.get("tier").and_then(toml::Value::as_str);
        match tier {
            _ if table.contains_key("devices") => Sweep::parse(name, text).map(Self::Sweep),
            Some("fs") => FileSystemPlan::parse(name, text).map(Self::FileSystems),
            Some(KEY_DERIVATIONS) if table.len() == 1 => Ok(Self::KeyDerivations),
            _ => Plan::parse(name, text).map(Self::Storage),
        }
    }

    /// One line for the list of plans.
    pub fn title(&self) -> &str {
        match self {
            Self::Storage(plan) => &plan.title,
            Self::FileSystems(plan) => &plan.title,
            Self::KeyDerivations => "what unlocking costs here, and what a guess costs",
            Self::Sweep(sweep) => &sweep.title,
        }
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
    fn large_plans_are_refused() {
        let is_large = |text: &str| matches!(Plan::parse("x", text), Err(PlanError::Range { .. }));
        let (head, workload) = VALID.split_once("[[workload]]").unwrap();
        let workloads = |count: usize| {
            let name = |nth| workload.replace("\"r\"", &format!("\"r{nth}\""));
            let all = (0..count).map(|nth| format!("[[workload]]{}", name(nth)));
            format!("{head}{}", all.collect::<String>())
        };
        assert!(!is_large(&workloads(1000)) && is_large(&workloads(1001)));
        let cipher = "\"aes-xts-plain64\"";
        let ciphers = |count| VALID.replace(cipher, &vec![cipher; count].join(","));
        assert!(!is_large(&ciphers(10_000)) && is_large(&ciphers(10_001)));
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
