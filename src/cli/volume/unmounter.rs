//! [`Unmounter`]: a process outside of a server's confinement, which takes the server's places
//! away.
//!
//! A confined process cannot unmount, and not remove its socket or its record. So it has this
//! process do it. That one knows the record from before the confinement, and obeys [`Order`] alone.
//! It ends with the server, and undoes nothing by itself.

use super::service::record::{OwnRecord, Place, Record};
use super::umount::{Undo, is_gone, undo};
use crate::cli::{Failure, count_signals};
use ::serve::nbd;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// The hidden command that it runs.
pub const SUBCOMMAND: &str = "unmounter";

/// The things that it does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Undoes the places.
    Undo(Undo),
    /// Says whether another program has unmounted the file system.
    IsGone,
    /// Removes the socket and the record.
    Tidy,
}

/// The running process.
pub struct Unmounter {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Unmounter {
    /// Starts it for the service of `record`, to which no place is added any more.
    ///
    /// # Errors
    /// Those of starting it.
    pub fn start(record: &OwnRecord) -> Result<Self, Failure> {
        let started = || -> io::Result<Self> {
            let mut child = block::program::command(std::env::current_exe()?)
                .arg(SUBCOMMAND)
                // Signals of the terminal are for the server.
                .process_group(0)
                .current_dir("/")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()?;
            let (orders, answers) = (child.stdin.take(), child.stdout.take());
            let answers = BufReader::new(answers.ok_or(io::ErrorKind::BrokenPipe)?);
            let mut started = Self {
                child,
                orders,
                answers,
            };
            started.send(&(record.record(), record.path()))?;
            Ok(started)
        };
        started().map_err(|error| {
            let what = format!("cannot start the process that unmounts: {error}");
            Failure::new(
                1,
                what,
                "Check the limits of processes and memory (ulimit -a).",
            )
        })
    }

    fn send(&mut self, word: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(word)?;
        line.push(b'\n');
        let mut orders = self.orders.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        orders.write_all(&line)
    }

    /// Has it do something, and returns what that has returned.
    ///
    /// # Errors
    /// Those of what it does, and exit code 1 if the process has ended.
    pub fn ask(&mut self, order: Order) -> Result<bool, Failure> {
        let answered = self.send(&order).and_then(|()| {
            let mut line = String::new();
            self.answers.read_line(&mut line)?;
            Ok(serde_json::from_str(&line)?)
        });
        answered.unwrap_or_else(|_| {
            let what = "the process that unmounts has ended";
            let remedy = "When this server has ended, run `cryptmark volume umount`.";
            Err(Failure::new(1, what, remedy))
        })
    }
}

impl Drop for Unmounter {
    fn drop(&mut self) {
        self.orders = None;
        // It has nothing left to do.
        let _ = self.child.wait();
    }
}

/// Runs the command: obeys until its input ends.
pub fn run() -> Result<(), Failure> {
    // It ends after the server, which the same signal may have asked to end.
    count_signals()?;
    let mut lines = io::stdin().lock().lines().map_while(Result::ok);
    let told = lines.next().unwrap_or_default();
    let told = serde_json::from_str(&told).map_err(Failure::unprintable)?;
    let (record, path): (Record, PathBuf) = told;
    for line in lines {
        let order = serde_json::from_str(&line).map_err(Failure::unprintable)?;
        let outcome = match order {
            Order::Undo(how) => undo(&record, how),
            Order::IsGone => Ok(is_gone(&record)),
            Order::Tidy => tidy(&record).map(|()| {
                // Another command may have removed it already.
                let _ = std::fs::remove_file(&path);
                true
            }),
        };
        let answer = serde_json::to_string(&outcome).map_err(Failure::unprintable)?;
        crate::cli::print(&(answer + "\n"))?;
    }
    Ok(())
}

/// Removes the sockets of a server that has ended.
fn tidy(record: &Record) -> Result<(), Failure> {
    for place in &record.places {
        if let Place::Nbd(at) = place {
            nbd::Place::parse(at.as_ref())?.tidy();
        }
    }
    Ok(())
}
