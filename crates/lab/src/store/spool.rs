//! The spool: what a writer told a server that was away, in files of this
//! machine, until the server takes it.
//!
//! A store has a folder, a run a file in it: a line of JSON for every entry, each
//! on the disk before its writer goes on. Who writes a file or hands it over
//! holds its lock, and whoever dies lets go of it. A file is removed when
//! everything in it is stored; to store some of it twice changes nothing.

use super::entry::Entry;
use super::{Spool, StoreError};
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How a file of the spool is called.
const WAITING: &str = "jsonl";
/// And when the store has refused it, or it cannot be read.
const REFUSED: &str = "refused";

/// The spool of one store.
pub(super) struct Folder {
    path: PathBuf,
    limit: u64,
}

/// The file of a run, whose lock is held.
pub(super) struct Log {
    path: PathBuf,
    file: File,
}

impl Folder {
    /// That of the store with this identity.
    pub(super) fn of(spool: &Spool, identity: &str) -> Self {
        Self {
            path: spool.folder.join(name(identity)),
            limit: spool.limit,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of a run, empty or as an earlier attempt to hand it over has left it.
    pub(super) fn log(&self, run: &str) -> Result<Log, StoreError> {
        self.create().map_err(|source| self.failed(source))?;
        let path = self.path.join(name(run)).with_extension(WAITING);
        let open = || -> io::Result<File> {
            let file = loop {
                let file = OpenOptions::new()
                    .read(true)
                    .append(true)
                    .create(true)
                    .mode(0o600)
                    .open(&path)?;
                file.lock()?;
                // Who held it may have removed it: what is written to it then is nowhere.
                if is_at(&file, &path) {
                    break file;
                }
            };
            // Its name must be there as surely as what it will hold.
            File::open(&self.path)?.sync_all()?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(Log { path, file }),
            Err(source) => Err(StoreError::Spool { path, source }),
        }
    }

    fn create(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
    }

    /// Appends an entry to a file of this folder; it is on the disk afterwards, or
    /// the file is as it was.
    pub(super) fn append(&self, log: &mut Log, entry: &Entry) -> Result<(), StoreError> {
        let mut line = serde_json::to_string(entry).map_err(|error| StoreError::Spool {
            path: log.path.clone(),
            source: error.into(),
        })?;
        line.push('\n');
        let failed = |source| StoreError::Spool {
            path: log.path.clone(),
            source,
        };
        // Others of this machine write here too: the sum is counted in turns.
        let turn = File::create(self.path.join("turn")).map_err(failed)?;
        turn.lock().map_err(failed)?;
        let waiting = self.size().map_err(failed)?;
        if waiting + line.len() as u64 > self.limit {
            return Err(StoreError::SpoolFull {
                folder: self.path.clone(),
                limit: self.limit,
            });
        }
        let before = log.file.metadata().map_err(failed)?.len();
        let written = log
            .file
            .write_all(line.as_bytes())
            .and_then(|()| log.file.sync_data());
        if let Err(source) = written {
            // Half a line would spoil the next; if even that fails, it is the last.
            let _ = log.file.set_len(before);
            return Err(StoreError::Spool {
                path: log.path.clone(),
                source,
            });
        }
        Ok(())
    }

    /// Bytes that wait here.
    fn size(&self) -> io::Result<u64> {
        let mut sum = 0;
        for path in self.files(WAITING)? {
            // One that is gone meanwhile was handed over.
            sum += fs::metadata(path).map_or(0, |file| file.len());
        }
        Ok(sum)
    }

    fn files(&self, extension: &str) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|found| found == extension) {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// How many runs wait here, those included that live writers hold.
    pub(super) fn waiting(&self) -> Result<usize, StoreError> {
        match self.files(WAITING) {
            Ok(files) => Ok(files.len()),
            Err(source) => Err(self.failed(source)),
        }
    }

    /// The files that no living writer holds, one after the other.
    pub(super) fn abandoned(&self) -> Result<impl Iterator<Item = Log> + use<>, StoreError> {
        let files = self.files(WAITING).map_err(|source| self.failed(source))?;
        Ok(files.into_iter().filter_map(|path| {
            let file = OpenOptions::new()
                .read(true)
                .append(true)
                .open(&path)
                .ok()?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
            }
            // Who held it may have stored everything and removed it, or put it aside.
            is_at(&file, &path).then_some(Log { path, file })
        }))
    }

    fn failed(&self, source: io::Error) -> StoreError {
        StoreError::Spool {
            path: self.path.clone(),
            source,
        }
    }
}

impl Log {
    /// Everything that its writers were told is safe.
    pub(super) fn entries(&mut self) -> Result<Vec<Entry>, StoreError> {
        let failed = |source| StoreError::Spool {
            path: self.path.clone(),
            source,
        };
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        self.file.read_to_end(&mut bytes).map_err(failed)?;
        // A line without its end was not yet safe when its writer died.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let lines = bytes[..whole.map_or(0, |end| end + 1)].split_inclusive(|byte| *byte == b'\n');
        lines
            .map(|line| serde_json::from_slice(line).map_err(|error| failed(error.into())))
            .collect()
    }

    /// Removes it: everything in it is stored.
    pub(super) fn remove(self) -> Result<(), StoreError> {
        // What is stored must not be stored again over what comes later, even if
        // its name cannot be removed: an empty file says nothing.
        let emptied = self.file.set_len(0).and_then(|()| self.file.sync_data());
        let _ = fs::remove_file(&self.path);
        emptied.map_err(|source| StoreError::Spool {
            path: self.path,
            source,
        })
    }

    /// Puts it aside, for people; its new path.
    pub(super) fn refuse(self) -> Result<PathBuf, StoreError> {
        let aside = self.path.with_extension(REFUSED);
        match fs::rename(&self.path, &aside) {
            Ok(()) => Ok(aside),
            Err(source) => Err(StoreError::Spool {
                path: self.path,
                source,
            }),
        }
    }
}

/// Whether `path` is still the name of an opened file.
fn is_at(file: &File, path: &Path) -> bool {
    let inode = |found: fs::Metadata| (found.dev(), found.ino());
    let opened = file.metadata().map(inode);
    opened.is_ok_and(|opened| fs::metadata(path).is_ok_and(|named| inode(named) == opened))
}

/// A file's name for anything.
fn name(of: &str) -> String {
    let digest = Sha256::digest(of.as_bytes());
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Somebody hands over what he finds just when a writer opens the file.
    #[test]
    fn what_is_written_waits_although_the_file_was_removed_meanwhile() {
        let directory = tempfile::tempdir().unwrap();
        let spool = Spool {
            folder: directory.path().to_owned(),
            limit: 1 << 20,
        };
        let folder = Folder::of(&spool, "a server");
        let entry = Entry::trials("a run", &[]).unwrap();
        for aside in [false, true] {
            let held = folder.log("a run").unwrap();
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    let mut log = folder.log("a run").unwrap();
                    folder.append(&mut log, &entry).unwrap();
                });
                // The writer has opened the file, and waits for its lock.
                std::thread::sleep(Duration::from_millis(300));
                match aside {
                    true => drop(held.refuse().unwrap()),
                    false => held.remove().unwrap(),
                }
                writer.join().unwrap();
            });
            assert_eq!(folder.waiting().unwrap(), 1, "put aside: {aside}");
            let mut found: Vec<Log> = folder.abandoned().unwrap().collect();
            assert_eq!(found[0].entries().unwrap(), std::slice::from_ref(&entry));
            found.remove(0).remove().unwrap();
        }
    }
}
