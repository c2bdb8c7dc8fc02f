//! `cryptmark volume serve`: an opened volume as a disk for others: over NBD, as
//! a file by FUSE, or as a disk of the kernel's.

#[cfg(all(feature = "ublk", target_os = "linux"))]
mod disk;
mod tls;

use super::arguments::{Volume, VolumeArguments};
use super::disk::Names;
use super::mount::{Mounted, visibility};
use super::pinned::Pinned;
use super::place;
use super::protection::ProtectionArguments;
use super::secrets::SecretArguments;
use super::service::record;
use super::service::{End, Exported, Served, Service, ServiceArguments, joined};
use super::umount::Undo;
use crate::cli::Failure;
use ::serve::nbd::{self, Named, Place, ServeError, Server};
use clap::Args;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use tls::TlsArguments;

/// Options of `cryptmark volume serve`.
#[derive(Debug, Args)]
pub struct ServeOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    /// More volumes for the same NBD server, opened with the same options and exported by their file names
    #[arg(value_name = "IMAGE", conflicts_with_all = ["fuse", "ublk", "name"])]
    more: Vec<PathBuf>,
    #[command(flatten)]
    secret: SecretArguments,
    #[command(flatten)]
    protection: ProtectionArguments,
    #[command(flatten)]
    service: ServiceArguments,
    #[command(flatten)]
    way: Way,
    /// Name of the export; it is also the default export
    #[arg(long, value_name = "NAME", conflicts_with_all = ["fuse", "ublk"])]
    name: Option<String>,
    #[command(flatten)]
    tls: TlsArguments,
    /// Serve other machines without TLS; anyone on the network path can read and change all data. Write to data that may not be this volume's
    #[arg(long, short = 'y')]
    yes: bool,
    /// Let root access the file as well, as FUSE's allow_other does
    #[arg(long, conflicts_with_all = ["nbd", "ublk"])]
    allow_other: bool,
}

/// One of them: FUSE caches what it has read, and would not see what clients of
/// another kind write.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Way {
    /// Serve it over NBD, on a Unix socket that only you can use, or on an address; without HOST, on this machine only
    #[arg(long, value_name = "SOCKET|[HOST]:PORT")]
    nbd: Option<OsString>,
    /// Serve it as this file, which must be new or empty
    #[arg(long, value_name = "FILE")]
    fuse: Option<PathBuf>,
    /// Serve it as a disk of the kernel, /dev/ublkbN
    #[arg(long)]
    ublk: bool,
}

/// Runs the command.
pub fn run(options: &ServeOptions, names: &Names) -> Result<(), Failure> {
    match (&options.way.nbd, &options.way.fuse) {
        (Some(place), _) => over_nbd(options, names, place),
        (None, Some(file)) => as_file(options, names, file),
        (None, None) => as_disk(options, names),
    }
}

impl ServeOptions {
    fn export(&self, volume: &Volume, service: &Service) -> Result<Exported, Failure> {
        service.export(volume, &self.secret, &self.protection, self.yes)
    }

    fn ready(&self, service: &Service, place: &str) -> Result<(), Failure> {
        let mut images = self.volume.image().display().to_string();
        for image in &self.more {
            images += &format!(", {}", image.display());
        }
        let verb = if self.more.is_empty() { "is" } else { "are" };
        service.ready(&format!("{images} {verb} served: {place}\n"))
    }
}

fn over_nbd(options: &ServeOptions, names: &Names, place: &OsString) -> Result<(), Failure> {
    let place = Place::parse(place)?.absolute()?;
    check_exposure(&place, options)?;
    let mut volumes = vec![options.volume.clone()];
    for image in &options.more {
        volumes.push(options.volume.with(names).of(image)?);
    }
    let export_names = export_names(options)?;
    let securing = options.tls.securing()?;
    let all: Vec<&VolumeArguments> = volumes.iter().collect();
    let Some(service) = options.service.begin(&all)? else {
        return Ok(());
    };
    let mut exports = Vec::new();
    let mut named = Vec::new();
    let mut threads = 1;
    for (volume, name) in volumes.iter().zip(export_names) {
        let exported = options.export(&volume.with(names), &service)?;
        threads = threads.max(exported.threads);
        exports.push(exported.export.clone());
        named.push(Named {
            name,
            // Clients learn nothing of where it lies.
            description: String::new(),
            export: exported.export,
        });
    }
    let server = securing(Server::listen(place, named, threads)?);
    let place = server.place().to_string();
    service.add(record::Place::Nbd(place.clone()))?;
    service.confine()?;
    let mut running = Running {
        end: server.end(),
        thread: Some(std::thread::spawn(move || server.run())),
    };
    options.ready(&service, &place)?;
    service.wait(&exports, &mut running)
}

/// Refuses to serve the plaintext to other machines or other users without TLS, unless the user
/// confirms it.
///
/// # Errors
/// Exit code 4 without that confirmation.
fn check_exposure(place: &Place, options: &ServeOptions) -> Result<(), Failure> {
    if !place.is_exposed() {
        return Ok(());
    }
    let address = place;
    if options.tls.is_required() {
        return Ok(());
    }
    let what = format!(
        "every client that reaches {address}, and anyone on the way there, can read{} the volume's plaintext: NBD without TLS provides neither encryption nor authentication",
        if options.service.is_read_only() {
            ""
        } else {
            " and change"
        }
    );
    if !options.yes {
        return Err(Failure::new(
            4,
            what,
            "Give --tls require, or serve on a socket or localhost and tunnel it through ssh. Otherwise confirm with --yes.",
        ));
    }
    eprintln!("warning: {what}");
    Ok(())
}

