//! Whether it is safe to write to a device: its users and its content.
//!
//! The two questions are answered separately. *Use* (mounted, swap, part of a volume, opened
//! exclusively) is never overridden. *Content* (a signature, or unrecognised data) may be, by a
//! user who says so.

mod content;
#[cfg(target_os = "linux")]
mod usage;
#[cfg(not(target_os = "linux"))]
#[path = "signature/no_usage.rs"]
mod usage;
mod wrapped;

pub use content::{Content, Data, Found, LUKS};
#[cfg(target_os = "linux")]
pub use usage::mounts;
#[cfg(target_os = "linux")]
pub(crate) use usage::standing_on;
pub use wrapped::Wrapped;

use crate::hold::{User, Users};
use crate::{BlockDevice, BlockError, ByteRange, PathKind};
use std::fs::{File, Metadata};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The users of a device and its partitions, and the devices on top of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Mounted file systems.
    pub mounts: Vec<Mount>,
    /// Swap devices and files.
    pub swaps: Vec<PathBuf>,
    /// Devices that stand on it: device mapper, RAID, loop.
    pub holders: Vec<PathBuf>,
    /// Someone has opened it exclusively.
    pub held: bool,
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The device, partition or volume that is mounted.
    pub device: PathBuf,
    /// Where.
    pub mount_point: PathBuf,
}

/// All that is known about what would be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// The device or file.
    pub path: PathBuf,
    /// Its users.
    pub usage: Usage,
    /// Its content.
    pub content: Content,
}

impl Usage {
    /// Refuses what is in use; `path` names it in errors.
    ///
    /// # Errors
    /// [`BlockError::Mounted`], [`BlockError::Swap`] and [`BlockError::InUse`].
    pub fn check(&self, path: &Path) -> Result<(), BlockError> {
        if let Some(mount) = self.mounts.first() {
            return Err(BlockError::Mounted {
                path: mount.device.clone(),
                mount_point: mount.mount_point.clone(),
            });
        }
        if let Some(path) = self.swaps.first() {
            return Err(BlockError::Swap { path: path.clone() });
        }
        if self.held || !self.holders.is_empty() {
            return Err(BlockError::InUse {
                path: path.to_owned(),
                users: Users(self.holders.iter().cloned().map(User::Device).collect()),
            });
        }
        Ok(())
    }
}

impl Occupancy {
    /// Refuses what is in use, as [`Usage::check`] does.
    ///
    /// # Errors
    /// Those of that.
    pub fn check_usage(&self) -> Result<(), BlockError> {
        self.usage.check(&self.path)
    }

    /// Refuses what is not blank: [`BlockError::Holds`].
    pub fn check_content(&self) -> Result<(), BlockError> {
        match self.content.is_blank() {
            true => Ok(()),
            false => Err(BlockError::Holds {
                path: self.path.clone(),
                content: Box::new(self.content.clone()),
            }),
        }
    }
}

/// Whether a file system is mounted from the block device at `path`, or a program has
/// it for itself.
#[cfg(target_os = "linux")]
pub fn is_held(path: &Path) -> bool {
    usage::is_exclusive(path).unwrap_or(false)
}

/// Refuses to let `path` be overwritten if it is in use or, unless the loss is `confirmed`, holds
/// anything.
///
/// Opening it for writing checks its use once more; see [`crate::hold`]. Other programs may write
/// to it until then. So before you write, hold it and check its content by [`stored`] or
/// [`guard_content`].
pub fn guard(path: &Path, confirmed: bool) -> Result<(), BlockError> {
    if !confirmed {
        return inspect(path).and_then(|occupancy| {
            occupancy.check_usage()?;
            occupancy.check_content()
        });
    }
    // Data that will be overwritten need not be readable.
    let (metadata, _) = examine(path)?;
    let occupancy = Occupancy {
        path: path.to_owned(),
        usage: usage::of(path, &metadata)?,
        content: Content::default(),
    };
    occupancy.check_usage()
}

