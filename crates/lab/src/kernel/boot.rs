//! Boots the kernel, has it run one command, and ends it in every case.
//!
//! No named file is made for it. Its memory has no name, its first process reads a script from a
//! descriptor, and the command writes to descriptors of the caller. The kernel's own messages
//! arrive separately and are kept for errors.

use super::KernelError;
use super::script::{EXIT, FAILED, STARTED, script};
use crate::probe::on_one_core;
use command_fds::{CommandFdExt, FdMapping};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How soon a wish to stop, and the end of patience, are noticed.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The kernel's disks are numbered with one digit or letter.
const DISKS: usize = 16;

/// Number of the kernel's lines that are kept, and of those that an error quotes.
const REMEMBERED: usize = 64;
const TOLD: usize = 3;

/// Bytes that are kept of a line, and of all that the script says.
const MOST_LINE: usize = 500;
const MOST_STATUS: usize = 4096;

/// Descriptors that the kernel gets; the disks follow.
const SCRIPT: i32 = 3;
const OUTPUT: i32 = 4;
const ERRORS: i32 = 5;
const STATUS: i32 = 6;
const FIRST_DISK: i32 = 7;

/// A file or block device that the machine has as a disk: `/dev/ubda`, and on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The file or device.
    pub path: PathBuf,
    /// Whether the disk is read-only.
    pub read_only: bool,
}

/// A command, and the machine that it runs in.
///
/// The command sees the files of this system as the calling user sees them, and is root among them.
/// Its writes are discarded, except those below [`writable`](Self::writable) and on the disks. If a
/// file of the system changes during the run, the command may still see its old content.
#[derive(Clone, Debug)]
pub struct Job {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The initial directory, an absolute path.
    pub directory: PathBuf,
    /// The command's environment. Variables with names that a shell cannot use are left out, and
    /// folders of system programs are appended to `PATH`.
    pub environment: Vec<(OsString, OsString)>,
    /// Directories of this system, as absolute paths, in which the command may write.
    pub writable: Vec<PathBuf>,
    /// The disks of the machine.
    pub disks: Vec<Disk>,
    /// The machine's memory, MiB. It also holds all files that the command writes elsewhere.
    pub memory_mib: u32,
    /// Maximum duration, including booting.
    pub patience: Option<Duration>,
}

impl Job {
    /// A command with the environment and the directory of this process, no disk, nothing writable,
    /// 512 MiB of memory, and no time limit.
    ///
    /// # Errors
    /// [`KernelError::Io`] if the directory is gone.
    pub fn new(command: Vec<OsString>) -> Result<Self, KernelError> {
        let directory = std::env::current_dir().map_err(|source| KernelError::Io {
            path: PathBuf::from("."),
            source,
        })?;
        Ok(Self {
            command,
            directory,
            environment: std::env::vars_os().collect(),
            writable: Vec::new(),
            disks: Vec::new(),
            memory_mib: 512,
            patience: None,
        })
    }
}

/// The targets of the command's standard output and standard error. The whole machine blocks while
/// one of them does not accept data.
#[derive(Debug)]
pub struct Outputs {
    /// Its standard output.
    pub output: OwnedFd,
    /// Its standard error.
    pub errors: OwnedFd,
}

impl Outputs {
    /// The outputs of this process.
    ///
    /// # Errors
    /// [`KernelError::Start`] if they cannot be duplicated.
    pub fn own() -> Result<Self, KernelError> {
        let start = |source| KernelError::Start { source };
        Ok(Self {
            output: io::stdout().as_fd().try_clone_to_owned().map_err(start)?,
            errors: io::stderr().as_fd().try_clone_to_owned().map_err(start)?,
        })
    }
}

/// How a command ended, and what it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its exit code.
    pub code: u8,
    /// All of its standard output.
    pub output: Vec<u8>,
    /// All of its standard error.
    pub errors: Vec<u8>,
}

