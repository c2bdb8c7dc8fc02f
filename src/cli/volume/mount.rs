//! `cryptmark volume mount`: the file system of a volume, or its plaintext as a
//! file.

use super::arguments::VolumeArguments;
use super::disk::Names;
use super::pinned::Pinned;
use super::place;
use super::protection::ProtectionArguments;
use super::secrets::SecretArguments;
use super::service::record::Place;
use super::service::{End, Exported, Served, Service, ServiceArguments, absolute, within};
use super::umount::Undo;
use crate::cli::Failure;
use ::serve::fuse::{self, FuseError, FuseMount, Visibility};
use block::LoopDevice;
use clap::{Args, ValueEnum};
use std::cell::Cell;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of the plaintext's file.
pub const FILE: &str = "volume";

/// Cores that are worth decrypting on for one mount.
const MOST_THREADS: usize = 16;

/// How long requests that are on their way may take.
const ENDING: Duration = Duration::from_secs(60);

/// The interval of checks whether the file system was unmounted from outside.
const LOOK: Duration = Duration::from_millis(500);

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
    let Some(service) = options.service.begin(&[&options.volume])? else {
        return Ok(());
    };
    // The remains of a killed server are removed by now.
    let place = mount_point(&options.directory, options.yes)?;
    let exported = service.export(
        &options.volume.with(names),
        &options.secret,
        &options.protection,
        options.yes,
    )?;
    // A passphrase may have been asked for meanwhile.
    place.check()?;
    place::check(place.path(), options.yes)?;
    let mut mounted = match what {
        What::File => {
            let visibility = visibility(options.allow_other);
            Mounted::inside(&service, &exported, &place, visibility)?
        }
        What::Fs => Mounted::file_system(&service, &exported, &place, options)?,
    };
    if let Err(failure) = place.check() {
        service.undo(Undo::Now)?;
        return Err(failure);
    }
    let shown = match what {
        What::File => place.path().join(FILE),
        What::Fs => place.path().to_owned(),
    };
    drop(place);
    let image = options.volume.image().display();
    let message = format!("{image} is mounted: {}\n", shown.display());
    let outcome = service
        .confine()
        .and_then(|()| service.ready(&message))
        .and_then(|()| service.wait(&[exported.export], &mut mounted));
    // Another program may have ended a part of it, or it could not be served.
    service.undo(Undo::Now)?;
    outcome
}

/// A directory that may be mounted on.
fn mount_point(path: &Path, yes: bool) -> Result<Pinned, Failure> {
    let pinned = absolute(path).and_then(|path| Pinned::new(&path));
    let pinned = pinned.map_err(|error| {
        Failure::new(
            2,
            format!("cannot mount on {}: {error}", path.display()),
            "Name an existing, empty directory.",
        )
    })?;
    place::check(pinned.path(), yes)?;
    Ok(pinned)
}

/// The users that may reach a file.
pub fn visibility(allow_other: bool) -> Visibility {
    match allow_other {
        true => Visibility::RootToo,
        false => Visibility::Owner,
    }
}

/// A volume that is mounted.
pub struct Mounted<'a> {
    service: &'a Service,
    fuse: FuseMount,
    /// The time of the last check whether the file system is there.
    looked: Cell<Instant>,
    /// Whether the warning was printed that it cannot be unmounted.
    warned: Cell<bool>,
}

impl<'a> Mounted<'a> {
    /// Makes the plaintext a file in `directory`.
    fn inside(
        service: &'a Service,
        exported: &Exported,
        directory: &Pinned,
        visibility: Visibility,
    ) -> Result<Self, Failure> {
        service.add(Place::Fuse(directory.path().to_owned()))?;
        let place = fuse::Place::In {
            directory: directory.through(),
            name: FILE.into(),
        };
        Self::new(service, exported, (&place, directory.path()), visibility)
    }

    /// Makes the plaintext visible in place of `file`.
    pub fn over(
        service: &'a Service,
        exported: &Exported,
        file: &Pinned,
        visibility: Visibility,
    ) -> Result<Self, Failure> {
        service.add(Place::FuseFile(file.path().to_owned()))?;
        let place = fuse::Place::Over(file.through());
        Self::new(service, exported, (&place, file.path()), visibility)
    }

