//! [`MappedDevice`]: a device that the system's device mapper makes.

use crate::BlockError;
use crate::sys::mapper;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

/// Where the device mapper is asked.
const CONTROL: &str = "/dev/mapper/control";

/// A device of one target of the device mapper, which needs root.
///
/// It goes away when nobody has it open any more: neither this, nor a mount,
/// nor another program.
#[derive(Debug)]
pub struct MappedDevice {
    path: PathBuf,
    /// Keeps it until others have it open.
    _open: File,
}

impl MappedDevice {
    /// Makes the device `name`, which nobody else may have, of `size` bytes, a
    /// multiple of 512: all of it is `target` with these parameters, as
    /// Documentation/admin-guide/device-mapper of the kernel says. What is copied
    /// of them here and in the kernel is wiped.
    ///
    /// # Errors
    /// [`BlockError::Mapper`], also where the kernel does not know a cipher;
    /// [`BlockError::Open`].
    pub fn new(
        name: &str,
        size: u64,
        target: &'static str,
        parameters: &[u8],
    ) -> Result<Self, BlockError> {
        let refused = |source| BlockError::Mapper { target, source };
        let control = OpenOptions::new()
            .read(true)
            .write(true)
            .open(CONTROL)
            .map_err(refused)?;
        let number = mapper::create(&control, name).map_err(refused)?;
        let path = PathBuf::from(format!("/dev/dm-{number}"));
        let made = mapper::load(&control, name, size / 512, target, parameters)
            .map_err(refused)
            .and_then(|()| {
                File::open(&path).map_err(|source| BlockError::Open {
                    path: path.clone(),
                    source,
                })
            });
        // From here on it goes when its last user does, however this program ends;
        // without one, now.
        let removed = mapper::remove(&control, name).map_err(refused);
        let open = made?;
        removed?;
        mapper::resume(&control, name).map_err(refused)?;
        Ok(Self { path, _open: open })
    }

    /// The device, as in `/dev/dm-0`.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
