//! [`Site`]: a place of this machine where users can measure.

use std::path::PathBuf;

/// How a [`Site`] is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SiteKind {
    /// By a file in this directory.
    Directory,
    /// As a whole: a disk, a partition, or a device of device mapper or of md. Writing destroys
    /// what it holds.
    Disk,
}

/// A directory or a disk that users can choose to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The directory, or the device node.
    pub path: PathBuf,
    /// How it is measured.
    pub kind: SiteKind,
    /// Bytes of the file system or of the device.
    pub size: u64,
    /// Bytes that users may fill; `None` of a disk.
    pub free: Option<u64>,
    /// The file system: of a disk, the one that is mounted from it.
    pub filesystem: Option<String>,
    /// The model and the name of the disk below, such as `Samsung SSD 980 (nvme0n1)`. Several disks
    /// are separated by commas.
    pub device: Option<String>,
    /// The kind of storage, as [`describe`](super::describe) names it: `ssd`, `hdd`,
    /// `virtual disk`, `ram` or `unknown`.
    pub medium: String,
    /// The encryption that it has already, such as `dm-crypt (LUKS2)`, `ZFS` or `gocryptfs`. The
    /// first entry is the outermost layer, next to the disk. The last entry is next to the files.
    pub encrypted_by: Vec<String>,
    /// Why a disk cannot be measured now, such as `mounted at /home`; `None` of a directory.
    pub in_use: Option<String>,
    /// Whether this user may write to it.
    pub writable: bool,
}
