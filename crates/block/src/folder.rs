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

/// What is to be said of the file at `path` if it is on a file system that lives in memory, because
/// the keys in it go with the next power cut. If the data of `image` go with them, there is nothing
/// to say.
pub fn warn_of_memory(path: &Path, image: &Path) -> Option<String> {
    (is_in_memory(path) && !is_in_memory(image)).then(|| {
        format!(
            "{} is on a file system that lives in memory: it is gone after a power cut or a restart, \
             and the data cannot be read without it. Name a file on a disk, or make a copy there.",
            path.display()
        )
    })
}

#[cfg(target_os = "linux")]
fn is_in_memory(path: &Path) -> bool {
    /// Of tmpfs and ramfs, statfs(2).
    const MAGICS: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    let folder = folder_of(path);
    let there = match path.metadata() {
        // Its node is in memory, and its bytes are not.
        Ok(found) if !found.is_file() => return false,
        Ok(_) => path,
        Err(_) => folder,
    };
    let magic = rustix::fs::statfs(there).map(|found| found.f_type as u64 & 0xffff_ffff);
    magic.is_ok_and(|magic| MAGICS.contains(&magic))
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_: &Path) -> bool {
    false
}
