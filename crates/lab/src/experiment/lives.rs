//! [`Lives`]: lives of simulated SSDs as data, one TOML file each: drives × over-provisioning
//! × cleaning × fill, each set up by every policy with every cipher, from every seed.
//!
//! A *place* is one drive in one use; all that is compared is within it: the drive
//! not encrypted, and encrypted by every policy and cipher. Places are what is dealt out to hosts.

use super::encryptions::{encryptions, sectors_of_4096};
use super::error::{driver_cores, empty, no_rate, unused_rate};
use super::schedule::{check_on_device, check_workloads};
use super::{Schedule, Setting, Sizes, from_toml, one, within, words};
use crate::error::LabError;
use crate::record::TrimPolicy;
use crate::system::life::{Living, Use};
use crate::system::simulated::{self, CipherRate, DRIVE, Driver};
use crate::system::{Encryption, SystemId};
use crate::workload::{Mix, Pattern, Workload};
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use thiserror::Error;

/// Places, at most.
const PLACES: u64 = 1_000_000;

/// Maximum number of lives from different seeds that are summarised together. More seeds make
/// several places of this size, so that hosts can share them.
const TOGETHER: u32 = 100;

/// Files that are used, at least: of the smallest drive that is simulated the emptiest.
const EXTENT: ByteSize = ByteSize::mb(64);

/// A share of something, `80%` or `0.8`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "f64")]
pub struct Share(pub f64);

/// A text that is not a share.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoShare {
    /// The text is not a number.
    #[error("{0} is not a share; write 11.1% or 0.111")]
    Word(String),
    /// Below nothing, or no number.
    #[error("{0} is not a share")]
    Negative(String),
    /// More than 1, without a sign for per cent.
    #[error("{0} is more than the whole; write {0}%, or {1}% for {0} times the whole")]
    TooMuch(String, String),
}

/// A share as people write it in TOML.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a share must be a number or a text: 0.8 or \"80%\""
)]
enum Written {
    Number(f64),
    Text(String),
}

impl TryFrom<Written> for Share {
    type Error = NoShare;

    fn try_from(written: Written) -> Result<Self, NoShare> {
        match written {
            Written::Number(number) => number.to_string().parse(),
            Written::Text(text) => text.parse(),
        }
    }
}

impl From<Share> for f64 {
    fn from(Share(share): Share) -> Self {
        share
    }
}

impl std::str::FromStr for Share {
    type Err = NoShare;

    fn from_str(text: &str) -> Result<Self, NoShare> {
        let (number, percent) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), true),
            None => (text, false),
        };
        let value: f64 = number.parse().map_err(|_| NoShare::Word(text.to_owned()))?;
        match percent {
            _ if !value.is_finite() || value < 0.0 => Err(NoShare::Negative(text.to_owned())),
            true => Ok(Self(value / 100.0)),
            false if value > 1.0 => {
                let percent = (value * 1e8).round() / 1e6;
                Err(NoShare::TooMuch(text.to_owned(), percent.to_string()))
            }
            false => Ok(Self(value)),
        }
    }
}

/// Lives of simulated SSDs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lives {
    /// File stem; not part of the TOML.
    #[serde(skip)]
    pub name: String,
    /// One line that says what it is for.
    pub title: String,
    /// SSDs of `cryptmark drive list`, or files that end in .toml.
    pub devices: Vec<String>,
    /// The ways to make volumes and to handle discards. In addition, each drive lives without
    /// encryption.
    #[serde(default = "all_policies")]
    pub policies: Vec<TrimPolicy>,
    /// Pages beyond those that the host can write; each drive's own when absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_provisioning: Vec<Share>,
    /// Which block is cleaned next: `greedy`, `fifo`, `random`, `d-choices:N`, `cost-benefit`.
    #[serde(default = "greedy")]
    pub gc: Vec<String>,
    /// Shares of the file system that hold files.
    #[serde(default = "four_fifths")]
    pub fills: Vec<Share>,
    /// How many lives of each kind, from as many seeds.
    #[serde(default = "enough")]
    pub seeds: u32,
    /// Bytes that the host writes a day.
    #[serde(default = "twenty_gigabytes")]
    pub daily: ByteSize,
    /// Share of the writes that goes to pages within files.
    #[serde(default = "a_fifth")]
    pub overwrites: Share,
    /// Share of the drive that the policy `unpartitioned` leaves.
    #[serde(default = "a_tenth")]
    pub unpartitioned: Share,
    /// Years that are looked at.
    #[serde(default = "three")]
    pub years: f64,
    /// dm-crypt notation.
    pub ciphers: Vec<String>,
    /// Key size in bits as cryptsetup counts; the cipher's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_size: Option<Sizes>,
    /// Encryption sector size, bytes; several are looked at side by side.
    #[serde(default = "sectors_of_4096")]
    pub sector_size: Sizes,
    /// Cores that encrypt, each a request.
    #[serde(default = "one")]
    pub cores: u32,
    /// Rates of the ciphers on such a core, by name or notation: all of them, so
    /// that every host finds the same.
    pub cpu: BTreeMap<String, CipherRate>,
    /// The way in which the encrypting driver works.
    #[serde(default)]
    pub driver: Driver,
    /// The only places that are visited, by number; all of them when absent. Shards set it,
    /// specifications do not.
    #[serde(skip)]
    pub only: Option<Vec<u32>>,
    /// The workloads that use the files of the aged drive.
    #[serde(default = "random_access", rename = "workload")]
    pub workloads: Vec<Workload>,
}

