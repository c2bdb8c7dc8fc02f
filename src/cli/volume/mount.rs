//! `cryptmark volume mount`: the file system of a volume, or its plaintext as a
//! file.

use super::arguments::VolumeArguments;
use super::disk::Names;
use super::protection::ProtectionArguments;
use super::secrets::SecretArguments;
use super::service::{FUSE, ServiceArguments};
use crate::cli::Failure;
use ::serve::fuse::Visibility;
use ::serve::service::{self, FILE, FileSystem, Mounted, ServiceError, Undo};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `cryptmark volume mount`.
#[derive(Debug, Args)]
pub struct MountOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    /// Where to mount it: an empty directory that does not belong to the system
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    secret: SecretArguments,
    #[command(flatten)]
    protection: ProtectionArguments,
    #[command(flatten)]
    service: ServiceArguments,
    /// fs: its file system; file: its plaintext as DIR/volume [default: fs for root, file for others]
    #[arg(long = "as", value_name = "WHAT", value_enum)]
    what: Option<What>,
    /// Type of the file system [default: what mount finds]
    #[arg(long, value_name = "TYPE")]
    fs_type: Option<String>,
    /// Options for the file system, as `mount -o` takes them
    #[arg(long, value_name = "OPTIONS")]
    mount_options: Option<String>,
    /// Mount over a directory that is not empty; its contents are hidden meanwhile. Write to data
    /// that may not be this volume's
    #[arg(long, short = 'y')]
    yes: bool,
    /// With --as file: let root access it as well, as FUSE's allow_other does
    #[arg(long)]
    allow_other: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Its file system
    Fs,
    /// Its plaintext
    File,
}

/// Runs the command.
pub fn run(options: &MountOptions, names: &Names) -> Result<(), Failure> {
    let root = rustix::process::geteuid().is_root();
    let what = options
        .what
        .unwrap_or(if root { What::Fs } else { What::File });
    if what == What::File && (options.fs_type.is_some() || options.mount_options.is_some()) {
        return Err(Failure::new(
            2,
            "--fs-type and --mount-options are for file systems",
            "Give --as fs, or omit them.",
        ));
    }
    if what == What::Fs && options.allow_other {
        return Err(Failure::new(
            2,
            "--allow-other is for the plaintext as a file",
            "Give --as file. For a file system, --mount-options set the access.",
        ));
    }
    let Some(serving) = options.service.begin(&[&options.volume])? else {
        return Ok(());
    };
    // The remains of a killed server are removed by now.
    let place = service::mount_point(&options.directory, options.yes)?;
    let volume = options.volume.with(names);
    let export = serving.export(&volume, &options.secret, &options.protection, options.yes)?;
    // A passphrase may have been asked for meanwhile.
    place.check()?;
    service::check(place.path(), options.yes)?;
    let exports = [export.0.clone()];
    let places = serving.places()?;
    let confine = serving.confining(Some(FUSE));
    let mut mounted = match what {
        What::File => {
            let visibility = visibility(options.allow_other);
            Mounted::inside(places, export, &place, visibility, &confine)
        }
        What::Fs => {
            let wanted = FileSystem {
                kind: options.fs_type.as_deref(),
                options: options.mount_options.as_deref(),
            };
            Mounted::file_system(places, export, &place, wanted, &confine, &warn)
        }
    }?;
    if let Err(error) = place.check() {
        places.undo(Undo::Now)?;
        return Err(error.into());
    }
    let shown = match what {
        What::File => place.path().join(FILE),
        What::Fs => place.path().to_owned(),
    };
    drop(place);
    let image = options.volume.image().display();
    let message = format!("{image} is mounted: {}\n", shown.display());
    let outcome = serving
        .confine()
        .and_then(|()| serving.ready(&message))
        .and_then(|()| serving.wait(&exports, &mut mounted));
    // Another program may have ended a part of it, or it could not be served.
    places.undo(Undo::Now)?;
    outcome
}

/// Says why a file system that is unmounted is still served.
fn warn(error: &ServiceError) {
    let failure = Failure::served(error);
    eprintln!("warning: {}\n  {}", failure.what(), failure.remedy());
}

/// The users that may reach a file.
pub fn visibility(allow_other: bool) -> Visibility {
    match allow_other {
        true => Visibility::RootToo,
        false => Visibility::Owner,
    }
}
