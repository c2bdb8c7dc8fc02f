//! Where nothing is mounted: over the system's own folders, and unasked over files.

use crate::cli::Failure;
use std::path::{Path, PathBuf};

/// The system's folders with all that is in them: what is looked for there, programs
/// among it, must not come from a volume.
const SYSTEM: [&str; 12] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin",
    "/sys", "/usr",
];

/// Folders that hold other people's, and whose own content must not go out of sight.
const HOLDERS: [&str; 22] = [
    "/",
    "/home",
    "/media",
    "/nix",
    "/opt",
    "/root",
    "/run",
    "/run/lock",
    "/run/user",
    "/snap",
    "/srv",
    "/tmp",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/local",
    "/var/lock",
    "/var/log",
    "/var/mail",
    "/var/opt",
    "/var/spool",
    "/var/tmp",
];

/// Checks that a volume may be mounted on `directory`, which is absolute. A directory of the
/// system's is never allowed, and one that is not empty only if the user says `yes`.
///
/// # Errors
/// Exit code 4 if it may not, 2 if it cannot be read.
pub fn check(directory: &Path, yes: bool) -> Result<(), Failure> {
    check_folder(directory)?;
    let unusable = |error: std::io::Error| {
        Failure::new(
            2,
            format!("cannot mount on {}: {error}", directory.display()),
            "Name an existing, empty directory.",
        )
    };
    let mut entries = std::fs::read_dir(directory).map_err(unusable)?;
    match entries.next() {
        Some(_) if !yes => Err(Failure::new(
            4,
            format!("{} is not empty", directory.display()),
            "Name an empty directory, or give --yes. Its contents are hidden until the volume is unmounted.",
        )),
        _ => Ok(()),
    }
}

/// Whether something may appear on `path` itself.
///
/// # Errors
/// Exit code 4 if it may not.
pub fn check_folder(path: &Path) -> Result<(), Failure> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let holder = HOLDERS.iter().any(|holder| path == Path::new(holder))
        || home.is_some_and(|home| path == home);
    match holder || is_in_system(path) {
        true => Err(refused(path)),
        false => Ok(()),
    }
}

/// Whether a file may appear at `path`, which is absolute.
///
/// # Errors
/// Exit code 4 if it may not.
pub fn check_file(path: &Path) -> Result<(), Failure> {
    match is_in_system(path) {
        true => Err(refused(path)),
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

fn refused(path: &Path) -> Failure {
    Failure::new(
        4,
        format!(
            "{} belongs to the system: nothing is mounted there",
            path.display()
        ),
        "Name a directory of your own, such as one below /mnt or your home.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_system_are_refused_with_yes_as_well() {
        let system = [
            "/",
            "/usr",
            "/usr/local/bin",
            "/etc",
            "/etc/ssl",
            "/home",
            "/bin",
            "/lib/x",
            "/tmp",
            "/var/lib",
            "/dev",
            "/dev/shm",
            "/proc/1",
            "/root",
            "/boot/efi",
            "/run",
        ];
        for path in system {
            for yes in [false, true] {
                let refused = check(Path::new(path), yes).unwrap_err();
                assert_eq!(refused.code(), 4, "{path}");
            }
        }
        for path in [
            "/mnt",
            "/mnt/x",
            "/home/me/x",
            "/media/me/x",
            "/tmp/x",
            "/dev/shm/x",
            "/usrx",
        ] {
            assert!(check_folder(Path::new(path)).is_ok(), "{path}");
            assert!(check_file(Path::new(path)).is_ok(), "{path}");
        }
        assert!(check_file(Path::new("/etc/new")).is_err());
    }

    #[test]
    fn a_directory_with_files_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check(folder.path(), false).is_ok());
        std::fs::write(folder.path().join("mine"), "").unwrap();
        assert_eq!(check(folder.path(), false).unwrap_err().code(), 4);
        assert!(check(folder.path(), true).is_ok());
    }
}
