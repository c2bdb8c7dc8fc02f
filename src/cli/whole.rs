//! Files that are there as a whole or not at all, also after a power loss.

mod access;

use super::Failure;
use std::fs::{self, File, Metadata};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, PersistError};

/// The length of a range of zeros that is written as a hole and takes no room on the disk, bytes.
const HOLE: usize = 4096;

/// Symbolic links that are followed from one to the next; Linux follows as many.
const MOST_LINKS: usize = 40;

/// The treatment of a file that already has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    /// It stays, and the new one is refused.
    Stays,
    /// The new one takes its place.
    Goes,
}

/// The place at which the user wants a file, examined once. A file that is there at that time may
/// be replaced if it stays unchanged. A file that appears later may not.
#[derive(Debug)]
pub struct Target {
    /// The path that links lead to.
    path: PathBuf,
    /// The metadata of the file that was there.
    there: Option<Metadata>,
}

impl Target {
    /// Follows links from `path`, and examines the file there.
    ///
    /// # Errors
    /// Those of examining it. A missing file is not an error.
    pub fn of(path: &Path) -> io::Result<Self> {
        let there = match fs::metadata(path) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let end = end_of_links(path)?;
        let path = match &there {
            None => end,
            // A file that a process has open is reached by no name here. The process, and its
            // parent, would go on writing to the old file and not to a new one.
            Some(found) if found.is_file() && end.starts_with("/proc") => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "it is a file that a process has open; standard output is -",
                ));
            }
            Some(found) if found.is_file() && fs::symlink_metadata(path)?.is_symlink() => {
                fs::canonicalize(path)?
            }
            // The links of /dev to what a process has open lead to no name.
            Some(_) => path.to_owned(),
        };
        Ok(Self { path, there })
    }

    /// The metadata of the file that was there.
    pub fn there(&self) -> Option<&Metadata> {
        self.there.as_ref()
    }

    /// The folder that the file will be in.
    pub fn folder(&self) -> &Path {
        folder(&self.path)
    }

    /// Opens the pipe or terminal at that place, which takes the data directly; `None` if there is
    /// none.
    ///
    /// # Errors
    /// Those of opening it, and [`io::ErrorKind::InvalidInput`] for a disk or a socket,
    /// whose name no file may take.
    pub fn stream(&self) -> io::Result<Option<File>> {
        match &self.there {
            Some(found) if is_stream(found) => {
                File::options().write(true).open(&self.path).map(Some)
            }
            Some(found) if !found.is_file() && !found.is_dir() => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is neither a file nor a pipe",
            )),
            _ => Ok(None),
        }
    }

    /// A draft of the file; see [`draft`].
    ///
    /// # Errors
    /// Those of making it.
    pub fn draft(&self) -> io::Result<NamedTempFile> {
        draft(&self.path)
    }

    /// Gives a draft its name, after its content is on the disk.
    ///
    /// # Errors
    /// Those of writing, and [`io::ErrorKind::AlreadyExists`] if something is that was not,
    /// or has changed since.
    pub fn publish(&self, draft: NamedTempFile) -> io::Result<()> {
        if let Some(there) = &self.there {
            access::keep(draft.as_file(), there, &self.path)?;
        }
        // That may take a while, and what is there is looked at last.
        draft.as_file().sync_all()?;
        let other = match (&self.there, fs::symlink_metadata(&self.path)) {
            (Some(there), Ok(now)) => match is_unchanged(there, &now) {
                true => Other::Goes,
                false => return Err(io::ErrorKind::AlreadyExists.into()),
            },
            (Some(_), Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => Other::Stays,
        };
        publish(draft, &self.path, other)?;
        if self.there.as_ref().is_some_and(has_other_names) {
            eprintln!(
                "warning: {} was a hard link; its other names still have the old content",
                self.path.display()
            );
        }
        Ok(())
    }
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

#[cfg(unix)]
fn is_stream(found: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = found.file_type();
    kind.is_fifo() || kind.is_char_device()
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
        let parent = folder(&path).canonicalize().unwrap_or_default();
        if parent.starts_with("/proc") && parent.ends_with("fd") {
            return Ok(parent.join(path.file_name().unwrap_or_default()));
        }
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                let next = fs::read_link(&path)?;
                path = folder(&path).join(next);
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

/// Makes the file `path` with these bytes, for this user alone; never over
/// another one.
///
/// # Errors
/// Those of writing; there is no file then.
pub fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = draft(path)?;
    for (part, at) in bytes.chunks(HOLE).zip(0..) {
        if part.iter().any(|byte| *byte != 0) {
            file.seek(SeekFrom::Start(at * HOLE as u64))?;
            file.write_all(part)?;
        }
    }
    file.as_file().set_len(bytes.len() as u64)?;
    publish(file, path, Other::Stays)
}

/// A file beside `path` that gets this name when it is whole. Its mode is 0600, and it
/// goes with its last user.
///
/// # Errors
/// Those of making it.
fn draft(path: &Path) -> io::Result<NamedTempFile> {
    NamedTempFile::with_prefix_in(".cryptmark-", folder(path))
}

/// Gives a draft its name, after its content is on the disk.
fn publish(draft: NamedTempFile, path: &Path, other: Other) -> io::Result<()> {
    draft.as_file().sync_all()?;
    match other {
        Other::Stays => name_beside(draft, path)?,
        Other::Goes => drop(draft.persist(path)?),
    }
    sync(folder(path))
}

/// Gives a draft a name that nothing has.
fn name_beside(draft: NamedTempFile, path: &Path) -> io::Result<()> {
    let draft = match draft.persist_noclobber(path) {
        Ok(_) => return Ok(()),
        Err(PersistError { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(error);
        }
        Err(PersistError { file, .. }) => file,
    };
    // Some file systems cannot do it in one step: the name is taken by an empty file first.
    File::create_new(path)?;
    let named = draft.persist(path);
    named.map(drop).map_err(|PersistError { error, .. }| {
        // The first error is the one that counts.
        let _ = fs::remove_file(path);
        error
    })
}

/// Where `path` is.
fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

/// Sees to it that the name of a new file is on the disk.
///
/// # Errors
/// Those of its folder.
pub fn sync_name(path: &Path) -> io::Result<()> {
    sync(folder(path))
}

/// A new name is only there after its folder is on the disk.
#[cfg(unix)]
fn sync(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
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

#[cfg(not(unix))]
fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(target: &Target, text: &str) -> io::Result<()> {
        let mut draft = target.draft()?;
        draft.write_all(text.as_bytes())?;
        target.publish(draft)
    }

    #[test]
    fn what_was_there_goes_and_what_appears_stays() {
        let desk = tempfile::tempdir().unwrap();
        let path = desk.path().join("new");
        let target = Target::of(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        let refused = put(&target, "ours").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(unwritable(&path, &refused).code(), 4);
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        put(&Target::of(&path).unwrap(), "ours").unwrap();
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
            let target = Target::of(&path).unwrap();
            change();
            let refused = put(&target, "ours").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&path).unwrap(), b"theirs");
        }
        // A file that is gone is not an error.
        let target = Target::of(&path).unwrap();
        fs::remove_file(&path).unwrap();
        put(&target, "ours").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ours");
        assert_eq!(fs::read_dir(desk.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_stay() {
        use std::os::unix::fs::symlink;
        let desk = tempfile::tempdir().unwrap();
        let path = |name: &str| desk.path().join(name);
        fs::create_dir(path("folder")).unwrap();
        symlink("folder/second", path("first")).unwrap();
        symlink("../end", path("folder/second")).unwrap();
        for text in ["new", "over the old one"] {
            put(&Target::of(&path("first")).unwrap(), text).unwrap();
            assert_eq!(fs::read(path("end")).unwrap(), text.as_bytes());
        }
        for link in ["first", "folder/second"] {
            assert!(fs::symlink_metadata(path(link)).unwrap().is_symlink());
        }
        // A link that appears is what appears.
        let target = Target::of(&path("late")).unwrap();
        symlink("nothing", path("late")).unwrap();
        let refused = put(&target, "ours").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(!path("nothing").exists());
        symlink("circle", path("circle")).unwrap();
        assert!(Target::of(&path("circle")).is_err());
    }
}
