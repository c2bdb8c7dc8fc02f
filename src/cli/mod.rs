//! The command line: a file for each subcommand, and the code that they share.

/// Like the standard library's macro, except that a standard error that is closed or full does not
/// cause a panic, which would end a server in the middle of a request; and that no text of others
/// steers the terminal.
macro_rules! eprint {
    ($($arguments:tt)*) => {{
        let text = format!($($arguments)*);
        let text = crate::cli::plain::given(&text);
        let text = crate::cli::plain::text(&text, false);
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
    }};
}

/// See `eprint`.
macro_rules! eprintln {
    ($($arguments:tt)*) => {
        eprint!("{}\n", format_args!($($arguments)*))
    };
}

pub mod advise;
#[cfg(target_os = "linux")]
pub mod agent;
pub mod baseline;
// The pages name commands of all features.
#[cfg(all(test, feature = "fleet"))]
mod book;
pub mod compare;
pub mod completions;
#[cfg(target_os = "linux")]
mod confine;
pub mod doctor;
pub mod drive;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(feature = "fleet")]
pub mod export;
mod failure;
pub mod fleet;
pub mod import;
mod in_memory;
#[cfg(target_os = "linux")]
pub mod lab;
pub mod man;
#[cfg(test)]
mod options;
pub mod papercheck;
mod pause;
pub mod plain;
pub mod plans;
mod progress;
#[cfg(target_os = "linux")]
pub mod protection;
mod remedy;
pub mod report;
pub mod run;
mod standard;
pub mod store;
pub mod stored;
#[cfg(target_os = "linux")]
pub mod ui;
#[cfg(target_os = "linux")]
pub mod unseen;
pub mod volume;
mod web;
mod whole;

pub use ::lab::store::{HandedOver, Location, Settings, Store, StoreError};
use ::volume::{Limits, Stop};
use clap::{Parser, Subcommand};
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{lab, ui};
pub use failure::Failure;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Version, commit and its day, as records have them too; the version alone
/// if the program was not built from a checkout.
pub const VERSION: &str = env!("CRYPTMARK_VERSION");

const LONG_VERSION: &str = concat!(
    env!("CRYPTMARK_VERSION"),
    "\ntarget: ",
    env!("CRYPTMARK_TARGET"),
    "\nfeatures: ",
    env!("CRYPTMARK_FEATURES")
);

/// Measures what encrypting storage costs on this machine, and says which
/// set-up to choose.
#[derive(Debug, Parser)]
#[command(
    name = "cryptmark",
    version = VERSION,
    long_version = LONG_VERSION,
    propagate_version = true
)]
pub struct Arguments {
    /// Where runs are kept: a folder, or a postgres:// URL [default: `store` in ~/.config/cryptmark/config.toml, or the user's data directory]
    #[arg(
        long,
        global = true,
        help_heading = "For every command",
        env = "CRYPTMARK_STORE",
        hide_env_values = true
    )]
    pub store: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of the contract that exist so far.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure what encryption costs
    Run(Box<run::RunOptions>),
    /// List the built-in experiments, or print one to copy and edit
    Plans(plans::PlansOptions),
    /// List the stored runs
    List,
    /// Print a stored run
    Show(stored::ShowOptions),
    /// Show where runs are kept and what waits to be stored, or change the version of a server's tables
    Store(store::StoreOptions),
    /// Distribute an experiment among many hosts
    Fleet(fleet::FleetOptions),
    /// Name a stored run to compare others with
    Baseline(baseline::BaselineOptions),
    /// Import results of fio, hyperfine, CrystalDiskMark and others, or runs of other machines
    Import(import::ImportOptions),
    /// Write stored trials as Parquet, for DuckDB, Spark, Trino, pandas
    #[cfg(feature = "fleet")]
    Export(export::ExportOptions),
    /// Compare two stored runs, pair by pair
    Compare(compare::CompareOptions),
    /// Write a report of stored runs: .html, .md, .csv or .json; or show them in a browser
    Report(report::ReportOptions),
    /// Measure, read runs, open volumes and simulate drives in a browser on this machine
    Ui(ui::UiOptions),
    /// Propose a set-up by measuring: which cipher, why, at what cost, and the commands that create it
    Advise(advise::AdviseOptions),
    /// Recompute the percentages that a document claims from its own figures
    Papercheck(papercheck::PapercheckOptions),
    /// Open, create and maintain encrypted volumes
    Volume(Box<volume::VolumeOptions>),
    /// Simulate drives that this machine does not have
    Drive(Box<drive::DriveOptions>),
    /// Build a lab kernel, which has dm-crypt, cryptoloop, fscrypt, eCryptfs, jffs2 and cramfs, and run commands in it
    Lab(lab::LabOptions),
    /// Show what this machine can measure, and what the rest needs
    Doctor(doctor::DoctorOptions),
    #[cfg(target_os = "linux")]
    /// Run a job on file systems for another process of this program
    #[command(name = ::lab::file_system::agent::SUBCOMMAND, hide = true)]
    Agent(agent::AgentOptions),
    #[cfg(target_os = "linux")]
    /// Serve an encrypted file for another process of this program
    #[command(name = ::lab::system::engine_file::SUBCOMMAND, hide = true)]
    EngineFile,
    #[cfg(target_os = "linux")]
    /// Unmount for another process of this program, which is confined
    #[command(name = volume::service::UNMOUNTER, hide = true)]
    Unmounter,
    /// Print a completion script for a shell
    Completions(completions::CompletionsOptions),
    /// Print the manual page, or write one for every command
    Man(man::ManOptions),
}

