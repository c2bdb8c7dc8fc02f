//! The file that has the header of a volume while its data are converted.

use super::standing;
use crate::VolumeError;
use crate::judge::Use;
use crate::operate::reserve;
use crate::place::open_file;
use block::{BlockDevice, ByteRange, FileDevice, folder_of};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A header whose file has no name yet. Until it records that the change has begun, its content is
/// not true.
pub struct Draft {
    file: block::Draft,
    path: PathBuf,
    device: FileDevice,
}

impl Draft {
    /// A file for the name `path`, which must be free.
    ///
    /// # Errors
    /// [`VolumeError::Standing`] if there is such a file, and those of making one.
    pub fn new(
        path: &Path,
        fill: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<Self, VolumeError> {
        let unwritable = |error| cannot_write(path, error);
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(error)),
            // A link that leads nowhere is there as well.
            Ok(_) => {
                return Err(standing(
                    format!("{} exists already", path.display()),
                    "Name another file for the header.",
                ));
            }
        }
        let file = block::Draft::new(folder_of(path), 0o600).map_err(unwritable)?;
        fill(file.file()).map_err(unwritable)?;
        let device = open_file(&file.path(), Use::Overwrite, false)?;
        // All of it is written in the end.
        reserve(&device, ByteRange::new(0, device.geometry().size))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            device,
        })
    }

    /// The header.
    pub fn device(&self) -> &dyn BlockDevice {
        &self.device
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// [`VolumeError::CannotWrite`]; the file has no name then.
    pub fn publish(self) -> Result<FileDevice, VolumeError> {
        let path = &self.path;
        let unwritable = |error| cannot_write(path, error);
        self.file.file().sync_all().map_err(unwritable)?;
        self.file.name(path).map_err(unwritable)?;
        // Nothing has begun if it is unknown whether the name stays.
        sync_name(path).inspect_err(|_| drop(std::fs::remove_file(path)))?;
        Ok(self.device)
    }
}

/// Sees to it that the name of a file is on the disk.
///
/// # Errors
/// [`VolumeError::CannotWrite`].
pub fn sync_name(path: &Path) -> Result<(), VolumeError> {
    block::sync_name(path).map_err(|error| cannot_write(path, error))
}

/// A file that cannot be made, written or removed.
pub fn cannot_write(path: &Path, source: io::Error) -> VolumeError {
    VolumeError::CannotWrite {
        path: path.to_owned(),
        source,
    }
}
