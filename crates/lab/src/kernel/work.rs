//! [`Work`]: the programs that build the kernel, their log, and how far they are.

use super::KernelError;
use super::build::{Progress, Step};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// How soon a wish to stop is noticed.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Lines among which the telling one is looked for.
const REMEMBERED: usize = 60;

/// Variables that programs need; others could change what is built.
const ENVIRONMENT: &[&str] = &[
    "HOME",
    "TMPDIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "ftp_proxy",
];

pub(super) struct Work<'a> {
    /// The folder in which programs run, unless another one is given.
    folder: PathBuf,
    log: File,
    log_path: PathBuf,
    stop: &'a AtomicBool,
    told: &'a mut dyn FnMut(Progress),
    progress: Progress,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        folder: &Path,
        log: &Path,
        stop: &'a AtomicBool,
        told: &'a mut dyn FnMut(Progress),
    ) -> Result<Self, KernelError> {
        let mut options = OpenOptions::new();
        let file = options.create(true).write(true).truncate(true).open(log);
        Ok(Self {
            folder: folder.to_owned(),
            log: file.map_err(|source| KernelError::Io {
                path: log.to_owned(),
                source,
            })?,
            log_path: log.to_owned(),
            stop,
            told,
            progress: Progress {
                step: Step::Lists,
                done: 0,
                total: 0,
            },
        })
    }

    /// The next step, of about `total` lines.
    pub(super) fn begin(&mut self, step: Step, total: u64) {
        self.progress = Progress {
            step,
            done: 0,
            total,
        };
        (self.told)(self.progress);
    }

    /// One more of them is done.
    pub(super) fn advance(&mut self) {
        self.progress.done += 1;
        (self.told)(self.progress);
    }

    /// A program, with nothing of the user's that could change what it makes.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = block::program::command(program);
        command
            .env_clear()
            .env("LC_ALL", "C")
            .env("PATH", block::program::search_path())
            .current_dir(&self.folder);
        for name in ENVIRONMENT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }

    pub(super) fn run(&mut self, command: Command) -> Result<(), KernelError> {
        self.run_with(command, b"")
    }

    /// Runs the program to its end, with `input`. Its output goes to the log,
    /// and counts as progress during compilation.
    pub(super) fn run_with(
        &mut self,
        mut command: Command,
        input: &[u8],
    ) -> Result<(), KernelError> {
        let start = |source| KernelError::Start { source };
        // A process that outlives this program ends when it next writes,
        // because the pipe then has no reader.
        let (reader, writer) = io::pipe().map_err(start)?;
        command
            .stdin(Stdio::piped())
            .stdout(writer.try_clone().map_err(start)?)
            .stderr(writer)
            .process_group(0);
        let mut child = command.spawn().map_err(start)?;
        // It holds the ends of the pipe that are written to.
        drop(command);
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not want to read says why.
            let _ = stdin.write_all(input);
        }
        let heard = self.hear(reader);
        if heard.is_err() {
            end(&mut child);
        }
        let status = child.wait().map_err(start)?;
        let last = heard?;
        match status.success() {
            true => Ok(()),
            false => Err(KernelError::Step {
                step: self.progress.step,
                said: telling(&last),
                log: self.log_path.clone(),
            }),
        }
    }

    /// All that is said, into the log; the last lines of it.
    fn hear(&mut self, mut reader: PipeReader) -> Result<VecDeque<String>, KernelError> {
        let mut last = VecDeque::new();
        let mut line = Vec::new();
        let mut bytes = [0; 4096];
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(KernelError::Interrupted);
            }
            let ready = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&TICK));
            match ready {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(source) => {
                    return Err(KernelError::Start {
                        source: source.into(),
                    });
                }
            }
            let count = match reader.read(&mut bytes) {
                Ok(0) => return Ok(last),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(KernelError::Start { source }),
            };
            self.log
                .write_all(&bytes[..count])
                .map_err(|source| KernelError::Io {
                    path: self.log_path.clone(),
                    source,
                })?;
            for &byte in &bytes[..count] {
                if byte != b'\n' {
                    line.push(byte);
                    continue;
                }
                if last.len() == REMEMBERED {
                    last.pop_front();
                }
                last.push_back(String::from_utf8_lossy(&line).trim().to_owned());
                line.clear();
                if self.progress.step == Step::Compile {
                    self.advance();
                }
            }
        }
    }
}

/// Ends a program and what it has started.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // It may have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The first line that speaks of an error, or the last that says anything.
fn telling(lines: &VecDeque<String>) -> String {
    let speaks = |line: &&String| {
        [
            "error:",
            "E:",
            "Error ",
            "FAILED",
            "undefined reference",
            "No space left",
        ]
        .iter()
        .any(|word| line.contains(word))
    };
    let chosen = lines
        .iter()
        .find(speaks)
        .or_else(|| lines.iter().rev().find(|line| !line.is_empty()));
    chosen.map_or_else(|| "it gave no message".to_owned(), Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(script: &str, stop: &AtomicBool) -> (Result<(), KernelError>, u64, String) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut lines = 0;
        let mut told = |progress: Progress| lines = progress.done;
        let mut work = Work::new(folder.path(), &log, stop, &mut told).unwrap();
        work.begin(Step::Compile, 3);
        let mut command = work.command("sh");
        command.args(["-c", script]);
        let outcome = work.run_with(command, b"given\n");
        (outcome, lines, std::fs::read_to_string(log).unwrap())
    }

    #[test]
    fn what_is_said_is_logged_and_counted() {
        let (outcome, lines, log) =
            attempt("cat; echo two; echo three >&2", &AtomicBool::new(false));
        outcome.unwrap();
        assert_eq!((lines, &*log), (3, "given\ntwo\nthree\n"));
    }

    #[test]
    fn a_failure_says_the_telling_line() {
        let script = "echo '  CC x.o'; echo 'x.c:1: error: no such thing'; echo 'make: *** [x] Error 1'; exit 2";
        let (outcome, ..) = attempt(script, &AtomicBool::new(false));
        match outcome {
            Err(KernelError::Step { step, said, .. }) => {
                assert_eq!(
                    (step, &*said),
                    (Step::Compile, "x.c:1: error: no such thing")
                );
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_stops_it_waits_for_nothing() {
        let (outcome, ..) = attempt("sleep 1000 & sleep 1000", &AtomicBool::new(true));
        assert!(
            matches!(outcome, Err(KernelError::Interrupted)),
            "{outcome:?}"
        );
    }
}
