//! [`Log`]: a run file that one writer appends to and holds locked as long as it lives.

use super::entry::{self, Entry};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file whose lock is held.
pub(super) struct Log {
    pub(super) path: PathBuf,
    file: File,
}

/// How a file is opened that only its owner may read.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes sure that the names in a folder outlive a power loss.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Other systems open no folder, and have no need to.
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

#[cfg(unix)]
fn try_lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// Elsewhere a lock keeps others from reading, too.
#[cfg(not(unix))]
fn try_lock(_: &File) -> Result<(), TryLockError> {
    Ok(())
}

impl Log {
    /// The file at `path`, which is there, if no living writer holds it.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let log = Self {
            file: private().append(true).open(path)?,
            path: path.to_owned(),
        };
        match try_lock(&log.file) {
            // The previous holder may have removed or replaced the file.
            Ok(()) if log.is_current() => log.heal().map(Some),
            Ok(()) | Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Creates a file at `path` with this text, replacing any other file there. The text is on the
    /// disk afterwards.
    pub(super) fn create(path: &Path, text: &str) -> io::Result<Self> {
        // Never through a link, and never what another process has open.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = private().append(true).create_new(true).open(path)?;
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all());
        if let Err(error) = written {
            let _ = fs::remove_file(path);
            return Err(error);
        }
        try_lock(&file)?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Gives it another name, in place of the file that has it; the name is on the disk
    /// afterwards.
    pub(super) fn rename(&mut self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)?;
        self.path = to.to_owned();
        sync_folder(to.parent().unwrap_or(Path::new(".")))
    }

    /// Cuts off the torn end that a writer left when it was killed.
    fn heal(mut self) -> io::Result<Self> {
        let bytes = self.bytes()?;
        if let Ok(safe) = entry::safe_length(&bytes)
            && safe < bytes.len()
        {
            self.file.set_len(safe as u64)?;
        }
        Ok(self)
    }

    /// Whether its name still leads to it.
    #[cfg(unix)]
    pub(super) fn is_current(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let inode = |found: fs::Metadata| (found.dev(), found.ino());
        let opened = self.file.metadata().map(inode);
        opened.is_ok_and(|opened| fs::metadata(&self.path).is_ok_and(|at| inode(at) == opened))
    }

    /// Whether its name is still there: elsewhere an open file keeps its own.
    #[cfg(not(unix))]
    pub(super) fn is_current(&self) -> bool {
        self.path.exists()
    }

    /// Appends an entry; it is on the disk afterwards or, on an error, the file is as before.
    pub(super) fn append(&mut self, entry: &Entry) -> io::Result<()> {
        let lines = entry.to_lines()?;
        let before = self.file.metadata()?.len();
        let written = self
            .file
            .write_all(lines.as_bytes())
            .and_then(|()| self.file.sync_data());
        if written.is_err() {
            // Half a line would spoil the next; if even that fails, it is the last.
            let _ = self.file.set_len(before);
        }
        written
    }

    pub(super) fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
