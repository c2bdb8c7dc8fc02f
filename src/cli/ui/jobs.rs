//! [`Jobs`]: the commands of this program that the pages start.

use super::job::Job;
use crate::cli::progress::TOLD_BY;
use crate::cli::web::Request;
use crate::cli::{Failure, stop_on_signal};
use ::report::proposal::quoted;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Bytes of a command's messages that are kept.
pub const MESSAGES: usize = 64 << 10;
/// Ended jobs that can still be looked at.
const KEPT: usize = 32;
/// How long a job may take to end after it was stopped, when the server ends.
const ENDING: Duration = Duration::from_secs(20);

/// A command of this program.
pub struct Order {
    /// The question, or what is done.
    pub title: String,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What it reads from standard input.
    pub secret: Option<Zeroizing<String>>,
    pub kind: Kind,
    /// Whether it can be paused.
    pub pauses: bool,
}

/// What a job is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It measures, and stores a run. One at a time.
    Run,
    /// It measures, and prints what it proposes. One at a time.
    Advice,
    /// It works on a volume.
    Volume,
}

impl Kind {
    /// Whether it measures, which nothing else may disturb.
    pub fn measures(self) -> bool {
        self != Self::Volume
    }
}

/// The program, and its jobs.
pub struct Jobs {
    program: PathBuf,
    store: Option<OsString>,
    jobs: Mutex<Vec<Arc<Job>>>,
}

/// What came of a short command.
pub struct Came {
    pub code: Option<i32>,
    pub out: String,
    pub errors: String,
}

impl Jobs {
    /// Jobs for a store.
    ///
    /// # Errors
    /// This program is not found.
    pub fn new(store: Option<&str>) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            let remedy = "Start it from where it is installed.";
            Failure::new(1, format!("cannot find this program: {error}"), remedy)
        })?;
        Ok(Self {
            program,
            store: store.map(OsString::from),
            jobs: Mutex::default(),
        })
    }

    fn command(&self, arguments: &[OsString]) -> Command {
        let program = self.program.as_path();
        let mut command = block::program::command(program);
        if let Some(store) = &self.store {
            command.arg("--store").arg(store);
        }
        command.args(arguments);
        command
    }

    /// The command as a user types it.
    pub fn typed(arguments: &[OsString]) -> String {
        let words = arguments.iter();
        let words = words.map(|word| quoted(&word.to_string_lossy()));
        let words: Vec<String> = words.collect();
        format!("cryptmark {}", words.join(" "))
    }

    /// Runs a short command until it has ended.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn ask(&self, arguments: &[OsString], secret: Option<&str>) -> Result<Came, Failure> {
        // A server that stays behind keeps pipes open, and files not.
        let files = tempfile::tempfile().and_then(|out| Ok((out, tempfile::tempfile()?)));
        let (out, errors) = files.map_err(cannot_start)?;
        let both = out
            .try_clone()
            .and_then(|out| Ok((out, errors.try_clone()?)));
        let (to_out, to_errors) = both.map_err(cannot_start)?;
        let mut child = self
            .command(arguments)
            .stdin(input(secret))
            .stdout(to_out)
            .stderr(to_errors)
            .spawn()
            .map_err(cannot_start)?;
        hand_over(&mut child, secret);
        let ended = child.wait().map_err(cannot_start)?;
        Ok(Came {
            code: ended.code(),
            out: text(out),
            errors: text(errors),
        })
    }

    /// Runs a command in this terminal; its exit code.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn hand_over_to(&self, arguments: &[OsString]) -> Result<u8, Failure> {
        // Ctrl-C is for the command, which ends in order.
        let _ = stop_on_signal()?;
        let ended = self.command(arguments).status().map_err(cannot_start)?;
        Ok(ended
            .code()
            .and_then(|code| code.try_into().ok())
            .unwrap_or(1))
    }

    /// Starts a long command.
    ///
    /// # Errors
    /// Another one measures already, or it cannot be started.
    pub fn start(&self, order: Order) -> Result<Arc<Job>, Failure> {
        let mut jobs = self.lock();
        if order.kind.measures()
            && let Some(other) = jobs.iter().find(|job| job.measures_now())
        {
            return Err(Failure::new(
                2,
                format!("another measurement is under way: {}", other.title()),
                "Wait for its end, or stop it. Two would disturb each other.",
            ));
        }
        let secret = order.secret.as_ref().map(|secret| secret.as_str());
        let mut child = self
            .command(&order.arguments)
            .env(TOLD_BY, "json")
            // Ctrl-C in the server's terminal is not for it: a second signal would end it at once.
            .process_group(0)
            .stdin(input(secret))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot_start)?;
        hand_over(&mut child, secret);
        let number = jobs.last().map_or(1, |last| last.number() + 1);
        let typed = Self::typed(&order.arguments);
        let job = Arc::new(Job::of(number, typed, order, child.id()));
        jobs.push(Arc::clone(&job));
        let over = jobs.len().saturating_sub(KEPT);
        let mut spare = over;
        jobs.retain(|job| {
            let goes = spare > 0 && job.ended();
            spare -= usize::from(goes);
            !goes
        });
        let watched = Arc::clone(&job);
        std::thread::spawn(move || watched.attend(child));
        Ok(job)
    }

    /// The job that a request names.
    ///
    /// # Errors
    /// There is none.
    pub fn asked(&self, request: &Request) -> Result<Arc<Job>, Failure> {
        let number = request.field("job").parse::<usize>().ok();
        let jobs = self.lock();
        let found = jobs.iter().find(|job| Some(job.number()) == number);
        found.cloned().ok_or_else(|| {
            let remedy = "Its run is in the list if it was stored.";
            Failure::new(2, "there is no such measurement any more", remedy)
        })
    }

    /// The measurement that goes on: its number and its title.
    pub fn measuring(&self) -> Option<(usize, String)> {
        let jobs = self.lock();
        let job = jobs.iter().find(|job| job.measures_now())?;
        Some((job.number(), job.title().to_owned()))
    }

    /// Stops all that goes on, and waits for it.
    pub fn stop_all(&self) {
        let start = Instant::now();
        let jobs: Vec<_> = self.lock().iter().map(Arc::clone).collect();
        for job in &jobs {
            job.stop();
        }
        while jobs.iter().any(|job| !job.ended()) && start.elapsed() < ENDING {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cannot_start(error: std::io::Error) -> Failure {
    let remedy = "Look for the reason on the terminal where cryptmark runs.";
    Failure::new(1, format!("the command cannot be started: {error}"), remedy)
}

fn input(secret: Option<&str>) -> Stdio {
    match secret {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    }
}

/// Writes the secret to the child, which may have ended without reading it.
fn hand_over(child: &mut Child, secret: Option<&str>) {
    if let (Some(mut to), Some(secret)) = (child.stdin.take(), secret) {
        let _ = to
            .write_all(secret.as_bytes())
            .and_then(|()| to.write_all(b"\n"));
    }
}

/// The beginning of a file that a command has written.
fn text(mut file: File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind();
    let _ = file.take(MESSAGES as u64).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
