//! Other programs, found in directories that only root can write to.
//!
//! `PATH` is set by the caller, and `sudo` or a service may pass on a user's. So as root a bare
//! name means a program in one of [`TRUSTED`], or in the directory of this program. The programs
//! that it starts search there as well. For other users, their own `PATH` decides.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where root's programs are, in the order of the search.
pub const TRUSTED: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A command that runs `name`: a path as it is, a bare name as this module says. A program that
/// cannot be found fails when it is started.
pub fn command(name: impl AsRef<OsStr>) -> Command {
    let name = name.as_ref();
    let Some(search) = trusted() else {
        return Command::new(name);
    };
    let mut command = match Path::new(name).components().count() {
        1 => {
            Command::new(find_in(&search, name).unwrap_or_else(|| Path::new(TRUSTED[0]).join(name)))
        }
        _ => Command::new(name),
    };
    if let Ok(path) = std::env::join_paths(search) {
        command.env("PATH", path);
    }
    command
}

/// The search path of started programs: `PATH`, or as root the trusted folders.
pub fn search_path() -> OsString {
    let own = || std::env::var_os("PATH").unwrap_or_default();
    trusted().map_or_else(own, |search| {
        std::env::join_paths(search).unwrap_or_default()
    })
}

/// Whether `name` is there to be run.
pub fn is_there(name: impl AsRef<OsStr>) -> bool {
    let search: Vec<PathBuf> = std::env::split_paths(&search_path()).collect();
    find_in(&search, name.as_ref()).is_some()
}

/// Whether a library that asks `PATH` for `name` gets a program that root trusts, or
/// none.
pub fn is_safe_by_path(name: impl AsRef<OsStr>) -> bool {
    let Some(search) = trusted() else {
        return true;
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .find(|folder| folder.join(name.as_ref()).is_file())
        .is_none_or(|folder| search.contains(&folder))
}

/// Whether this user may run the program at a path that the environment names. Root runs only what
/// root alone can change, so that nobody else's environment decides.
pub fn is_safe_at(path: &Path) -> bool {
    #[cfg(unix)]
    if trusted().is_some() {
        use std::os::unix::fs::MetadataExt;
        let is_roots = |path: &Path| {
            let found = std::fs::metadata(path);
            found.is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0)
        };
        // The links on the way lead through folders that others may change.
        return path.canonicalize().is_ok_and(|real| {
            let by_name = path.is_absolute() && path.ancestors().all(is_roots);
            by_name && real.ancestors().all(is_roots)
        });
    }
    let _ = path;
    true
}

/// The folders that root trusts; nothing for other users.
fn trusted() -> Option<Vec<PathBuf>> {
    #[cfg(unix)]
    if rustix::process::geteuid().is_root() {
        let own = std::env::current_exe().ok();
        let own = own.and_then(|own| Some(own.parent()?.to_owned()));
        return Some(TRUSTED.into_iter().map(PathBuf::from).chain(own).collect());
    }
    None
}

fn find_in(search: &[PathBuf], name: &OsStr) -> Option<PathBuf> {
    let mut places = search.iter().map(|folder| folder.join(name));
    places.find(|place| place.is_file())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[test]
    fn root_runs_what_is_in_trusted_folders() {
        if !is_root() {
            return println!("skipped: only root's programs are looked for");
        }
        let mut shell = command("sh");
        let found = Path::new(shell.get_program()).to_owned();
        assert!(
            TRUSTED
                .iter()
                .any(|folder| found == Path::new(folder).join("sh"))
        );
        // The programs that it starts search there as well.
        let said = shell.args(["-c", "echo $PATH"]).output().unwrap().stdout;
        let said = String::from_utf8(said).unwrap();
        assert!(
            said.starts_with("/usr/sbin:/usr/bin:/sbin:/bin:/"),
            "{said}"
        );
        // A program that is in none of these folders is not looked for elsewhere.
        let nowhere = command("cryptmark-no-such-program");
        assert!(Path::new(nowhere.get_program()).is_absolute());
        assert!(!is_there("cryptmark-no-such-program") && is_there("sh"));
    }

    #[test]
    fn root_runs_nothing_that_others_can_change() {
        use std::os::unix::fs::{PermissionsExt, chown};
        if !is_root() {
            return println!("skipped: only root's programs are looked at");
        }
        // Not in a folder that all may write to.
        let folder = tempfile::tempdir_in("/root").or_else(|_| tempfile::tempdir_in("/var/lib"));
        let folder = folder.unwrap();
        let folder_path = folder.path().canonicalize().unwrap();
        let program = folder_path.join("java");
        std::fs::write(&program, "").unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&program, 0o755);
        assert!(is_safe_at(&program));
        mode(&program, 0o775);
        assert!(!is_safe_at(&program));
        mode(&program, 0o755);
        mode(&folder_path, 0o757);
        assert!(!is_safe_at(&program));
        mode(&folder_path, 0o755);
        chown(&program, Some(65534), None).unwrap();
        assert!(!is_safe_at(&program));
        chown(&program, Some(0), None).unwrap();
        let everyones = tempfile::tempdir_in("/tmp").unwrap();
        let link = everyones.path().join("java");
        std::os::unix::fs::symlink(&program, &link).unwrap();
        assert!(is_safe_at(&program) && !is_safe_at(&link));
        assert!(!is_safe_at(Path::new("java")));
    }

    #[test]
    fn a_path_is_taken_as_it_is() {
        for path in ["/opt/x/java", "./here", "a/b"] {
            assert_eq!(command(path).get_program(), path);
        }
    }
}
