//! The common part of all commands that serve a volume: in the foreground or the background.
//!
//! ```text
//! let Some(service) = options.service.begin(&[volume])? else { return Ok(()) };   // --daemon: served by now
//! let exported = service.export(volume, secret)?;
//! service.places()?.add(Place::…)?;                                               // before each is made
//! service.ready("…")?;                                                            // the terminal is free
//! service.wait(&[exported.export], &mut served)
//! ```

use super::arguments::{Volume, VolumeArguments};
use super::disk::whole_name;
use super::losses::accepted;
use super::open::unlock;
use super::protection::ProtectionArguments;
use super::secrets::SecretArguments;
use crate::cli::confine::{Confinement, lacking, use_};
use crate::cli::{Failure, count_signals, print, print_done, stop_on_signal, unseen};
use ::serve::Export;
use ::serve::service::{
    Ending, Place, Record, Served, Service, ServiceError, Terms, Unmounter, make_way, obey,
};
use ::volume::{Format, Storage, luks2};
use block::hold;
use block::layer::{Protected, Trim, TrimPolicy};
use block::{BlockDevice, BlockError};
use clap::Args;
use jiff::SignedDuration;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use volume::judge::Use;

/// Tells the program that it was started to serve in the background.
const IN_BACKGROUND: &str = "CRYPTMARK_IN_BACKGROUND";

/// Where the threads of a mount take requests.
pub const FUSE: &str = "/dev/fuse";

/// The hidden command that unmounts for a process that is confined.
pub const UNMOUNTER: &str = "unmounter";

/// The first byte that a program in the background sends, once it serves.
const READY: u8 = b'+';

/// Requests that are worked on at a time if the storage is slow.
const THREADS: usize = 16;

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
    #[arg(long, value_name = "TIME", value_parser = idle)]
    lock_after: Option<Duration>,
}

/// A time such as 90s, 10m or 2h, or a number of seconds.
fn idle(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().map(SignedDuration::from_secs);
    let time = seconds.or_else(|_| text.parse::<SignedDuration>());
    let time = time.ok().filter(|time| time.as_secs() > 0);
    time.and_then(|time| Duration::try_from(time).ok())
        .ok_or("give a time of at least 1s, such as 90s, 10m or 2h")
}

impl ServiceArguments {
    /// Begins to serve. With `--daemon` a process of its own serves, and this returns `None` when
    /// that one is [ready](Serving::ready).
    ///
    /// # Errors
    /// Exit code 4 if the volume is served already and one of both writes;
    /// in the background, what ended that process.
    pub fn begin(&self, volumes: &[&VolumeArguments]) -> Result<Option<Serving>, Failure> {
        if self.daemon && std::env::var_os(IN_BACKGROUND).is_none() {
            return in_background().map(|()| None);
        }
        let mut images: Vec<PathBuf> = Vec::new();
        for volume in volumes {
            let image = whole_name(volume.image())?;
            let same = |other: &PathBuf| *other == image || hold::is_same(other, &image);
            if images.iter().any(same) {
                let what = format!("{} is named twice", image.display());
                return Err(Failure::new(2, what, "Name every volume once."));
            }
            images.push(image);
        }
        for Ending { what, .. } in make_way(&images, self.read_only)? {
            eprintln!("warning: when it was served last, {what}");
        }
        let trim = match self.allow_discards {
            true => TrimPolicy::Pass,
            false => self.trim,
        };
        let mut others = images.into_iter();
        let service = Service::begin(Record {
            image: others.next().unwrap_or_default(),
            others: others.collect(),
            access: if self.read_only { "read" } else { "write" }.into(),
            trim: trim.name().into(),
            pid: std::process::id(),
            since: jiff::Timestamp::now().to_string(),
            places: Vec::new(),
            connections: 0,
            errors: Vec::new(),
            unconfined: Some("it is not confined".to_owned()),
            ending: None,
        })?;
        let sources = volumes.iter().flat_map(|volume| {
            let header = volume.named_header();
            std::iter::once(volume.image()).chain(header)
        });
        Ok(Some(Serving {
            sources: sources.map(Path::to_owned).collect(),
            service,
            read_only: self.read_only,
            trim,
            daemon: self.daemon,
            lock_after: self.lock_after,
        }))
    }

    /// Whether writes are refused.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }
}

/// A service that has begun, as the options want it.
pub struct Serving {
    service: Service,
    read_only: bool,
    trim: TrimPolicy,
    daemon: bool,
    lock_after: Option<Duration>,
    /// Where its volumes and their headers are.
    sources: Vec<PathBuf>,
}

