//! Files that are there as a whole or not at all, also after a power loss.

#[cfg(unix)]
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// What is zero over such a length takes no room on the disk.
const HOLE: usize = 4096;

/// What becomes of a file that has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// It stays, and the new one is refused.
    Stays,
    /// The new one takes its place.
    Goes,
}

/// Makes the file `path` with these bytes, for this user alone; never over
/// another one.
///
/// # Errors
/// Those of writing; there is no file then.
pub fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = draft(path)?;
    for (part, at) in bytes.chunks(HOLE).zip(0..) {
        if part.iter().any(|byte| *byte != 0) {
            file.seek(SeekFrom::Start(at * HOLE as u64))?;
            file.write_all(part)?;
        }
    }
    file.as_file().set_len(bytes.len() as u64)?;
    publish(file, path, Other::Stays)
}

/// A file beside `path` that gets this name when it is whole. Its mode is 0600, and it
/// goes with its last user.
///
/// # Errors
/// Those of making it.
pub fn draft(path: &Path) -> io::Result<NamedTempFile> {
    NamedTempFile::with_prefix_in(".cryptmark-", folder(path))
}

/// Gives a draft its name, after its content is on the disk.
///
/// # Errors
/// Those of writing.
pub fn publish(draft: NamedTempFile, path: &Path, other: Other) -> io::Result<()> {
    draft.as_file().sync_all()?;
    match other {
        Other::Stays => draft.persist_noclobber(path)?,
        Other::Goes => draft.persist(path)?,
    };
    sync(folder(path))
}

/// Where `path` is.
pub fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

/// A new name is only there after its folder is on the disk.
#[cfg(unix)]
fn sync(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems have no such thing, and some folders may not be read.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

#[cfg(not(unix))]
fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}
