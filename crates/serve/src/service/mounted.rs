//! [`Mounted`]: an export that is mounted, as a file or with its file system.

use super::undo::Undo;
use super::{End, FileSystem, Pinned, Place, Served, Service, ServiceError, within};
use crate::Export;
use crate::fuse::{self, FuseError, FuseMount, Visibility};
use std::cell::Cell;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
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

/// Gives up what the threads that serve do not need.
pub type Confine<'a> = &'a (dyn Fn() -> io::Result<()> + Sync);

/// Hears why something cannot be unmounted.
pub type Warn<'a> = &'a dyn Fn(&ServiceError);

/// An export that is mounted.
pub struct Mounted<'a> {
    service: &'a Service,
    fuse: FuseMount,
    /// The time of the last check whether the file system is there.
    looked: Cell<Instant>,
    /// Hears once why it cannot be unmounted.
    warn: Cell<Option<Warn<'a>>>,
}

impl<'a> Mounted<'a> {
    /// Makes the plaintext a file in `directory`.
    ///
    /// # Errors
    /// [`ServiceError::Fuse`] and [`ServiceError::Record`].
    pub fn inside(
        service: &'a Service,
        export: (Arc<Export>, usize),
        directory: &Pinned,
        visibility: Visibility,
        confine: Confine<'_>,
    ) -> Result<Self, ServiceError> {
        service.add(Place::Fuse(directory.path().to_owned()))?;
        let place = fuse::Place::In {
            directory: directory.through(),
            name: FILE.into(),
        };
        Self::new(service, export, (&place, directory), visibility, confine)
    }

    /// Makes the plaintext visible in place of `file`.
    ///
    /// # Errors
    /// [`ServiceError::Fuse`] and [`ServiceError::Record`].
    pub fn over(
        service: &'a Service,
        export: (Arc<Export>, usize),
        file: &Pinned,
        visibility: Visibility,
        confine: Confine<'_>,
    ) -> Result<Self, ServiceError> {
        service.add(Place::FuseFile(file.path().to_owned()))?;
        let place = fuse::Place::Over(file.through());
        Self::new(service, export, (&place, file), visibility, confine)
    }

    fn new(
        service: &'a Service,
        (export, threads): (Arc<Export>, usize),
        (place, shown): (&fuse::Place, &Pinned),
        visibility: Visibility,
        confine: Confine<'_>,
    ) -> Result<Self, ServiceError> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let threads = threads.max(cores.min(MOST_THREADS));
        let name = service.record().mount_name();
        let fuse = FuseMount::named(export, place, threads, visibility, &name, confine);
        let fuse = fuse.map_err(|error| match error {
            FuseError::Mount { source, .. } => FuseError::Mount {
                path: shown.path().to_owned(),
                source,
            },
            error => error,
        })?;
        Ok(Self {
            service,
            fuse,
            looked: Cell::new(Instant::now()),
            warn: Cell::new(None),
        })
    }

    /// Mounts the file system in the plaintext on `directory`. `warn` hears once why it cannot be
    /// unmounted.
    ///
    /// # Errors
    /// Those of [`inside`](Self::inside), [`ServiceError::Private`], and those of the program that
    /// mounts.
    pub fn file_system(
        service: &'a Service,
        export: (Arc<Export>, usize),
        directory: &Pinned,
        wanted: FileSystem<'_>,
        confine: Confine<'_>,
        warn: Warn<'a>,
    ) -> Result<Self, ServiceError> {
        let private = service.private_directory();
        service.add(Place::Directory(private.clone()))?;
        let made = DirBuilder::new().mode(0o700).create(&private);
        let made = made.and_then(|()| Pinned::new(&private));
        let made = made.map_err(|source| ServiceError::Private {
            path: private.clone(),
            source,
        })?;
        let mounted = Self::inside(service, export, &made, Visibility::Owner, confine);
        let outcome = mounted.and_then(|mounted| {
            wanted.mount(service, &private.join(FILE), directory)?;
            mounted.warn.set(Some(warn));
            Ok(mounted)
        });
        if outcome.is_err() {
            // The mount error is more important than this one.
            let _ = service.undo(Undo::Now);
        }
        outcome
    }

    /// Takes it away if it is not in use; returns whether it is gone.
    fn let_go(&self) -> Result<bool, ServiceError> {
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
                return self.let_go().unwrap_or_else(|error| {
                    if let Some(warn) = self.warn.take() {
                        warn(&error);
                    }
                    self.fuse.is_over()
                });
            }
        }
        self.fuse.is_over()
    }

    fn outcome(&mut self) -> Result<(), ServiceError> {
        Ok(self.fuse.outcome()?)
    }

    fn end(&mut self, how: End) -> Result<bool, ServiceError> {
        match how {
            End::Unused => self.let_go(),
            End::Now => self.service.undo(Undo::Now),
        }
    }
}
