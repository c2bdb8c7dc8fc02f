//! [`LoopDevice`]: a file as a block device of the system.

use crate::BlockError;
use crate::sys::ioctl::{self, LoopEncryption, loop_flags};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The number of attempts to take a free device before giving up, because other programs may take
/// it first.
const ATTEMPTS: u32 = 64;

/// A file as a block device of the system. It needs root.
///
/// The device goes away when its last user closes it: this program, a mount or another program.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    /// Keeps it until others have it open.
    _open: File,
}

impl LoopDevice {
    /// Puts the file at `backing` behind a free loop device, for writing too if
    /// `write`. It goes around the page cache to the file, where its file system
    /// lets it: what the device holds is cached once.
    ///
    /// A loop device believes that holes can be punched into any file, until
    /// the first attempt, which it says has worked.
    ///
    /// # Errors
    /// [`BlockError::Open`] and [`BlockError::Loop`].
    pub fn attach(backing: &Path, write: bool) -> Result<Self, BlockError> {
        let access = if write { 0 } else { loop_flags::READ_ONLY };
        let flags = access | loop_flags::AUTOCLEAR | loop_flags::DIRECT_IO;
        Self::configure(backing, write, OFlags::DIRECT, |device, file| {
            ioctl::configure_loop(device, file, flags)
        })
    }

    /// Puts the file at `backing` behind a free loop device, with the kernel's cryptoloop in
    /// between. Kernels have had it until 5.15. `cipher` names its mode as well, as in `aes-cbc`;
    /// `key` has up to 32 bytes. IVs are sectors' numbers in 32 bits, which dm-crypt calls `plain`.
    ///
    /// # Errors
    /// [`BlockError::Open`] and [`BlockError::Loop`], also where the kernel has no
    /// cryptoloop or does not know the cipher.
    pub fn with_cryptoloop(
        backing: &Path,
        write: bool,
        cipher: &str,
        key: &[u8],
    ) -> Result<Self, BlockError> {
        let encryption = LoopEncryption { cipher, key };
        Self::configure(backing, write, OFlags::empty(), |device, file| {
            ioctl::encrypt_loop(device, file, loop_flags::AUTOCLEAR, &encryption)
        })
    }

    /// Finds a free device and has `put` put the file behind it, which is opened
    /// with `flags`.
    fn configure(
        backing: &Path,
        write: bool,
        flags: OFlags,
        put: impl Fn(&File, &File) -> io::Result<()>,
    ) -> Result<Self, BlockError> {
        let refused = |source| BlockError::Loop {
            path: backing.to_owned(),
            source,
        };
        let open = |path: &Path, flags: OFlags| {
            let mut options = OpenOptions::new();
            options.read(true).write(write);
            options.custom_flags(flags.bits() as i32).open(path)
        };
        let file = open(backing, flags).or_else(|error| match error.kind() {
            // File systems in memory know no way around a cache.
            io::ErrorKind::InvalidInput => open(backing, flags - OFlags::DIRECT),
            _ => Err(error),
        });
        let file = file.map_err(|source| BlockError::Open {
            path: backing.to_owned(),
            source,
        })?;
        let control = File::open("/dev/loop-control").map_err(refused)?;
        for _ in 0..ATTEMPTS {
            let number = ioctl::free_loop(&control).map_err(refused)?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = open(&path, OFlags::empty()).map_err(refused)?;
            match put(&device, &file) {
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

    /// The file behind a loop device; `None` if the loop device is free or `device` is not one.
    pub fn backing_of(device: &Path) -> Option<PathBuf> {
        let name = device.file_name()?.to_str()?;
        let text = std::fs::read(format!("/sys/block/{name}/loop/backing_file")).ok()?;
        let path: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(
            text.strip_suffix(b"\n").unwrap_or(&text).to_vec(),
        );
        Some(path.into())
    }

    /// Detaches the file behind the loop device at `path`, now or when its last user closes the
    /// device.
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
