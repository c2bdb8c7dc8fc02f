//! [`Pinned`]: a file or directory that stays the same while a passphrase is asked for.

use crate::cli::Failure;
use rustix::fs::{Mode, OFlags, open};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A place that something is mounted on. It is held, so that no other program puts another one there
/// between a check and the mount.
#[derive(Debug)]
pub struct Pinned {
    place: OwnedFd,
    path: PathBuf,
}

impl Pinned {
    /// Holds what is at `path`, which is absolute. A link is not followed.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn new(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = open(path, flags, Mode::empty())?;
        let path = std::fs::read_link(through(&place))?;
        Ok(Self { place, path })
    }

    /// Its path, without links, when it was first looked at.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path to it, wherever it is now. It is right in this process alone.
    pub fn through(&self) -> PathBuf {
        through(&self.place)
    }

    /// The same for the programs that this process starts.
    pub fn through_for_others(&self) -> PathBuf {
        let descriptor = self.place.as_raw_fd();
        format!("/proc/{}/fd/{descriptor}", std::process::id()).into()
    }

    /// Refuses it if it is not where it was.
    ///
    /// # Errors
    /// Exit code 4.
    pub fn check(&self) -> Result<(), Failure> {
        match std::fs::read_link(self.through()) {
            Ok(now) if now == self.path => Ok(()),
            _ => Err(Failure::new(
                4,
                format!("{} was moved or replaced meanwhile", self.path.display()),
                "Check which program changes it. Then run this again, in a directory of your own.",
            )),
        }
    }
}

fn through(place: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", place.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_moved_or_replaced_is_refused() {
        let desk = tempfile::tempdir().unwrap();
        let desk = desk.path().canonicalize().unwrap();
        let (above, elsewhere) = (desk.join("above"), desk.join("elsewhere"));
        let path = above.join("here");
        let moved = |from: &Path| fs::rename(from, &elsewhere).unwrap();
        for (name, change) in [
            ("moved", &(|| moved(&path)) as &dyn Fn()),
            ("removed", &|| fs::remove_dir(&path).unwrap()),
            ("replaced", &|| {
                moved(&path);
                fs::create_dir(&path).unwrap();
            }),
            ("replaced by a link", &|| {
                moved(&path);
                symlink("/usr", &path).unwrap();
            }),
            ("moved above", &|| {
                moved(&above);
                symlink("/usr", &above).unwrap();
            }),
        ] {
            fs::create_dir_all(&path).unwrap();
            let pinned = Pinned::new(&path).unwrap();
            assert_eq!(pinned.path(), path);
            pinned.check().unwrap();
            change();
            assert_eq!(pinned.check().unwrap_err().code(), 4, "{name}");
            let _ = fs::remove_file(&above);
            let _ = fs::remove_file(&path);
            let _ = fs::remove_dir_all(&above);
            let _ = fs::remove_dir_all(&elsewhere);
        }
        symlink("nothing", &elsewhere).unwrap();
        assert_eq!(Pinned::new(&elsewhere).unwrap().path(), elsewhere);
    }
}
