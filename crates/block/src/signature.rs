//! Is it safe to write here? What uses a device, and what it holds.
//!
//! Two questions that are answered separately: *use* (mounted, swap, part of a
//! volume, opened exclusively) is never overridden; *content* (a signature, or
//! data that nobody recognises) may be, by a user who says so.

mod content;
mod usage;

pub use content::Content;
pub use usage::{Mount, Usage, mounts};

use crate::{BlockDevice, BlockError};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All that is known about what would be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// The device or file.
    pub path: PathBuf,
    /// Who uses it.
    pub usage: Usage,
    /// What it holds.
    pub content: Content,
}

impl Occupancy {
    /// Refuses what is in use: [`BlockError::Mounted`], [`BlockError::Swap`] or
    /// [`BlockError::InUse`].
    pub fn check_usage(&self) -> Result<(), BlockError> {
        if let Some(mount) = self.usage.mounts.first() {
            return Err(BlockError::Mounted {
                path: mount.device.clone(),
                mount_point: mount.mount_point.clone(),
            });
        }
        if let Some(path) = self.usage.swaps.first() {
            return Err(BlockError::Swap { path: path.clone() });
        }
        if self.usage.held || !self.usage.holders.is_empty() {
            return Err(BlockError::InUse {
                path: self.path.clone(),
            });
        }
        Ok(())
    }

    /// Refuses what is not blank: [`BlockError::Signature`] or
    /// [`BlockError::UnknownData`].
    pub fn check_content(&self) -> Result<(), BlockError> {
        match self.content {
            Content::Blank => Ok(()),
            Content::Known(name) => Err(BlockError::Signature {
                path: self.path.clone(),
                name,
            }),
            Content::Unknown => Err(BlockError::UnknownData {
                path: self.path.clone(),
            }),
        }
    }
}

/// Refuses to let `path` be overwritten if it is in use or, unless the loss is
/// `confirmed`, holds anything.
///
/// To be called right before the first write, and followed by opening with
/// [`FileOptions::exclusive`](crate::FileOptions::exclusive).
pub fn guard(path: &Path, confirmed: bool) -> Result<(), BlockError> {
    let occupancy = inspect(path)?;
    occupancy.check_usage()?;
    if confirmed {
        Ok(())
    } else {
        occupancy.check_content()
    }
}

/// What `device` holds, of whatever kind it is.
///
/// # Errors
/// Those of reading it.
pub fn content(device: &dyn BlockDevice) -> Result<Content, BlockError> {
    Content::read(device.geometry().size, |offset, into| {
        device.read_at(offset, into)
    })
}

/// Finds out who uses a block device or an existing file and what it holds,
/// without writing to it.
///
/// Errors: [`BlockError::Open`], [`BlockError::NotADevice`],
/// [`BlockError::Examine`].
pub fn inspect(path: &Path) -> Result<Occupancy, BlockError> {
    let refused = |source| BlockError::Open {
        path: path.to_owned(),
        source,
    };
    let metadata = std::fs::metadata(path).map_err(refused)?;
    let kind = metadata.file_type();
    let usage = if kind.is_block_device() {
        Usage {
            held: is_held(path).map_err(refused)?,
            ..usage::of_device(&metadata)?
        }
    } else if kind.is_file() {
        usage::of_file(path)?
    } else {
        return Err(BlockError::NotADevice {
            path: path.to_owned(),
        });
    };
    let content = File::open(path)
        .and_then(|mut file| {
            let size = file.seek(SeekFrom::End(0))?;
            Content::read(size, |offset, into| file.read_exact_at(into, offset))
        })
        .map_err(refused)?;
    Ok(Occupancy {
        path: path.to_owned(),
        usage,
        content,
    })
}

/// Whether someone has opened the block device exclusively, as mounts and
/// volume managers do.
///
/// The kernel gives up the rings of a program that just ended, and with them
/// the devices they hold, a little later: so a device is asked for a while.
fn is_held(path: &Path) -> io::Result<bool> {
    const ATTEMPTS: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(20);
    for attempt in 1.. {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::EXCL.bits() as i32)
            .open(path);
        match opened {
            Ok(_) => break,
            Err(error) if error.kind() != io::ErrorKind::ResourceBusy => return Err(error),
            Err(_) if attempt == ATTEMPTS => return Ok(true),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    Ok(false)
}
