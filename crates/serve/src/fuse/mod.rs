//! An export as one file in a directory, by FUSE.
//!
//! [`FuseMount`] puts it there and serves it until somebody unmounts it;
//! `file` answers what the kernel asks. The crate `fuser` speaks the protocol.

mod file;

use crate::{Access, Export};
use file::FileSystem;
use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::ffi::OsString;
use std::io;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// What can go wrong with a mount.
#[derive(Debug, thiserror::Error)]
pub enum FuseError {
    /// The kernel or `fusermount3` refused the mount.
    #[error("cannot mount on {}", directory.display())]
    Mount {
        /// Where.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody still uses what is mounted.
    #[error("{} is in use", directory.display())]
    Busy {
        /// Where.
        directory: PathBuf,
    },
    /// The kernel or `fusermount3` refused the unmount.
    #[error("cannot unmount {}", directory.display())]
    Unmount {
        /// Where.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl FuseError {
    /// What the user can do about it: one sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Mount { .. } => {
                "Check that /dev/fuse is there, the directory is yours, and fusermount3 (package fuse3) is installed."
            }
            Self::Busy { .. } => "Close what is open there, and try again.",
            Self::Unmount { .. } => "Check that it is mounted, and that it is yours.",
        }
    }
}

/// An export that is a file in a directory.
///
/// Nothing is unmounted when this is dropped: whoever ends it calls
/// [`unmount`], which says whether that worked.
pub struct FuseMount {
    /// Never dropped: it would unmount, by path, even what somebody else has
    /// mounted there since.
    session: ManuallyDrop<BackgroundSession>,
}

impl FuseMount {
    /// Mounts `export` as the file `name` in `directory`, which `threads`
    /// threads serve. Only its owner and whoever has opened it get at it.
    ///
    /// # Errors
    /// [`FuseError::Mount`].
    pub fn new(
        export: Arc<Export>,
        directory: &Path,
        name: impl Into<OsString>,
        threads: usize,
    ) -> Result<Self, FuseError> {
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("cryptmark".into()),
            MountOption::DefaultPermissions,
            MountOption::NoAtime,
            match export.access() {
                Access::Read => MountOption::RO,
                Access::Write => MountOption::RW,
            },
        ];
        config.acl = SessionACL::Owner;
        config.n_threads = Some(threads.max(1));
        config.clone_fd = threads > 1;
        let served = FileSystem::new(export, name.into());
        let session = fuser::spawn_mount(served, directory, &config);
        let session = session.map_err(|source| FuseError::Mount {
            directory: directory.to_owned(),
            source,
        })?;
        Ok(Self {
            session: ManuallyDrop::new(session),
        })
    }

    /// Whether it was unmounted, and every request answered.
    pub fn is_over(&self) -> bool {
        self.session.guard.is_finished()
    }
}

/// Whether an unmount takes what is in use away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmount {
    /// What is in use stays.
    Unused,
    /// It is out of sight at once; who uses it gets errors when its server ends.
    Detached,
}

/// Unmounts what is mounted on `directory`, as root by itself, else by
/// `fusermount3`.
///
/// # Errors
/// [`FuseError::Busy`] and [`FuseError::Unmount`].
pub fn unmount(directory: &Path, how: Unmount) -> Result<(), FuseError> {
    let flags = match how {
        Unmount::Unused => UnmountFlags::NOFOLLOW,
        Unmount::Detached => UnmountFlags::NOFOLLOW | UnmountFlags::DETACH,
    };
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::ResourceBusy => FuseError::Busy {
            directory: directory.to_owned(),
        },
        _ => FuseError::Unmount {
            directory: directory.to_owned(),
            source,
        },
    };
    match rustix::mount::unmount(directory, flags) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => by_fusermount(directory, how).map_err(failed),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Users unmount by a program that may.
fn by_fusermount(directory: &Path, how: Unmount) -> io::Result<()> {
    let mut command = Command::new("fusermount3");
    command.arg("-u").env("LC_ALL", "C").stdin(Stdio::null());
    if how == Unmount::Detached {
        command.arg("-z");
    }
    let output = command.arg("--").arg(directory).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(match said.contains("busy") {
        true => io::ErrorKind::ResourceBusy.into(),
        false => io::Error::other(said.trim().to_owned()),
    })
}
