//! [`Pinned`]: a file or directory that stays the same while a passphrase is asked for.

use super::ServiceError;
use rustix::fs::{Mode, OFlags, open};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A place that something is mounted on. It is held, so that no other program puts another one there
/// between a check and the mount.
#[derive(Debug)]
pub struct Pinned {
    place: OwnedFd,
    path: PathBuf,
}

impl Pinned {
    /// Holds what is at `path`, which is absolute. A link is not followed.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn new(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = open(path, flags, Mode::empty())?;
        let path = std::fs::read_link(through(&place))?;
        Ok(Self { place, path })
    }

    /// Its path, without links, when it was first looked at.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path to it, wherever it is now. It is right in this process alone.
    pub fn through(&self) -> PathBuf {
        through(&self.place)
    }

    /// The same for the programs that this process starts.
    pub(super) fn through_for_others(&self) -> PathBuf {
        let descriptor = self.place.as_raw_fd();
        format!("/proc/{}/fd/{descriptor}", std::process::id()).into()
    }

    /// Refuses it if it is not where it was.
    ///
    /// # Errors
    /// [`ServiceError::Moved`].
    pub fn check(&self) -> Result<(), ServiceError> {
        match std::fs::read_link(self.through()) {
            Ok(now) if now == self.path => Ok(()),
            _ => Err(ServiceError::Moved {
                path: self.path.clone(),
            }),
        }
    }
}

fn through(place: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", place.as_raw_fd()).into()
}
