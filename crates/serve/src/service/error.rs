//! [`ServiceError`]: why something is not served, mounted or ended.

use crate::fuse::FuseError;
use crate::nbd::ServeError;
#[cfg(feature = "ublk")]
use crate::ublk::UblkError;
use block::BlockError;
use block::plain::word;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The final message of a service, for the user that ends it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ending {
    /// The error.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

impl Ending {
    /// The error with its causes.
    pub(super) fn of(error: &ServiceError) -> Self {
        Self {
            what: with_causes(error),
            remedy: error.remedy(),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// An error with its causes. Transparent errors repeat the words of their source.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let mut what = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !what.ends_with(&text) {
            what = format!("{what}: {text}");
        }
        source = cause.source();
    }
    what
}

/// Why something is not served, mounted or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// A service has it, and one of both writes.
    #[error("{} is served already, by process {pid}", image.display())]
    Served {
        /// What it serves.
        image: PathBuf,
        /// Its process.
        pid: u32,
    },
    /// Programs use it.
    #[error("{} is in use", path.display())]
    InUse {
        /// Where.
        path: PathBuf,
    },
    /// Its file was removed, and its data are gone as soon as its server ends.
    #[error("{} was removed, and process {pid} has the only copy of its data", image.display())]
    Removed {
        /// What is served.
        image: PathBuf,
        /// The server's process.
        pid: u32,
    },
    /// Clients of its NBD server are connected.
    #[error("{} is in use: its NBD server has {connections} open connections", image.display())]
    Connected {
        /// What is served.
        image: PathBuf,
        /// The server's process.
        pid: u32,
        /// The number of connections.
        connections: usize,
        /// Whether it ends as soon as it is not in use.
        asked: bool,
    },
    /// A process cannot be asked to end.
    #[error("cannot end process {pid}")]
    Signal {
        /// The process.
        pid: u32,
        /// Why not.
        source: io::Error,
    },
    /// A process was asked to end, and lives on.
    #[error("process {pid} does not end")]
    Stuck {
        /// The process.
        pid: u32,
    },
    /// It was ended without waiting for those who use it.
    #[error("the volume was ended while it was in use")]
    Forced,
    /// What a service or its helper says of its end.
    #[error("{0}")]
    Ended(Ending),
    /// The server's thread has panicked.
    #[error("the server has ended by an internal error")]
    Panicked,
    /// The process outside of the confinement cannot be started.
    #[error("cannot start the process that unmounts")]
    Unmounter(#[source] io::Error),
    /// The process outside of the confinement is not there any more.
    #[error("the process that unmounts has ended")]
    NoUnmounter,
    /// The record cannot be written.
    #[error("cannot record what is served")]
    Record(#[source] io::Error),
    /// The directory of records or locks is not private, or cannot be made.
    #[error("cannot use {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The place belongs to the system.
    #[error("{} belongs to the system: nothing is mounted there", path.display())]
    System {
        /// The place.
        path: PathBuf,
    },
    /// The directory has contents, which a mount would hide.
    #[error("{} is not empty", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The directory cannot be used.
    #[error("cannot mount on {}", path.display())]
    MountPoint {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another program has changed the place between the check and the mount.
    #[error("{} was moved or replaced meanwhile", path.display())]
    Moved {
        /// The place.
        path: PathBuf,
    },
    /// No file can be there.
    #[error("cannot serve it as {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is there, and not empty.
    #[error("{} exists already and isn't an empty file", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file was empty, and is not any more.
    #[error("{} was written meanwhile", path.display())]
    Written {
        /// The file.
        path: PathBuf,
    },
    /// The service's own directory cannot be made.
    #[error("cannot make {}", path.display())]
    Private {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Users can mount ext2, ext3 and ext4 alone.
    #[error("only root can mount {kind}")]
    OnlyRoot {
        /// The type of the file system.
        kind: String,
    },
    /// A program that mounts is not there.
    #[error("cannot run {program}")]
    NoProgram {
        /// Its name, which is that of its package.
        program: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The file system was not mounted.
    #[error("cannot mount the file system in {}: {said}", image.display())]
    FileSystem {
        /// What is served.
        image: PathBuf,
        /// The words of the program that mounts.
        said: String,
    },
    /// A disk of a driver for which this program was not built.
    #[error("this program was built without ublk, and {} is a disk of that driver", path.display())]
    NoUblk {
        /// The disk.
        path: PathBuf,
    },
    /// FUSE failed or refused.
    #[error(transparent)]
    Fuse(#[from] FuseError),
    /// The NBD server failed, or could not begin.
    #[error(transparent)]
    Nbd(#[from] ServeError),
    /// The ublk driver failed or refused.
    #[cfg(feature = "ublk")]
    #[error(transparent)]
    Ublk(#[from] UblkError),
    /// A device failed or refused.
    #[error(transparent)]
    Block(#[from] BlockError),
}

impl ServiceError {
    /// The remedy, in a sentence or two.
    pub fn remedy(&self) -> String {
        match self {
            Self::Served { image, .. } => {
                return format!("End that first: cryptmark volume umount {}", word(image));
            }
            Self::InUse { .. } => {
                "Close the files that are open there and leave the directory, then try again. \
                 fuser -vm lists the processes."
            }
            Self::Removed { pid, .. } => {
                return format!(
                    "Copy the data from where it is served to another place. Then end the server: \
                     `kill {pid}`. If the file was only moved, end the server in the same way."
                );
            }
            Self::Connected {
                pid, asked: false, ..
            } => {
                return format!(
                    "Disconnect the clients, then try again. Or send SIGTERM to process {pid} \
                     twice, a second apart, which cuts off all of them."
                );
            }
            Self::Connected { pid, .. } => {
                return format!(
                    "It ends when the clients have left. SIGTERM to process {pid} cuts them off."
                );
            }
            Self::Signal { .. } => "Check whose it is.",
            Self::Stuck { .. } => {
                "It isn't in use. Look into the kernel log (dmesg) for what blocks the process."
            }
            Self::Forced => {
                "Check its file system. The last writes that were not synced may be missing."
            }
            Self::Ended(ending) => &ending.remedy,
            Self::Panicked => "Start it again. Its messages above help to find the error.",
            Self::Unmounter(_) => "Check the limits of processes and memory (ulimit -a).",
            Self::NoUnmounter => "When this server has ended, run `cryptmark volume umount`.",
            Self::Record(_) => {
                "Check the runtime directory: /run/cryptmark, or cryptmark in $XDG_RUNTIME_DIR."
            }
            Self::Directory { .. } => "It must be your own directory, without access for others.",
            Self::System { .. } => {
                "Name a directory of your own, such as one below /mnt or your home."
            }
            Self::NotEmpty { .. } => {
                "Name an empty directory, or give `yes`. Its contents are hidden until the volume \
                 is unmounted."
            }
            Self::MountPoint { .. } => "Name an existing, empty directory.",
            Self::Moved { .. } => {
                "Check which program changes it. Then run this again, in a directory of your own."
            }
            Self::File { .. } | Self::Exists { .. } | Self::Written { .. } => {
                "Name a new file in a directory of your own."
            }
            Self::Private { .. } => "Check the free space and the permissions.",
            Self::OnlyRoot { .. } => "Mount it as root, or serve it with `as` file.",
            Self::NoProgram { program, .. } => {
                return format!(
                    "Install it (package {program}), or serve the volume with `as` file."
                );
            }
            Self::FileSystem { .. } => {
                "Check that it holds one, or name its type with `fs_type`. `as` file needs no file \
                 system."
            }
            Self::NoUblk { .. } => {
                "Do the same with a program that was built with the feature `ublk`."
            }
            Self::Fuse(error) => error.remedy(),
            Self::Nbd(error) => error.remedy(),
            #[cfg(feature = "ublk")]
            Self::Ublk(error) => error.remedy(),
            Self::Block(error) => return error.remedy().to_string(),
        }
        .to_owned()
    }

    /// Whether it was refused, because it is in use or something would be lost.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Served { .. }
                | Self::InUse { .. }
                | Self::Removed { .. }
                | Self::Connected { .. }
                | Self::System { .. }
                | Self::NotEmpty { .. }
                | Self::Moved { .. }
                | Self::Exists { .. }
                | Self::Written { .. }
                | Self::Fuse(FuseError::Busy { .. })
                | Self::Nbd(ServeError::InUse { .. } | ServeError::NoSocket { .. })
        )
    }

    /// Whether the user must give other input, so that trying again is useless.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::MountPoint { .. }
                | Self::File { .. }
                | Self::OnlyRoot { .. }
                | Self::Nbd(ServeError::Place { .. })
        )
    }
}
