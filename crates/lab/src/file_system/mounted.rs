//! [`Mounted`]: a mounted file system, and [`Scratch`], which holds its mount
//! point.

use super::error::{not_mounted, not_removed, unusable};
use super::stack::{PATIENCE, RETRY};
use crate::error::LabError;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A file system that is mounted.
pub(super) struct Mounted {
    directory: PathBuf,
    over: bool,
}

impl Mounted {
    /// Mounts `source`; this alone is what mounting takes.
    pub(super) fn new(
        source: &Path,
        directory: &Path,
        file_system: &CStr,
        read_only: bool,
    ) -> io::Result<Self> {
        let flags = match read_only {
            true => MountFlags::RDONLY,
            false => MountFlags::empty(),
        };
        let flags = flags | MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount(source, directory, file_system, flags, None)?;
        Ok(Self {
            directory: directory.to_owned(),
            over: false,
        })
    }

    /// Shows `source` at `directory`, too.
    pub(super) fn bind(source: &Path, directory: &Path) -> io::Result<Self> {
        rustix::mount::mount_bind(source, directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            over: false,
        })
    }

    /// Unmounts it.
    pub(super) fn take_down(mut self) -> Result<(), LabError> {
        self.over = true;
        unmount(&self.directory)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if !self.over {
            let _ = unmount(&self.directory);
        }
    }
}

/// The in-memory file system that holds the files of a job.
///
/// The engine's servers run in mount namespaces of their own. These share the
/// mounts made here, except those below [`private`](Self::private). Otherwise a
/// killed server could be the last process to unmount a file system that waits
/// for that server. The kernel would then wait forever.
pub(super) struct Scratch {
    directory: PathBuf,
    private: PathBuf,
    /// Whether a part of it stays in use until the kernel ends.
    permanent: bool,
}

impl Scratch {
    pub(super) fn mount(directory: &Path, permanent: bool) -> Result<Self, LabError> {
        let scratch = Self {
            directory: directory.to_owned(),
            private: directory.join("private"),
            permanent,
        };
        let mount = |at: &Path, propagation| -> Result<(), LabError> {
            rustix::mount::mount("cryptmark", at, "tmpfs", MountFlags::NOSUID, None)
                .and_then(|()| rustix::mount::mount_change(at, propagation))
                .map_err(|errno| not_mounted("tmpfs", at, errno))
        };
        mount(directory, MountPropagationFlags::SHARED)?;
        make_directory(&scratch.private)?;
        mount(&scratch.private, MountPropagationFlags::PRIVATE)?;
        Ok(scratch)
    }

    /// The directory in which file systems are mounted.
    pub(super) fn private(&self) -> &Path {
        &self.private
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = unmount(&self.private);
        let _ = match self.permanent {
            // Waiting for it would not help.
            true => rustix::mount::unmount(&self.directory, UnmountFlags::DETACH).map_err(drop),
            false => unmount(&self.directory).map_err(drop),
        };
    }
}

pub(super) fn make_directory(path: &Path) -> Result<(), LabError> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(unusable("cannot make", path, error))
        }
        _ => Ok(()),
    }
}

pub(super) fn unmount(directory: &Path) -> Result<(), LabError> {
    let begun = Instant::now();
    loop {
        match rustix::mount::unmount(directory, UnmountFlags::NOFOLLOW) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::BUSY) if begun.elapsed() < PATIENCE => {}
            Err(errno) => {
                // Out of sight at least; it goes when its last user does.
                let _ = rustix::mount::unmount(directory, UnmountFlags::DETACH);
                return Err(not_removed(directory, errno));
            }
        }
        std::thread::sleep(RETRY);
    }
}
