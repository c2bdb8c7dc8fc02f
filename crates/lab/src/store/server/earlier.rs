//! The waiting data of an earlier version: parts of runs, in files with JSON in strings.

use super::put::Before;
use super::{Fault, Mode, Server, records};
use crate::record::Run;
use crate::store::log::Log;
use crate::store::{HandedOver, StoreError, no_such_run};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a file is called.
const WAITING: &str = "jsonl";
/// And when the server has refused it, or it cannot be read.
const REFUSED: &str = "refused";

/// The folder of the store with this identity.
pub(super) fn name(identity: &str) -> String {
    let digest = Sha256::digest(identity.as_bytes());
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The files in a folder that say something.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|found| found == WAITING)
                && fs::metadata(&path).is_ok_and(|file| file.len() > 0)
            {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    };
    match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        list => list.map_err(|source| StoreError::Io {
            path: folder.to_owned(),
            source,
        }),
    }
}

/// Has the server take the files of a folder that no living process of that version holds.
pub(super) fn hand_over(
    server: &Server,
    folder: &Path,
    patience: Duration,
    handed: &mut HandedOver,
) -> Result<(), StoreError> {
    for path in files(folder)? {
        let failed = |source| StoreError::Io {
            path: path.clone(),
            source,
        };
        let Some(mut log) = Log::open(&path).map_err(failed)? else {
            continue;
        };
        let text = log.bytes().map_err(failed)?;
        match server.put_parts(&String::from_utf8_lossy(&text), patience) {
            Ok(taken) => {
                handed.count(&taken);
                fs::remove_file(&path).map_err(failed)?;
            }
            Err(error) if error.is_final() => {
                let aside = path.with_extension(REFUSED);
                log.rename(&aside).map_err(failed)?;
                handed.refused.push((error, aside));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Header {
    run: String,
    json: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Begin(Header),
    Trials {
        run: String,
        trials: Vec<(u32, String)>,
    },
    Finish(Header),
}

impl Server {
    /// Stores what a file says of its run, on top of what is stored of it.
    fn put_parts(
        &self,
        text: &str,
        patience: Duration,
    ) -> Result<crate::store::TakenOver, StoreError> {
        let mut parts = Vec::new();
        // The last line is half a line if its writer was killed.
        for line in text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            let part: Line = serde_json::from_str(line).map_err(|source| unreadable("", source))?;
            parts.push(part);
        }
        let id = match parts.first() {
            Some(Line::Begin(header) | Line::Finish(header)) => header.run.clone(),
            Some(Line::Trials { run, .. }) => run.clone(),
            None => return Err(no_such_run("")),
        };
        let stored = self.transact(Mode::Read, patience, |tx| -> Result<_, Fault> {
            records::stored(tx, &id)
        })?;
        let mut run = stored.map(|found| records::run(&id, &found)).transpose()?;
        let broken = |source| unreadable(&id, source);
        for part in parts {
            match part {
                Line::Begin(header) | Line::Finish(header) => {
                    let trials = run.take().map(|run| run.trials).unwrap_or_default();
                    let header: Run = serde_json::from_str(&header.json).map_err(broken)?;
                    run = Some(Run { trials, ..header });
                }
                Line::Trials { trials, .. } => {
                    let run = run.as_mut().ok_or_else(|| no_such_run(&id))?;
                    for (at, record) in trials {
                        let trial = serde_json::from_str(&record).map_err(broken)?;
                        match run.trials.get_mut(at as usize) {
                            Some(place) => *place = trial,
                            None => run.trials.push(trial),
                        }
                    }
                }
            }
        }
        let run = run.ok_or_else(|| no_such_run(&id))?;
        let taken = self.put(&[run], Before::Anything, patience)?;
        Ok(taken
            .into_iter()
            .next()
            .unwrap_or(crate::store::TakenOver::There))
    }
}

fn unreadable(run: &str, source: serde_json::Error) -> StoreError {
    StoreError::Record {
        run: run.to_owned(),
        ordinal: None,
        source,
    }
}
