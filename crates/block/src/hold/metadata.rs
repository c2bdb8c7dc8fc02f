//! [`MetadataLock`]: cryptsetup's own locks, under which both programs change headers.

use super::linux::{Identity, PAUSE, is_this_process};
use super::{Users, processes};
use crate::{BlockError, FileDevice, PathKind};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, major, minor};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where cryptsetup keeps the files that it locks for devices and names.
const FOLDER: &str = "/run/cryptsetup";

/// How long another program may take to change a header.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keeps cryptsetup, and other programs that do as it does, from changing a header, and one that is
/// not shared from reading it as well; until it is dropped.
#[derive(Debug)]
pub struct MetadataLock {
    file: Arc<File>,
    /// The file in [`FOLDER`], which is there for the lock alone.
    resource: Option<PathBuf>,
}

impl MetadataLock {
    /// Waits for the lock of the header on `device`: `flock` of a file, and of a block
    /// device that of `/run/cryptsetup/L_MAJOR:MINOR`.
    ///
    /// # Errors
    /// [`BlockError::InUse`] where another program does not let go of it, and
    /// [`BlockError::Examine`] where there can be no such lock here.
    pub fn of(device: &FileDevice, path: &Path) -> Result<Self, BlockError> {
        let how = FlockOperation::NonBlockingLockExclusive;
        Self::taken(device, path, how, PATIENCE)
    }

    /// The same with others that only read the header.
    ///
    /// # Errors
    /// Those of [`of`](Self::of).
    pub fn shared(device: &FileDevice, path: &Path) -> Result<Self, BlockError> {
        let how = FlockOperation::NonBlockingLockShared;
        Self::taken(device, path, how, PATIENCE)
    }

    /// The same, if it can be had at once.
    pub fn shared_if_free(device: &FileDevice, path: &Path) -> Option<Self> {
        let how = FlockOperation::NonBlockingLockShared;
        Self::taken(device, path, how, Duration::ZERO).ok()
    }

    fn taken(
        device: &FileDevice,
        path: &Path,
        how: FlockOperation,
        patience: Duration,
    ) -> Result<Self, BlockError> {
        let file = device.file();
        if device.path_kind() == PathKind::BlockDevice {
            let number = file
                .metadata()
                .map_err(|error| unusable(path, error))?
                .rdev();
            let name = format!("L_{}:{}", major(number), minor(number));
            return resource(&name, path, how, patience);
        }
        let lock = Self {
            file: Arc::clone(file),
            resource: None,
        };
        match locked(&lock.file, how, patience) {
            Ok(true) => Ok(lock),
            Ok(false) => Err(in_use(path, &lock.file)),
            Err(error) => Err(unusable(path, error)),
        }
    }
}

impl Drop for MetadataLock {
    fn drop(&mut self) {
        if let Some(path) = &self.resource
            && is_at(&self.file, path)
            // Nobody shares it.
            && flock(&*self.file, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            // A program that waits for the lock sees that the file is gone, and makes another.
            let _ = std::fs::remove_file(path);
        }
        // Closing unlocks a resource, whatever this says.
        let _ = flock(&*self.file, FlockOperation::Unlock);
    }
}

/// Locks a name as cryptsetup does, at once or not at all. It calls that of a volume
/// that it reencrypts `LUKS2-reencryption-UUID`.
///
/// # Errors
/// [`BlockError::InUse`] where another program has locked it, and
/// [`BlockError::Examine`] where there can be no such lock here.
pub fn lock_resource(name: &str) -> Result<MetadataLock, BlockError> {
    let name = format!("LN_{name}");
    let path = Path::new(FOLDER).join(&name);
    let how = FlockOperation::NonBlockingLockExclusive;
    resource(&name, &path, how, Duration::ZERO)
}

/// The programs that have locked that name; `None` if it is free, or if this user may not know.
pub fn resource_users(name: &str) -> Option<Users> {
    let at = Path::new(FOLDER).join(format!("LN_{name}"));
    let file = Arc::new(File::open(at).ok()?);
    match flock(&*file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Some(others_at(&file)),
        _ => None,
    }
}

/// Locks a file of [`FOLDER`], which is `path` in errors.
fn resource(
    name: &str,
    path: &Path,
    how: FlockOperation,
    patience: Duration,
) -> Result<MetadataLock, BlockError> {
    let folder = Path::new(FOLDER);
    let failed = |error| unusable(folder, error);
    let begun = Instant::now();
    loop {
        let at = folder.join(name);
        let file = Arc::new(open_in(folder, name).map_err(failed)?);
        let left = patience.saturating_sub(begun.elapsed());
        if !locked(&file, how, left).map_err(failed)? {
            return Err(in_use(path, &file));
        }
        // The previous holder may have removed the file.
        if is_at(&file, &at) {
            return Ok(MetadataLock {
                file,
                resource: Some(at),
            });
        }
    }
}

/// Opens or makes a file in a folder that is made if need be, following no links.
fn open_in(folder: &Path, name: &str) -> io::Result<File> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let only = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, OFlags::RDONLY | only, Mode::empty())?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o644))?;
    Ok(file.into())
}

/// Whether the lock could be had within `patience`.
fn locked(file: &File, how: FlockOperation, patience: Duration) -> io::Result<bool> {
    let begun = Instant::now();
    loop {
        match flock(file, how) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if begun.elapsed() >= patience => return Ok(false),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether this is the file at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(one), Ok(other)) => Identity::of(&one) == Identity::of(&other),
        _ => false,
    }
}

fn in_use(path: &Path, file: &File) -> BlockError {
    BlockError::InUse {
        path: path.to_owned(),
        users: others_at(file),
    }
}

/// The other processes that have locked this file.
fn others_at(file: &File) -> Users {
    let target = file.metadata().map(|metadata| Identity::of(&metadata));
    let users = target.map(|target| processes::with_open(target, |it| it.alone || it.shared));
    let mut users = users.unwrap_or_default();
    users.retain(|user| !is_this_process(user));
    Users(users)
}

fn unusable(path: &Path, source: io::Error) -> BlockError {
    BlockError::Examine {
        path: path.to_owned(),
        source,
    }
}
