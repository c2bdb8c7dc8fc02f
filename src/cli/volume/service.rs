//! The common part of all commands that serve a volume. It runs them in the foreground or
//! background and records them for other commands. They end by a signal, or when they are idle.
//!
//! ```text
//! let Some(service) = options.service.begin(&[volume])? else { return Ok(()) };   // --daemon: served by now
//! let exported = service.export(volume, secret)?;
//! service.add(Place::…)?;                                                         // before each is made
//! service.ready("…")?;                                                            // the terminal is free
//! service.wait(&[exported.export], &mut served)
//! ```

pub mod record;

use super::arguments::{Volume, VolumeArguments};
use super::disk::{Disk, whole_name};
use super::losses::accepted;
use super::open::unlock;
use super::protection::ProtectionArguments;
use super::secrets::SecretArguments;
use super::umount::{Undo, is_gone, undo};
use super::unmounter::{Order, Unmounter};
use crate::cli::confine::{Confinement, lacking, use_};
use crate::cli::plain::word;
use crate::cli::{Failure, count_signals, print, print_done, stop_on_signal, unseen};
use ::serve::{Export, Failures};
use ::volume::{Format, Storage, luks2};
use block::hold;
use block::layer::{Protected, Trim, TrimPolicy};
use block::{BlockDevice, BlockError};
use clap::Args;
use record::{Ending, OwnRecord, Place, Record};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use volume::judge::Use;

/// Tells the program that it was started to serve in the background.
const IN_BACKGROUND: &str = "CRYPTMARK_IN_BACKGROUND";

/// The first byte that a program in the background sends, once it serves.
const READY: u8 = b'+';

/// Requests that are worked on at a time if the storage is slow.
const THREADS: usize = 16;

/// The interval at which a signal, and the end of a served volume, are noticed.
const TICK: Duration = Duration::from_millis(20);

/// The interval of attempts to end a service that is in use.
const RETRY: Duration = Duration::from_millis(500);

/// The options of everything that serves.
#[derive(Debug, Args)]
pub struct ServiceArguments {
    /// Serve it read-only
    #[arg(long)]
    read_only: bool,
    /// What to do with discards: block (refuse them), pass (they reach the image and reveal which space is in use) or zero (write noise)
    #[arg(long, value_name = "POLICY", default_value_t = TrimPolicy::Block)]
    trim: TrimPolicy,
    /// The same as --trim pass
    #[arg(long, conflicts_with = "trim")]
    allow_discards: bool,
    /// Return once it is served, and continue in the background
    #[arg(long)]
    daemon: bool,
    /// Lock after this much idle time, e.g. 90s or 10m
    #[arg(long, value_name = "TIME")]
    lock_after: Option<LockAfter>,
}

/// A time without use.
#[derive(Clone, Copy, Debug)]
struct LockAfter(Duration);

impl FromStr for LockAfter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = match &text[digits.len()..] {
            "" | "s" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            _ => return Err("give seconds, or a time such as 90s, 10m or 2h".into()),
        };
        match digits.parse::<u32>() {
            Ok(number) if number > 0 => Ok(Self(Duration::from_secs(u64::from(number) * unit))),
            _ => Err("give a whole number of at least 1".into()),
        }
    }
}

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
    fn outcome(&mut self) -> Result<(), Failure>;

    /// Ends it. If it is in use, only [`End::Now`] does; otherwise false is returned.
    fn end(&mut self, how: End) -> Result<bool, Failure>;
}

/// The way to end something that may be in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Only if it is not in use.
    Unused,
    /// At once.
    Now,
}