/// Prints clap's word on bad arguments; exit code 2, or 0 for help and version.
pub fn usage(error: &clap::Error) -> ExitCode {
    // The terminal may be gone, and then the message cannot be shown.
    let _ = error.print();
    match error.use_stderr() {
        true => ExitCode::from(2),
        false => ExitCode::SUCCESS,
    }
}

/// Opens the store that the user named, or the user's own, and has it take what
/// waits for it.
fn open_store(location: Option<&str>) -> Result<Store, Failure> {
    let store = open_store_or_wait(location)?;
    match store.absence() {
        None => Ok(store),
        Some(reason) => Err(Failure::new(
            1,
            reason,
            waiting(&store)?.unwrap_or_else(|| {
                "Check the address, the network and that the server runs; then try again.".into()
            }),
        )),
    }
}

/// The folder of a store that is named and not there: reading it must not make it.
fn absent(location: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    match Settings::load(location)?.location {
        Location::Folder(path) if location.is_some() && !path.exists() => Ok(Some(path)),
        _ => Ok(None),
    }
}

/// A store to read a run from, which a folder that is not there has not.
fn open_store_of_runs(location: Option<&str>) -> Result<Store, Failure> {
    match absent(location)? {
        None => open_store(location),
        Some(path) => Err(Failure::new(
            2,
            format!("there is no store {}", path.display()),
            "Check the path; `run` and `import` make a new store.",
        )),
    }
}

/// The same for a command that measures. If the server is away, records wait for it.
fn open_store_to_measure(location: Option<&str>) -> Result<Store, Failure> {
    let store = open_store_or_wait(location)?;
    if let Some(reason) = store.absence() {
        eprintln!("warning: {reason}\n  New measurements wait here until the store is back.");
    }
    Ok(store)
}