fn all_policies() -> Vec<TrimPolicy> {
    use TrimPolicy::{Block, Filled, Pass, Unpartitioned};
    vec![Pass, Block, Filled, Unpartitioned]
}

fn greedy() -> Vec<String> {
    vec!["greedy".to_owned()]
}

fn four_fifths() -> Vec<Share> {
    vec![Share(0.8)]
}

fn a_fifth() -> Share {
    Share(0.2)
}

fn a_tenth() -> Share {
    Share(0.1)
}

/// The fewest of which an interval says anything.
fn enough() -> u32 {
    3
}

fn three() -> f64 {
    3.0
}

fn twenty_gigabytes() -> ByteSize {
    ByteSize::gb(20)
}

/// The workloads that reveal most about a drive that is busy with itself.
fn random_access() -> Vec<Workload> {
    let of = |name: &str, op, bytes| Workload {
        bytes: Some(bytes),
        ..Workload::new(name, Pattern::Random, op, ByteSize::kib(4))
    };
    vec![
        of("rand-4k-read", Mix::Read, ByteSize::mib(8)),
        of("rand-4k-write", Mix::Write, ByteSize::mib(256)),
    ]
}

/// One drive in one use.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The drive.
    pub device: String,
    /// How it is used.
    pub by: Use,
    /// Which of the seeds: the first, counted from 0, and how many.
    pub seeds: (u32, u32),
}

/// What does not apply to lives: their plan says everything but the seed.
fn refuses(setting: Setting) -> Option<&'static str> {
    (setting != Setting::Seed).then_some("lives of simulated drives")
}

impl Lives {
    /// Reads a plan from TOML and checks every value.
    ///
    /// # Errors
    /// [`LabError`] with line and suggestion, or the error of an impossible value.
    pub fn parse(name: &str, text: &str) -> Result<Self, LabError> {
        let mut lives: Self = from_toml(name, text, refuses)?;
        lives.name = name.to_owned();
        for workload in &mut lives.workloads {
            // In virtual time all threads are one, so threads do not get a core each.
            workload.threads = workload.threads.max(1);
        }
        lives.validate()?;
        Ok(lives)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// Whatever value is impossible.
    pub fn validate(&self) -> Result<(), LabError> {
        for (what, is_empty) in [
            ("devices", self.devices.is_empty()),
            ("policies", self.policies.is_empty()),
            ("gc", self.gc.is_empty()),
            ("fills", self.fills.is_empty()),
            ("ciphers", self.ciphers.is_empty()),
        ] {
            if is_empty {
                return Err(empty(what));
            }
        }
        within("seeds", u64::from(self.seeds), 1, 1_000_000)?;
        within("places", self.place_count(), 1, PLACES)?;
        if self.policies.contains(&TrimPolicy::Plain) {
            return Err(LabError::invalid(
                "plain isn't a policy: each drive is also simulated without encryption",
                "Omit it. The policies are pass, block, filled and unpartitioned.",
            ));
        }
        check_workloads(&self.workloads)?;
        check_on_device(&self.workloads, Some(&self.sector_size), EXTENT)?;
        within("cores", u64::from(self.cores), 1, 1024)?;
        if self.driver == Driver::InTurn && self.cores > 1 {
            return Err(driver_cores(self.driver, self.cores));
        }
        let encryptions = self.encryptions()?;
        for encryption in &encryptions {
            if simulated::rate_of(encryption, &self.cpu).is_none() {
                return Err(no_rate(&simulated::name_of(encryption), "specification"));
            }
        }
        let rates = encryptions.iter();
        let used: Vec<&str> = rates
            .filter_map(|encryption| Some(simulated::rate_of(encryption, &self.cpu)?.0))
            .collect();
        if let Some(unused) = self.cpu.keys().find(|name| !used.contains(&name.as_str())) {
            return Err(unused_rate(unused));
        }
        self.check_lives()
    }

    /// Whether every drive can live in every use. An axis at a time, since there may be a million.
    fn check_lives(&self) -> Result<(), LabError> {
        let firsts = self.place(0);
        let mut places = vec![firsts.clone()];
        for device in &self.devices {
            for spare in self.spares() {
                let mut place = firsts.clone();
                place.device.clone_from(device);
                place.by.over_provisioning = spare;
                places.push(place);
            }
        }
        for gc in &self.gc {
            let mut place = firsts.clone();
            place.by.gc.clone_from(gc);
            places.push(place);
        }
        for fill in &self.fills {
            let mut place = firsts.clone();
            place.by.fill = fill.0;
            places.push(place);
        }
        for place in places {
            let living = Living::new(&place.device, place.by)?;
            for policy in &self.policies {
                living.check(*policy)?;
            }
        }
        Ok(())
    }

    /// Every cipher with its key sizes and each of its sector sizes.
    ///
    /// # Errors
    /// [`LabError`], also if a cipher has none of several key sizes.
    pub fn encryptions(&self) -> Result<Vec<Encryption>, LabError> {
        let (key, sectors) = (self.key_size.as_ref(), &self.sector_size);
        encryptions(&self.ciphers, key, sectors, None)
    }

    /// How a session measures what has lived.
    pub fn schedule(&self) -> Schedule {
        Schedule {
            name: self.name.clone(),
            repetitions: 1,
            workloads: self.workloads.clone(),
            is_simulated: true,
            ..Schedule::default()
        }
    }

    pub(super) fn refuses(&self, setting: Setting) -> Option<&'static str> {
        refuses(setting)
    }

