//! `cryptmark run`: measure.

mod destination;
mod energy;
#[cfg(target_os = "linux")]
mod file_systems;
#[cfg(not(target_os = "linux"))]
#[path = "run/elsewhere.rs"]
mod file_systems;
mod shard;

pub use destination::{Destination, Output, first_failure, rescue};

use super::drive::sweep;
use super::pause;
use super::progress::Progress;
use super::volume::disk::{Disk, Names};
use super::{Failure, VERSION, open_store_of_runs, print, stop_on_signal};
use block::TestFile;
use bytesize::ByteSize;
use cipher::CipherError;
use clap::{Args, ValueEnum};
use lab::energy::Choice;
use lab::experiment::{Changes, Experiment, Setting};
use lab::record::Tier;
use lab::run::{Filling, Step, prepare, seed_of_now};
use lab::shard::{ShardError, ShardNumber};
use lab::system::simulated::{CipherRate, Driver, NoRate};
use lab::system::{Backend, Place, Storage, SystemId, notation};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Options of `cryptmark run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// A name from `cryptmark plans`, or a TOML file [default: quick]
    plan: Option<String>,
    /// The storage to measure: a directory, a file, a block device, or nbd+unix:///EXPORT?socket=PATH, nbd://HOST:PORT/EXPORT [default: .]
    #[arg(long, value_name = "PATH")]
    at: Option<PathBuf>,
    /// Size of the test file, e.g. 500MB or 4GiB
    #[arg(long)]
    size: Option<ByteSize>,
    /// Repeat every cell this many times, whatever the results are
    #[arg(long, value_name = "N", conflicts_with_all = ["time", "precision"])]
    repeat: Option<u32>,
    /// Measure for at most this many seconds
    #[arg(long, value_name = "SECONDS")]
    time: Option<f64>,
    /// Stop when every cost is certain and known to within this many percentage points
    #[arg(long, value_name = "POINTS")]
    precision: Option<f64>,
    /// Take a first look: eight seconds, or three repetitions of at most 0.1 s or 64 MB
    #[arg(long)]
    quick: bool,
    /// Measure this system: builtin, dm-crypt, path:DIR, drive:NAME or another one that `cryptmark doctor` lists; can be repeated
    #[arg(long = "system", value_name = "S")]
    systems: Vec<SystemId>,
    /// Measure this cipher, by its name (in XTS) or in dm-crypt notation; can be repeated
    #[arg(long = "cipher", value_name = "C")]
    ciphers: Vec<String>,
    /// Key size in bits as in cryptsetup, e.g. 512 for AES-256 in XTS
    #[arg(long, value_name = "BITS")]
    key_size: Option<u32>,
    /// Threads that send requests, in every workload; can be repeated
    #[arg(long, value_name = "N")]
    threads: Vec<u32>,
    /// Cores used to encrypt one large request, if that measures faster. For simulated drives: cores that encrypt
    #[arg(long, value_name = "N")]
    cores: Option<u32>,
    /// For simulated drives: cipher throughput on the target CPU, e.g. aes=145MB/s [default: measured here]
    #[arg(long, value_name = "CIPHER=RATE", value_delimiter = ',', value_parser = rate)]
    cpu: Vec<(String, CipherRate)>,
    /// Driver model for simulated drives: queue (encrypts while the drive works), in-turn (the drive waits) or truecrypt (its Windows threads) [default: queue]
    #[arg(long, value_name = "DRIVER")]
    driver: Option<Driver>,
    /// Encryption sector size in bytes; can be repeated
    #[arg(long = "sector-size", value_name = "BYTES")]
    sector_sizes: Vec<u32>,
    /// Force a backend of the built-in engine; `cryptmark doctor` lists those of each cipher
    #[arg(long, value_parser = backend)]
    backend: Option<Backend>,
    /// What to time: a cipher in memory (of a plan of block devices: these in memory), a block device, or file systems
    #[arg(long)]
    tier: Option<TierName>,
    /// Time this shell command (sh -c) in the mounted directory; can be repeated
    #[arg(long = "op", value_name = "COMMAND")]
    commands: Vec<String>,
    /// How many jobs do each file system operation at the same time
    #[arg(long, value_name = "N")]
    jobs: Option<u32>,
    /// Energy sensor to read, by its name in `cryptmark doctor`, or none [default: the processor's, if it can be read]
    #[arg(long, value_name = "SENSOR")]
    energy: Option<Choice>,
    /// Seed of offsets and data; the same seed visits the same blocks
    #[arg(long)]
    seed: Option<u64>,
    /// Measure one shard of a plan, or of an experiment from `cryptmark fleet plan`, e.g. 3/40
    #[arg(long, value_name = "I/N", conflicts_with_all = [
        "size", "repeat", "time", "precision", "quick", "systems", "ciphers", "key_size", "threads", "cores", "cpu",
        "driver", "sector_sizes", "tier", "commands", "jobs",
    ])]
    shard: Option<String>,
    #[command(flatten)]
    output: Output,
    /// Print what would be measured, but measure nothing
    #[arg(long)]
    dry_run: bool,
    /// Overwrite the contents of the file or device that --at names
    #[arg(long)]
    yes: bool,
}

/// The tiers that can be measured so far.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TierName {
    Cipher,
    Block,
    Fs,
}

/// Runs the command.
pub fn run(options: &RunOptions, store: Option<&str>) -> Result<(), Failure> {
    options.output.check_distinct(options.at())?;
    if let Some(number) = &options.shard {
        return shard::run(options, number, store);
    }
    shard::refuse_whole(options.plan())?;
    let experiment = options.experiment()?;
    energy::check(options)?;
    if options.dry_run {
        return options.try_dry(&experiment, store);
    }
    options.check(&experiment)?;
    let destination = Destination::open(&options.output, store)?;
    let seed = options.seed.unwrap_or_else(seed_of_now);
    measure(options, &experiment, seed, destination)
}

/// Measures an experiment.
fn measure(
    options: &RunOptions,
    experiment: &Experiment,
    seed: u64,
    destination: Destination<'_>,
) -> Result<(), Failure> {
    let extent = match experiment {
        Experiment::FileSystems(plan) => {
            return file_systems::run(options, plan.clone(), seed, destination);
        }
        Experiment::Lives(lives) => {
            return sweep::measure(lives, seed, &options.output, destination);
        }
        Experiment::Devices(devices) => devices.extent_bytes(),
        Experiment::Ciphers(_) | Experiment::Derivations(_) => 0,
    };
    let stop = stop_on_signal()?;
    let progress = Progress::new(options.output.no_progress, extent);
    let _claim = match experiment.uses_storage() {
        true => Some(Disk::claim_to_measure(options.at())?),
        false => None,
    };
    let place = |filling: &mut Filling<'_>| {
        let place = Place {
            at: options.at(),
            size: extent,
            seed,
            overwrite: options.yes,
            engine: None,
        };
        Storage::prepare(place, filling)
    };
    let mut told = |step: Step<'_>| progress.preparing(step, &stop);
    let (session, _storage) =
        prepare(experiment, seed, place, &mut told).inspect_err(|_| progress.finish())?;
    let metering = match experiment.refuses(Setting::Energy) {
        Some(_) => None,
        None => {
            energy::metering(options, false, &stop, &progress).inspect_err(|_| progress.finish())?
        }
    };
    let session = session.built_as(VERSION).metered_by(metering);
    destination.begin(session.header())?;
    destination.receive(&progress, |keeper| session.measure(&stop, keeper))
}

impl RunOptions {
    /// The plan's name or file: of a tier, or for commands, the one that is usual.
    fn plan(&self) -> &str {
        match (&self.plan, self.tier) {
            (Some(plan), _) => plan,
            (None, None) if self.commands.is_empty() => "quick",
            (None, None | Some(TierName::Fs)) => "file-systems",
            (None, Some(TierName::Block)) => "quick",
            (None, Some(TierName::Cipher)) => "ciphers",
        }
    }

    /// The storage.
    fn at(&self) -> &Path {
        self.at.as_deref().unwrap_or(Path::new("."))
    }

    /// The experiment as the command line has it.
    fn experiment(&self) -> Result<Experiment, Failure> {
        let experiment = Experiment::load(self.plan())?;
        check_rates(&self.cpu)?;
        let mut changes = self.changes();
        match (self.tier, experiment.tier()) {
            (None, _)
            | (Some(TierName::Cipher), Tier::Cipher)
            | (Some(TierName::Block), Tier::Block)
            | (Some(TierName::Fs), Tier::Fs) => {}
            (Some(TierName::Cipher), Tier::Block) => changes.in_memory = true,
            _ => {
                return Err(Failure::new(
                    2,
                    format!("the plan {} is of another tier", experiment.name()),
                    "Omit --tier, or choose another plan: `cryptmark plans`.",
                ));
            }
        }
        Ok(experiment.changed(&changes)?)
    }

    fn changes(&self) -> Changes {
        Changes {
            size: self.size,
            first_look: self.quick,
            repetitions: self.repeat,
            trial_seconds: None,
            in_memory: false,
            time_limit: self.time,
            precision: self.precision,
            systems: self.systems.clone(),
            ciphers: self.ciphers.clone(),
            key_size: self.key_size,
            sector_sizes: self.sector_sizes.clone(),
            threads: self.threads.clone(),
            cores: self.cores,
            cpu: self.cpu.clone(),
            driver: self.driver,
            backend: self.backend,
            commands: self.commands.clone(),
            jobs: self.jobs,
            energy: self.energy.clone(),
            seed: self.seed,
            at: self.at.clone(),
            overwrite: self.yes,
        }
    }

    /// Prints the plan, unless the run would be refused for its outputs, its baseline or its size.
    fn try_dry(&self, experiment: &Experiment, store: Option<&str>) -> Result<(), Failure> {
        self.output.check()?;
        if let Some(baseline) = &self.output.baseline {
            open_store_of_runs(store)?.load(baseline)?;
        }
        if let Experiment::Devices(devices) = experiment
            && experiment.uses_storage()
            && self.at().is_dir()
        {
            TestFile::fits(self.at(), devices.extent_bytes())?;
        }
        print(&self.describe(experiment))
    }

    /// The output of `--dry-run`.
    fn describe(&self, experiment: &Experiment) -> String {
        let mut text = experiment.describe(self.at());
        if let Some(choice) = &self.energy {
            let _ = writeln!(text, "energy sensor: {choice}");
        }
        if let Some(seed) = self.seed {
            let _ = writeln!(text, "seed {seed}");
        }
        text
    }

    /// Refuses what would fail later, and begins to hear of pauses.
    fn check(&self, experiment: &Experiment) -> Result<(), Failure> {
        // Neither agents nor lives wait between two visits.
        if !matches!(
            experiment,
            Experiment::FileSystems(_) | Experiment::Lives(_)
        ) {
            pause::begin();
        }
        match experiment.uses_storage() && self.at().is_file() {
            true => Names::default().check_settled(self.at()),
            false => Ok(()),
        }
    }
}

/// A backend; who names none that there is hears which there are.
pub fn backend(text: &str) -> Result<Backend, String> {
    let known = |error: CipherError| format!("{error}. {}", error.remedy());
    text.parse().map_err(known)
}

/// Refuses two rates of one cipher.
pub fn check_rates(given: &[(String, CipherRate)]) -> Result<(), Failure> {
    let is_twice = |(at, (name, _)): &(usize, &(String, _))| {
        let name = notation(name);
        let mut earlier = given[..*at].iter();
        earlier.any(|(other, _)| notation(other) == name)
    };
    match given.iter().enumerate().find(is_twice) {
        None => Ok(()),
        Some((_, (name, _))) => Err(Failure::new(
            2,
            format!("--cpu gives two rates of {name}"),
            "Give one.",
        )),
    }
}

/// A cipher and its rate.
pub fn rate(text: &str) -> Result<(String, CipherRate), String> {
    let (cipher, rate) = text
        .split_once('=')
        .ok_or_else(|| format!("{text} isn't a rate; write aes=145MB/s"))?;
    match rate.parse() {
        Ok(rate) => Ok((cipher.to_owned(), rate)),
        Err(error) => Err(NoRate::to_string(&error)),
    }
}
