//! [`Jvm`]: Java as a process that answers, and ends with us.

use super::{CLASS, DATA_SEED, JavaRequest, block_bytes, hex, secrets};
use crate::error::LabError;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Asking the version, and compiling.
const START_LIMIT: Duration = Duration::from_secs(120);

/// One answer; the longest is that of the JIT coming to rest, which the
/// program itself gives up after half a minute.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// `CREATE_NEW_PROCESS_GROUP` of winbase.h.
#[cfg(windows)]
const NEW_PROCESS_GROUP: u32 = 0x200;

/// A virtual machine at work; it ends when this does.
pub(super) struct Jvm {
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<String>,
    messages: File,
}

impl Jvm {
    /// A fresh virtual machine that is ready for the request, and warm if that
    /// was requested.
    pub(super) fn start(
        program: &Path,
        folder: &TempDir,
        request: &JavaRequest<'_>,
    ) -> Result<Self, LabError> {
        let messages = tempfile::tempfile().map_err(unstarted)?;
        let mut command = command(program, folder);
        command.args(["-cp", ".", CLASS]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(messages.try_clone().map_err(unstarted)?);
        let mut child = spawn(&mut command, folder).map_err(unstarted)?;
        let (sender, answers) = channel();
        let output = child.stdout.take().map(BufReader::new);
        std::thread::spawn(move || {
            for line in output.into_iter().flat_map(BufRead::lines) {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut jvm = Self {
            requests: child.stdin.take(),
            child,
            answers,
            messages,
        };
        jvm.prepare(request)?;
        if !request.cold {
            jvm.ask("warm", "warm")?;
        }
        Ok(jvm)
    }

    fn prepare(&mut self, request: &JavaRequest<'_>) -> Result<(), LabError> {
        let (key, iv) = secrets(request);
        let cipher = match request.algorithm {
            "aes" => "AES",
            "blowfish" => "Blowfish",
            "des" => "DES",
            _ => "DESede",
        };
        let iv = match request.mode {
            "ecb" => "-".to_owned(),
            _ => hex(&iv[..block_bytes(request)]),
        };
        let line = format!(
            "prepare {cipher} {} {} {} {iv} {} {DATA_SEED}",
            request.mode.to_uppercase(),
            request.direction.name(),
            hex(&key),
            request.bytes,
        );
        self.ask(&line, "ready").map(drop)
    }

    /// Seconds of one operation.
    pub(super) fn time(&mut self) -> Result<f64, LabError> {
        let answer = self.ask("time", "time")?;
        match answer.parse::<u64>() {
            Ok(nanoseconds) => Ok(nanoseconds as f64 / 1e9),
            Err(_) => Err(unusable(format!("java answered `{answer}`"))),
        }
    }

    /// SHA-256 of the last operation's output.
    pub(super) fn digest(&mut self) -> Result<String, LabError> {
        self.ask("digest", "digest")
    }

    /// Sends one line; what follows `expected` in the answer.
    fn ask(&mut self, line: &str, expected: &str) -> Result<String, LabError> {
        let sent = match &mut self.requests {
            Some(requests) => writeln!(requests, "{line}").and_then(|()| requests.flush()),
            None => Ok(()),
        };
        // A machine that ended cannot be written to; its answer says why.
        let answer = match self.answers.recv_timeout(ANSWER_LIMIT) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                return Err(LabError::failed(
                    format!(
                        "java did not answer `{}` within {} s",
                        line.split(' ').next().unwrap_or(line),
                        ANSWER_LIMIT.as_secs()
                    ),
                    "Stop other work on the machine, or omit java.",
                ));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(unusable(format!(
                    "java ended: {}",
                    last_line(&mut self.messages)
                )));
            }
        };
        sent.map_err(unstarted)?;
        match answer.strip_prefix(expected) {
            Some(rest) => Ok(rest.trim_start().to_owned()),
            None => Err(unusable(format!("java answered `{answer}`"))),
        }
    }
}

/// A virtual machine that does not measure.
fn unusable(what: impl Into<String>) -> LabError {
    LabError::failed(what, "Try `java -version` by hand, or omit java.")
}

/// A virtual machine that could not be started or spoken to.
fn unstarted(error: io::Error) -> LabError {
    unusable("java could not be started").because(error)
}

impl Drop for Jvm {
    fn drop(&mut self) {
        // Whether it ends by itself or is killed, nothing may stay behind.
        self.requests = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A virtual machine that leaves nothing behind and reads no options but ours.
pub(super) fn command(program: &Path, folder: &TempDir) -> Command {
    let mut command = block::program::command(program);
    // Crash reports go to the working folder, performance counters to /tmp.
    command.current_dir(folder.path()).arg("-XX:-UsePerfData");
    for name in ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    // Ctrl-C in a terminal goes to the whole group. In a group of its own, the
    // virtual machine lives until the session has ended in order. If cryptmark
    // ends at once, the machine ends at the end of its input.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    #[cfg(windows)]
    std::os::windows::process::CommandExt::creation_flags(&mut command, NEW_PROCESS_GROUP);
    command
}

/// Starts Java, which reaches its folder, what belongs to Java, and the system's libraries.
#[cfg(target_os = "linux")]
fn spawn(command: &mut Command, folder: &TempDir) -> io::Result<Child> {
    use block::confine::{self, AccessFs};
    let launcher = confine::found(command);
    let home = launcher.canonicalize().ok();
    let home = home.and_then(|launcher| {
        let folder = launcher.parent().filter(|folder| folder.ends_with("bin"))?;
        Some(folder.parent()?.to_owned())
    });
    // Distributions keep its settings in `/etc`, with links to them.
    let settings = home.iter().flat_map(|home| {
        let links = ["conf/net.properties", "lib/net.properties"].map(|file| home.join(file));
        links
            .into_iter()
            .filter_map(|link| Some(link.canonicalize().ok()?.parent()?.to_owned()))
    });
    let kernel = ["/sys/fs/cgroup", "/sys/kernel/mm"].map(Into::into);
    let read = settings.chain(kernel).map(|path| (path, confine::read()));
    let run = home
        .iter()
        .map(|home| (home.clone(), confine::read() | AccessFs::Execute));
    let own = (folder.path().to_owned(), confine::use_() | confine::name());
    let allowed: Vec<_> = read.chain(run).chain([own]).collect();
    confine::start(command, &allowed)
}

#[cfg(not(target_os = "linux"))]
fn spawn(command: &mut Command, _: &TempDir) -> io::Result<Child> {
    command.spawn()
}

/// How a command ended, and what it said on standard error.
pub(super) struct Finished {
    pub(super) status: ExitStatus,
    pub(super) said: String,
}

/// Runs a command to its end, which it must reach within [`START_LIMIT`].
pub(super) fn finish(command: &mut Command, folder: &TempDir) -> io::Result<Finished> {
    let mut messages = tempfile::tempfile()?;
    command.stdout(Stdio::null()).stderr(messages.try_clone()?);
    let mut child = spawn(command, folder)?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > START_LIMIT {
            child.kill()?;
            child.wait()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let said = all_of(&mut messages);
    Ok(Finished { status, said })
}

fn all_of(messages: &mut File) -> String {
    let mut said = Vec::new();
    // If the messages cannot be read back, the error only has no message.
    let _ = messages
        .rewind()
        .and_then(|()| messages.read_to_end(&mut said));
    String::from_utf8_lossy(&said).into_owned()
}

fn last_line(messages: &mut File) -> String {
    let said = all_of(messages);
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    last.unwrap_or("it gave no message").to_owned()
}