    fn new(
        service: &'a Service,
        exported: &Exported,
        (place, shown): (&fuse::Place, &Path),
        visibility: Visibility,
    ) -> Result<Self, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let threads = exported.threads.max(cores.min(MOST_THREADS));
        let export = Arc::clone(&exported.export);
        let name = service.record().mount_name();
        let confinement = service.confinement()?;
        let confine = || {
            let failed = |failure: Failure| std::io::Error::other(failure.what().to_owned());
            confinement.enter().map_err(failed)
        };
        Ok(Self {
            service,
            fuse: FuseMount::named(export, place, threads, visibility, &name, confine).map_err(
                |error| match error {
                    FuseError::Mount { source, .. } => FuseError::Mount {
                        path: shown.to_owned(),
                        source,
                    },
                    error => error,
                },
            )?,
            looked: Cell::new(Instant::now()),
            warned: Cell::new(false),
        })
    }

    /// Mounts the file system in the plaintext on `directory`.
    fn file_system(
        service: &'a Service,
        exported: &Exported,
        directory: &Pinned,
        options: &MountOptions,
    ) -> Result<Self, Failure> {
        let private = service.private_directory();
        service.add(Place::Directory(private.clone()))?;
        let made = DirBuilder::new().mode(0o700).create(&private);
        let made = made.and_then(|()| Pinned::new(&private));
        let made = made.map_err(|error| {
            Failure::new(
                1,
                format!("cannot make {}: {error}", private.display()),
                "Check the free space and the permissions.",
            )
        })?;
        let mounted = Self::inside(service, exported, &made, Visibility::Owner);
        let outcome = mounted.and_then(|mounted| {
            let file = private.join(FILE);
            match rustix::process::geteuid().is_root() {
                true => by_kernel(service, &file, directory, options),
                false => by_fuse2fs(service, &file, directory.path(), options),
            }?;
            Ok(mounted)
        });
        if outcome.is_err() {
            // The mount error is more important than this one.
            let _ = service.undo(Undo::Now);
        }
        outcome
    }
}

impl Mounted<'_> {
    /// Takes it away if it is not in use; returns whether it is gone.
    fn let_go(&self) -> Result<bool, Failure> {
        let free = self.service.undo(Undo::Unused)?;
        Ok(free && within(ENDING, || self.fuse.is_over()))
    }
}

impl Served for Mounted<'_> {
    fn is_over(&self) -> bool {
        if self.looked.get().elapsed() >= LOOK {
            self.looked.set(Instant::now());
            if self.service.is_gone() {
                // fuse2fs writes its cache after the unmount. If it cannot be found out whether it
                // has ended, it may still write. So it is served, and checked again.
                return self.let_go().unwrap_or_else(|failure| {
                    if !self.warned.replace(true) {
                        eprintln!("warning: {}\n  {}", failure.what(), failure.remedy());
                    }
                    self.fuse.is_over()
                });
            }
        }
        self.fuse.is_over()
    }

    fn outcome(&mut self) -> Result<(), Failure> {
        Ok(self.fuse.outcome()?)
    }

    fn end(&mut self, how: End) -> Result<bool, Failure> {
        match how {
            End::Unused => self.let_go(),
            End::Now => self.service.undo(Undo::Now),
        }
    }
}

/// Mounts the file system in `file` as root: by a loop device.
fn by_kernel(
    service: &Service,
    file: &Path,
    directory: &Pinned,
    options: &MountOptions,
) -> Result<(), Failure> {
    let write = !service.is_read_only();
    let device = LoopDevice::attach(file, write).map_err(::volume::VolumeError::Block)?;
    service.add(Place::Loop(device.path().to_owned()))?;
    service.add(Place::FileSystem(directory.path().to_owned()))?;
    let mut command = block::program::command("mount");
    if let Some(kind) = &options.fs_type {
        command.args(["-t", kind]);
    }
    let access = if write { "rw" } else { "ro" };
    let wanted = options.mount_options.as_deref();
    // The author of the volume's content isn't root on this system. --mount-options come last, and
    // may say otherwise.
    let given = format!("{access},nosuid,nodev");
    command.args(["-o", &joined(&given, wanted)]);
    // It must not make a path of its own of what the descriptor leads to.
    command.arg("--no-canonicalize").arg("--");
    let place = directory.through_for_others();
    run_program(command.arg(device.path()).arg(place), options)
}

/// Mounts the file system in `file` as a user: ext2, ext3 or ext4.
fn by_fuse2fs(
    service: &Service,
    file: &Path,
    directory: &Path,
    options: &MountOptions,
) -> Result<(), Failure> {
    let known = ["ext2", "ext3", "ext4"];
    if let Some(kind) = options
        .fs_type
        .as_deref()
        .filter(|kind| !known.contains(kind))
    {
        return Err(Failure::new(
            2,
            format!("only root can mount {kind}"),
            "Mount it as root, or serve it with --as file.",
        ));
    }
    service.add(Place::Fuse2fs(directory.to_owned()))?;
    let access = if service.is_read_only() { "ro" } else { "rw" };
    let wanted = joined(access, options.mount_options.as_deref());
    let mut command = block::program::command("fuse2fs");
    run_program(
        command.arg(file).arg(directory).args(["-o", &wanted]),
        options,
    )
}

fn joined(access: &str, wanted: Option<&str>) -> String {
    wanted.map_or_else(|| access.to_owned(), |wanted| format!("{access},{wanted}"))
}

/// Runs a program that mounts.
fn run_program(command: &mut Command, options: &MountOptions) -> Result<(), Failure> {
    let image = options.volume.image().display();
    let name = Path::new(command.get_program());
    let name = name
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        Failure::new(
            1,
            format!("cannot run {name}: {error}"),
            format!(
                "Install it (package {}), or serve the volume with --as file.",
                match name.as_str() {
                    "fuse2fs" => "fuse2fs",
                    _ => "mount",
                }
            ),
        )
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().lines().next().unwrap_or("it gives no reason");
    Err(Failure::new(
        1,
        format!("cannot mount the file system in {image}: {said}"),
        "Check that it holds one, or name its type with --fs-type. --as file needs no file system.",
    ))
}
