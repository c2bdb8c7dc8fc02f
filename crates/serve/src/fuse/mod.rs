//! An export as one file, by FUSE: in a directory, or in the place of a file.
//!
//! [`FuseMount`] mounts it and serves it until it is unmounted. `file` answers the kernel's
//! requests. The crate `fuser` speaks the protocol.

mod file;

use crate::{Access, Export};
use file::FileSystem;
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::ffi::OsString;
use std::io;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

/// The errors of a mount.
#[derive(Debug, thiserror::Error)]
pub enum FuseError {
    /// The kernel or `fusermount3` refused the mount.
    #[error("cannot mount on {}", path.display())]
    Mount {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Users may not let root get at their mounts here.
    #[error("allow_other is disabled for users")]
    OwnerOnly,
    /// The mounted file is still in use.
    #[error("{} is in use", path.display())]
    Busy {
        /// Where.
        path: PathBuf,
    },
    /// The kernel or `fusermount3` refused the unmount.
    #[error("cannot unmount {}", path.display())]
    Unmount {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The server that answers the kernel ended before the unmount.
    #[error("the FUSE server cannot continue")]
    Failed(#[source] io::Error),
}

impl FuseError {
    /// The remedy, as one sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Mount { .. } => {
                "Check that /dev/fuse exists and is open to you, that you own the mount point, and \
                 that fusermount3 (package fuse3) is installed."
            }
            Self::OwnerOnly => {
                "Ask the administrator to add the line user_allow_other to /etc/fuse.conf, or \
                 mount it as root."
            }
            Self::Busy { .. } => "Close the files that are open there, and try again.",
            Self::Unmount { .. } => "Check that it is mounted and that you mounted it.",
            Self::Failed(_) => {
                "Unmount what is left and start the server again. Check the data that was written \
                 last."
            }
        }
    }
}

/// Where a mount makes an export visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// As the only file of a directory.
    In {
        /// The path that is mounted on.
        directory: PathBuf,
        /// The file in it.
        name: OsString,
    },
    /// Instead of a regular file that is there.
    Over(PathBuf),
}

impl Place {
    /// The path that is mounted on.
    pub fn path(&self) -> &Path {
        match self {
            Self::In { directory, .. } => directory,
            Self::Over(file) => file,
        }
    }
}

/// The users that may open the mounted file, besides processes that already have it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// The user that mounted it. Root only if root is that user.
    Owner,
    /// Root as well.
    RootToo,
}

/// An export that is a file.
///
/// Nothing is unmounted when this is dropped. To end it, call [`unmount`], which reports whether
/// that worked.
pub struct FuseMount {
    /// Never dropped: dropping it would unmount by path, and so could unmount another program's
    /// later mount there.
    session: ManuallyDrop<BackgroundSession>,
}

impl FuseMount {
    /// Mounts `export` at `place`, served by `threads` threads.
    ///
    /// # Errors
    /// [`FuseError::Mount`].
    pub fn new(
        export: Arc<Export>,
        place: &Place,
        threads: usize,
        visibility: Visibility,
    ) -> Result<Self, FuseError> {
        Self::named(export, place, threads, visibility, "cryptmark", || Ok(()))
    }