/// Refuses to let `device`, which `path` names in errors, be overwritten if it holds anything. For
/// devices whose use this program cannot check.
///
/// # Errors
/// [`BlockError::Holds`], and those of reading it.
pub fn guard_content(path: &Path, device: &dyn BlockDevice) -> Result<(), BlockError> {
    let occupancy = Occupancy {
        path: path.to_owned(),
        usage: Usage::default(),
        content: content(device)?,
    };
    occupancy.check_content()
}

/// The content of `device`, of whatever kind it is, by samples.
///
/// # Errors
/// Those of reading it.
pub fn content(device: &dyn BlockDevice) -> Result<Content, BlockError> {
    Content::sampled(device.geometry().size, |offset, into| {
        device.read_at(offset, into)
    })
}

/// The formats that `device` holds, for plaintext. Unrecognised data is ignored, because ranges
/// that were never written decrypt to noise.
///
/// # Errors
/// Those of reading it.
pub fn names(device: &dyn BlockDevice) -> Result<Vec<Found>, BlockError> {
    content::names(device.geometry().size, |offset, into| {
        device.read_at(offset, into)
    })
}

/// A place of `device` with something that is neither blank nor like noise: no volume
/// without a header looks so. By samples, of which there are few enough to take seconds.
///
/// # Errors
/// Those of reading it.
pub fn readable(device: &dyn BlockDevice) -> Result<Option<u64>, BlockError> {
    content::readable(device.geometry().size, |offset, into| {
        device.read_at(offset, into)
    })
}

/// The kind of a sector's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// All zeros, or all ones.
    Blank,
    /// Like noise: encrypted, compressed, or media.
    Noise,
    /// Anything else.
    Readable,
}

impl Bytes {
    /// The kind of `sector`, which has 512 bytes or less.
    pub fn of(sector: &[u8]) -> Self {
        content::kind(sector)
    }
}

/// The places to look at in `size` bytes of which nothing is known: ranges of whole sectors, few
/// enough to take seconds.
pub fn samples(size: u64) -> Vec<ByteRange> {
    let places = content::places(size).into_iter();
    places
        .map(|(offset, length)| ByteRange::new(offset, length & !511))
        .filter(|range| range.length > 0)
        .collect()
}

/// Finds out who uses a block device or an existing file and what it holds,
/// without writing to it.
///
/// Errors: [`BlockError::Open`], [`BlockError::NotADevice`],
/// [`BlockError::Examine`].
pub fn inspect(path: &Path) -> Result<Occupancy, BlockError> {
    let (metadata, _) = examine(path)?;
    let usage = usage::of(path, &metadata)?;
    let file = File::open(path).map_err(|source| cannot_open(path, source))?;
    Ok(Occupancy {
        path: path.to_owned(),
        usage,
        content: stored(path, &file)?,
    })
}

/// The content of a file or disk of the system that is open for reading. For a file, all stored
/// data is read. `path` names it in errors.
///
/// # Errors
/// [`BlockError::Open`].
pub fn stored(path: &Path, file: &File) -> Result<Content, BlockError> {
    of_file(file).map_err(|source| cannot_open(path, source))
}

pub(crate) fn of_file(mut file: &File) -> std::io::Result<Content> {
    let kind = PathKind::of(&file.metadata()?);
    let size = file.seek(SeekFrom::End(0))?;
    Content::of_file(file, size, kind == Some(PathKind::RegularFile))
}

fn examine(path: &Path) -> Result<(Metadata, PathKind), BlockError> {
    let metadata = std::fs::metadata(path).map_err(|source| cannot_open(path, source))?;
    match PathKind::of(&metadata) {
        Some(kind) => Ok((metadata, kind)),
        None => Err(BlockError::NotADevice {
            path: path.to_owned(),
        }),
    }
}

fn cannot_open(path: &Path, source: std::io::Error) -> BlockError {
    BlockError::Open {
        path: path.to_owned(),
        source,
    }
}
