//! File systems on encrypted devices, timed operation by operation.
//!
//! A [`Job`] names the file system, the systems and the [`Operation`]s. It is plain data, because
//! an agent runs it. The agent is this program, started again as root of its own mount namespace or
//! inside the lab kernel. [`run`] executes the job there and reports each [`Event`]. A session
//! turns the events into records.
//!
//! ```text
//! image ─▶ [FUSE server] ─▶ loop device ─▶ [dm-crypt] ─▶ [block2mtd] ─▶ mkfs, mount ─▶ [directory]
//!          builtin-fuse      [cryptoloop]                                            fscrypt, eCryptfs,
//!                                                                                    gocryptfs, …
//! ```
//!
//! `stack` sets up this stack of layers and takes it down again. `directory` does the same with
//! what encrypts files. Everything that the agent makes
//! belongs to its namespaces or closes with its descriptors. The kernel therefore removes it even
//! if the agent is killed.

#[cfg(target_os = "linux")]
pub(crate) mod error;
mod job;
mod operation;

#[cfg(target_os = "linux")]
pub mod agent;
#[cfg(target_os = "linux")]
pub mod content;
#[cfg(target_os = "linux")]
mod directory;
#[cfg(target_os = "linux")]
mod event;
#[cfg(target_os = "linux")]
mod exposure;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod mapping;
#[cfg(target_os = "linux")]
mod module;
#[cfg(target_os = "linux")]
mod mounted;
#[cfg(target_os = "linux")]
mod runner;
#[cfg(target_os = "linux")]
mod stack;
#[cfg(target_os = "linux")]
mod usage;

#[cfg(target_os = "linux")]
pub use event::{Event, OperationSample};
pub use job::{Backing, DmOption, Encrypter, FileCipher, Job, Kernel, Subject};
pub use operation::{Files, Kind as OperationKind, Operation};
#[cfg(target_os = "linux")]
pub use runner::run;

use serde::{Deserialize, Serialize};

/// A file system that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// The oldest of Linux's own, without a journal.
    Ext2,
    /// Compressed and read-only, for small devices.
    Cramfs,
    /// Compressed, for raw flash: it wants an MTD device.
    Jffs2,
    /// Linux's usual one.
    Ext4,
    /// For large files and many threads.
    Xfs,
    /// Copy on write, with check sums.
    Btrfs,
    /// For flash behind a controller.
    F2fs,
    /// A directory of the file system that is there, for users other than root. Nothing is made.
    Directory,
}

impl FileSystem {
    /// As the kernel names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Cramfs => "cramfs",
            Self::Jffs2 => "jffs2",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::F2fs => "f2fs",
            Self::Directory => "directory",
        }
    }

    /// The program that makes one. It is asked for nothing in a directory.
    pub const fn maker(self) -> &'static str {
        match self {
            Self::Directory => "rm",
            Self::Ext2 => "mkfs.ext2",
            Self::Cramfs => "mkfs.cramfs",
            Self::Jffs2 => "mkfs.jffs2",
            Self::Ext4 => "mkfs.ext4",
            Self::Xfs => "mkfs.xfs",
            Self::Btrfs => "mkfs.btrfs",
            Self::F2fs => "mkfs.f2fs",
        }
    }

    /// Debian's package with that program.
    pub const fn package(self) -> &'static str {
        match self {
            Self::Ext2 | Self::Ext4 => "e2fsprogs",
            Self::Directory => "coreutils",
            Self::Cramfs => "util-linux",
            Self::Jffs2 => "mtd-utils",
            Self::Xfs => "xfsprogs",
            Self::Btrfs => "btrfs-progs",
            Self::F2fs => "f2fs-tools",
        }
    }

    /// The smallest device that its program accepts, bytes.
    pub const fn smallest(self) -> u64 {
        match self {
            Self::Directory => 0,
            Self::Ext2 | Self::Cramfs | Self::Jffs2 => 1 << 20,
            Self::Ext4 => 8 << 20,
            Self::Xfs => 300 << 20,
            Self::Btrfs => 109 << 20,
            Self::F2fs => 64 << 20,
        }
    }

    /// Whether nothing can be written into it once it is made.
    pub const fn is_read_only(self) -> bool {
        matches!(self, Self::Cramfs)
    }

    /// Whether its files are put into it when it is made.
    pub const fn is_made_of_a_tree(self) -> bool {
        matches!(self, Self::Cramfs | Self::Jffs2)
    }
}
