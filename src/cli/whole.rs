//! Files that are there as a whole or not at all, also after a power loss. [`Target::of`] decides
//! for all commands whether an output may take the place of what has its name.

mod access;
mod kind;

pub use kind::Kind;

use super::Failure;
use super::volume::disk::Names;
use super::volume::losses;
use block::hold::{self, Hold};
use block::{Draft, PathKind, folder_of};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use volume::VolumeError;

/// Symbolic links that are followed from one to the next; Linux follows as many.
const MOST_LINKS: usize = 40;

/// The place at which the user wants an output, examined once. What is there at that time may be
/// replaced if it stays unchanged. A file that appears later may not.
#[derive(Debug)]
pub struct Target {
    /// The path that links lead to.
    path: PathBuf,
    /// The metadata of what was there.
    there: Option<Metadata>,
    /// The file or disk that was there, which no other command writes to meanwhile.
    held: Option<File>,
}

impl Target {
    /// Examines the place `path` for an output of this `kind`, and refuses what would be lost
    /// there. These may be replaced: an empty file, an earlier output of the same kind, and for a
    /// plaintext what is blank. A user who has `confirmed` the loss may replace any file, and a
    /// plaintext may then overwrite a disk. Pipes and terminals lose nothing.
    ///
    /// # Errors
    /// Exit code 4 with what would be lost, 2 if no file can be there, and those of examining it.
    pub fn of(path: &Path, kind: Kind, confirmed: bool) -> Result<Self, Failure> {
        let failed = |error: io::Error| unwritable(path, &error);
        let there = match fs::metadata(path) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if there.as_ref().is_some_and(Metadata::is_dir) || !folder_of(path).is_dir() {
            return Err(Failure::new(
                2,
                format!("cannot write {}", path.display()),
                "Give a file in a directory that exists.",
            ));
        }
        let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        let end = end_of_links(path).map_err(failed)?;
        let mut target = Self {
            path: end,
            there,
            held: None,
        };
        let Some(found) = &target.there else {
            return match is_link && !confirmed {
                true => Err(refused_link(path, &target.path, kind)),
                false => Ok(target),
            };
        };
        if is_stream(found) {
            // The links of /dev to what a process has open lead to no name.
            path.clone_into(&mut target.path);
            return Ok(target);
        }
        match PathKind::of(found) {
            // A file that a process has open is reached by no name here. The process, and its
            // parent, would go on writing to the old file and not to a new one.
            Some(PathKind::RegularFile) if target.path.starts_with("/proc") => {
                return Err(failed(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "it is a file that a process has open; standard output is -",
                )));
            }
            Some(PathKind::RegularFile) if is_link && !confirmed => {
                return Err(refused_link(path, &target.path, kind));
            }
            Some(PathKind::RegularFile) => {}
            Some(PathKind::BlockDevice) if kind == Kind::Plaintext => {}
            _ => {
                return Err(Failure::new(
                    4,
                    format!("{} is neither a file nor a pipe", path.display()),
                    "Nothing was written. Name a new file.",
                ));
            }
        }
        if is_link {
            target.path = fs::canonicalize(path).map_err(failed)?;
        }
        let held = hold(path)?;
        if !confirmed {
            guard(path, &held, kind)?;
        }
        target.held = Some(held);
        Ok(target)
    }

    /// Opens the pipe or terminal at that place, which takes the data directly; `None` if there is
    /// none.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn stream(&self) -> io::Result<Option<File>> {
        match self.there.as_ref().is_some_and(is_stream) {
            true => File::options().write(true).open(&self.path).map(Some),
            false => Ok(None),
        }
    }

    /// The disk at that place, which takes the data directly; `None` if there is none.
    pub fn disk(&self) -> Option<&File> {
        let kind = self.there.as_ref().and_then(PathKind::of);
        self.held
            .as_ref()
            .filter(|_| kind == Some(PathKind::BlockDevice))
    }

    /// The folder of the file.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub fn folder(&self) -> &Path {
        folder_of(&self.path)
    }

    /// A draft of the file, with these rights as far as the umask allows them.
    ///
    /// # Errors
    /// Those of making it.
    pub fn draft(&self, mode: u32) -> io::Result<Draft> {
        Draft::new(folder_of(&self.path), mode)
    }

    /// Gives a draft its name, after its content is on the disk.
    ///
    /// # Errors
    /// Those of writing, and [`io::ErrorKind::AlreadyExists`] if something is that was not,
    /// or has changed since.
    pub fn publish(self, draft: Draft) -> io::Result<()> {
        // Windows replaces no file that is open.
        let _held = self.held.filter(|_| cfg!(not(windows)));
        if let Some(there) = &self.there {
            access::keep(draft.file(), there, &self.path)?;
        }
        // That may take a while, and what is there is looked at last.
        draft.file().sync_all()?;
        match (&self.there, fs::symlink_metadata(&self.path)) {
            (Some(there), Ok(now)) if is_unchanged(there, &now) => draft.rename(&self.path)?,
            (Some(_), Ok(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(_), Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => draft.name(&self.path)?,
        }
        block::sync_name(&self.path)?;
        if self.there.as_ref().is_some_and(has_other_names) {
            eprintln!(
                "warning: {} was a hard link; its other names still have the old content",
                self.path.display()
            );
        }
        Ok(())
    }
}

/// Opens what an output is to replace, and holds it. A program that writes to it would go on with
/// a file that has no name any more.
fn hold(path: &Path) -> Result<File, Failure> {
    losses::guard_use(path, &Names::default())?;
    let held = hold::open(path, true, Hold::Usual).map_err(VolumeError::Block)?;
    Ok(held)
}

/// Refuses to let what is open and held be replaced, unless it is empty or an earlier output.
fn guard(path: &Path, held: &File, kind: Kind) -> Result<(), Failure> {
    let failed = |error: io::Error| unwritable(path, &error);
    if kind == Kind::Plaintext {
        return losses::guard_file(path, held);
    }
    let length = held.metadata().map_err(failed)?.len();
    if length == 0 || kind.is_of(held).map_err(failed)? {
        return Ok(());
    }
    // A blank file of some length may be the image of a disk.
    losses::guard_file(path, held).map_err(|failure| {
        failure.with_remedy("It was not replaced. Name a new file.".to_owned())
    })?;
    Err(Failure::new(
        4,
        format!("{} is a file of {length} bytes", path.display()),
        "It was not replaced. Name a new file.",
    ))
}

/// Refuses to write to what a link leads to.
fn refused_link(path: &Path, end: &Path, kind: Kind) -> Failure {
    let confirm = match kind {
        Kind::Plaintext => ", or confirm with --yes",
        _ => "",
    };
    Failure::new(
        4,
        format!("{} is a link to {}", path.display(), end.display()),
        format!("Nothing was written. Name the file itself{confirm}."),
    )
}

/// Whether two paths lead to the same file, which may not be there yet.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let named = || Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(named)
    };
    one == other || place(one).is_some_and(|one| Some(one) == place(other))
}

