//! A file without a name on Unix systems.

use super::{Space, under_a_new_name};
use crate::draft;
use rustix::fs::statvfs;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The space of the file system that holds this directory, bytes.
pub(super) fn space(directory: &Path) -> io::Result<Space> {
    let space = statvfs(directory)?;
    Ok(Space {
        available: space.f_bavail.saturating_mul(space.f_frsize),
        total: space.f_blocks.saturating_mul(space.f_frsize),
    })
}

/// A file that has no name any more, or never had one.
#[derive(Debug)]
pub(crate) struct Nameless(File);

impl Nameless {
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        // Another program that is to reach it is lent a name.
        if let Some(unnamed) = draft::unnamed(directory, 0o600)? {
            return Ok(Self(unnamed));
        }
        options.create_new(true);
        under_a_new_name(directory, |path| {
            let file = options.open(path)?;
            std::fs::remove_file(path)?;
            Ok(Self(file))
        })
    }

    /// Takes the space before it is written to, so that too little is known early.
    pub(super) fn allocate(&self, size: u64) -> io::Result<()> {
        system::allocate(&self.0, size)
    }

    /// For reading and writing, whatever is asked for.
    pub(super) fn open_again(&self, _: bool) -> io::Result<File> {
        // Opening anew, and not duplicating, keeps O_DIRECT apart. Without
        // /proc the duplicates have to share it.
        let again = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(again)
            .or_else(|_| self.0.try_clone())
    }

    /// Bytes that the file system keeps for it.
    pub(super) fn allocated(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.blocks() * 512)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    use std::fs::File;
    use std::io;

    pub(super) fn allocate(file: &File, size: u64) -> io::Result<()> {
        loop {
            match fallocate(file, FallocateFlags::empty(), 0, size) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                // The writes will do it.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return file.set_len(size),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;

    /// The writes will do it.
    pub(super) fn allocate(file: &File, size: u64) -> io::Result<()> {
        file.set_len(size)
    }
}
