//! `cryptmark run`: measure.

mod file_systems;
mod kdf;
mod shard;

use super::progress::Progress;
use super::{Failure, VERSION, open_store_to_measure, print, stop_on_signal, style};
use bytesize::ByteSize;
use cipher::CipherError;
use clap::{Args, ValueEnum};
use lab::plan::{Plan, Sizes};
use lab::record::{Run, Shard, Tier};
use lab::session::unlock::PLAN;
use lab::session::{Observer, Session, SessionError, Visit};
use lab::shard::{ShardError, ShardNumber};
use lab::stats::STEADY_ROUNDS;
use lab::store::Store;
use lab::target::simulated::{CipherRate, Driver, NoRate};
use lab::target::{Backend, Place, Storage, System, VolumeFormat};
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Options of `cryptmark run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// A name from `cryptmark plans`, or a TOML file
    #[arg(default_value = "quick")]
    plan: String,
    /// The storage to measure: a directory, a file or a block device
    #[arg(long, default_value = ".", value_name = "PATH")]
    at: PathBuf,
    /// Size of the test file, as in 500MB or 4GiB
    #[arg(long)]
    size: Option<ByteSize>,
    /// Repetitions of every cell
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// Three repetitions of a tenth of a second or 64 MB at most: a first look, with wide intervals
    #[arg(long)]
    quick: bool,
    /// Measure this system: builtin, dm-crypt, path:DIR, drive:NAME and the others of `cryptmark doctor`; can be repeated
    #[arg(long = "system", value_name = "S")]
    systems: Vec<System>,
    /// Measure this cipher, in dm-crypt notation; can be repeated
    #[arg(long = "cipher", value_name = "C")]
    ciphers: Vec<String>,
    /// Key size in bits, counted as cryptsetup counts
    #[arg(long, value_name = "BITS")]
    key_size: Option<u32>,
    /// Driving threads of every workload; can be repeated
    #[arg(long, value_name = "N")]
    threads: Vec<u32>,
    /// Cores that share a large request of the built-in engine, where they are measured to be faster; before a simulated drive, cores that encrypt
    #[arg(long, value_name = "N")]
    cores: Option<u32>,
    /// Rate of a cipher on the processor before simulated drives, aes=145MB/s; measured here without it
    #[arg(long, value_name = "CIPHER=RATE", value_delimiter = ',', value_parser = rate)]
    cpu: Vec<(String, CipherRate)>,
    /// How a driver encrypts before simulated drives: queue (beside the drive), in-turn (the drive waits) or truecrypt (its threads for Windows) [default: queue]
    #[arg(long, value_name = "DRIVER")]
    driver: Option<Driver>,
    /// Encryption sector size in bytes; can be repeated
    #[arg(long = "sector-size", value_name = "BYTES")]
    sector_sizes: Vec<u32>,
    /// Force a backend of the built-in engine, as `cryptmark doctor` lists them of each cipher
    #[arg(long, value_parser = backend)]
    backend: Option<Backend>,
    /// What to time: the cipher over memory, the block device, or file systems
    #[arg(long)]
    tier: Option<TierName>,
    /// Time this command in the mounted directory, as sh -c runs it; can be repeated
    #[arg(long = "op", value_name = "COMMAND")]
    commands: Vec<String>,
    /// How many do each operation on a file system at the same time
    #[arg(long, value_name = "N")]
    jobs: Option<u32>,
    /// Seed of offsets and data; the same seed visits the same blocks
    #[arg(long)]
    seed: Option<u64>,
    /// Measure one shard of an experiment that `cryptmark fleet plan` has cut, or of a plan: 3/40
    #[arg(long, value_name = "I/N", conflicts_with_all = [
        "size", "repeat", "quick", "systems", "ciphers", "key_size", "threads", "cores", "cpu",
        "driver", "sector_sizes", "tier", "commands", "jobs",
    ])]
    shard: Option<String>,
    /// Write the record as JSON to a file, or to standard output with -
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write the report as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Compare with this baseline or stored run when done
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Exit with 5 if anything is slower than the baseline by more than this, judged on the interval
    #[arg(long, value_name = "PCT", requires = "baseline", value_parser = super::compare::percent)]
    fail_if_slower: Option<f64>,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
    /// Say what would be measured, and measure nothing
    #[arg(long)]
    dry_run: bool,
    /// Overwrite what the file or device named by --at holds
    #[arg(long)]
    yes: bool,
}

/// What a first look at a steady state writes whole, and more than once.
const QUICK_STEADY_SIZE: ByteSize = ByteSize::mib(256);

/// How long a shard that is done waits for the store to come back.
const PATIENCE: Duration = Duration::from_secs(20);

/// What calibrated key derivations of a first look take, ms.
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
    let destination = Destination::open(options, store)?;
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
    let progress = Progress::new(options.no_progress, plan.extent_bytes());
    let mut filling = |filled| {
        progress.filled(filled);
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
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
    }
    let backend = options.backend;
    let session = Session::open_watched(plan, &storage, backend, seed, run_id(), &mut filling)
        .inspect_err(|_| progress.finish())?
        .built_as(VERSION);
    destination.begin(session.header())?;
    destination.receive(&progress, |keeper| session.measure(&stop, keeper))
}

impl RunOptions {
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
            if plan.steady.is_some() {
                plan.size = plan.size.min(QUICK_STEADY_SIZE);
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
        }
        if !self.systems.is_empty() {
            plan.systems.clone_from(&self.systems);
        }
        if !self.ciphers.is_empty() {
            plan.ciphers.clone_from(&self.ciphers);
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
        plan.validate()?;
        Ok(plan)
    }

    /// Prints the answer and writes the files that were asked for.
    fn tell(&self, run: &Run, stored: bool) -> Result<(), Failure> {
        let json_to_stdout = self.json.as_deref() == Some(Path::new("-"));
        match &self.json {
            Some(_) if json_to_stdout => print(
                &::report::json::render(std::slice::from_ref(run)).map_err(Failure::unprintable)?,
            )?,
            Some(path) => super::report::write(path, std::slice::from_ref(run))?,
            None => {}
        }
        let table = ::report::text::table(run, &style());
        if json_to_stdout {
            eprint!("{table}");
        } else {
            print(&table)?;
        }
        if let Some(path) = &self.html {
            super::report::write(path, std::slice::from_ref(run))?;
        }
        let mut footer = match stored {
            true => format!("\nStored as {}", run.run),
            false => format!("\nThis is {}", run.run),
        };
        if let Some(path) = &self.html {
            let _ = write!(footer, "; the page with pictures is {}", path.display());
        } else {
            let _ = write!(
                footer,
                "; pictures: cryptmark report {} -o report.html",
                run.run
            );
        }
        footer.push('\n');
        if json_to_stdout {
            eprint!("{footer}");
            Ok(())
        } else {
            print(&footer)
        }
    }
}

/// Where a run goes: into the store, to whoever asked, beside a baseline.
struct Destination<'a> {
    options: &'a RunOptions,
    store: Store,
    baseline: Option<Run>,
    shard: Option<Shard>,
}

impl<'a> Destination<'a> {
    /// Refuses before anything is measured what could not be kept afterwards.
    fn open(options: &'a RunOptions, store: Option<&str>) -> Result<Self, Failure> {
        for path in [&options.html, &options.json].into_iter().flatten() {
            check_writable(path)?;
        }
        let store = open_store_to_measure(store)?;
        let baseline = match &options.baseline {
            Some(name) => Some(store.load(name)?),
            None => None,
        };
        Ok(Self {
            options,
            store,
            baseline,
            shard: None,
        })
    }

    /// Stores what is known before anything is measured.
    fn begin(&self, header: &Run) -> Result<(), Failure> {
        let header = Run {
            shard: self.shard.clone(),
            ..header.clone()
        };
        Ok(self.store.begin(&header)?)
    }

    /// Stores what `measure` tells and returns, prints it and compares it.
    fn receive(
        self,
        progress: &Progress,
        measure: impl FnOnce(&mut dyn Observer) -> (Run, Result<(), SessionError>),
    ) -> Result<(), Failure> {
        let mut keeper = Keeper {
            store: &self.store,
            progress,
        };
        let (mut run, outcome) = measure(&mut keeper);
        progress.finish();
        run.shard.clone_from(&self.shard);
        let kept = self.store.finish(&run);
        if let (Some(shard), true) = (&self.shard, kept.is_err() || outcome.is_err())
            && let Ok(Some(by)) = self.store.stored_shard(shard)
        {
            return shard::stored_already(shard, &by);
        }
        if !run.trials.is_empty() {
            self.options
                .tell(&run, kept.is_ok() && self.store.absence().is_none())?;
        }
        if let Err(error) = kept {
            return Err(rescue(&run, Failure::from(error)));
        }
        self.settle()?;
        match outcome {
            Err(error @ SessionError::Keep(_)) => return Err(rescue(&run, error.into())),
            outcome => outcome?,
        }
        match self.baseline {
            Some(baseline) => super::compare::against(&baseline, &run, self.options.fail_if_slower),
            None => Ok(()),
        }
    }
}

impl Destination<'_> {
    /// Says where the run waits, if the store is away. A shard waits for the store
    /// itself: who started it may take its folder away afterwards.
    fn settle(&self) -> Result<(), Failure> {
        let Some(reason) = self.store.absence() else {
            return Ok(());
        };
        if self.shard.is_some() {
            let handed = self.store.hand_over(Some(PATIENCE))?;
            eprint!("{}", super::told(&handed));
            return Ok(());
        }
        if let Some(waiting) = super::waiting(&self.store)? {
            eprintln!("warning: {reason}\n  {waiting}");
        }
        Ok(())
    }
}

/// Writes a run that nobody could keep beside the user, where that is possible.
fn rescue(run: &Run, failure: Failure) -> Failure {
    let Ok(json) = ::report::json::render(std::slice::from_ref(run)) else {
        return failure;
    };
    let name = format!("cryptmark-{}.json", run.run);
    for folder in [PathBuf::from("."), std::env::temp_dir()] {
        let path = folder.join(&name);
        if std::fs::write(&path, &json).is_ok() {
            let path = path.display();
            let remedy =
                format!("What was measured is in {path}; `cryptmark import {path}` stores it.");
            return failure.with_remedy(remedy);
        }
    }
    failure
}

/// Stores and shows a session as it goes.
struct Keeper<'a> {
    store: &'a Store,
    progress: &'a Progress,
}

impl Observer for Keeper<'_> {
    fn visiting(&mut self, visit: &Visit<'_>) {
        self.progress.visiting(visit);
    }

    fn keep(
        &mut self,
        run: &Run,
        changed: &[usize],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let trials: Vec<_> = changed
            .iter()
            .map(|&place| (place as u32, &run.trials[place]))
            .collect();
        Ok(self.store.put_trials(&run.run, &trials)?)
    }
}

/// What `--dry-run` prints.
fn describe(plan: &Plan, at: &Path) -> String {
    let mut targets = Vec::new();
    for system in &plan.systems {
        let name = system.as_str();
        match system.directory() {
            Some(_) => targets.push(name.to_owned()),
            None if *system == System::Builtin && !plan.formats.is_empty() => {
                for cipher in &plan.ciphers {
                    let of = |format: &VolumeFormat| format!("{name} {} {cipher}", format.name());
                    targets.extend(plan.formats.iter().map(of));
                }
            }
            None if system.takes_ciphers() => {
                targets.extend(plan.ciphers.iter().map(|cipher| format!("{name} {cipher}")));
            }
            None => {}
        }
    }
    // Each drive has its own plain side, and what is not simulated another one.
    let drives = plan.systems.iter().filter(|s| s.drive().is_some()).count();
    let places = drives + usize::from(!plan.is_simulated());
    let listed = targets.join(", ");
    let (again, on) = match plan.is_bare() {
        true => (1, format!("{listed}; the first of these twice")),
        false => (2 * places, format!("plain (twice), {listed}")),
    };
    let cells = targets.len() + again;
    let visits = plan.workloads.len() * plan.repetitions as usize * cells;
    let seconds: f64 = plan
        .workloads
        .iter()
        .filter_map(|workload| workload.seconds)
        .sum::<f64>()
        * f64::from(plan.repetitions)
        * cells as f64;
    let mut text = format!("plan {}: {}\n", plan.name, plan.title);
    let size = plan.size.display().si();
    let place = at.display();
    let _ = match plan.is_simulated() {
        _ if plan.tier == Tier::Cipher => writeln!(text, "{size} of memory"),
        true => writeln!(text, "the first {size} of simulated drives"),
        false if at.exists() && !at.is_dir() => {
            writeln!(text, "the first {size} of {place}, overwritten")
        }
        false => writeln!(
            text,
            "{size} at {place}, filled first and removed afterwards"
        ),
    };
    for workload in &plan.workloads {
        let _ = writeln!(
            text,
            "  {}: {} blocks, depth {}, {} thread(s)",
            workload.name,
            workload.block_size.display().iec(),
            workload.queue_depth,
            workload.threads
        );
    }
    let _ = writeln!(text, "on: {on}");
    let _ = match plan.is_simulated() {
        true => writeln!(text, "{visits} visits in virtual time"),
        false => writeln!(
            text,
            "{visits} visits, at least {seconds:.0} s of measuring"
        ),
    };
    text
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
        .ok_or_else(|| format!("{text} is not a rate; write aes=145MB/s"))?;
    match rate.parse() {
        Ok(rate) => Ok((cipher.to_owned(), rate)),
        Err(error) => Err(NoRate::to_string(&error)),
    }
}

/// A file that cannot be written is better refused before the measurement.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Ok(());
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if directory.is_dir() && !path.is_dir() {
        return Ok(());
    }
    Err(Failure::new(
        2,
        format!("cannot write {}", path.display()),
        "Give a file in a directory that exists.",
    ))
}

/// Sortable by start time, with a tail that tells runs apart that thousands of
/// hosts start in the same second.
pub(super) fn run_id() -> String {
    let now = jiff::Timestamp::now();
    let mut tail = RandomState::new().build_hasher();
    tail.write_u64(seed_of_now());
    format!(
        "{}-{:010x}",
        now.strftime("%Y%m%d-%H%M%S"),
        tail.finish() >> 24
    )
}

pub(super) fn seed_of_now() -> u64 {
    jiff::Timestamp::now().as_nanosecond() as u64
}
