//! [`Folder`]: a store of files.
//!
//! ```text
//! version            `cryptmark runs 1`
//! runs/ID.jsonl      a run: its header, and a line for each trial
//! experiments/N.json an experiment that many hosts share, and the runs that began its shards
//! baselines.json     run by name
//! index.json         what a list shows; may be deleted at any time
//! lock               held while anything but the end of a run file changes
//! new/               files that have no name yet
//! ```
//!
//! Every file but a run under way is replaced as a whole, and is on the disk before it gets
//! its name. A run under way grows at its end, and its writer holds its lock. When the run
//! has ended, its file is replaced by one without what was said more than once.

use super::entry::{Entry, Header, Lines, assemble, records, whole_file};
use super::index::{Index, summary};
use super::log::{Log, private, sync_folder};
use super::{Location, Names, Records, RunSummary, StoreError};
use crate::record::Run;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Version of the folder's layout.
const VERSION: i64 = 1;

/// The text at the start of the file `version`.
const MARK: &str = "cryptmark runs ";

/// Maximum time to wait for other processes. It is longer than any change takes on a slow disk that
/// is being measured.
const PATIENCE: Duration = Duration::from_secs(30);

/// Run files that a page may have, however few trials they have.
const FILES: usize = 64;

/// A store of files.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Files of the runs that this process writes, by id.
    own: Mutex<BTreeMap<String, Log>>,
}

/// The right to change the folder, until it is dropped.
pub(super) struct Turn {
    _lock: File,
}