/// The names of the exports. Several exports are named by their files.
fn export_names(options: &ServeOptions) -> Result<Vec<String>, Failure> {
    if options.more.is_empty() {
        let name = options.name.clone().unwrap_or_default();
        return match name.len() > nbd::LONGEST_NAME {
            false => Ok(vec![name]),
            true => Err(Failure::new(
                2,
                format!("the name of the export has {} bytes", name.len()),
                format!("Give one of {} bytes at most.", nbd::LONGEST_NAME),
            )),
        };
    }
    let mut names: Vec<String> = Vec::new();
    let first = options.volume.image();
    for image in std::iter::once(first).chain(options.more.iter().map(PathBuf::as_path)) {
        let name = image.file_name().unwrap_or(image.as_os_str());
        let name = name.to_string_lossy().into_owned();
        if names.contains(&name) {
            return Err(Failure::new(
                2,
                format!("two volumes would be exported as {name}"),
                "Serve one of them alone, with --name.",
            ));
        }
        names.push(name);
    }
    Ok(names)
}

/// A server on a thread of its own.
struct Running {
    end: nbd::End,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Served for Running {
    fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn connections(&self) -> usize {
        self.end.users()
    }

    fn outcome(&mut self) -> Result<(), Failure> {
        self.thread.take().map_or(Ok(()), joined)
    }

    /// Ends the server. Connected clients get the answers to the requests that they have sent, and
    /// no more.
    fn end(&mut self, how: End) -> Result<bool, Failure> {
        if how == End::Unused && self.connections() > 0 {
            return Ok(false);
        }
        self.end.now();
        self.outcome().map(|()| true)
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let code = match &error {
            ServeError::Place { .. } => 2,
            ServeError::InUse { .. } | ServeError::NoSocket { .. } => 4,
            ServeError::Listen { .. } | ServeError::Failed(_) => 1,
        };
        Self::of(code, &error, error.remedy())
    }
}

fn as_file(options: &ServeOptions, names: &Names, file: &Path) -> Result<(), Failure> {
    let Some(service) = options.service.begin(&[&options.volume])? else {
        return Ok(());
    };
    let mut spot = Spot::find(file)?;
    let exported = options.export(&options.volume.with(names), &service)?;
    let outcome = spot.make(&service).and_then(|file| {
        let visibility = visibility(options.allow_other);
        let mut mounted = Mounted::over(&service, &exported, &file, visibility)?;
        file.check()?;
        drop(file);
        service.confine()?;
        options.ready(&service, &spot.path.display().to_string())?;
        service.wait(&[exported.export], &mut mounted)
    });
    // Another program may have ended a part of it, or it could not be served.
    service.undo(Undo::Now)?;
    outcome
}

/// Where a file is to appear.
struct Spot {
    /// Absolute.
    path: PathBuf,
    directory: Pinned,
    /// An empty file that is there, and stays when all is over.
    there: Option<Pinned>,
}

impl Spot {
    fn find(file: &Path) -> Result<Self, Failure> {
        let unusable = |error: io::Error| unusable(file, &error);
        let name = file
            .file_name()
            .ok_or_else(|| unusable(io::ErrorKind::IsADirectory.into()))?;
        let directory = match file.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let directory = directory.canonicalize();
        let directory = directory.and_then(|directory| Pinned::new(&directory));
        let directory = directory.map_err(unusable)?;
        let path = directory.path().join(name);
        place::check_file(&path)?;
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self {
                path,
                directory,
                there: None,
            }),
            Err(error) => Err(unusable(error)),
            Ok(found) if found.is_dir() => Err(unusable(io::ErrorKind::IsADirectory.into())),
            Ok(found) if found.is_file() && found.len() == 0 => Ok(Self {
                there: Some(Pinned::new(&path).map_err(unusable)?),
                path,
                directory,
            }),
            Ok(_) => Err(Failure::new(
                4,
                format!("{} exists already and isn't an empty file", file.display()),
                REMEDY,
            )),
        }
    }

    /// The file, which is made if it was not there. A passphrase may have been asked for meanwhile.
    fn make(&mut self, service: &Service) -> Result<Pinned, Failure> {
        self.directory.check()?;
        let there = self.there.take();
        let unusable = |error: io::Error| unusable(&self.path, &error);
        if let Some(there) = there {
            there.check()?;
            let found = fs::metadata(there.through()).map_err(unusable)?;
            return match found.is_file() && found.len() == 0 {
                true => Ok(there),
                false => Err(Failure::new(
                    4,
                    format!("{} was written meanwhile", self.path.display()),
                    REMEDY,
                )),
            };
        }
        service.add(record::Place::EmptyFile(self.path.clone()))?;
        let mut new = File::options();
        new.write(true).create_new(true).mode(0o600);
        let name = self.path.file_name().unwrap_or_default();
        let path = self.directory.through().join(name);
        let made = new.open(&path).and_then(|_| Pinned::new(&path));
        let made = made.map_err(unusable)?;
        let checked = self.directory.check();
        checked.inspect_err(|_| drop(fs::remove_file(&path)))?;
        Ok(made)
    }
}

const REMEDY: &str = "Name a new file in a directory of your own.";

fn unusable(file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        2,
        format!("cannot serve it as {}: {error}", file.display()),
        REMEDY,
    )
}

#[cfg(all(feature = "ublk", target_os = "linux"))]
use disk::as_disk;

#[cfg(not(all(feature = "ublk", target_os = "linux")))]
fn as_disk(_: &ServeOptions, _: &Names) -> Result<(), Failure> {
    Err(Failure::new(
        1,
        "this program was built without ublk",
        "Build it with --features ublk, on Linux, or serve with --nbd or --fuse.",
    ))
}
