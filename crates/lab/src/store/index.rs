//! The index of a folder's runs: what a list shows of each, so that 10,000 files need not
//! be opened. A row counts only while its file has the same size, time and inode, and the
//! whole index may be deleted at any time.

use super::RunSummary;
use super::entry::{Lines, whole_header};
use crate::record::Host;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A file that changed less than this long ago may change again within the same tick of
/// the file system's clock.
const SETTLED: Duration = Duration::from_secs(2);

/// The entry of one file in the index.
#[derive(Clone, Serialize, Deserialize)]
struct Row {
    size: u64,
    /// Nanoseconds since 1970.
    modified: u64,
    inode: u64,
    summary: RunSummary,
}

impl Row {
    fn fits(&self, other: &Self) -> bool {
        (self.size, self.modified, self.inode) == (other.size, other.modified, other.inode)
    }
}

/// The rows by the name of their file, and whether they differ from those of the index.
pub(super) struct Index {
    rows: HashMap<String, Row>,
    is_new: bool,
}

impl Index {
    /// Brings the index at `path` up to the run files in `folder`; `id` finds a run's id in the
    /// name of its file. Files that are removed in the meantime are left out.
    pub(super) fn of(
        path: &Path,
        folder: &Path,
        id: impl Fn(&str) -> Option<String>,
    ) -> io::Result<Self> {
        let mut known: HashMap<String, Row> = fs::read(path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let mut index = Self {
            rows: HashMap::with_capacity(known.len()),
            is_new: false,
        };
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(run) = id(&name) else { continue };
            let Ok(found) = entry.metadata() else {
                continue;
            };
            let mut row = Row::of(&found, unreadable(&run));
            match known.remove(&name) {
                Some(old) if old.fits(&row) => row = old,
                _ => {
                    match summary(&entry.path(), &run, found.len()) {
                        Ok(Some(read)) => row.summary = read,
                        Ok(None) => {}
                        Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                        Err(error) => return Err(error),
                    }
                    index.is_new |= row.is_settled();
                }
            }
            index.rows.insert(name, row);
        }
        index.is_new |= !known.is_empty();
        Ok(index)
    }

    /// The index as a file, if that would differ from what it was read from.
    pub(super) fn to_save(&self) -> Option<String> {
        let settled = self.rows.iter().filter(|(_, row)| row.is_settled());
        let settled: HashMap<_, _> = settled.collect();
        self.is_new
            .then(|| serde_json::to_string(&settled).ok())
            .flatten()
    }

    /// The summaries for a list, sorted by id.
    pub(super) fn into_summaries(self) -> Vec<RunSummary> {
        let mut runs: Vec<_> = self.rows.into_values().map(|row| row.summary).collect();
        runs.sort_by(|a, b| a.run.cmp(&b.run));
        runs
    }
}

impl Row {
    fn of(found: &Metadata, summary: RunSummary) -> Self {
        let modified = found.modified().ok();
        let since = modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        Self {
            size: found.len(),
            modified: since.map_or(0, |since| since.as_nanos() as u64),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(found),
            #[cfg(not(unix))]
            inode: 0,
            summary,
        }
    }

    fn is_settled(&self) -> bool {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_nanos(self.modified);
        modified.elapsed().is_ok_and(|age| age > SETTLED)
    }
}

/// The list entry for a file that cannot be read, which holds only its name.
fn unreadable(run: &str) -> RunSummary {
    RunSummary {
        run: run.to_owned(),
        plan: "unreadable".to_owned(),
        started: String::new(),
        partial: true,
        trials: 0,
        host: String::new(),
        baselines: Vec::new(),
    }
}

/// The list entry for a file; `None` if it is not a run of a known version.
pub(super) fn summary(path: &Path, run: &str, size: u64) -> io::Result<Option<RunSummary>> {
    let mut file = BufReader::new(File::open(path)?);
    let mut bytes = Vec::new();
    file.read_until(b'\n', &mut bytes)?;
    if let Some((header, trials)) = whole_header(&bytes, size) {
        return Ok(brief(run, header, trials));
    }
    file.read_to_end(&mut bytes)?;
    Ok(Lines::of(&bytes)
        .ok()
        .filter(|lines| !lines.is_cut)
        .and_then(|lines| brief(run, lines.header?, lines.trials.len())))
}

fn brief(run: &str, header: &str, trials: usize) -> Option<RunSummary> {
    #[derive(Deserialize)]
    struct Brief {
        plan: String,
        started: String,
        partial: bool,
        host: Host,
    }
    let brief: Brief = serde_json::from_str(header).ok()?;
    Some(RunSummary {
        run: run.to_owned(),
        plan: brief.plan,
        started: brief.started,
        partial: brief.partial,
        trials: u32::try_from(trials).unwrap_or(u32::MAX),
        host: brief.host.key(),
        baselines: Vec::new(),
    })
}