    pub(super) fn describe(&self) -> String {
        let mut text = format!("plan {}: {}\n", self.name, self.title);
        let count = |count: usize, one: &str, several: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {several}"),
        };
        let spares = self.over_provisioning.len().max(1);
        let _ = writeln!(
            text,
            "{} × {} × {} × {}, {}: {}",
            count(self.devices.len(), "drive", "drives"),
            count(spares, "over-provisioning", "over-provisionings"),
            count(self.gc.len(), "way to clean", "ways to clean"),
            count(self.fills.len(), "fill", "fills"),
            count(self.seeds as usize, "seed", "seeds"),
            match self.only {
                Some(_) => format!("{} of {} places", self.numbers().len(), self.places()),
                None => count(self.places() as usize, "place", "places"),
            }
        );
        let _ = writeln!(
            text,
            "each unencrypted, and under {} with {}: {} lives",
            count(self.policies.len(), "TRIM policy", "TRIM policies"),
            count(self.ciphers.len(), "cipher", "ciphers"),
            self.lives()
        );
        text.push_str("on the aged drive:\n");
        words::workloads(&self.workloads, &mut text);
        text
    }

    fn spares(&self) -> Vec<Option<f64>> {
        match self.over_provisioning.is_empty() {
            true => vec![None],
            false => self.over_provisioning.iter().map(|s| Some(s.0)).collect(),
        }
    }

    fn batches(&self) -> u64 {
        u64::from(self.seeds.div_ceil(TOGETHER))
    }

    fn place_count(&self) -> u64 {
        [
            self.devices.len() as u64,
            self.over_provisioning.len().max(1) as u64,
            self.gc.len() as u64,
            self.fills.len() as u64,
            self.batches(),
        ]
        .iter()
        .fold(1, |all: u64, axis| all.saturating_mul(*axis))
    }

    /// How many places there are, a million at most.
    pub fn places(&self) -> u32 {
        self.place_count() as u32
    }

    /// The numbers of the places that are looked at.
    pub fn numbers(&self) -> Vec<u32> {
        match &self.only {
            Some(numbers) => numbers.clone(),
            None => (0..self.places()).collect(),
        }
    }

    /// A place by its number, from 0; seeds go round first, drives last.
    pub fn place(&self, number: u32) -> Place {
        let spares = self.spares();
        let mut rest = number;
        let mut next = |axis: usize| {
            let at = rest as usize % axis.max(1);
            rest /= axis.max(1) as u32;
            at
        };
        let batch = next(self.batches() as usize) as u32;
        let fill = next(self.fills.len());
        let gc = next(self.gc.len());
        let spare = next(spares.len());
        let device = next(self.devices.len());
        let first = batch * TOGETHER;
        Place {
            device: self.devices[device].clone(),
            by: Use {
                over_provisioning: spares[spare],
                gc: self.gc[gc].clone(),
                fill: self.fills[fill].0,
                overwrites: self.overwrites.0,
                daily: self.daily.as_u64(),
                years: self.years,
                unpartitioned: self.unpartitioned.0,
            },
            seeds: (first, TOGETHER.min(self.seeds - first)),
        }
    }

    /// Lives that differ, of one place from one seed: a drive that is not encrypted lives like
    /// one that is and hears of discards.
    pub fn setups(&self) -> Vec<TrimPolicy> {
        let mut setups = vec![TrimPolicy::Pass];
        for policy in &self.policies {
            if !setups.contains(policy) {
                setups.push(*policy);
            }
        }
        setups
    }

    /// How many lives that is.
    pub fn lives(&self) -> u64 {
        let seeds = |number: u32| u64::from(self.place(number).seeds.1);
        let each = self.setups().len() as u64;
        self.numbers().into_iter().map(seeds).sum::<u64>() * each
    }
}

