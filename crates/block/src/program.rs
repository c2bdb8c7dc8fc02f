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
    fn a_path_is_taken_as_it_is() {
        for path in ["/opt/x/java", "./here", "a/b"] {
            assert_eq!(command(path).get_program(), path);
        }
    }
}
