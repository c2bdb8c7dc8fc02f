//! [`Service`]: what this process serves, recorded for others, until it ends.

use super::error::with_causes;
use super::undo::{Undo, is_gone, undo};
use super::unmounter::{Order, Unmounter};
use super::{Ending, OwnRecord, Place, Record, ServiceError};
use crate::{Export, Failures};
use block::BlockError;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The interval at which a signal, and the end of a served volume, are noticed.
const TICK: Duration = Duration::from_millis(20);

/// The interval of attempts to end a service that is in use.
const RETRY: Duration = Duration::from_millis(500);

/// Something that is served.
pub trait Served {
    /// Whether it was ended from outside.
    fn is_over(&self) -> bool;

    /// The number of connections to clients, if only this process can see them.
    fn connections(&self) -> usize {
        0
    }

    /// The result of its end, asked for once when it [is over](Self::is_over).
    ///
    /// # Errors
    /// It has ended by a fault, and not on request.
    fn outcome(&mut self) -> Result<(), ServiceError>;

    /// Ends it. If it is in use, only [`End::Now`] does; otherwise false is returned.
    ///
    /// # Errors
    /// Those of ending it.
    fn end(&mut self, how: End) -> Result<bool, ServiceError>;
}

/// The way to end something that may be in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Only if it is not in use.
    Unused,
    /// At once.
    Now,
}

/// How long a service goes on, and what is said meanwhile.
pub struct Terms<'a> {
    /// The number of signals so far that ask it to end.
    pub signals: &'a AtomicUsize,
    /// It ends when it was idle for so long.
    pub lock_after: Option<Duration>,
    /// Whether the record stays if it has a final message, because nobody sees another one.
    pub keep: bool,
    /// Is called when the service would end, and is in use.
    pub in_use: &'a dyn Fn(),
    /// An error in words.
    pub told: &'a dyn Fn(&ServiceError) -> Ending,
}

/// A service that has begun; its record goes when this is dropped.
pub struct Service {
    record: Arc<Mutex<OwnRecord>>,
    /// Takes the places away when this process is confined.
    outside: RefCell<Option<Unmounter>>,
}

impl Drop for Service {
    fn drop(&mut self) {
        let outside = self.outside.take();
        if let Some(mut outside) = outside.filter(|_| !self.own().is_kept()) {
            // Then the next command removes them.
            let _ = outside.ask(Order::Tidy);
        }
    }
}

impl Service {
    /// Begins it: from now on others find `record`.
    ///
    /// # Errors
    /// Those of [`OwnRecord::new`].
    pub fn begin(record: Record) -> Result<Self, ServiceError> {
        Ok(Self {
            record: Arc::new(Mutex::new(OwnRecord::new(record)?)),
            outside: RefCell::default(),
        })
    }

    /// Records an error of a device, and returns it in words.
    pub fn listener(&self) -> impl Fn(&BlockError) -> String + use<> {
        // An open export must not keep the record alive.
        let record = Arc::downgrade(&self.record);
        move |error| {
            let text = with_causes(error);
            if let Some(record) = record.upgrade() {
                let mut own = record.lock().unwrap_or_else(PoisonError::into_inner);
                // If this fails, there is no way to report it.
                let _ = own.change(|record| record.errors.push(text.clone()));
            }
            text
        }
    }

    /// Records a place that is about to be made, for other commands. So it is found whatever
    /// becomes of this process.
    ///
    /// # Errors
    /// [`ServiceError::Record`].
    pub fn add(&self, place: Place) -> Result<(), ServiceError> {
        self.own().change(|record| record.places.push(place))
    }

    /// Undoes the places; false if one of them is in use.
    ///
    /// # Errors
    /// Those of unmounting.
    pub fn undo(&self, how: Undo) -> Result<bool, ServiceError> {
        match &mut *self.outside.borrow_mut() {
            Some(outside) => outside.ask(Order::Undo(how)),
            None => undo(&self.record(), how),
        }
    }

    /// Whether another program has unmounted the file system, as far as it can be found out.
    pub(super) fn is_gone(&self) -> bool {
        let record = self.record();
        let mounted = |place: &Place| matches!(place, Place::FileSystem(_) | Place::Fuse2fs(_));
        match &mut *self.outside.borrow_mut() {
            Some(outside) if record.places.iter().any(mounted) => {
                outside.ask(Order::IsGone).unwrap_or(false)
            }
            Some(_) => false,
            None => is_gone(&record),
        }
    }

    /// From now on this process is confined, and can add no place any more. What
    /// [`start`](Unmounter::start) has started takes them away; `unconfined` is what the kernel does
    /// not confine.
    ///
    /// # Errors
    /// Those of `confine`, and [`ServiceError::Record`].
    pub fn confine<E: From<ServiceError>>(
        &self,
        outside: Unmounter,
        unconfined: Option<String>,
        confine: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.outside.replace(Some(outside));
        confine()?;
        Ok(self.own().change(|record| record.unconfined = unconfined)?)
    }

