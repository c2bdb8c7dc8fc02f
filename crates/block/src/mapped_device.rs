//! [`MappedDevice`]: a device that the system's device mapper makes.

use crate::BlockError;
use crate::sys::mapper;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

/// Where the device mapper is asked.
const CONTROL: &str = "/dev/mapper/control";

/// A device with one target of the device mapper. It needs root.
///
/// The device goes away when its last user closes it: this program, a mount or another program.
#[derive(Debug)]
pub struct MappedDevice {
    path: PathBuf,
    /// Keeps it until others have it open.
    _open: File,
}

impl MappedDevice {
    /// Creates the device `name`, which must be unused, of `size` bytes, a multiple of 512. All of
    /// it is one `target` with `parameters` as in Documentation/admin-guide/device-mapper of the
    /// kernel. Copies of the parameters, here and in the kernel, are wiped.
    ///
    /// # Errors
    /// [`BlockError::Mapper`], also if the kernel does not know a cipher; [`BlockError::Open`].
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