/// The system that is a simulated drive.
pub(crate) fn of_drive(name: &str) -> SystemId {
    SystemId::Simulated(format!("{DRIVE}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SPEC: &str = r#"
title = "two drives"
devices = ["mlc-128g", "tlc-1t"]
policies = ["pass", "block"]
over_provisioning = ["7%", 0.28]
gc = ["greedy", "d-choices:10"]
fills = ["50%", "80%", "95%"]
seeds = 250
ciphers = ["aes-xts-plain64"]
cpu = { aes = "1500MB/s" }
"#;

    #[test]
    fn places_are_every_combination() {
        let lives = Lives::parse("x", SPEC).unwrap();
        assert_eq!(lives.places(), 2 * 2 * 2 * 3 * 3);
        let all: BTreeSet<String> = lives
            .numbers()
            .into_iter()
            .map(|number| format!("{:?}", lives.place(number)))
            .collect();
        assert_eq!(all.len(), lives.places() as usize);
        let (first, second) = (lives.place(0), lives.place(1));
        assert_eq!((first.device.as_str(), first.seeds), ("mlc-128g", (0, 100)));
        assert_eq!(second.seeds, (100, 100));
        assert_eq!(lives.place(2).seeds, (200, 50));
        assert_eq!(lives.place(71).device, "tlc-1t");
        assert_eq!(lives.place(71).by.over_provisioning, Some(0.28));
        // Passed and blocked; what is not encrypted lives like passed.
        assert_eq!(lives.lives(), 24 * 250 * 2);
    }

    #[test]
    fn what_is_left_out_has_a_meaning() {
        let short: String = SPEC
            .lines()
            .filter(|line| {
                ["title", "devices", "ciphers", "cpu"]
                    .iter()
                    .any(|key| line.starts_with(key))
            })
            .fold(String::new(), |text, line| text + line + "\n");
        let lives = Lives::parse("x", &short).unwrap();
        assert_eq!(lives.places(), 2);
        assert_eq!((lives.setups().len(), lives.seeds), (4, 3));
        assert_eq!(lives.place(0).by.over_provisioning, None);
        assert_eq!(lives.workloads.len(), 2);
    }

    #[test]
    fn impossible_plans_are_refused() {
        let cases = [
            ("title = \"two drives\"", ""),
            ("[\"mlc-128g\", \"tlc-1t\"]", "[]"),
            ("\"tlc-1t\"", "\"hdd-wd\""),
            ("\"tlc-1t\"", "\"flash-key-128m\""),
            ("\"tlc-1t\"", "\"nothing\""),
            ("[\"pass\", \"block\"]", "[]"),
            ("[\"pass\", \"block\"]", "[\"plain\"]"),
            ("[\"pass\", \"block\"]", "[\"ignore\"]"),
            ("0.28", "0"),
            ("0.28", "\"much\""),
            ("0.28", "28"),
            ("d-choices:10", "fairest"),
            ("95%", "100%"),
            ("50%", "0%"),
            ("seeds = 250", "seeds = 0"),
            ("seeds = 250", "seeds = 5000000"),
            ("seeds = 250", "seed = 2"),
            ("seeds = 250", "years = 0.0"),
            ("seeds = 250", "daily = \"0 B\""),
            ("aes-xts-plain64", "serpent-xts-plain64"),
            ("aes-xts-plain64", "ase-xts-plain64"),
            ("1500MB/s", "fast"),
        ];
        for (from, to) in cases {
            let text = SPEC.replacen(from, to, 1);
            assert_ne!(text, SPEC, "{from}");
            let error = Lives::parse("x", &text).expect_err(to);
            assert!(!error.to_string().is_empty() && !error.remedy().is_empty());
        }
        let bare = "[[workload]]\nname = \"e\"\npattern = \"sequential\"\nop = \"encrypt\"\nblock_size = \"4 KiB\"\nseconds = 0.1\n";
        let error = Lives::parse("x", &format!("{SPEC}{bare}")).unwrap_err();
        assert!(error.to_string().contains("of another tier"), "{error}");
    }

    #[test]
    fn shares_are_read() {
        let read = |text: &str| text.parse::<Share>().map(|share| share.0);
        assert_eq!(read("11.1%"), Ok(0.111));
        assert_eq!(read("0.111"), Ok(0.111));
        assert_eq!(read("7 %"), Ok(0.07));
        for wrong in ["", "x", "-1%", "NaN", "7", "inf"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