    /// The record that other commands read, with all places added so far.
    pub fn record(&self) -> Record {
        self.own().record().clone()
    }

    /// The record itself.
    pub fn own(&self) -> MutexGuard<'_, OwnRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where this service can have a directory of its own.
    pub(super) fn private_directory(&self) -> PathBuf {
        self.own().private_directory()
    }

    /// Serves until a signal, until it is ended from outside, or until it was idle for as long as
    /// the terms say. Then everything written is made durable. A volume in use delays the end until
    /// it is free or a second signal comes. `exports` are in the order of the record's images. The
    /// outcome is recorded for the user that ends it.
    ///
    /// # Errors
    /// [`ServiceError::Forced`], what has ended it, and [`ServiceError::Ended`] if a write or flush
    /// has failed.
    pub fn wait(
        &self,
        exports: &[Arc<Export>],
        served: &mut dyn Served,
        terms: &Terms<'_>,
    ) -> Result<(), ServiceError> {
        let ended = self.serve(exports, served, terms);
        let flushed = exports.iter().map(|export| export.flush());
        let flushed = flushed.fold(Ok(()), Result::and);
        let outcome = ended.and_then(|forced| {
            flushed?;
            match forced {
                true => Err(ServiceError::Forced),
                false => Ok(()),
            }
        });
        let mut own = self.own();
        let (ending, outcome) = match (lost(own.record(), exports), outcome) {
            (None, Ok(())) => return Ok(()),
            (None, Err(error)) => ((terms.told)(&error), error),
            (Some(lost), Ok(())) => (lost.clone(), ServiceError::Ended(lost)),
            (Some(lost), Err(error)) => (lost, error),
        };
        // If this fails, there is no way to report it.
        let _ = own.change(|record| record.ending = Some(ending));
        if terms.keep {
            own.keep();
        }
        Err(outcome)
    }

    /// Serves until it is over; tells whether it was taken away from who used it.
    fn serve(
        &self,
        exports: &[Arc<Export>],
        served: &mut dyn Served,
        terms: &Terms<'_>,
    ) -> Result<bool, ServiceError> {
        let mut tried: Option<Instant> = None;
        // Signals until it was said what the next one does.
        let mut told: Option<usize> = None;
        while !served.is_over() {
            std::thread::sleep(TICK);
            self.count(served.connections());
            let asked = terms.signals.load(Ordering::Relaxed);
            let idle = |time| exports.iter().all(|export| export.idle() >= time);
            let idle = terms.lock_after.is_some_and(idle);
            // Two that unmount at once send two, and mean none to be cut off.
            if told.is_some_and(|told| asked > told) {
                served.end(End::Now)?;
                return Ok(true);
            }
            let due = tried.is_none_or(|tried| tried.elapsed() >= RETRY);
            if (asked == 0 && !idle) || !due {
                continue;
            }
            tried = Some(Instant::now());
            if served.end(End::Unused)? {
                return Ok(false);
            }
            if asked > 0 && told.is_none() {
                (terms.in_use)();
                // Signals that came meanwhile were sent before the user could read this.
                told = Some(terms.signals.load(Ordering::Relaxed));
            }
        }
        served.outcome().map(|()| false)
    }

    /// Writes down how many connections there are.
    fn count(&self, connections: usize) {
        let mut own = self.own();
        if own.record().connections != connections {
            // A command that cannot read it waits for the end.
            let _ = own.change(|record| record.connections = connections);
        }
    }
}

/// The message for the volumes whose writes or flushes failed.
fn lost(record: &Record, exports: &[Arc<Export>]) -> Option<Ending> {
    let images = std::iter::once(&record.image).chain(&record.others);
    let lost = images.zip(exports).filter_map(|(image, export)| {
        let failures = export.failures()?;
        Some(what_is_lost(image, &failures))
    });
    lost.reduce(|first, next| Ending {
        what: format!("{}; {}", first.what, next.what),
        ..first
    })
}

fn what_is_lost(image: &Path, failures: &Failures) -> Ending {
    let Failures {
        count,
        last,
        remedy,
    } = failures;
    let image = image.display();
    Ending {
        what: match count {
            1 => format!("a write or flush of {image} failed, and its data may be missing: {last}"),
            _ => format!(
                "{count} writes and flushes of {image} failed, and their data may be missing; the last: {last}"
            ),
        },
        remedy: format!("{remedy} Check the last writes, and repeat those that are missing."),
    }
}

/// The outcome of a thread that has served.
///
/// # Errors
/// The thread's own error, and [`ServiceError::Panicked`].
pub fn joined<E: Into<ServiceError>>(
    thread: JoinHandle<Result<(), E>>,
) -> Result<(), ServiceError> {
    match thread.join() {
        Ok(outcome) => outcome.map_err(Into::into),
        Err(_) => Err(ServiceError::Panicked),
    }
}