impl ServiceArguments {
    /// Begins to serve. With `--daemon` a process of its own serves, and this returns `None` when
    /// that one is [ready](Service::ready).
    ///
    /// # Errors
    /// Exit code 4 if the volume is served already and one of both writes;
    /// in the background, what ended that process.
    pub fn begin(&self, volumes: &[&VolumeArguments]) -> Result<Option<Service>, Failure> {
        if self.daemon && std::env::var_os(IN_BACKGROUND).is_none() {
            return in_background().map(|()| None);
        }
        let mut images: Vec<PathBuf> = Vec::new();
        for volume in volumes {
            let image = whole_name(volume.image())?;
            let same = |other: &PathBuf| *other == image || hold::is_same(other, &image);
            if images.iter().any(same) {
                return Err(Failure::new(
                    2,
                    format!("{} is named twice", image.display()),
                    "Name every volume once.",
                ));
            }
            images.push(image);
        }
        self.make_way(&images)?;
        let mut others = images.into_iter();
        let record = OwnRecord::new(Record {
            image: others.next().unwrap_or_default(),
            others: others.collect(),
            access: if self.read_only { "read" } else { "write" }.into(),
            trim: self.policy().name().into(),
            pid: std::process::id(),
            since: jiff::Timestamp::now().to_string(),
            places: Vec::new(),
            connections: 0,
            errors: Vec::new(),
            unconfined: Some("it is not confined".to_owned()),
            ending: None,
        });
        let sources = volumes.iter().flat_map(|volume| {
            let header = volume.named_header();
            std::iter::once(volume.image()).chain(header)
        });
        Ok(Some(Service {
            outside: RefCell::default(),
            sources: sources.map(Path::to_owned).collect(),
            record: Arc::new(Mutex::new(record.map_err(unrecorded)?)),
            read_only: self.read_only,
            trim: self.policy(),
            daemon: self.daemon,
            lock_after: self.lock_after.map(|time| time.0),
        }))
    }

    /// Removes the remains of killed servers of `images`. Refuses if a running server is in the
    /// way.
    fn make_way(&self, images: &[PathBuf]) -> Result<(), Failure> {
        for other in record::all()? {
            let Some(image) = images.iter().find(|image| other.record.has(image)) else {
                continue;
            };
            if !other.alive {
                super::umount::tidy(&other)?;
                if let Some(Ending { what, .. }) = other.last_words() {
                    eprintln!("warning: when it was served last, {what}");
                }
            } else if !self.read_only || other.record.access == "write" {
                return Err(Failure::new(
                    4,
                    format!(
                        "{} is served already, by process {}",
                        image.display(),
                        other.record.pid
                    ),
                    format!("End that first: cryptmark volume umount {}", word(image)),
                ));
            }
        }
        Ok(())
    }

    /// Whether writes are refused.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn policy(&self) -> TrimPolicy {
        match self.allow_discards {
            true => TrimPolicy::Pass,
            false => self.trim,
        }
    }
}

/// An opened volume that is served.
pub struct Exported {
    /// Its plaintext.
    pub export: Arc<Export>,
    /// Requests that are worth working on at a time.
    pub threads: usize,
}