/// Whether it is the same file, and it was not written to.
#[cfg(unix)]
fn is_unchanged(before: &Metadata, now: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let told = |found: &Metadata| {
        let place = (found.dev(), found.ino());
        (place, found.len(), found.mtime(), found.mtime_nsec())
    };
    told(before) == told(now)
}

#[cfg(not(unix))]
fn is_unchanged(before: &Metadata, now: &Metadata) -> bool {
    let told = |found: &Metadata| (found.file_type(), found.len(), found.modified().ok());
    told(before) == told(now)
}

/// Whether a file has hard links.
#[cfg(unix)]
fn has_other_names(found: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(found) > 1
}

#[cfg(not(unix))]
fn has_other_names(_: &Metadata) -> bool {
    false
}

/// Whether data that is written there replaces nothing: a pipe, a terminal, or one of the devices
/// that keep nothing.
#[cfg(unix)]
fn is_stream(found: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = found.file_type();
    kind.is_fifo() || kind.is_char_device() && keeps_nothing(found)
}

/// By the numbers that Linux gives: null, full and zero; terminals.
#[cfg(target_os = "linux")]
fn keeps_nothing(found: &Metadata) -> bool {
    let device = std::os::unix::fs::MetadataExt::rdev(found);
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    match major {
        1 => matches!(minor, 3 | 5 | 7),
        4 | 5 | 136..=143 | 166 | 188 | 204 | 229 => true,
        _ => false,
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn keeps_nothing(_: &Metadata) -> bool {
    true
}

#[cfg(not(unix))]
fn is_stream(_: &Metadata) -> bool {
    false
}

/// Where links lead, also if that is nothing; those of /proc to what a process has open are
/// an end.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let parent = folder_of(&path).canonicalize().unwrap_or_default();
        if parent.starts_with("/proc") && parent.ends_with("fd") {
            return Ok(parent.join(path.file_name().unwrap_or_default()));
        }
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                let next = fs::read_link(&path)?;
                path = folder_of(&path).join(next);
            }
            _ => return Ok(path),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "too many symbolic links",
    ))
}