pub(super) fn output(kernel: &Path, job: &Job, stop: &AtomicBool) -> Result<Output, KernelError> {
    let (mut output, output_end) = pipe()?;
    let (mut errors, errors_end) = pipe()?;
    let outputs = Outputs {
        output: output_end.into(),
        errors: errors_end.into(),
    };
    thread::scope(|scope| {
        let read = |mut pipe: Box<dyn Read + Send>| {
            move || {
                let mut bytes = Vec::new();
                pipe.read_to_end(&mut bytes).map(|_| bytes)
            }
        };
        let output = scope.spawn(read(Box::new(output.by_ref())));
        let errors = scope.spawn(read(Box::new(errors.by_ref())));
        // In this thread: its death is the kernel's.
        let code = run(kernel, job, outputs, stop);
        let joined = |bytes: thread::ScopedJoinHandle<'_, io::Result<Vec<u8>>>| {
            let bytes = bytes
                .join()
                .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            bytes.map_err(|source| KernelError::Start { source })
        };
        let (output, errors) = (joined(output), joined(errors));
        Ok(Output {
            code: code?,
            output: output?,
            errors: errors?,
        })
    })
}

pub(super) fn run(
    kernel: &Path,
    job: &Job,
    outputs: Outputs,
    stop: &AtomicBool,
) -> Result<u8, KernelError> {
    let (console, console_end) = pipe()?;
    let (status, status_end) = pipe()?;
    let begin = Instant::now();
    let mut machine = start(kernel, job, outputs, console_end, status_end)?;
    let mut heard = Heard::default();
    let outcome = listen(job, &mut heard, [console, status], begin, stop);
    if outcome.is_err() {
        // The machine may have ended by itself. The processes that it has started end with it.
        let _ = machine.kill();
    }
    let ended = machine
        .wait()
        .map_err(|source| KernelError::Start { source });
    outcome?;
    ended?;
    heard.outcome()
}

fn pipe() -> Result<(PipeReader, PipeWriter), KernelError> {
    io::pipe().map_err(|source| KernelError::Start { source })
}

/// Starts the kernel, which dies with this thread.
fn start(
    kernel: &Path,
    job: &Job,
    outputs: Outputs,
    console: PipeWriter,
    status: PipeWriter,
) -> Result<Child, KernelError> {
    for path in job.writable.iter().chain([&job.directory]) {
        if !path.is_absolute() {
            return Err(KernelError::Relative { path: path.clone() });
        }
    }
    if job.disks.len() > DISKS {
        return Err(KernelError::TooManyDisks {
            given: job.disks.len(),
            most: DISKS,
        });
    }
    let failed = |source| KernelError::Start { source };
    let mut command = block::program::command(kernel);
    command
        .args(["rootfstype=hostfs", "rootflags=/", "ro", "quiet"])
        .args(["con=null", "con0=null,fd:1"])
        .args(["init=/bin/sh", "/dev/lab/script"])
        .arg(format!("lab={SCRIPT},{OUTPUT},{ERRORS},{STATUS}"))
        .arg(format!("mem={}M", job.memory_mib))
        .arg(format!("parent={}", std::process::id()));
    let mut mappings = Vec::new();
    let given = [
        script_file(job)?.into(),
        outputs.output,
        outputs.errors,
        status.into(),
    ];
    for (child_fd, parent_fd) in (SCRIPT..).zip(given) {
        mappings.push(FdMapping {
            parent_fd,
            child_fd,
        });
    }
    for (number, disk) in job.disks.iter().enumerate() {
        let file = OpenOptions::new()
            .read(true)
            .write(!disk.read_only)
            .open(&disk.path);
        let child_fd = FIRST_DISK + number as i32;
        mappings.push(FdMapping {
            parent_fd: file
                .map_err(|source| KernelError::Io {
                    path: disk.path.clone(),
                    source,
                })?
                .into(),
            child_fd,
        });
        // No name can be misread here.
        let flags = if disk.read_only { "r" } else { "" };
        let digit = char::from_digit(number as u32, 36).unwrap_or('0');
        command.arg(format!("ubd{digit}{flags}=/proc/self/fd/{child_fd}"));
    }
    command
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(console.try_clone().map_err(failed)?)
        .stderr(console)
        .fd_mappings(mappings)
        .map_err(|_| failed(io::ErrorKind::InvalidInput.into()))?;
    // It is one processor whose programs are processes that it traces: from core to
    // core each of their system calls would wait until a sleeping one has woken.
    on_one_core(|| command.spawn()).map_err(failed)
}