/// A service that has begun; its record goes when this is dropped.
pub struct Service {
    record: Arc<Mutex<OwnRecord>>,
    read_only: bool,
    trim: TrimPolicy,
    daemon: bool,
    lock_after: Option<Duration>,
    /// Where its volumes and their headers are.
    sources: Vec<PathBuf>,
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

/// Has the header of a LUKS2 volume remember that discards leave zeros; says whether it does. Other
/// formats cannot remember it: what asks for zeros gets zeros that are written, and discards leave
/// noise.
fn remember_holes(volume: &Volume, header: &Disk) -> Result<bool, Failure> {
    match volume.format(header)? {
        Format::Luks2 => Ok(luks2::Header::read(header)?.remember_holes(header)?),
        _ => Ok(false),
    }
}

/// Warns that discards of an outer volume overwrite a hidden one. It is not known whether there is
/// one.
fn warn_of_hidden(volume: &VolumeArguments, protection: &ProtectionArguments) {
    if volume.family().is_some() && !volume.is_hidden() && !protection.is_given() {
        eprintln!(
            "warning: discards destroy a hidden volume in {}, if there is one and --protect-hidden is \
             not given",
            volume.image().display()
        );
    }
}

impl Service {
    /// Opens the volume, as the user wants it served. With `yes` it is written although its data
    /// may be another's.
    pub fn export(
        &self,
        volume: &Volume,
        secret: &SecretArguments,
        protection: &ProtectionArguments,
        yes: bool,
    ) -> Result<Exported, Failure> {
        let opened = match self.read_only {
            true => volume.steady_devices(),
            false => volume.devices(Use::WriteData),
        };
        let devices = opened.map_err(|failure| {
            // A volume that can at least be read can be served read-only.
            match !self.read_only && volume.steady_devices().is_ok() {
                true => failure.with_remedy("Give --read-only to prevent all writes.".into()),
                false => failure,
            }
        })?;
        let (access, served) = match self.read_only {
            true => (::volume::Access::Read, ::serve::Access::Read),
            false => (::volume::Access::Write, ::serve::Access::Write),
        };
        let mut opened = unlock(volume, secret, &devices, (access, accepted(yes)))?;
        if self.trim == TrimPolicy::Pass {
            opened = opened.allowing_discards();
            if !self.read_only {
                warn_of_hidden(volume, protection);
            }
            if !self.read_only && remember_holes(volume, devices.header())? {
                opened = opened.reading_holes();
            }
        }
        let allocation = opened.allocation(devices.header(), devices.data());
        let [header, data] = devices.shared();
        let hidden = protection.range(volume, &devices)?;
        let data: Arc<dyn BlockDevice> = Arc::new(Protected::new(data, hidden));
        let device = Trim::new(opened.device(header, data)?, self.trim);
        let mut export = Export::new(Arc::new(device), served);
        if devices.data().keeps_lost_writes() {
            export = export.keeping_lost_writes();
        }
        // An open export must not keep the record alive.
        let record = Arc::downgrade(&self.record);
        let listener = move |error: &BlockError| note(&record, error);
        Ok(Exported {
            // Memory answers at once, and a disk only when it has got there.
            threads: match devices.data().answers_at_once() {
                true => 1,
                false => THREADS,
            },
            export: Arc::new(
                export
                    .with_listener(listener)
                    .with_allocation(move |range| {
                        allocation.extents(range, |storage, range| match storage {
                            Storage::Header => devices.header().extents(range),
                            Storage::Data => devices.data().extents(range),
                        })
                    }),
            ),
        })
    }

    /// Whether writes are refused.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Records a place that is about to be made, for other commands. So it is found whatever
    /// becomes of this process.
    pub fn add(&self, place: Place) -> Result<(), Failure> {
        // From now on there is something to take away before the end.
        count_signals()?;
        let change = |record: &mut Record| record.places.push(place);
        self.own().change(change).map_err(unrecorded)
    }

    /// Undoes the places.
    ///
    /// # Errors
    /// Those of [`undo`].
    pub fn undo(&self, how: Undo) -> Result<bool, Failure> {
        match &mut *self.outside.borrow_mut() {
            Some(outside) => outside.ask(Order::Undo(how)),
            None => undo(&self.record(), how),
        }
    }