    /// As [`new`](Self::new), with this name in the list of mounts. The name tells the mount from
    /// earlier ones at the same place. When it is mounted, `confine` runs on the thread that starts
    /// all threads that serve, so that they inherit what it gives up. They need `/dev/fuse`.
    ///
    /// # Errors
    /// [`FuseError::Mount`], also if `confine` fails.
    pub fn named(
        export: Arc<Export>,
        place: &Place,
        threads: usize,
        visibility: Visibility,
        name: &str,
        confine: impl FnOnce() -> io::Result<()> + Send,
    ) -> Result<Self, FuseError> {
        if !by_trusted_programs() {
            let why = "PATH or FUSERMOUNT_PATH names a fusermount that is not the system's";
            return Err(FuseError::Mount {
                path: place.path().to_owned(),
                source: io::Error::other(why),
            });
        }
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(name.into()),
            MountOption::DefaultPermissions,
            MountOption::NoAtime,
            match export.access() {
                Access::Read => MountOption::RO,
                Access::Write => MountOption::RW,
            },
        ];
        config.acl = match visibility {
            Visibility::Owner => SessionACL::Owner,
            Visibility::RootToo => SessionACL::All,
        };
        let threads = threads.max(1);
        config.n_threads = Some(threads);
        config.clone_fd = threads > 1;
        let served = FileSystem::new(export, place, threads);
        let session = Session::new(served, place.path(), &config).and_then(|session| {
            std::thread::scope(|scope| {
                let starting = scope.spawn(|| confine().and_then(|()| session.spawn()));
                let failed = |_| Err(io::Error::other("it has panicked"));
                starting.join().unwrap_or_else(failed)
            })
        });
        let session = session.map_err(|source| {
            // The message of fusermount3; the kernel has no error number for it.
            match source.to_string().contains("user_allow_other") {
                true => FuseError::OwnerOnly,
                false => FuseError::Mount {
                    path: place.path().to_owned(),
                    source,
                },
            }
        })?;
        Ok(Self {
            session: ManuallyDrop::new(session),
        })
    }

    /// Whether it was unmounted, and every request answered; or has ended by a fault.
    pub fn is_over(&self) -> bool {
        self.session.guard.is_finished()
    }

    /// The outcome, once the mount [is over](Self::is_over); `Ok` before that. It reports an error
    /// once.
    ///
    /// # Errors
    /// [`FuseError::Failed`] if it ended without an unmount.
    pub fn outcome(&mut self) -> Result<(), FuseError> {
        if !self.is_over() {
            return Ok(());
        }
        let ended = std::thread::spawn(|| Ok(()));
        let session = std::mem::replace(&mut self.session.guard, ended);
        match session.join() {
            Ok(outcome) => outcome.map_err(FuseError::Failed),
            Err(_) => Err(FuseError::Failed(io::Error::other("it has panicked"))),
        }
    }
}

/// Whether an unmount takes what is in use away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmount {
    /// A file in use stays mounted, and the unmount fails.
    Unused,
    /// The file disappears from the directory at once. Programs that use it get errors when its
    /// server ends.
    Detached,
}

/// Unmounts what is mounted on `path`, as root by itself, else by
/// `fusermount3`.
///
/// # Errors
/// [`FuseError::Busy`] and [`FuseError::Unmount`].
pub fn unmount(path: &Path, how: Unmount) -> Result<(), FuseError> {
    let flags = match how {
        Unmount::Unused => UnmountFlags::NOFOLLOW,
        Unmount::Detached => UnmountFlags::NOFOLLOW | UnmountFlags::DETACH,
    };
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::ResourceBusy => FuseError::Busy {
            path: path.to_owned(),
        },
        _ => FuseError::Unmount {
            path: path.to_owned(),
            source,
        },
    };
    match rustix::mount::unmount(path, flags) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => by_fusermount(path, how).map_err(failed),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Whether root would run only trusted programs. If the kernel does not let `fuser` mount by
/// itself, `fuser` looks for a program in its own way.
fn by_trusted_programs() -> bool {
    let named = std::env::var_os("FUSERMOUNT_PATH").is_some();
    let mut names = ["fusermount3", "fusermount", "mount_fusefs"].into_iter();
    !(named && rustix::process::geteuid().is_root()) && names.all(block::program::is_safe_by_path)
}

/// Unmounts by `fusermount3`, which has the permission that users lack.
fn by_fusermount(path: &Path, how: Unmount) -> io::Result<()> {
    let mut command = block::program::command("fusermount3");
    command.arg("-u").env("LC_ALL", "C").stdin(Stdio::null());
    if how == Unmount::Detached {
        command.arg("-z");
    }
    let output = command.arg("--").arg(path).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(match said.contains("busy") {
        true => io::ErrorKind::ResourceBusy.into(),
        false => io::Error::other(said.trim().to_owned()),
    })
}
