//! [`Draft`]: the content of a file that has no name yet.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::{PathPersistError, TempPath};

/// The prefix of the names that drafts have on file systems on which every file has a name.
const PREFIX: &str = ".cryptmark-";

/// A file beside the one that it will be. It has no name, so that nothing of it is left when this
/// program is killed. On file systems without such files it has a name, which goes with its last
/// user.
#[derive(Debug)]
pub struct Draft {
    file: File,
    name: Option<TempPath>,
}

impl Draft {
    /// A draft in `folder` with these rights, as far as the umask allows them.
    ///
    /// # Errors
    /// Those of making it.
    pub fn new(folder: &Path, mode: u32) -> io::Result<Self> {
        if let Some(file) = unnamed(folder, mode)? {
            return Ok(Self { file, name: None });
        }
        let mut new = tempfile::Builder::new();
        #[cfg(unix)]
        new.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
        let (file, name) = new.prefix(PREFIX).tempfile_in(folder)?.into_parts();
        let name = Some(name);
        Ok(Self { file, name })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// A path that leads to it, for as long as this is there.
    pub fn path(&self) -> PathBuf {
        match &self.name {
            Some(name) => name.to_path_buf(),
            None => descriptor(&self.file),
        }
    }

    /// Gives it a name that nothing has.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if something has it, and those of the system.
    pub fn name(self, path: &Path) -> io::Result<()> {
        let Some(name) = self.name else {
            return link(&self.file, path);
        };
        let name = match name.persist_noclobber(path) {
            Ok(()) => return Ok(()),
            Err(PathPersistError { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(error);
            }
            Err(PathPersistError { path, .. }) => path,
        };
        // Some file systems cannot do it in one step: the name is taken by an empty file first.
        File::create_new(path)?;
        let named = name.persist(path);
        named.map_err(|PathPersistError { error, .. }| {
            // The first error is the one that counts.
            let _ = std::fs::remove_file(path);
            error
        })
    }

    /// Gives it the name that another file has, which loses it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn rename(self, path: &Path) -> io::Result<()> {
        let name = match self.name {
            Some(name) => name,
            // The kernel gives a first name only if nothing has it.
            None => tempfile::Builder::new()
                .prefix(PREFIX)
                .make_in(crate::folder_of(path), |name| link(&self.file, name))?
                .into_temp_path(),
        };
        Ok(name.persist(path)?)
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file without a name; `None` if the file system has no such files.
#[cfg(target_os = "linux")]
pub(crate) fn unnamed(folder: &Path, mode: u32) -> io::Result<Option<File>> {
    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::Errno;
    // It gets its name by way of this folder.
    if !Path::new(DESCRIPTORS).exists() {
        return Ok(None);
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open(folder, flags, Mode::from_raw_mode(mode)) {
        Ok(file) => Ok(Some(file.into())),
        // Kernels that do not know such files see a folder being opened for writing.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn unnamed(_: &Path, _: u32) -> io::Result<Option<File>> {
    Ok(None)
}

#[cfg(target_os = "linux")]
const DESCRIPTORS: &str = "/proc/self/fd";

/// The path of a file that has no name.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    format!("{DESCRIPTORS}/{}", file.as_raw_fd()).into()
}

#[cfg(not(target_os = "linux"))]
fn descriptor(_: &File) -> PathBuf {
    PathBuf::new()
}

#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(
        CWD,
        descriptor(file),
        CWD,
        path,
        AtFlags::SYMLINK_FOLLOW,
    )?)
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The length of a range of zeros that is written as a hole and takes no room on the disk, bytes.
const HOLE: usize = 4096;

/// Makes the file `path` with these bytes, for this user alone; never over
/// another one.
///
/// # Errors
/// Those of writing; there is no file then.
pub fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = Draft::new(crate::folder_of(path), 0o600)?;
    let mut file = draft.file();
    for (part, at) in bytes.chunks(HOLE).zip(0..) {
        if part.iter().any(|byte| *byte != 0) {
            file.seek(SeekFrom::Start(at * HOLE as u64))?;
            file.write_all(part)?;
        }
    }
    file.set_len(bytes.len() as u64)?;
    file.sync_all()?;
    draft.name(path)?;
    crate::sync_name(path)
}
