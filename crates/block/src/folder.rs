//! New names, which are only there after their folder is on the disk.

#[cfg(unix)]
use std::fs::File;
use std::io;
use std::path::Path;

/// The folder in which `path` is.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

/// Sees to it that the name of a new file is on the disk.
///
/// # Errors
/// Those of its folder.
#[cfg(unix)]
pub fn sync_name(path: &Path) -> io::Result<()> {
    match File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
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

/// Nothing need be done elsewhere.
#[cfg(not(unix))]
pub fn sync_name(_: &Path) -> io::Result<()> {
    Ok(())
}
