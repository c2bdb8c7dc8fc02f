//! Disks that a server has: an NBD export, held against other processes, and the inside of a disk
//! image, which QEMU serves.

mod claim;
mod image;

pub use claim::Claim;
pub use image::Image;

use crate::nbd::ClientError;
use crate::service::ServiceError;
use block::BlockError;
use std::io;
use std::path::PathBuf;

/// Why a disk of a server is not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// Another process has an export of the same server, which may be this one.
    #[error("{} may be in use by another process, which uses an export of the same server {} a name", path.display(), if *named { "without" } else { "by" })]
    MaybeInUse {
        /// What the user calls it.
        path: PathBuf,
        /// Whether this one has a name.
        named: bool,
    },
    /// The file of a lock cannot be used.
    #[error("cannot use {}", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// QEMU's program cannot be started.
    #[error("qemu-nbd cannot be started")]
    Start(#[source] io::Error),
    /// QEMU takes no such name.
    #[error("the name of {} is not UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// QEMU would read and write other files as well.
    #[error("{} is {what} whose data are partly in another file", path.display())]
    Parts {
        /// The image.
        path: PathBuf,
        /// Its kind.
        what: &'static str,
    },
    /// QEMU does not open the image.
    #[error("qemu-nbd cannot open {}: {said}", path.display())]
    Qemu {
        /// The image.
        path: PathBuf,
        /// QEMU's words.
        said: String,
    },
    /// The directory of the locks cannot be used.
    #[error(transparent)]
    Directory(#[from] ServiceError),
    /// The server cannot be reached, or refuses.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The device failed or refused.
    #[error(transparent)]
    Block(#[from] BlockError),
}

impl DiskError {
    /// The remedy, in a sentence or two.
    pub fn remedy(&self) -> String {
        match self {
            Self::MaybeInUse { .. } => {
                "End that first: see `cryptmark volume status`. Or call both exports by their \
                 names, if the server has several."
            }
            Self::Lock { .. } => "Check the folder and its permissions.",
            Self::Start(_) => "Check that there is room for temporary files.",
            Self::NotText { .. } => "Rename the file: QEMU takes no other names here.",
            Self::Parts { .. } => {
                "If you trust the names of files in it, serve it with `qemu-nbd`, and give the URI \
                 of the export."
            }
            Self::Qemu { .. } if self.is_refusal() => "Close the image in the other program.",
            Self::Qemu { .. } => "Check the image with `qemu-img check`.",
            Self::Directory(error) => return error.remedy(),
            Self::Client(error) => error.remedy(),
            Self::Block(error) => error.remedy(),
        }
        .to_owned()
    }

    /// Whether another process may have it.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::MaybeInUse { .. } => true,
            Self::Qemu { said, .. } => said.contains(" lock"),
            _ => false,
        }
    }

    /// Whether the user must give other input, so that trying again is useless.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::NotText { .. } | Self::Parts { .. } => true,
            Self::Qemu { .. } => !self.is_refusal(),
            Self::Client(error) => error.is_bad_input(),
            _ => false,
        }
    }
}
