//! [`Kept`]: how many candidates of a search were tried, in a file.

use crate::cli::Failure;
use crate::cli::volume::secrets::unreadable;
use crate::cli::whole::{Kind, Target, unwritable};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use volume::recall::Content;

/// How long a search goes on before it is kept again.
const EVERY: Duration = Duration::from_secs(10);

/// The longest file of this kind, bytes.
const MOST_BYTES: u64 = 4096;

/// The file of a search.
pub struct Kept {
    path: PathBuf,
    search: String,
    candidates: u64,
    /// The number of tried candidates in the file at the beginning.
    tried: u64,
    saved: Mutex<Instant>,
}

impl Kept {
    /// Reads the file, or makes it.
    ///
    /// # Errors
    /// Exit code 2 if it is of another search, or anything else; exit code 1 if it cannot be
    /// written.
    pub fn open(path: &Path, search: String, candidates: u64) -> Result<Self, Failure> {
        let mut kept = Self {
            path: path.to_owned(),
            search,
            candidates,
            tried: 0,
            saved: Mutex::new(Instant::now()),
        };
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(Failure::new(
                2,
                format!("{} is not a file", path.display()),
                "Name a file that --resume has made, or one that does not exist.",
            ));
        }
        match File::open(path) {
            Ok(file) => kept.tried = kept.read(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => kept.save(0)?,
            Err(error) => return Err(unreadable(path, error)),
        }
        Ok(kept)
    }

    /// How many were tried, as the file says.
    fn read(&self, file: File) -> Result<u64, Failure> {
        let path = self.path.display();
        let mut bytes = Vec::new();
        file.take(MOST_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(&self.path, error))?;
        let Some(content) = Content::parse(&bytes) else {
            return Err(Failure::new(
                2,
                format!("{path} is not a file that --resume has made"),
                "Name that file, or one that does not exist.",
            ));
        };
        match content.search == self.search && content.candidates == self.candidates {
            true => Ok(content.tried),
            false => Err(Failure::new(
                2,
                format!("{path} is of another search"),
                "Give the same volume, passphrase and options, or name a file that does not exist.",
            )),
        }
    }

    /// How many were tried before.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Keeps how many were tried, if that was not done for a while.
    pub fn update(&self, tried: u64) {
        // Another thread may be at it.
        let Ok(mut saved) = self.saved.try_lock() else {
            return;
        };
        if saved.elapsed() >= EVERY {
            *saved = Instant::now();
            if let Err(failure) = self.save(tried) {
                eprintln!("warning: {}", failure.what());
            }
        }
    }

    /// Keeps how many were tried.
    ///
    /// # Errors
    /// Exit code 1 if the file cannot be written, and 4 if another program has changed it.
    pub fn save(&self, tried: u64) -> Result<(), Failure> {
        let content = Content::new(self.search.clone(), self.candidates, tried);
        let mut text = serde_json::to_string(&content).map_err(Failure::unprintable)?;
        text.push('\n');
        let target = Target::of(&self.path, Kind::Json("cryptmark-recall"), false)?;
        let written = target.draft(0o600).and_then(|mut draft| {
            draft.write_all(text.as_bytes())?;
            target.publish(draft)
        });
        written.map_err(|error| unwritable(&self.path, &error))
    }

    /// Removes the file of a search that has found the passphrase.
    pub fn remove(&self) {
        if let Err(error) = fs::remove_file(&self.path) {
            eprintln!(
                "warning: cannot remove {}: {error}\n  Remove it: it reveals about how many candidates \
                 were tried before the right one.",
                self.path.display()
            );
        }
    }
}
