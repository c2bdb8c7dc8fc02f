//! `cryptmark run`: measure.

mod destination;
mod dry;
mod energy;
mod file_systems;
mod kdf;
mod shard;

pub use destination::{Destination, Output, check_writable, first_failure, rescue};

use super::pause;
use super::progress::Progress;
use super::volume::disk::{Disk, check_settled};
use super::{Failure, VERSION, print, stop_on_signal};
use bytesize::ByteSize;
use cipher::CipherError;
use clap::{Args, ValueEnum};
use dry::describe;
use lab::energy::Choice;
use lab::plan::{Plan, Sizes, Until};
use lab::record::Tier;
use lab::session::unlock::PLAN;
use lab::session::{Session, SessionError};
use lab::shard::{ShardError, ShardNumber};
use lab::stats::STEADY_ROUNDS;
use lab::target::simulated::{CipherRate, Driver, NoRate, whole_size};
use lab::target::{Backend, Place, Storage, System, notation};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;

/// Options of `cryptmark run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// A name from `cryptmark plans`, or a TOML file
    #[arg(default_value = "quick")]
    plan: String,
    /// The storage to measure: a directory, a file, a block device, or nbd+unix:///EXPORT?socket=PATH, nbd://HOST:PORT/EXPORT
    #[arg(long, default_value = ".", value_name = "PATH")]
    at: PathBuf,
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
    systems: Vec<System>,
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
    /// What to time: a cipher in memory, a block device, or file systems
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

/// The time limit and the precision of a plan measured in slices that does not set its own.
const UNTIL: Until = Until {
    seconds: 60.0,
    precision: 2.0,
};

/// The time after which a first look is done in any case, seconds, and the largest extent that it
/// fills.
const QUICK_SECONDS: f64 = 8.0;
const QUICK_SIZE: ByteSize = ByteSize::mb(256);

/// The size of a first look at a steady state, which writes all of it more than once.
const QUICK_STEADY_SIZE: ByteSize = ByteSize::mib(256);

/// The target of calibrated key derivations in a first look, ms.
const QUICK_ITER_TIME: u32 = 200;

/// The tiers that can be measured so far.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TierName {
    Cipher,
    Block,
    Fs,
}

/// Runs the command.
pub fn run(options: &RunOptions, store: Option<&str>) -> Result<(), Failure> {
    if options.plan != PLAN {
        energy::check(options)?;
    }
    if let Some(number) = &options.shard {
        return shard::run(options, number, store);
    }
    if options.plan == PLAN {
        return kdf::run(options, store);
    }
    shard::refuse_whole(options)?;
    if let Some(plan) = file_systems::plan(options)? {
        return file_systems::run(options, &plan, store);
    }
    let plan = options.plan()?;
    if options.dry_run {
        return print(&describe(&plan, &options.at));
    }
    pause::begin();
    if options.at.is_file() {
        check_settled(&options.at)?;
    }
    let destination = Destination::open(&options.output, store)?;
    let seed = options.seed.unwrap_or_else(seed_of_now);
    measure(options, &plan, seed, destination)
}

/// Measures a plan of ciphers or devices.
fn measure(
    options: &RunOptions,
    plan: &Plan,
    seed: u64,
    destination: Destination<'_>,
) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let progress = Progress::new(options.output.no_progress, plan.extent_bytes());
    let mut filling = progress.filling(&stop);
    let _claim = Disk::claim_to_measure(&options.at)?;
    let storage = match plan.tier {
        Tier::Cipher => Storage::memory(plan.extent_bytes(), seed),
        _ if plan.is_simulated() => Ok(Storage::none()),
        _ => Storage::prepare(
            Place {
                at: &options.at,
                size: plan.extent_bytes(),
                seed,
                overwrite: options.yes,
                engine: None,
            },
            &mut filling,
        ),
    }
    .inspect_err(|_| progress.finish())?;

    if plan.systems.iter().any(|system| system.drive().is_some()) {
        progress.doing("filling the simulated drive");
    } else if plan.cores > 1 {
        progress.looking_for("finding the requests that several cores are faster with");
    }
    let backend = options.backend;
    let session = Session::open_watched(plan, &storage, backend, seed, run_id(), &mut filling)
        .inspect_err(|_| progress.finish())?
        .built_as(VERSION);
    let metering = match plan.is_simulated() {
        true => None,
        false => {
            energy::metering(options, false, &stop, &progress).inspect_err(|_| progress.finish())?
        }
    };
    let session = session.metered_by(metering);
    destination.begin(session.header())?;
    destination.receive(&progress, |keeper| session.measure(&stop, keeper))
}

