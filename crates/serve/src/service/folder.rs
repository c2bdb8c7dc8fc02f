//! Where nothing is mounted: over the system's own folders, and unasked over files.

use super::{Pinned, ServiceError, absolute};
use std::io;
use std::path::{Path, PathBuf};

/// The system's folders with all that is in them: what is looked for there, programs
/// among it, must not come from a volume.
const SYSTEM: [&str; 12] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin",
    "/sys", "/usr",
];

/// Folders that hold other people's, and whose own content must not go out of sight.
const HOLDERS: &str = "/:/home:/media:/nix:/opt:/root:/run:/run/lock:/run/user:/snap:/srv:/tmp:\
                       /var:/var/cache:/var/lib:/var/local:/var/lock:/var/log:/var/mail:/var/opt:\
                       /var/spool:/var/tmp";

/// The directory at `path`, held, if a volume may be mounted on it.
///
/// # Errors
/// [`ServiceError::MountPoint`] and those of [`check`].
pub fn mount_point(path: &Path, confirmed: bool) -> Result<Pinned, ServiceError> {
    let pinned = absolute(path).and_then(|path| Pinned::new(&path));
    let pinned = pinned.map_err(|error| unusable(path, error))?;
    check(pinned.path(), confirmed)?;
    Ok(pinned)
}

/// Checks that a volume may be mounted on `directory`, which is absolute. A directory of the
/// system's is never allowed, and one that is not empty only if that is `confirmed`.
///
/// # Errors
/// [`ServiceError::System`], [`ServiceError::NotEmpty`], and [`ServiceError::MountPoint`] if it
/// cannot be read.
pub fn check(directory: &Path, confirmed: bool) -> Result<(), ServiceError> {
    check_folder(directory)?;
    let path = directory.to_owned();
    let entries = std::fs::read_dir(directory);
    match entries.map_err(|error| unusable(directory, error))?.next() {
        Some(_) if !confirmed => Err(ServiceError::NotEmpty { path }),
        _ => Ok(()),
    }
}

/// Whether something may appear on `path` itself.
///
/// # Errors
/// [`ServiceError::System`].
pub fn check_folder(path: &Path) -> Result<(), ServiceError> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let holder = HOLDERS.split(':').any(|holder| path == Path::new(holder));
    refuse_if(
        holder || home.is_some_and(|home| path == home) || is_in_system(path),
        path,
    )
}

/// Whether a file may appear at `path`, which is absolute.
///
/// # Errors
/// [`ServiceError::System`].
pub fn check_file(path: &Path) -> Result<(), ServiceError> {
    refuse_if(is_in_system(path), path)
}

fn refuse_if(refused: bool, path: &Path) -> Result<(), ServiceError> {
    let path = path.to_owned();
    match refused {
        true => Err(ServiceError::System { path }),
        false => Ok(()),
    }
}

fn is_in_system(path: &Path) -> bool {
    // Memory, in which users have folders of their own.
    let shared = path != Path::new("/dev/shm") && path.starts_with("/dev/shm");
    let searched = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&searched).any(|folder| path == folder);
    (SYSTEM.iter().any(|folder| path.starts_with(folder)) && !shared) || programs
}

fn unusable(path: &Path, source: io::Error) -> ServiceError {
    let path = path.to_owned();
    ServiceError::MountPoint { path, source }
}
