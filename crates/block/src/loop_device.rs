//! [`LoopDevice`]: a file as a block device of the system.

use crate::BlockError;
use crate::sys::ioctl::{self, LoopCipher, loop_flags};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How often somebody else may be faster in taking the device that was free.
const ATTEMPTS: u32 = 64;

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
    /// Puts the file at `backing` behind a free loop device, for writing too if
    /// `write`. It goes around the page cache to the file, where the file system
    /// lets it: what the device holds is cached once.
    ///
    /// A loop device believes that holes can be punched into any file, until
    /// the first attempt, which it says has worked.
    ///
    /// # Errors
    /// [`BlockError::Open`] and [`BlockError::Loop`].
    pub fn attach(backing: &Path, write: bool) -> Result<Self, BlockError> {
        let file = open(backing, write, OFlags::DIRECT).or_else(|error| match error.kind() {
            io::ErrorKind::InvalidInput => open(backing, write, OFlags::empty()),
            _ => Err(error),
        });
        let file = file.map_err(|source| BlockError::Open {
            path: backing.to_owned(),
            source,
        })?;
        Self::configured(backing, &file, write, loop_flags::DIRECT_IO, None)
    }

    /// Puts the file at `backing` behind a free loop device that encrypts with
    /// `cipher`, in cryptoloop's notation (`aes-cbc`, at most 63 bytes), under
    /// `key`, at most 32 bytes. Linux before 5.16 can do that.
    ///
    /// # Errors
    /// [`BlockError::Open`] and [`BlockError::Loop`]; newer kernels refuse.
    pub fn attach_encrypted(backing: &Path, cipher: &str, key: &[u8]) -> Result<Self, BlockError> {
        let file = open(backing, true, OFlags::empty()).map_err(|source| BlockError::Open {
            path: backing.to_owned(),
            source,
        })?;
        let cipher = LoopCipher { name: cipher, key };
        Self::configured(backing, &file, true, 0, Some(cipher))
    }

    fn configured(
        backing: &Path,
        file: &File,
        write: bool,
        flags: u32,
        cipher: Option<LoopCipher<'_>>,
    ) -> Result<Self, BlockError> {
        let refused = |source| BlockError::Loop {
            path: backing.to_owned(),
            source,
        };
        let control = File::open("/dev/loop-control").map_err(refused)?;
        let access = if write { 0 } else { loop_flags::READ_ONLY };
        let flags = flags | access | loop_flags::AUTOCLEAR;
        for _ in 0..ATTEMPTS {
            let number = ioctl::free_loop(&control).map_err(refused)?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = open(&path, write, OFlags::empty()).map_err(refused)?;
            match ioctl::configure_loop(&device, file, flags, cipher) {
                Ok(()) => {
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

fn open(path: &Path, write: bool, flags: OFlags) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(write);
    options.custom_flags(flags.bits() as i32).open(path)
}
