//! The command line: one subcommand a file, and what they share.

pub mod advise;
#[cfg(target_os = "linux")]
pub mod agent;
pub mod baseline;
pub mod compare;
pub mod doctor;
pub mod drive;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod failure;
pub mod import;
mod in_memory;
#[cfg(target_os = "linux")]
pub mod lab;
pub mod papercheck;
pub mod plans;
mod progress;
pub mod report;
pub mod run;
pub mod shell;
pub mod stored;
pub mod volume;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::lab;
pub use failure::Failure;

use ::lab::store::{Location, Store};
use clap::{Parser, Subcommand};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Measures what encrypting storage costs on this machine, and says which
/// set-up to choose.
#[derive(Debug, Parser)]
#[command(name = "cryptmark", version, propagate_version = true)]
pub struct Arguments {
    /// Where runs are kept: a file, or a postgres:// URL [default: the user's data directory]
    #[arg(long, global = true, env = "CRYPTMARK_STORE", hide_env_values = true)]
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
    /// List the experiments that ship, or print one to copy and edit
    Plans(plans::PlansOptions),
    /// List the stored runs
    List,
    /// Print a stored run
    Show(stored::ShowOptions),
    /// Name a stored run, to compare others with
    Baseline(baseline::BaselineOptions),
    /// Take over results of fio, hyperfine, CrystalDiskMark and others, or runs of other machines
    Import(import::ImportOptions),
    /// Compare two stored runs, pair by pair
    Compare(compare::CompareOptions),
    /// Write a report of stored runs: .html, .md, .csv or .json
    Report(report::ReportOptions),
    /// Say what to expect of a machine that is not here
    Advise(advise::AdviseOptions),
    /// Recompute the percentages that a document claims from its own figures
    Papercheck(papercheck::PapercheckOptions),
    /// Open and keep encrypted volumes
    Volume(Box<volume::VolumeOptions>),
    /// Simulate drives that are not here
    Drive(Box<drive::DriveOptions>),
    /// Build the lab kernel, which has dm-crypt, cryptoloop, jffs2 and cramfs, and run commands in it
    Lab(lab::LabOptions),
    /// Say what this machine can measure, and what is missing for the rest
    Doctor(doctor::DoctorOptions),
    #[cfg(target_os = "linux")]
    /// Run a job on file systems for another process of this program
    #[command(name = ::lab::file_system::agent::SUBCOMMAND, hide = true)]
    Agent(agent::AgentOptions),
    #[cfg(target_os = "linux")]
    /// Serve an encrypted file for another process of this program
    #[command(name = ::lab::target::engine_file::SUBCOMMAND, hide = true)]
    EngineFile,
    /// Print a completion script for a shell
    Completions(shell::CompletionsOptions),
    /// Print the manual page, or write one for every command
    Man(shell::ManOptions),
}

/// Prints clap's word on bad arguments; exit code 2, or 0 for help and version.
pub fn usage(error: &clap::Error) -> ExitCode {
    // The terminal may be gone; there is nobody left to tell then.
    let _ = error.print();
    match error.use_stderr() {
        true => ExitCode::from(2),
        false => ExitCode::SUCCESS,
    }
}

/// Opens the store that the user named, or the user's own.
fn open_store(location: Option<&str>) -> Result<Store, Failure> {
    let location = match location {
        Some(text) => text.parse::<Location>()?,
        None => Location::standard()?,
    };
    Ok(Store::open(&location)?)
}

/// Prints to standard output; a reader that closed the pipe is no error.
fn print(text: &str) -> Result<(), Failure> {
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

/// How often the user or the system has asked to end.
static SIGNALS: AtomicUsize = AtomicUsize::new(0);

/// Whether somebody counts them, and knows what to do at the second.
static COUNTED: AtomicBool = AtomicBool::new(false);

/// The number of times that Ctrl-C or termination was asked for so far; from
/// now on they end nothing by themselves.
fn count_signals() -> Result<&'static AtomicUsize, Failure> {
    stop_on_signal()?;
    COUNTED.store(true, Ordering::Relaxed);
    Ok(&SIGNALS)
}

/// A flag that Ctrl-C and termination set; the second Ctrl-C ends the
/// program at once. Test files have no name and do not stay behind; the folder
/// of Java's compiled class in the system's folder for temporary files does,
/// and so does what `volume export` has written beside its output.
///
/// All who ask get the same flag.
fn stop_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    static STOP: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut stop = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(flag) = &*stop {
        return Ok(Arc::clone(flag));
    }
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        SIGNALS.fetch_add(1, Ordering::Relaxed);
        let second = set.swap(true, Ordering::Relaxed);
        if second && !COUNTED.load(Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .map_err(|error| {
        Failure::new(
            1,
            format!("cannot watch for Ctrl-C: {error}"),
            "Report this; no other program can be at fault.",
        )
    })?;
    *stop = Some(Arc::clone(&flag));
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
