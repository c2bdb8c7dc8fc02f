//! A file that is there as a whole or not at all.

#[cfg(unix)]
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// What is zero over such a length takes no room on the disk.
const HOLE: usize = 4096;

/// Makes the file `path` with these bytes, for this user alone; never over
/// another one.
///
/// # Errors
/// Those of writing; there is no file then.
pub fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    // Its mode is 0600, and it goes with its last user.
    let mut file = NamedTempFile::with_prefix_in(".cryptmark-", folder)?;
    for (part, at) in bytes.chunks(HOLE).zip(0..) {
        if part.iter().any(|byte| *byte != 0) {
            file.seek(SeekFrom::Start(at * HOLE as u64))?;
            file.write_all(part)?;
        }
    }
    file.as_file().set_len(bytes.len() as u64)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    sync(folder)
}

/// A new name is only there after its folder is on the disk.
#[cfg(unix)]
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}