/// Has the header of a LUKS2 volume remember that discards leave zeros; says whether it does. Other
/// formats cannot remember it: what asks for zeros gets zeros that are written, and discards leave
/// noise.
fn remember_holes(volume: &Volume, header: &dyn BlockDevice) -> Result<bool, Failure> {
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

impl Serving {
    /// Opens the volume, as the user wants it served: its plaintext, and the requests that are worth
    /// working on at a time. With `yes` it is written although its data may be another's.
    pub fn export(
        &self,
        volume: &Volume,
        secret: &SecretArguments,
        protection: &ProtectionArguments,
        yes: bool,
    ) -> Result<(Arc<Export>, usize), Failure> {
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
        if self.trim != TrimPolicy::Block && !self.read_only {
            warn_of_hidden(volume, protection);
        }
        if self.trim == TrimPolicy::Pass {
            opened = opened.allowing_discards();
            if !self.read_only && remember_holes(volume, devices.header())? {
                opened = opened.reading_holes();
            }
        }
        let allocation = opened.allocation(devices.header(), devices.data());
        let [header, data] = devices.place().devices();
        let hidden = protection.range(volume, &devices)?;
        let data: Arc<dyn BlockDevice> = Arc::new(Protected::new(data, hidden));
        let device = Trim::new(opened.device(header, data)?, self.trim);
        let mut export = Export::new(Arc::new(device), served);
        if devices.disk().keeps_lost_writes {
            export = export.keeping_lost_writes();
        }
        let note = self.service.listener();
        // Memory answers at once, and a disk only when it has got there.
        let threads = match devices.disk().answers_at_once {
            true => 1,
            false => THREADS,
        };
        let export = export
            .with_listener(move |error: &BlockError| eprintln!("{}", note(error)))
            .with_allocation(move |range| {
                allocation.extents(range, |storage, range| match storage {
                    Storage::Header => devices.header().extents(range),
                    Storage::Data => devices.data().extents(range),
                })
            });
        Ok((Arc::new(export), threads))
    }

    /// The service, to which places are added. From now on there is something to take away before the
    /// end, so signals do not end the process.
    pub fn places(&self) -> Result<&Service, Failure> {
        count_signals()?;
        Ok(&self.service)
    }

    /// Confines the threads that answer a mount, which open `node` again, or a disk.
    pub fn confining(
        &self,
        node: Option<&'static str>,
    ) -> impl Fn() -> io::Result<()> + Send + Sync + use<> {
        let sources = self.sources.clone();
        move || {
            let node = node.map(PathBuf::from);
            let entered = confinement(&sources, node).and_then(|confinement| confinement.enter());
            entered.map_err(|failure| io::Error::other(failure.what().to_owned()))
        }
    }

    /// Confines this thread and those that it starts from now on. No place can be added any more.
    pub fn confine(&self) -> Result<(), Failure> {
        let nodes = self.service.record().places.into_iter();
        let nodes = nodes.filter_map(|place| match place {
            Place::Fuse(_) | Place::FuseFile(_) => Some(FUSE.into()),
            // Whether it is in use is found out by opening it.
            Place::Disk(disk) => Some(disk),
            _ => None,
        });
        let confinement = confinement(&self.sources, nodes)?;
        let program = std::env::current_exe().map_err(ServiceError::Unmounter)?;
        let mut program = block::program::command(program);
        let outside = Unmounter::start(program.arg(UNMOUNTER), &self.service.own())?;
        let unconfined = lacking().map(str::to_owned);
        self.service
            .confine(outside, unconfined, || confinement.enter())
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
            let what = format!("cannot continue in the background: {error}");
            let remedy = "Omit --daemon, and let the shell start it in the background.";
            Failure::new(1, what, remedy)
        })
    }

    /// Serves until the end, as [`Service::wait`] does.
    pub fn wait(&self, exports: &[Arc<Export>], served: &mut dyn Served) -> Result<(), Failure> {
        let terms = Terms {
            signals: count_signals()?,
            lock_after: self.lock_after,
            keep: self.daemon,
            in_use: &|| eprintln!("in use: ends when it is free, or at the next signal"),
            told: &|error| {
                let failure = Failure::served(error);
                Ending {
                    what: failure.what().into(),
                    remedy: failure.remedy().into(),
                }
            },
        };
        Ok(self.service.wait(exports, served, &terms)?)
    }
}

/// The confinement of what serves: files that are open, its own nodes, locks that cryptsetup sees,
/// and the servers from which the volumes come.
fn confinement(
    sources: &[PathBuf],
    nodes: impl IntoIterator<Item = PathBuf>,
) -> Result<Confinement, Failure> {
    let nodes = nodes.into_iter().map(|node| (node, use_())).collect();
    Confinement::around(sources.iter().map(PathBuf::as_path), nodes)
}

impl Failure {
    pub(super) fn served(error: &ServiceError) -> Self {
        let code = match error {
            error if error.is_refusal() => 4,
            error if error.is_bad_input() => 2,
            _ => 1,
        };
        Self::of(code, error, error.remedy())
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Block(error) => error.into(),
            error => Self::served(&error),
        }
    }
}

/// Runs the hidden command: unmounts for the server that has started this process.
pub fn unmount_for_server() -> Result<(), Failure> {
    // It ends after the server, which the same signal may have asked to end.
    count_signals()?;
    let answered = obey(io::stdin().lock(), io::stdout().lock());
    answered.map_err(|error| ServiceError::Unmounter(error).into())
}

/// Starts this program once more with the same arguments. Returns when that process serves, and
/// leaves it running.
fn in_background() -> Result<(), Failure> {
    // Ctrl-C is for who asks for the passphrase.
    stop_on_signal()?;
    let failed = |error: io::Error| {
        let what = format!("cannot start in the background: {error}");
        Failure::new(1, what, "Omit --daemon.")
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
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Err(Failure::told(code.unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("10m", 600),
            ("2min", 120),
            ("2h", 7200),
            ("1.5m", 90),
        ] {
            let time = idle(text).unwrap();
            assert_eq!(time, Duration::from_secs(seconds), "{text}");
        }
        for text in ["", "0", "m", "-1", "1d", "10x"] {
            assert!(idle(text).is_err(), "{text}");
        }
    }
}