fn open_store_or_wait(location: Option<&str>) -> Result<Store, Failure> {
    let settings = Settings::load(location)?;
    let store = Store::open_to_write(&settings.location, &settings.spool)?;
    if store.absence().is_none() {
        match store.hand_over(None) {
            Ok(handed) => eprint!("{}", told(&handed)),
            // It is unreachable again; a command that needs it will report that.
            Err(StoreError::Unreachable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(store)
}

/// Which runs wait for the store, for people.
fn waiting(store: &Store) -> Result<Option<String>, Failure> {
    Ok(match store.waiting()? {
        Some((runs @ 1.., folder)) => Some(format!(
            "{runs} run(s) wait in {}. The next command that reaches the store moves them there.",
            folder.display()
        )),
        _ => None,
    })
}

/// The results of handing over runs that had waited.
fn told(handed: &HandedOver) -> String {
    let mut text = String::new();
    if handed.stored > 0 {
        text.push_str(&format!(
            "{} run(s) that waited are stored now\n",
            handed.stored
        ));
    }
    if handed.superseded > 0 {
        text.push_str(&format!(
            "{} run(s) that waited are dropped: their shard is stored as another run\n",
            handed.superseded
        ));
    }
    for (why, path) in &handed.refused {
        text.push_str(&format!(
            "warning: {why}\n  The records that waited are in {} now.\n",
            path.display()
        ));
    }
    text
}

/// Prints to standard output. A reader that closed the pipe is not an error.
fn print(text: &str) -> Result<(), Failure> {
    let text = plain::given(text);
    let text = plain::text(&text, style().colour);
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(
            1,
            format!("cannot write to standard output: {error}"),
            "Check where the output is sent.",
        )),
        _ => Ok(()),
    }
}

/// Reports a finished change. If standard output cannot take the text, standard error does. An
/// error would suggest that nothing was changed.
fn print_done(text: &str) {
    if let Err(failure) = print(text) {
        eprint!(
            "warning: {}, but the command succeeded:\n{text}",
            failure.what()
        );
    }
}

/// The number of times that the user or the system has asked this program to end.
static SIGNALS: AtomicUsize = AtomicUsize::new(0);

/// Whether a service counts the signals and acts on the second one itself.
static COUNTED: AtomicBool = AtomicBool::new(false);

/// The number of times that Ctrl-C or termination was requested so far. From now on these signals
/// do not end the program by themselves.
fn count_signals() -> Result<&'static AtomicUsize, Failure> {
    stop_on_signal()?;
    COUNTED.store(true, Ordering::Relaxed);
    Ok(&SIGNALS)
}

/// Whether the program was asked to end, and is no service that ends by itself.
pub(crate) fn is_to_end() -> bool {
    SIGNALS.load(Ordering::Relaxed) > 0 && !COUNTED.load(Ordering::Relaxed)
}

/// A flag that Ctrl-C and termination set; the second Ctrl-C ends the program at once. Test files
/// have no name and do not stay behind. Two things do stay: the folder of Java's compiled class in
/// the system's folder for temporary files, and the file that `volume export` has written beside
/// its output.
///
/// All callers get the same flag.
fn stop_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    stop_flag().cloned()
}

/// The work that a header may demand, which Ctrl-C ends from now on.
fn limits() -> Result<Limits, Failure> {
    Ok(Limits {
        stop: Stop::when(stop_flag()?),
        ..Limits::default()
    })
}

/// The same flag, for as long as the program runs.
fn stop_flag() -> Result<&'static Arc<AtomicBool>, Failure> {
    static STOP: Mutex<Option<&'static Arc<AtomicBool>>> = Mutex::new(None);
    let mut stop = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(flag) = *stop {
        return Ok(flag);
    }
    let flag: &'static Arc<AtomicBool> = Box::leak(Box::default());
    let handle = move || {
        SIGNALS.fetch_add(1, Ordering::Relaxed);
        let second = flag.swap(true, Ordering::Relaxed);
        if second && !COUNTED.load(Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    let failed = |error: &dyn std::fmt::Display| {
        let what = format!("cannot watch for Ctrl-C: {error}");
        Failure::new(1, what, "Report this; no other program can be at fault.")
    };
    let watch = || ctrlc::set_handler(handle).map_err(|error| failed(&error));
    // Its thread lives as long as the program, and needs nothing.
    #[cfg(target_os = "linux")]
    confine::inside(|| {
        confine::Confinement::nothing()?
            .enter()
            .and_then(|()| watch())
    })
    .map_err(|error| failed(&error))??;
    #[cfg(not(target_os = "linux"))]
    watch()?;
    *stop = Some(flag);
    Ok(flag)
}

/// How wide and how plain the terminal wants its text.
fn style() -> ::report::text::Style {
    let terminal = std::io::stdout().is_terminal();
    let width = terminal_size::terminal_size()
        .filter(|_| terminal)
        .map_or(110, |(width, _)| width.0);
    ::report::text::Style {
        width,
        colour: terminal && std::env::var_os("NO_COLOR").is_none(),
        unicode: true,
    }
}
