//! The agent is this program in the role of running a job. This module also
//! starts it.
//!
//! On this kernel the agent gets its own mount namespace and process namespace. A user other than
//! root gets a user namespace as well, in which files can be encrypted behind FUSE.
//! Its mounts are invisible to other processes and end with it. The programs
//! that it has started end with it, too.

use super::error::{not_root, not_run, unreadable_job, unusable};
use super::{Event, Job, run};
use crate::error::LabError;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The hidden subcommand that runs a job.
pub const SUBCOMMAND: &str = "agent";

/// Maximum time that an agent may take to undo everything after its input has
/// ended.
const ENDING: Duration = Duration::from_secs(60);

/// Interval at which the end of an agent is checked.
const TICK: Duration = Duration::from_millis(20);

/// Arguments of the agent that runs the job in `job` and writes events to
/// `told`.
pub fn arguments(job: &Path, told: &Path) -> Vec<OsString> {
    vec![SUBCOMMAND.into(), job.into(), told.into()]
}

/// How an agent ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// `exit status: 1`.
    pub how: String,
    /// The agent's output on standard error.
    pub said: Vec<u8>,
}

/// Runs `program` with `arguments` as an agent on this kernel to its end, which
/// comes soon after `stop` is set. `needs_root` says whether a user namespace does not do.
///
/// # Errors
/// [`LabError`].
pub fn run_here(
    program: &Path,
    arguments: &[OsString],
    needs_root: bool,
    stop: &AtomicBool,
) -> Result<Ended, LabError> {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root && needs_root {
        return Err(not_root());
    }
    let failed = |error| not_run("unshare", "util-linux", error);
    let mut command = block::program::command("unshare");
    if !is_root {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--propagation", "private"]);
    command.args(["--pid", "--kill-child", "--"]);
    command.arg(program).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    // Ctrl-C must reach only the parent process, which then stops the agent.
    command.process_group(0);
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let mut stopped: Option<Instant> = None;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            child.stdin = None;
            if stopped.get_or_insert_with(Instant::now).elapsed() > ENDING {
                // Its namespaces go with it, and what was mounted in them.
                child.kill().map_err(failed)?;
            }
        }
        std::thread::sleep(TICK);
    };
    let mut said = Vec::new();
    if let Some(errors) = child.stderr.take() {
        // Processes that the agent started may hold the other end for a moment.
        let _ = errors.take(1 << 16).read_to_end(&mut said);
    }
    Ok(Ended {
        how: status.to_string(),
        said,
    })
}

/// Runs the job in the file `job` and writes a line for each [`Event`] to the
/// existing file `told`. Outside the lab kernel the agent stops when standard
/// input ends, which also happens when its parent process dies. It then removes
/// `job` and `told` with their directory, since no other process will.
///
/// # Errors
/// [`LabError`] if `job` cannot be read or `told` cannot be
/// written. Any other failure of the job is reported as an event.
pub fn agent(job: &Path, told: &Path) -> Result<(), LabError> {
    let mut out = OpenOptions::new()
        .append(true)
        .open(told)
        .map_err(|error| unusable("cannot use", told, error))?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut lost = None;
    let mut tell = |event: Event| {
        let line = serde_json::to_string(&event).map(|line| line + "\n");
        let told = line
            .map_err(io::Error::from)
            .and_then(|line| out.write_all(line.as_bytes()));
        if let Err(error) = told {
            // From here on, no process receives the measurements.
            stop.store(true, Ordering::Relaxed);
            lost.get_or_insert(error);
        }
    };
    let text = fs::read_to_string(job).map_err(|error| unusable("cannot use", job, error))?;
    match serde_json::from_str::<Job>(&text) {
        Err(error) => tell(Event::failed(&unreadable_job(error))),
        Ok(wanted) => {
            if !wanted.kernel.is_lab() {
                watch_input(&stop);
            }
            if let Err(error) = run(&wanted, &stop, &mut tell) {
                tell(Event::failed(&error));
            }
            if !wanted.kernel.is_lab() && stop.load(Ordering::Relaxed) {
                for file in [job, told] {
                    let _ = fs::remove_file(file);
                }
                for directory in [Some(wanted.scratch.as_path()), job.parent()] {
                    let _ = directory.map(fs::remove_dir);
                }
            }
        }
    }
    lost.map_or(Ok(()), |error| Err(unusable("cannot use", told, error)))
}

/// Sets `stop` when standard input ends, and ends the process if that does not
/// help.
fn watch_input(stop: &Arc<AtomicBool>) {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut byte = [0];
        while matches!(input.read(&mut byte), Ok(1)) {}
        stop.store(true, Ordering::Relaxed);
        std::thread::sleep(ENDING);
        std::process::exit(1);
    });
}

/// Reads the events of an agent as they come.
#[derive(Debug)]
pub struct Told {
    file: File,
    /// The part of a line that is not yet complete.
    rest: Vec<u8>,
}

impl Told {
    /// Makes the file at `path` for an agent to write to.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn create(path: &Path) -> Result<Self, LabError> {
        let made = File::create_new(path).and_then(|_| File::open(path));
        let file = made.map_err(|source| unusable("cannot make", path, source))?;
        Ok(Self {
            file,
            rest: Vec::new(),
        })
    }

    /// The events that have arrived since the last call.
    ///
    /// # Errors
    /// [`LabError`] if the file cannot be read or a line is not an
    /// event.
    pub fn read(&mut self) -> Result<Vec<Event>, LabError> {
        let read = self.file.read_to_end(&mut self.rest);
        read.map_err(|error| unreadable_job(serde_json::Error::io(error)))?;
        let whole = match self.rest.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => self.rest.drain(..=end).collect::<Vec<u8>>(),
            None => return Ok(Vec::new()),
        };
        whole
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).map_err(unreadable_job))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_heard_line_by_line_and_nothing_else_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("told");
        let mut told = Told::create(&path).unwrap();
        assert!(Told::create(&path).is_err());
        let mut out = OpenOptions::new().append(true).open(&path).unwrap();
        let event = Event::Visiting {
            cell: 1,
            operation: 2,
            round: 3,
        };
        let line = serde_json::to_string(&event).unwrap();
        write!(out, "{line}\n{}", &line[..9]).unwrap();
        assert_eq!(told.read().unwrap(), std::slice::from_ref(&event));
        assert_eq!(told.read().unwrap(), []);
        writeln!(out, "{}\n\"done\"", &line[9..]).unwrap();
        assert_eq!(told.read().unwrap(), [event, Event::Done]);
        writeln!(out, "kernel panic").unwrap();
        assert!(told.read().is_err());
    }

    #[test]
    fn a_job_that_is_none_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let [job, path] = ["job", "told"].map(|name| folder.path().join(name));
        let mut told = Told::create(&path).unwrap();
        fs::write(&job, "{}").unwrap();
        agent(&job, &path).unwrap();
        let events = told.read().unwrap();
        assert!(matches!(&events[..], [Event::Failed { .. }]), "{events:?}");
    }
}