impl RunOptions {
    /// When it is done, if the command line says so; `planned` is what the plan says.
    fn until(&self, planned: Option<Until>) -> Option<Until> {
        self.time.or(self.precision)?;
        let until = planned.unwrap_or(UNTIL);
        Some(Until {
            seconds: self.time.unwrap_or(until.seconds),
            precision: self.precision.unwrap_or(until.precision),
        })
    }

    /// The plan with what the command line changes in it.
    fn plan(&self) -> Result<Plan, Failure> {
        let mut plan = Plan::load(&self.plan)?;
        if let Some(size) = self.size {
            plan.size = size;
        }
        if self.quick {
            plan.repetitions = match plan.steady {
                Some(_) => STEADY_ROUNDS as u32,
                None => 3,
            };
            if plan.steady.is_some() && self.size.is_none() {
                plan.size = plan.size.min(QUICK_STEADY_SIZE);
            }
            if let Some(until) = &mut plan.until {
                until.seconds = until.seconds.min(QUICK_SECONDS);
                if self.size.is_none() {
                    plan.size = plan.size.min(QUICK_SIZE);
                }
            }
            plan.iter_time = plan.iter_time.min(QUICK_ITER_TIME);
            for workload in &mut plan.workloads {
                workload.seconds = workload.seconds.map(|seconds| seconds.min(0.1));
                let least = workload.block_bytes();
                let short = |bytes: ByteSize| bytes.min(ByteSize::mb(64)).max(ByteSize(least));
                workload.bytes = workload.bytes.map(short);
            }
        }
        if let Some(repeat) = self.repeat {
            plan.repetitions = repeat;
            plan.slow_repetitions = None;
            plan.until = None;
        }
        if !self.systems.is_empty() {
            plan.systems.clone_from(&self.systems);
        }
        if !self.ciphers.is_empty() {
            plan.ciphers = self.ciphers.iter().map(|given| notation(given)).collect();
            // The plan's key size belongs to the plan's ciphers.
            plan.key_size = None;
        }
        if let Some(bits) = self.key_size {
            match self.ciphers.is_empty() && plan.is_bare() {
                true => plan.keep_key_size(bits),
                false => plan.key_size = Some(Sizes::One(bits)),
            }
        }
        if !self.threads.is_empty() {
            plan.with_threads(&self.threads);
        }
        if let Some(cores) = self.cores {
            plan.cores = cores;
            plan.all_cores = false;
        }
        let simulated = plan.systems.iter().any(|system| system.drive().is_some());
        if simulated {
            // Time that is simulated need not be spared.
            plan.until = None;
        }
        if let Some(until) = self.until(plan.until) {
            if simulated || plan.is_bare() || plan.steady.is_some() {
                return Err(Failure::new(
                    2,
                    format!("--time and --precision do not apply to {}", plan.name),
                    "Give --repeat instead. They apply to plans that measure real storage.",
                ));
            }
            plan.until = Some(until);
        }
        plan.cpu.extend(self.cpu.iter().cloned());
        if let Some(driver) = self.driver {
            plan.driver = driver;
        }
        if !self.sector_sizes.is_empty() {
            plan.sector_size = Sizes::Several(self.sector_sizes.clone());
        }
        match self.tier {
            Some(TierName::Cipher) => plan.tier = Tier::Cipher,
            Some(TierName::Block) => plan.tier = Tier::Block,
            Some(TierName::Fs) | None => {}
        }
        if plan.steady.is_some() && self.size.is_none() {
            for drive in plan.systems.iter().filter_map(System::drive) {
                plan.size = whole_size(drive, plan.size).map_err(SessionError::from)?;
            }
        }
        plan.validate()?;
        Ok(plan)
    }
}

/// A backend; who names none that there is hears which there are.
pub fn backend(text: &str) -> Result<Backend, String> {
    let known = |error: CipherError| format!("{error}. {}", error.remedy());
    text.parse().map_err(known)
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

/// Sortable by start time, to 15 µs, with a tail that tells runs apart that thousands of
/// hosts start in the same second.
pub(super) fn run_id() -> String {
    let now = jiff::Timestamp::now();
    let mut tail = RandomState::new().build_hasher();
    tail.write_u64(seed_of_now());
    // In units of which a second has 65,536.
    let within = (u64::from(now.subsec_nanosecond().unsigned_abs()) << 16) / 1_000_000_000;
    format!(
        "{}-{within:04x}{:06x}",
        now.strftime("%Y%m%d-%H%M%S"),
        tail.finish() >> 40
    )
}

pub(super) fn seed_of_now() -> u64 {
    jiff::Timestamp::now().as_nanosecond() as u64
}

#[cfg(test)]
mod tests {
    /// `latest` is the last of all by its name.
    #[test]
    fn runs_are_sorted_as_they_began() {
        let mut ids = Vec::new();
        for _ in 0..200 {
            ids.push(super::run_id());
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
        assert!(ids.iter().all(|id| id.len() == 26), "{ids:?}");
    }
}
