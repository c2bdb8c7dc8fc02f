//! [`LoopDevice`]: a file as a block device of the system.

use crate::BlockError;
use crate::sys::ioctl::{self, loop_flags};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How often somebody else may be faster in taking the device that was free.
const ATTEMPTS: u32 = 64;

/// What a [`LoopDevice`] lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopOptions {
    /// Writes.
    pub write: bool,
    /// Discards: a loop device believes of any file that holes can be punched
    /// into it, until the first attempt, which it says has worked.
    pub discards: bool,
}

/// A file as a block device of the system, which needs root.
///
/// It goes away when nobody has it open any more: neither this, nor a mount,
/// nor another program.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    /// Keeps it until others have it open.
    _open: File,
}

impl LoopDevice {
    /// Puts the file at `backing` behind a free loop device. It goes around the
    /// page cache to the file: what the device holds is cached once.
    ///
    /// # Errors
    /// [`BlockError::Open`] and [`BlockError::Loop`].
    pub fn attach(backing: &Path, options: LoopOptions) -> Result<Self, BlockError> {
        let LoopOptions { write, discards } = options;
        let refused = |source| BlockError::Loop {
            path: backing.to_owned(),
            source,
        };
        let open = |path: &Path, flags: OFlags| {
            let mut options = OpenOptions::new();
            options.read(true).write(write);
            options.custom_flags(flags.bits() as i32).open(path)
        };
        let file = open(backing, OFlags::DIRECT).map_err(|source| BlockError::Open {
            path: backing.to_owned(),
            source,
        })?;
        let control = File::open("/dev/loop-control").map_err(refused)?;
        let access = if write { 0 } else { loop_flags::READ_ONLY };
        let flags = access | loop_flags::AUTOCLEAR | loop_flags::DIRECT_IO;
        for _ in 0..ATTEMPTS {
            let number = ioctl::free_loop(&control).map_err(refused)?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = open(&path, OFlags::empty()).map_err(refused)?;
            match ioctl::configure_loop(&device, &file, flags) {
                Ok(()) => {
                    if !discards {
                        let limit = format!("/sys/block/loop{number}/queue/discard_max_bytes");
                        std::fs::write(limit, "0").map_err(refused)?;
                    }
                    return Ok(Self {
                        path,
                        _open: device,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                Err(error) => return Err(refused(error)),
            }
        }
        Err(refused(io::ErrorKind::ResourceBusy.into()))
    }

    /// The device, as in `/dev/loop0`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is behind a loop device; nothing where it is free or none.
    pub fn backing_of(device: &Path) -> Option<PathBuf> {
        let name = device.file_name()?.to_str()?;
        let text = std::fs::read(format!("/sys/block/{name}/loop/backing_file")).ok()?;
        let path: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(
            text.strip_suffix(b"\n").unwrap_or(&text).to_vec(),
        );
        Some(path.into())
    }

    /// Takes away what is behind the loop device at `path`, at the latest when
    /// nobody has it open.
    ///
    /// # Errors
    /// [`BlockError::Open`] and [`BlockError::Loop`].
    pub fn detach(path: &Path) -> Result<(), BlockError> {
        let device = File::open(path).map_err(|source| BlockError::Open {
            path: path.to_owned(),
            source,
        })?;
        ioctl::clear_loop(&device).map_err(|source| BlockError::Loop {
            path: path.to_owned(),
            source,
        })
    }
}
