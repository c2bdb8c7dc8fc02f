//! [`NewFile`]: a file that is made for a volume, and goes again if that fails.

use crate::VolumeError;
use block::{BlockError, signature};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that was made for a volume. It is removed when this is dropped, unless it was
/// kept, or has what another program has written to it.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    /// The metadata of the new file, which identify it even if its name now belongs to another
    /// file.
    file: Metadata,
    /// Whether it has anything of the volume.
    is_written: bool,
    is_kept: bool,
}

impl NewFile {
    /// Makes a file of `bytes` bytes. Only its owner may read it, whatever the umask allows: it
    /// will have keys.
    ///
    /// # Errors
    /// Those of the system; also if there is anything at `path`.
    pub fn make(path: &Path, bytes: u64) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let made = Self {
            path: path.to_owned(),
            file: file.metadata()?,
            is_written: false,
            is_kept: false,
        };
        file.set_len(bytes)?;
        Ok(made)
    }

    /// Keeps the file with these bytes in it.
    ///
    /// # Errors
    /// [`VolumeError::Block`] with those of writing.
    pub(crate) fn fill(mut self, bytes: &[u8]) -> Result<(), VolumeError> {
        self.is_written = true;
        let write = || {
            let mut file = File::options().write(true).open(&self.path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(|source| BlockError::Open {
            path: self.path.clone(),
            source,
        })?;
        self.keep()
    }

    /// What it holds from now on is the volume's.
    pub(crate) fn begin(&mut self) {
        self.is_written = true;
    }

    /// Keeps it, and makes sure that its name is on the disk.
    ///
    /// # Errors
    /// [`VolumeError::Block`] with that of its folder.
    pub(crate) fn keep(&mut self) -> Result<(), VolumeError> {
        block::sync_name(&self.path).map_err(|source| BlockError::Open {
            path: self.path.clone(),
            source,
        })?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let is_own = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|there| is_same_file(&there, &self.file));
        if self.is_kept || !is_own {
            return;
        }
        // Any content that it has before it is written is another program's.
        let blank = || signature::inspect(&self.path).is_ok_and(|found| found.content.is_blank());
        if self.is_written || blank() {
            // This error is not reported, because the first error is the one that counts.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(unix)]
fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Windows gives no file another's name while it is open.
#[cfg(not(unix))]
fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    true
}
