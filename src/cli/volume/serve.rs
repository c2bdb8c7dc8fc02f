//! `cryptmark volume serve`: an opened volume as a disk for others: over NBD, as
//! a file by FUSE, or as a disk of the kernel's.

mod tls;

use super::arguments::{Volume, VolumeArguments};
use super::disk::Names;
use super::mount::visibility;
use super::protection::ProtectionArguments;
use super::secrets::SecretArguments;
use super::service::{FUSE, ServiceArguments, Serving};
use crate::cli::Failure;
use ::serve::Export;
use ::serve::nbd::{self, Named, Place, ServeError, Server};
use ::serve::service::{self, Mounted, OverNbd, ServiceError, Spot, Undo};
use clap::Args;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    fn export(&self, volume: &Volume, serving: &Serving) -> Result<(Arc<Export>, usize), Failure> {
        serving.export(volume, &self.secret, &self.protection, self.yes)
    }

    fn ready(&self, serving: &Serving, place: &str) -> Result<(), Failure> {
        let mut images = self.volume.image().display().to_string();
        for image in &self.more {
            images += &format!(", {}", image.display());
        }
        let verb = if self.more.is_empty() { "is" } else { "are" };
        serving.ready(&format!("{images} {verb} served: {place}\n"))
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
    let Some(serving) = options.service.begin(&all)? else {
        return Ok(());
    };
    let mut exports = Vec::new();
    let mut named = Vec::new();
    let mut threads = 1;
    for (volume, name) in volumes.iter().zip(export_names) {
        let (export, worth) = options.export(&volume.with(names), &serving)?;
        threads = threads.max(worth);
        exports.push(export.clone());
        named.push(Named {
            name,
            // Clients learn nothing of where it lies.
            description: String::new(),
            export,
        });
    }
    let server = securing(Server::listen(place, named, threads)?);
    let place = server.place().to_string();
    serving.places()?.add(service::Place::Nbd(place.clone()))?;
    serving.confine()?;
    let mut running = OverNbd::start(server);
    options.ready(&serving, &place)?;
    serving.wait(&exports, &mut running)
}

/// Refuses to serve the plaintext to other machines or other users without TLS, unless the user
/// confirms it.
///
/// # Errors
/// Exit code 4 without that confirmation.
fn check_exposure(place: &Place, options: &ServeOptions) -> Result<(), Failure> {
    if !place.is_exposed() || options.tls.is_required() {
        return Ok(());
    }
    let what = format!(
        "every client that reaches {place}, and anyone on the way there, can read{} the volume's plaintext: NBD without TLS provides neither encryption nor authentication",
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

fn as_file(options: &ServeOptions, names: &Names, file: &Path) -> Result<(), Failure> {
    let Some(serving) = options.service.begin(&[&options.volume])? else {
        return Ok(());
    };
    let mut spot = Spot::find(file)?;
    let export = options.export(&options.volume.with(names), &serving)?;
    let exports = [export.0.clone()];
    let places = serving.places()?;
    let outcome = || -> Result<(), Failure> {
        let file = spot.make(places)?;
        let visibility = visibility(options.allow_other);
        let confine = serving.confining(Some(FUSE));
        let mut mounted = Mounted::over(places, export, &file, visibility, &confine)?;
        file.check()?;
        drop(file);
        serving.confine()?;
        options.ready(&serving, &spot.path().display().to_string())?;
        serving.wait(&exports, &mut mounted)
    };
    let outcome = outcome();
    // Another program may have ended a part of it, or it could not be served.
    places.undo(Undo::Now)?;
    outcome
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        ServiceError::from(error).into()
    }
}

/// Serves the volume as a disk of the kernel's, by its ublk driver.
#[cfg(feature = "ublk")]
fn as_disk(options: &ServeOptions, names: &Names) -> Result<(), Failure> {
    use ::serve::service::{End, OnDisk, Served};
    // Before a passphrase is asked for.
    ::serve::ublk::check().map_err(ServiceError::from)?;
    let Some(serving) = options.service.begin(&[&options.volume])? else {
        return Ok(());
    };
    let (export, threads) = options.export(&options.volume.with(names), &serving)?;
    let disk = OnDisk::disk(&export, threads)?;
    let places = serving.places()?;
    places.add(service::Place::Disk(disk.path()))?;
    let outcome = || -> Result<(), Failure> {
        let mut running = OnDisk::start(disk, export.clone(), serving.confining(None))?;
        let outcome = serving
            .confine()
            .and_then(|()| options.ready(&serving, &running.path().display().to_string()))
            .and_then(|()| serving.wait(&[export], &mut running));
        let ended = running.end(End::Now);
        outcome.and(Ok(ended.map(drop)?))
    };
    let outcome = outcome();
    places.undo(Undo::Now)?;
    outcome
}

#[cfg(not(feature = "ublk"))]
fn as_disk(_: &ServeOptions, _: &Names) -> Result<(), Failure> {
    Err(Failure::new(
        1,
        "this program was built without ublk",
        "Build it with --features ublk, on Linux, or serve with --nbd or --fuse.",
    ))
}