/// The error if `path` could not be written. The exit code is 4 if a file has appeared there, or
/// changed, since it was examined.
pub fn unwritable(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(
            4,
            format!(
                "{} has appeared or changed in the meantime, and was not replaced",
                path.display()
            ),
            "Check which program writes to it. Then run this again, or name another file.",
        ),
        _ => Failure::new(
            1,
            format!("cannot write {}: {error}", path.display()),
            "Check the folder, its permissions and its free space.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn put(target: Target, text: &str) -> io::Result<()> {
        let mut draft = target.draft(0o600)?;
        draft.write_all(text.as_bytes())?;
        target.publish(draft)
    }

    #[test]
    fn what_was_there_goes_and_what_appears_stays() {
        let desk = tempfile::tempdir().unwrap();
        let path = desk.path().join("new");
        let target = Target::of(&path, Kind::Plaintext, true).unwrap();
        fs::write(&path, "theirs").unwrap();
        let refused = put(target, "ours").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(unwritable(&path, &refused).code(), 4);
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        put(Target::of(&path, Kind::Plaintext, true).unwrap(), "ours").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ours");
        // Nothing else is left.
        assert_eq!(fs::read_dir(desk.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_changes_meanwhile_stays() {
        let desk = tempfile::tempdir().unwrap();
        let path = desk.path().join("file");
        let other = desk.path().join("other");
        let replaced = || {
            fs::write(&other, "theirs").unwrap();
            fs::rename(&other, &path).unwrap();
        };
        let longer = || fs::write(&path, "theirs").unwrap();
        for change in [&replaced as &dyn Fn(), &longer] {
            fs::write(&path, "old").unwrap();
            let target = Target::of(&path, Kind::Plaintext, true).unwrap();
            change();
            let refused = put(target, "ours").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&path).unwrap(), b"theirs");
        }
        // A file that is gone is not an error.
        let target = Target::of(&path, Kind::Plaintext, true).unwrap();
        fs::remove_file(&path).unwrap();
        put(target, "ours").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ours");
        assert_eq!(fs::read_dir(desk.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_if_that_is_confirmed_and_stay() {
        use std::os::unix::fs::symlink;
        let desk = tempfile::tempdir().unwrap();
        let path = |name: &str| desk.path().join(name);
        let at = |name: &str| Target::of(&path(name), Kind::Plaintext, true);
        fs::create_dir(path("folder")).unwrap();
        symlink("folder/second", path("first")).unwrap();
        symlink("../end", path("folder/second")).unwrap();
        let refused = Target::of(&path("first"), Kind::Plaintext, false).unwrap_err();
        assert_eq!(refused.code(), 4);
        for text in ["new", "over the old one"] {
            put(at("first").unwrap(), text).unwrap();
            assert_eq!(fs::read(path("end")).unwrap(), text.as_bytes());
        }
        for link in ["first", "folder/second"] {
            assert!(fs::symlink_metadata(path(link)).unwrap().is_symlink());
        }
        // A link that appears is what appears.
        let target = at("late").unwrap();
        symlink("nothing", path("late")).unwrap();
        let refused = put(target, "ours").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(!path("nothing").exists());
        symlink("circle", path("circle")).unwrap();
        assert!(at("circle").is_err());
    }
}
