//! [`Unmounter`]: a process outside of a server's confinement, which takes the server's places
//! away.
//!
//! A confined process cannot unmount, and not remove its socket or its record. So it has this
//! process do it. That one knows the record from before the confinement, and obeys [`Order`] alone.
//! It ends with the server, and undoes nothing by itself.

use super::undo::{Undo, is_gone, undo};
use super::{Ending, OwnRecord, Place, Record, ServiceError};
use crate::nbd;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The things that it does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Order {
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
    /// Starts `program`, which [obeys](obey), for the service of `record`, to which no place is
    /// added any more.
    ///
    /// # Errors
    /// [`ServiceError::Unmounter`].
    pub fn start(program: &mut Command, record: &OwnRecord) -> Result<Self, ServiceError> {
        let mut started = || -> io::Result<Self> {
            let mut child = program
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
        started().map_err(ServiceError::Unmounter)
    }

    fn send(&mut self, word: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(word)?;
        line.push(b'\n');
        let mut orders = self.orders.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        orders.write_all(&line)
    }

    /// Has it do something, and returns what that has returned.
    pub(super) fn ask(&mut self, order: Order) -> Result<bool, ServiceError> {
        let answered = self.send(&order).and_then(|()| {
            let mut line = String::new();
            self.answers.read_line(&mut line)?;
            Ok(serde_json::from_str::<Result<bool, Ending>>(&line)?)
        });
        match answered {
            Ok(answer) => answer.map_err(ServiceError::Ended),
            Err(_) => Err(ServiceError::NoUnmounter),
        }
    }
}

impl Drop for Unmounter {
    fn drop(&mut self) {
        self.orders = None;
        // It has nothing left to do.
        let _ = self.child.wait();
    }
}

/// Obeys the server that has [started](Unmounter::start) this process, until its `orders` end.
///
/// # Errors
/// Those of reading orders and of answering.
pub fn obey(orders: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    let mut lines = orders.lines().map_while(Result::ok);
    let told = lines.next().unwrap_or_default();
    let (record, path): (Record, PathBuf) = serde_json::from_str(&told)?;
    for line in lines {
        let outcome = match serde_json::from_str(&line)? {
            Order::Undo(how) => undo(&record, how),
            Order::IsGone => Ok(is_gone(&record)),
            Order::Tidy => tidy(&record).map(|()| {
                // Another command may have removed it already.
                let _ = std::fs::remove_file(&path);
                true
            }),
        };
        let outcome = outcome.map_err(|error| Ending::of(&error));
        serde_json::to_writer(&mut answers, &outcome)?;
        answers.write_all(b"\n")?;
        answers.flush()?;
    }
    Ok(())
}

/// Removes the sockets of a server that has ended.
fn tidy(record: &Record) -> Result<(), ServiceError> {
    for place in &record.places {
        if let Place::Nbd(at) = place {
            nbd::Place::parse(at.as_ref())?.tidy();
        }
    }
    Ok(())
}