    /// Whether another program has unmounted the file system, as far as it can be found out.
    pub fn is_gone(&self) -> bool {
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

    /// The confinement of what serves: files that are open, locks that cryptsetup sees, and the
    /// servers from which the volumes come.
    pub fn confinement(&self) -> Result<Confinement, Failure> {
        let mounted = |place: &Place| matches!(place, Place::Fuse(_) | Place::FuseFile(_));
        let fuse = match self.own().record().places.iter().any(mounted) {
            true => vec![("/dev/fuse".into(), use_())],
            false => Vec::new(),
        };
        Confinement::around(self.sources.iter().map(PathBuf::as_path), fuse)
    }

    /// Confines this thread and those that it starts from now on. No place can be added any more.
    pub fn confine(&self) -> Result<(), Failure> {
        let confinement = self.confinement()?;
        let outside = Unmounter::start(&self.own())?;
        self.outside.replace(Some(outside));
        let unconfined = lacking().map(str::to_owned);
        confinement.enter()?;
        let change = |record: &mut Record| record.unconfined = unconfined;
        self.own().change(change).map_err(unrecorded)
    }

    /// The record that other commands read, with all places added so far.
    pub fn record(&self) -> Record {
        self.own().record().clone()
    }

    /// Where this service can have a directory of its own.
    pub fn private_directory(&self) -> PathBuf {
        self.own().private_directory()
    }

    /// Tells the user that it is served. From now on it is in the background.
    pub fn ready(&self, message: &str) -> Result<(), Failure> {
        if !self.daemon {
            return print(message);
        }
        let detached = || -> io::Result<()> {
            rustix::process::setsid()?;
            std::env::set_current_dir("/")?;
            let mut out = io::stdout().lock();
            out.write_all(&[READY])?;
            out.write_all(message.as_bytes())?;
            out.flush()?;
            let nothing = File::options().read(true).write(true).open("/dev/null")?;
            rustix::stdio::dup2_stdin(&nothing)?;
            rustix::stdio::dup2_stdout(&nothing)?;
            rustix::stdio::dup2_stderr(&nothing)?;
            Ok(())
        };
        detached().map_err(|error| {
            Failure::new(
                1,
                format!("cannot continue in the background: {error}"),
                "Omit --daemon, and let the shell start it in the background.",
            )
        })
    }

    /// Serves until a signal, until it is ended from outside, or until it was idle for as long as
    /// the user said. Then everything written is made durable. A volume in use delays the end until
    /// it is free or a second signal comes. `exports` are in the order of the volumes.
    ///
    /// Exit code 1 if it was in use or has ended by a fault, and if a write or flush has failed.
    pub fn wait(&self, exports: &[Arc<Export>], served: &mut dyn Served) -> Result<(), Failure> {
        let ended = self.serve(exports, served);
        let flushed = exports.iter().map(|export| export.flush());
        let flushed = flushed.fold(Ok(()), Result::and);
        let flushed = flushed.map_err(::volume::VolumeError::Block);
        let outcome = ended.and_then(|forced| {
            flushed?;
            match forced {
                true => Err(Failure::new(
                    1,
                    "the volume was ended while it was in use",
                    "Check its file system. The last writes that were not synced may be missing.",
                )),
                false => Ok(()),
            }
        });
        self.with_last_word(exports, outcome)
    }

    /// Serves until it is over; tells whether it was taken away from who used it.
    fn serve(&self, exports: &[Arc<Export>], served: &mut dyn Served) -> Result<bool, Failure> {
        let signals = count_signals()?;
        let mut tried: Option<Instant> = None;
        // Signals until it was said what the next one does.
        let mut told: Option<usize> = None;
        while !served.is_over() {
            std::thread::sleep(TICK);
            self.count(served.connections());
            let asked = signals.load(Ordering::Relaxed);
            let idle = |time| exports.iter().all(|export| export.idle() >= time);
            let idle = self.lock_after.is_some_and(idle);
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
                eprintln!("in use: ends when it is free, or at the next signal");
                // Signals that came meanwhile were sent before the user could read this.
                told = Some(signals.load(Ordering::Relaxed));
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

    /// The failures to store data, or else the given outcome. The result is recorded for the user
    /// that unmounts. In the background it is printed nowhere else, so the record stays.
    fn with_last_word(
        &self,
        exports: &[Arc<Export>],
        outcome: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut own = self.own();
        let record = own.record();
        let images = std::iter::once(&record.image).chain(&record.others);
        let lost = images.zip(exports).filter_map(|(image, export)| {
            let failures = export.failures()?;
            Some(what_is_lost(image, &failures))
        });
        let lost = lost.reduce(|first, next| Ending {
            what: format!("{}; {}", first.what, next.what),
            ..first
        });
        let (ending, outcome) = match (lost, outcome) {
            (None, Ok(())) => return Ok(()),
            (None, Err(failure)) => {
                let ending = Ending {
                    what: failure.what().into(),
                    remedy: failure.remedy().into(),
                };
                (ending, failure)
            }
            (Some(lost), outcome) => {
                let failure = Failure::new(1, lost.what.clone(), lost.remedy.clone());
                (lost, outcome.err().unwrap_or(failure))
            }
        };
        // If this fails, there is no way to report it.
        let _ = own.change(|record| record.ending = Some(ending));
        if self.daemon {
            own.keep();
        }
        Err(outcome)
    }

    fn own(&self) -> MutexGuard<'_, OwnRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The message for a volume whose writes or flushes failed.
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

/// Reports an error of the device, here and in the record, which the status shows.
fn note(record: &Weak<Mutex<OwnRecord>>, error: &BlockError) {
    let mut text = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        text += &format!(": {source}");
    }
    eprintln!("{text}");
    if let Some(record) = record.upgrade() {
        let mut own = record.lock().unwrap_or_else(PoisonError::into_inner);
        // If this fails, there is no way to report it.
        let _ = own.change(|record| record.errors.push(text));
    }
}

/// The outcome of a thread that has served.
///
/// # Errors
/// The thread's own error, and exit code 1 if it has panicked. Written data are flushed in either
/// case.
pub fn joined<E: Into<Failure>>(thread: JoinHandle<Result<(), E>>) -> Result<(), Failure> {
    match thread.join() {
        Ok(outcome) => outcome.map_err(Into::into),
        Err(_) => Err(Failure::new(
            1,
            "the server has ended by an internal error",
            "Start it again. Its messages above help to find the error.",
        )),
    }
}

/// Starts this program once more with the same arguments. Returns when that process serves, and
/// leaves it running.
fn in_background() -> Result<(), Failure> {
    // Ctrl-C is for who asks for the passphrase.
    stop_on_signal()?;
    let failed = |error: io::Error| {
        Failure::new(
            1,
            format!("cannot start in the background: {error}"),
            "Omit --daemon.",
        )
    };
    let (mut command, _arguments) = unseen::command().map_err(failed)?;
    command.env(IN_BACKGROUND, "1").stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut said = Vec::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_end(&mut said).map_err(failed)?;
    }
    if let Some((&READY, message)) = said.split_first() {
        print_done(&String::from_utf8_lossy(message));
        return Ok(());
    }
    let status = child.wait().map_err(failed)?;
    // It has said itself what is wrong.
    Err(Failure::told(
        status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(1),
    ))
}

/// Whether `done` becomes true within `patience`.
pub fn within(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if done() {
            return true;
        }
        if begun.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The absolute path of what may be a mount whose server is dead.
pub fn absolute(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().or_else(|error| {
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        match (error.raw_os_error(), path.file_name()) {
            (Some(code), Some(name)) if code == rustix::io::Errno::NOTCONN.raw_os_error() => {
                Ok(parent.canonicalize()?.join(name))
            }
            _ => Err(error),
        }
    })
}

fn unrecorded(error: io::Error) -> Failure {
    Failure::new(
        1,
        format!("cannot record what is served: {error}"),
        "Check the runtime directory: /run/cryptmark, or cryptmark in $XDG_RUNTIME_DIR.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_panics_has_failed() {
        let ended = |panics: bool| {
            joined(std::thread::spawn(move || -> Result<(), Failure> {
                assert!(!panics, "as it is meant to");
                Ok(())
            }))
        };
        assert!(ended(false).is_ok());
        assert_eq!(ended(true).unwrap_err().code(), 1);
    }

    #[test]
    fn times_are_read() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("10m", 600),
            ("2min", 120),
            ("2h", 7200),
        ] {
            let time: LockAfter = text.parse().unwrap();
            assert_eq!(time.0, Duration::from_secs(seconds), "{text}");
        }
        for text in ["", "0", "m", "-1", "1d", "1.5m", "10 m"] {
            assert!(text.parse::<LockAfter>().is_err(), "{text}");
        }
    }
}