impl Folder {
    /// Opens the store at `path`, and makes it if nothing or an empty folder is there.
    ///
    /// A new folder has mode 0700, its files 0600.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let store = Self {
            path: path.to_owned(),
            own: Mutex::default(),
        };
        match fs::metadata(path) {
            Ok(found) if !found.is_dir() => {
                return Err(StoreError::NotAStore {
                    path: path.to_owned(),
                });
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(store.failed(error));
            }
            _ => {}
        }
        if !store.is_ours()? {
            store.create()?;
        }
        Ok(store)
    }

    /// Whether the folder says that it is a store; refuses what is not one, or has another version.
    fn is_ours(&self) -> Result<bool, StoreError> {
        let foreign = || StoreError::Foreign {
            location: self.location(),
        };
        match fs::read_to_string(self.path.join("version")) {
            Ok(text) => {
                let version = text.strip_prefix(MARK).map(str::trim);
                let version: i64 = version
                    .and_then(|version| version.parse().ok())
                    .ok_or_else(foreign)?;
                match version == VERSION {
                    true => Ok(true),
                    false => Err(StoreError::OtherVersion {
                        location: self.location(),
                        found: version,
                        known: VERSION,
                    }),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Another process may be making it just now, or was killed when it did.
                const BEGINNINGS: [&str; 4] = ["experiments", "lock", "new", "runs"];
                let mut entries = match fs::read_dir(&self.path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                    entries => entries.map_err(|error| self.failed(error))?,
                };
                let is_beginning = |entry: io::Result<fs::DirEntry>| {
                    entry
                        .is_ok_and(|entry| BEGINNINGS.iter().any(|name| entry.file_name() == *name))
                };
                match entries.all(is_beginning) {
                    true => Ok(false),
                    // The file `version` may have got its name in the meantime.
                    false if self.path.join("version").exists() => Ok(true),
                    false => Err(foreign()),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(foreign()),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn create(&self) -> Result<(), StoreError> {
        let mut folders = DirBuilder::new();
        folders.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        for folder in ["", "runs", "experiments", "new"] {
            let folder = self.path.join(folder);
            folders.create(folder).map_err(|error| self.failed(error))?;
        }
        let turn = self.turn()?;
        let version = self.path.join("version");
        let mark = || -> io::Result<()> {
            if !version.exists() {
                self.publish(&turn, &version, &format!("{MARK}{VERSION}\n"))?;
            }
            // Without an own name a path is in the current folder.
            let parent = self.path.parent().filter(|parent| *parent != Path::new(""));
            sync_folder(parent.unwrap_or(Path::new(".")))
        };
        mark().map_err(|error| self.failed(error))
    }

    fn location(&self) -> Location {
        Location::Folder(self.path.clone())
    }

    pub(super) fn failed(&self, source: io::Error) -> StoreError {
        StoreError::Io {
            path: self.path.clone(),
            source,
        }
    }

    /// Waits until no other process changes the folder.
    pub(super) fn turn(&self) -> Result<Turn, StoreError> {
        let start = Instant::now();
        loop {
            if let Some(turn) = self.try_turn().map_err(|error| self.failed(error))? {
                return Ok(turn);
            }
            if start.elapsed() > PATIENCE {
                let path = self.path.clone();
                return Err(StoreError::Busy { path });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn try_turn(&self) -> io::Result<Option<Turn>> {
        let lock = private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.path.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Turn { _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Puts a text on the disk as a file at `path`, in place of the one that is there.
    fn publish(&self, _: &Turn, path: &Path, text: &str) -> io::Result<Log> {
        let mut new = Log::create(&self.path.join("new/file"), text)?;
        new.rename(path)?;
        Ok(new)
    }

    pub(super) fn publish_json(
        &self,
        turn: &Turn,
        path: &Path,
        value: &impl Serialize,
    ) -> Result<(), StoreError> {
        let publish = || -> io::Result<()> {
            let mut text = serde_json::to_string(value)?;
            text.push('\n');
            self.publish(turn, path, &text).map(drop)
        };
        publish().map_err(|error| self.failed(error))
    }

    pub(super) fn read_json<T: DeserializeOwned>(
        &self,
        path: &Path,
    ) -> Result<Option<T>, StoreError> {
        let failed = |source| StoreError::Io {
            path: path.to_owned(),
            source,
        };
        match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(failed(error.into())),
            },
        }
    }

    pub(super) fn file(&self, run: &str) -> PathBuf {
        self.path.join("runs").join(file_name(run, "jsonl"))
    }

    pub(super) fn own(&self) -> MutexGuard<'_, BTreeMap<String, Log>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts on the file of a run that is there, as its only writer.
    pub(super) fn with_log<T>(
        &self,
        run: &str,
        act: impl FnOnce(&mut Log) -> io::Result<T>,
    ) -> Result<T, StoreError> {
        let mut own = self.own();
        if own.get(run).is_none_or(|log| !log.is_current()) {
            own.remove(run);
            match Log::open(&self.file(run)) {
                Ok(Some(log)) => own.insert(run.to_owned(), log),
                Ok(None) => {
                    let path = self.file(run);
                    return Err(StoreError::Busy { path });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    drop(own);
                    return Err(self.gone(run)?);
                }
                Err(error) => return Err(self.failed(error)),
            };
        }
        match own.get_mut(run) {
            Some(log) => act(log).map_err(|error| self.failed(error)),
            None => Err(super::no_such_run(run)),
        }
    }

    /// Appends to the file of a run.
    pub(super) fn append(&self, run: &str, entry: &Entry) -> Result<(), StoreError> {
        self.with_log(run, |log| log.append(entry))
    }

    fn begin(&self, header: &Header) -> Result<(), StoreError> {
        let run = &header.run.run;
        let turn = self.turn()?;
        if let Some(shard) = &header.run.shard {
            self.admit(shard, run)?;
        }
        self.refuse_known(run)?;
        if let Some(shard) = &header.run.shard {
            self.add_attempt(&turn, shard, run)?;
        }
        self.make(&turn, header)
    }

    pub(super) fn refuse_known(&self, run: &str) -> Result<(), StoreError> {
        match self.file(run).exists() {
            true => Err(StoreError::RunExists { run: run.into() }),
            false => Ok(()),
        }
    }

    /// Makes the file of a run that begins.
    pub(super) fn make(&self, turn: &Turn, header: &Header) -> Result<(), StoreError> {
        let run = &header.run.run;
        let begin = || {
            let text = Entry::Begin(header.clone()).to_lines()?;
            self.publish(turn, &self.file(run), &text)
        };
        let log = begin().map_err(|error| self.failed(error))?;
        self.own().insert(run.clone(), log);
        Ok(())
    }

    fn finish(&self, header: &Header) -> Result<(), StoreError> {
        let run = &header.run.run;
        let turn = self.turn()?;
        let shard = header.run.shard.as_ref().filter(|_| !header.run.partial);
        if let Some(shard) = shard
            && self.file(run).exists()
            && let Err(error) = self.admit(shard, run)
        {
            if matches!(error, StoreError::ShardStored { .. }) {
                self.drop_attempts(&turn, shard)?;
            }
            return Err(error);
        }
        self.append(run, &Entry::Finish(header.clone()))?;
        if let Some(shard) = shard {
            self.drop_attempts(&turn, shard)?;
        }
        // It's stored, whether or not it gets smaller now.
        let _ = self.with_log(run, |log| {
            let bytes = log.bytes()?;
            let trials = Lines::of(&bytes).map_err(|(_, error)| error)?.trials;
            let text = whole_file(run, &header.json, &trials)?;
            self.publish(&turn, &self.file(run), &text).map(drop)
        });
        self.own().remove(run);
        Ok(())
    }

    /// Every run's id and every baseline.
    fn names(&self) -> Result<Names, StoreError> {
        Ok(Names {
            ids: self.ids()?,
            baselines: self.baselines()?,
        })
    }

    /// Every run's id, sorted.
    pub(super) fn ids(&self) -> Result<Vec<String>, StoreError> {
        let mut ids = Vec::new();
        let entries = fs::read_dir(self.path.join("runs")).map_err(|error| self.failed(error))?;
        for entry in entries {
            let name = entry.map_err(|error| self.failed(error))?.file_name();
            ids.extend(name.to_str().and_then(|name| named(name, "jsonl")));
        }
        ids.sort();
        Ok(ids)
    }

    /// Acts on the bytes of a run's file; `None` if there is no file.
    fn with_lines<T>(
        &self,
        run: &str,
        act: impl FnOnce(&Lines<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let path = self.file(run);
        let mut bytes = Vec::new();
        match File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::Io { path, source }),
            Ok(_) => {}
        }
        let lines = Lines::of(&bytes).map_err(|(ordinal, source)| StoreError::Record {
            run: run.to_owned(),
            ordinal,
            source,
        })?;
        if lines.is_cut || lines.header.is_none() {
            return Err(StoreError::Damaged { path });
        }
        act(&lines).map(Some)
    }

    /// The run with exactly this id.
    pub(super) fn find(&self, run: &str) -> Result<Option<Run>, StoreError> {
        self.with_lines(run, |lines| {
            let trials = lines.trials.iter().map(|(at, record)| (*at, *record));
            assemble(run, lines.header.unwrap_or_default(), trials)
        })
    }

    /// Whether a run is there and whole.
    pub(super) fn is_whole(&self, run: &str) -> Result<bool, StoreError> {
        let path = self.file(run);
        let found = fs::metadata(&path).and_then(|found| summary(&path, run, found.len()));
        match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(StoreError::Io { path, source }),
            Ok(found) => Ok(found.is_some_and(|found| !found.partial)),
        }
    }

    /// Removes the file of a run, if it is there.
    pub(super) fn remove(&self, _: &Turn, run: &str) -> Result<(), StoreError> {
        let removed = match fs::remove_file(self.file(run)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        self.own().remove(run);
        removed
            .and_then(|()| sync_folder(&self.path.join("runs")))
            .map_err(|error| self.failed(error))
    }

    /// Stores whole runs, each in place of what is stored of it: all or, on an error, none.
    pub(super) fn put_all(&self, _: &Turn, runs: &[&Run]) -> Result<(), StoreError> {
        let mut staged = Vec::with_capacity(runs.len());
        for (place, run) in runs.iter().enumerate() {
            let new = self.path.join(format!("new/{place}"));
            match self.stage(&new, run) {
                Ok(log) => staged.push((log, self.file(&run.run))),
                Err(error) => {
                    for path in staged.iter().map(|(log, _)| &log.path).chain([&new]) {
                        let _ = fs::remove_file(path);
                    }
                    return Err(error);
                }
            }
        }
        let mut new: Vec<PathBuf> = Vec::new();
        for (mut log, path) in staged {
            let was_there = path.exists();
            if let Err(error) = log.rename(&path) {
                for path in new {
                    let _ = fs::remove_file(path);
                }
                return Err(self.failed(error));
            }
            new.extend((!was_there).then_some(path));
        }
        Ok(())
    }

    /// Writes a whole run to a file that has no name yet.
    fn stage(&self, new: &Path, run: &Run) -> Result<Log, StoreError> {
        let header = Header::of(run, run.partial)?;
        let trials = records(&run.run, (0..).zip(&run.trials))?;
        let trials = trials.iter().map(|(at, record)| (*at, record.as_str()));
        let stage = || Log::create(new, &whole_file(&run.run, &header.json, &trials.collect())?);
        stage().map_err(|error| self.failed(error))
    }
}

impl Records for Folder {
    fn write(&self, entry: Entry) -> Result<(), StoreError> {
        match &entry {
            Entry::Begin(header) => self.begin(header),
            Entry::Trials { run, .. } => self.append(run, &entry),
            Entry::Finish(header) => self.finish(header),
        }
    }

    fn take_over(&self, runs: &[Run]) -> Result<Vec<super::TakenOver>, StoreError> {
        self.take_over_here(runs)
    }

    fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        let path = self.path.join("index.json");
        let id = |name: &str| named(name, "jsonl");
        let index = Index::of(&path, &self.path.join("runs"), id);
        let index = index.map_err(|error| self.failed(error))?;
        // The process that holds the lock need not wait for this, and some stores are read-only.
        if let Some(text) = index.to_save()
            && let Ok(Some(turn)) = self.try_turn()
        {
            let _ = self.publish(&turn, &path, &text);
        }
        let mut runs = index.into_summaries();
        super::name(&mut runs, self.baselines()?);
        Ok(runs)
    }

    fn load(&self, which: &str) -> Result<Run, StoreError> {
        let run = self.names()?.resolve(which, &self.location())?;
        self.find(&run)?.ok_or_else(|| super::no_such_run(which))
    }

    fn runs_after(&self, after: &str, trials: usize) -> Result<Vec<Run>, StoreError> {
        let ids = self.names()?.ids;
        let mut page = Vec::new();
        let mut found = 0;
        for id in ids.iter().filter(|id| id.as_str() > after).take(FILES) {
            // The run may have been deleted in the meantime.
            let Some(run) = self.find(id)? else { continue };
            found += run.trials.len();
            page.push(run);
            if found >= trials {
                break;
            }
        }
        Ok(page)
    }

    fn delete(&self, which: &str) -> Result<String, StoreError> {
        let turn = self.turn()?;
        let run = self.names()?.removable(which, &self.location())?;
        self.remove(&turn, &run)?;
        Ok(run)
    }

    fn baselines(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let baselines = self.read_json(&self.path.join("baselines.json"))?;
        Ok(baselines.unwrap_or_default())
    }

    fn set_baseline(&self, name: &str, which: &str) -> Result<String, StoreError> {
        let turn = self.turn()?;
        let mut names = self.names()?;
        let run = names.baseline(name, which, &self.location())?;
        names.baselines.insert(name.to_owned(), run.clone());
        let path = self.path.join("baselines.json");
        self.publish_json(&turn, &path, &names.baselines)?;
        Ok(run)
    }

    fn remove_baseline(&self, name: &str) -> Result<(), StoreError> {
        let turn = self.turn()?;
        let mut baselines = self.baselines()?;
        if baselines.remove(name).is_none() {
            let name = name.to_owned();
            return Err(StoreError::NoSuchBaseline { name });
        }
        self.publish_json(&turn, &self.path.join("baselines.json"), &baselines)
    }

    fn stored_shard(&self, shard: &crate::record::Shard) -> Result<Option<String>, StoreError> {
        self.shard_here(shard)
    }

    fn progress(&self, name: &str) -> Result<super::Progress, StoreError> {
        self.progress_here(name)
    }

    fn dropped_attempts(&self) -> Result<Vec<String>, StoreError> {
        self.dropped_here()
    }
}

/// Whether there is a store of this program in a folder.
pub fn is_store(folder: &Path) -> bool {
    fs::read_to_string(folder.join("version")).is_ok_and(|text| text.starts_with(MARK))
}

/// A file's name for anything: letters, digits, `-`, `_` and `.` stay as they are.
pub(super) fn file_name(of: &str, extension: &str) -> String {
    let mut name = String::new();
    for (place, byte) in of.bytes().enumerate() {
        match byte {
            b'.' if place == 0 => name.push_str("%2E"),
            b'-' | b'_' | b'.' => name.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => name.push(byte.into()),
            _ => drop(write!(name, "%{byte:02X}")),
        }
    }
    format!("{name}.{extension}")
}

/// The decoded name of a file: the inverse of `file_name`.
pub(super) fn named(file: &str, extension: &str) -> Option<String> {
    let mut rest = file.strip_suffix(extension)?.strip_suffix('.')?.as_bytes();
    let mut of = Vec::with_capacity(rest.len());
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let byte = match first {
            b'%' => {
                let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                rest = &rest[2..];
                u8::from_str_radix(digits, 16).ok()?
            }
            _ => *first,
        };
        of.push(byte);
    }
    String::from_utf8(of).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_id_has_a_file_name_of_its_own() {
        for id in [
            "2026-11-21T12-00-00.5_a",
            "../../etc/passwd",
            ".",
            "..",
            "",
            "a/b\\c:d\0e%2Ef",
            "測試 \"x\"",
        ] {
            let name = file_name(id, "jsonl");
            assert!(
                !name.contains(['/', '\\', ':', '\0']) && !name.starts_with('.') || id.is_empty()
            );
            assert_eq!(named(&name, "jsonl").as_deref(), Some(id), "{name}");
        }
        assert_eq!(named("index.json", "jsonl"), None);
        assert_eq!(named("%4.jsonl", "jsonl"), None);
    }
}