/// The script, in memory: a caller's environment is in no file.
fn script_file(job: &Job) -> Result<File, KernelError> {
    let written = || -> io::Result<File> {
        let mut file = File::from(memfd_create("script", MemfdFlags::CLOEXEC)?);
        file.write_all(&script(job))?;
        file.rewind()?;
        Ok(file)
    };
    written().map_err(|source| KernelError::Start { source })
}

/// The messages of the kernel and of the script.
#[derive(Default)]
struct Heard {
    console: VecDeque<String>,
    line: Vec<u8>,
    status: Vec<u8>,
}

/// Reads both pipes to their end. At that point no process of the kernel holds the other ends, so
/// all of its processes have ended.
fn listen(
    job: &Job,
    heard: &mut Heard,
    [mut console, mut status]: [PipeReader; 2],
    begin: Instant,
    stop: &AtomicBool,
) -> Result<(), KernelError> {
    let mut open = [true; 2];
    let mut bytes = [0; 4096];
    while open.contains(&true) {
        if stop.load(Ordering::Relaxed) {
            return Err(KernelError::Interrupted);
        }
        if let Some(patience) = job.patience
            && begin.elapsed() >= patience
        {
            return Err(KernelError::TimedOut {
                seconds: patience.as_secs(),
                started: heard.started(),
                said: heard.said(),
            });
        }
        let wanted = |open| {
            if open {
                PollFlags::IN
            } else {
                PollFlags::empty()
            }
        };
        let mut ends = [
            PollFd::new(&console, wanted(open[0])),
            PollFd::new(&status, wanted(open[1])),
        ];
        match poll(&mut ends, Some(&TICK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(source) => {
                return Err(KernelError::Start {
                    source: source.into(),
                });
            }
        }
        let ready = ends.map(|end| !end.revents().is_empty());
        for (which, reader) in [&mut console, &mut status].into_iter().enumerate() {
            if !(open[which] && ready[which]) {
                continue;
            }
            match reader.read(&mut bytes) {
                Ok(0) => open[which] = false,
                Ok(count) => heard.hear(which == 1, &bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(KernelError::Start { source }),
            }
        }
    }
    Ok(())
}

impl Heard {
    fn hear(&mut self, is_status: bool, bytes: &[u8]) {
        if is_status {
            // The root user inside the machine can write to it, too.
            let room = MOST_STATUS.saturating_sub(self.status.len());
            let (kept, _) = bytes.split_at(bytes.len().min(room));
            self.status.extend_from_slice(kept);
            return;
        }
        for &byte in bytes {
            if byte != b'\n' {
                // It is shown on terminals.
                if !byte.is_ascii_control() && self.line.len() < MOST_LINE {
                    self.line.push(byte);
                }
                continue;
            }
            let line = String::from_utf8_lossy(&self.line).trim().to_owned();
            self.line.clear();
            if !line.is_empty() {
                if self.console.len() == REMEMBERED {
                    self.console.pop_front();
                }
                self.console.push_back(line);
            }
        }
    }

    /// The line in which the kernel gives up, or else its last ones.
    fn said(&self) -> String {
        let panic = self
            .console
            .iter()
            .find(|line| line.contains("Kernel panic"));
        if let Some(line) = panic {
            return line.clone();
        }
        let skipped = self.console.len().saturating_sub(TOLD);
        let last: Vec<&str> = self
            .console
            .iter()
            .skip(skipped)
            .map(String::as_str)
            .collect();
        match last.is_empty() {
            true => "it gave no message".to_owned(),
            false => last.join("; "),
        }
    }

    fn status(&self) -> impl Iterator<Item = &str> {
        let whole = std::str::from_utf8(&self.status).unwrap_or_default();
        whole.lines()
    }

    fn started(&self) -> bool {
        self.status().any(|line| line == STARTED)
    }

    /// How the command did, once all is said.
    fn outcome(&self) -> Result<u8, KernelError> {
        if let Some(what) = self.status().find_map(|line| line.strip_prefix(FAILED)) {
            return Err(KernelError::SetUp {
                what: what.to_owned(),
                said: self.said(),
            });
        }
        let code = self
            .status()
            .filter_map(|line| line.strip_prefix(EXIT))
            .last();
        match code.and_then(|code| code.parse().ok()) {
            Some(code) => Ok(code),
            None => Err(KernelError::Crashed {
                started: self.started(),
                said: self.said(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(status: &str, console: &str) -> Heard {
        let mut heard = Heard::default();
        heard.hear(true, status.as_bytes());
        heard.hear(false, console.as_bytes());
        heard
    }

    #[test]
    fn exit_codes_come_from_the_status_alone() {
        assert_eq!(heard("started\nexit 7\n", "exit 3\n").outcome().unwrap(), 7);
        for status in [
            "",
            "started\n",
            "started\nexit\n",
            "exit 256\n",
            "exit -1\n",
        ] {
            let outcome =
                heard(status, "one\nKernel panic - not syncing: lost\n\nthree\n").outcome();
            match outcome {
                Err(KernelError::Crashed { started, said }) => {
                    assert_eq!(started, status.starts_with("started"), "{status}");
                    assert_eq!(said, "Kernel panic - not syncing: lost");
                }
                other => panic!("{status}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_said_is_bounded_and_fit_for_a_terminal() {
        let heard = heard(
            &"x\n".repeat(5000),
            &format!("a\u{1b}[31m\r{}\n", "b".repeat(5000)),
        );
        assert_eq!(heard.status.len(), MOST_STATUS);
        let said = heard.said();
        assert!(
            said.starts_with("a[31mb") && said.len() == MOST_LINE,
            "{said:?}"
        );
    }

    #[test]
    fn a_machine_that_is_not_set_up_says_what_failed() {
        let outcome = heard("failed mount a tmpfs\nexit\n", "a\nb\nc\nd").outcome();
        match outcome {
            Err(KernelError::SetUp { what, said }) => {
                assert_eq!((&*what, &*said), ("mount a tmpfs", "a; b; c"));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn disks_and_paths_are_checked_before_anything_starts() {
        let mut job = Job::new(vec!["true".into()]).unwrap();
        let outputs = || Outputs::own().unwrap();
        let stop = AtomicBool::new(false);
        let nothing = Path::new("/nonexistent/linux");
        job.writable = vec!["here".into()];
        let outcome = run(nothing, &job, outputs(), &stop);
        assert!(
            matches!(outcome, Err(KernelError::Relative { .. })),
            "{outcome:?}"
        );
        job.writable.clear();
        let disk = Disk {
            path: "/nonexistent/disk".into(),
            read_only: true,
        };
        job.disks = vec![disk; 17];
        let outcome = run(nothing, &job, outputs(), &stop);
        assert!(
            matches!(outcome, Err(KernelError::TooManyDisks { given: 17, .. })),
            "{outcome:?}"
        );
        job.disks.truncate(1);
        let outcome = run(nothing, &job, outputs(), &stop);
        assert!(
            matches!(outcome, Err(KernelError::Io { .. })),
            "{outcome:?}"
        );
    }
}
