//! Warnings of files with keys on a file system in memory.

use std::path::Path;

/// Warns if the file at `path` is on a file system that lives in memory: the keys in it go with the
/// next power cut. If the data of `image` go with them, nothing is said.
pub fn warn(path: &Path, image: &Path) {
    if is_in_memory(path) && !is_in_memory(image) {
        eprintln!(
            "warning: {} is on a file system that lives in memory: it is gone after a power cut or a \
             restart, and the data cannot be read without it. Name a file on a disk, or make a copy \
             there.",
            path.display()
        );
    }
}

#[cfg(target_os = "linux")]
fn is_in_memory(path: &Path) -> bool {
    /// Of tmpfs and ramfs, statfs(2).
    const MAGICS: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
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
