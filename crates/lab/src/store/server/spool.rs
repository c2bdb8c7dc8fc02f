//! The spool: what a writer says, in files of this machine, until the server takes it.
//!
//! A store has a folder, a run a file in it, which is written as run files are: each entry
//! is on the disk before the server is asked. Who writes a file or hands it over holds its
//! lock, and whoever dies lets go of it. A file is emptied when everything in it is stored;
//! to store some of it twice changes nothing.

use crate::store::entry::{self, Entry};
use crate::store::log::{Log, private, sync_folder};
use crate::store::{Spool, StoreError};
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder};
use std::io;
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

/// The file of a run, whose lock is held. It's removed with its last entry.
pub(super) struct Waiting {
    log: Log,
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
    pub(super) fn open(&self, run: &str) -> Result<Waiting, StoreError> {
        let path = self.path.join(name(run)).with_extension(WAITING);
        let open = || -> io::Result<Log> {
            let mut folders = DirBuilder::new();
            folders.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
            folders.create(&self.path)?;
            let log = Log::wait_for(&path)?;
            // Its name must be there as surely as what it will hold.
            sync_folder(&self.path)?;
            Ok(log)
        };
        match open() {
            Ok(log) => Ok(Waiting { log }),
            Err(source) => Err(StoreError::Spool { path, source }),
        }
    }

    /// Appends an entry to a file of this folder; it is on the disk afterwards, or
    /// the file is as it was.
    pub(super) fn append(&self, to: &mut Waiting, entry: &Entry) -> Result<(), StoreError> {
        let path = to.log.path.clone();
        let failed = |source| StoreError::Spool {
            path: path.clone(),
            source,
        };
        let size = entry
            .to_lines()
            .map_err(|error| failed(error.into()))?
            .len() as u64;
        // Others of this machine write here too: the sum is counted in turns.
        let mut turn = private();
        let turn = turn.write(true).create(true).truncate(false);
        let turn = turn.open(self.path.join("turn")).map_err(failed)?;
        turn.lock().map_err(failed)?;
        let waiting: u64 = self
            .files()
            .map_err(failed)?
            .iter()
            .map(|path| length(path))
            .sum();
        if waiting + size > self.limit {
            return Err(StoreError::SpoolFull {
                folder: self.path.clone(),
                limit: self.limit,
            });
        }
        to.log.append(entry).map_err(failed)
    }

    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|found| found == WAITING) {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// How many runs wait here, those included that live writers hold.
    pub(super) fn waiting(&self) -> Result<usize, StoreError> {
        match self.files() {
            Ok(files) => Ok(files.iter().filter(|path| length(path) > 0).count()),
            Err(source) => Err(StoreError::Spool {
                path: self.path.clone(),
                source,
            }),
        }
    }

    /// The files that no living writer holds, one after the other.
    pub(super) fn abandoned(&self) -> Result<impl Iterator<Item = Waiting> + use<>, StoreError> {
        let files = self.files().map_err(|source| StoreError::Spool {
            path: self.path.clone(),
            source,
        })?;
        let held = files.into_iter().filter_map(|path| Log::open(&path).ok()?);
        let held = held.map(|log| Waiting { log });
        Ok(held.filter(|waiting| !waiting.is_empty()))
    }
}

/// Bytes of a file. One that is gone meanwhile was handed over.
fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

impl Waiting {
    fn failed(&self, source: io::Error) -> StoreError {
        StoreError::Spool {
            path: self.log.path.clone(),
            source,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.log.is_empty().unwrap_or(false)
    }

    /// Everything that its writers were told is safe.
    pub(super) fn entries(&mut self) -> Result<Vec<Entry>, StoreError> {
        let bytes = self.log.bytes().map_err(|source| self.failed(source))?;
        entry::entries(&bytes).map_err(|error| self.failed(error.into()))
    }

    /// Everything in it is stored.
    pub(super) fn clear(&mut self) -> Result<(), StoreError> {
        self.log.clear().map_err(|source| self.failed(source))
    }

    /// Puts it aside, for people; its new path.
    pub(super) fn refuse(mut self) -> Result<PathBuf, StoreError> {
        let aside = self.log.path.with_extension(REFUSED);
        match self.log.rename(&aside) {
            Ok(()) => Ok(aside),
            Err(source) => Err(self.failed(source)),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // An empty file that stays says nothing.
        if self.is_empty() {
            let _ = fs::remove_file(&self.log.path);
        }
    }
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
        let entry = Entry::Trials {
            run: "a run".into(),
            trials: vec![(0, "{}".into())],
        };
        for aside in [false, true] {
            let mut held = folder.open("a run").unwrap();
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    let mut log = folder.open("a run").unwrap();
                    folder.append(&mut log, &entry).unwrap();
                });
                // The writer has opened the file, and waits for its lock.
                std::thread::sleep(Duration::from_millis(300));
                match aside {
                    true => drop(held.refuse().unwrap()),
                    false => {
                        held.clear().unwrap();
                        drop(held);
                    }
                }
                writer.join().unwrap();
            });
            assert_eq!(folder.waiting().unwrap(), 1, "put aside: {aside}");
            let mut found: Vec<Waiting> = folder.abandoned().unwrap().collect();
            assert_eq!(found[0].entries().unwrap(), std::slice::from_ref(&entry));
            found.remove(0).clear().unwrap();
        }
    }
}
