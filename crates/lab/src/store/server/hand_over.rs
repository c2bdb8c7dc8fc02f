//! Hands runs over to the server. A run is first a file of this machine, and is handed over when it
//! begins and when it has ended. If the server cannot take it, it waits in its file until the
//! server can.

use super::put::Before;
use super::{PATIENCE, Server};
use crate::record::Run;
use crate::store::entry::Entry;
use crate::store::folder::Folder;
use crate::store::shards::stored_already;
use crate::store::take_over::{TakenOver, judge_all};
use crate::store::{HandedOver, Spool, StoreError};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The place where runs wait for a server.
pub(super) struct Waiting {
    /// A store of files, made when it is needed.
    path: PathBuf,
    files: OnceLock<Folder>,
    /// Limit of waiting bytes, above which no run begins.
    limit: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Runs that this process has begun and not ended.
    under_way: BTreeSet<String>,
    /// The reason why the server was unavailable at the last attempt.
    absence: Option<String>,
}

impl Waiting {
    fn of(spool: &Spool, identity: &str, absence: Option<String>) -> Self {
        let digest = Sha256::digest(identity.as_bytes());
        let digest = digest[..8].iter().map(|byte| format!("{byte:02x}"));
        let name = digest.chain([".runs".to_owned()]).collect::<String>();
        Self {
            path: spool.folder.join(name),
            files: OnceLock::new(),
            limit: spool.limit,
            state: Mutex::new(State {
                absence,
                ..State::default()
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> Result<&Folder, StoreError> {
        if self.files.get().is_none() {
            let files = Folder::open(&self.path)?;
            // Another thread may have opened it in the meantime.
            let _ = self.files.set(files);
        }
        self.files.get().ok_or_else(|| StoreError::Foreign {
            location: crate::store::Location::Folder(self.path.clone()),
        })
    }

    /// The files, if there are any.
    fn known(&self) -> Result<Option<&Folder>, StoreError> {
        match self.path.exists() {
            true => self.files().map(Some),
            false => Ok(None),
        }
    }

    /// Refuses a further run while as much waits as may.
    fn room(&self) -> Result<(), StoreError> {
        match self.files()?.bytes()? >= self.limit {
            true => Err(StoreError::SpoolFull {
                folder: self.path.clone(),
                limit: self.limit,
            }),
            false => Ok(()),
        }
    }
}

impl Server {
    /// The server at `url`, for a process that measures.
    ///
    /// # Errors
    /// The errors of [`Server::reach`], except that an unavailable server is not an error.
    pub(in crate::store) fn to_write(url: &str, spool: &Spool) -> Result<Self, StoreError> {
        let mut server = Self::new(url)?;
        let absence = match server.reach() {
            Err(error @ StoreError::Unreachable { .. }) => Some(told(&error)),
            outcome => outcome.map(|()| None)?,
        };
        let identity = server.parameters.identity();
        server.waiting = Some(Waiting::of(spool, &identity, absence));
        Ok(server)
    }

    /// Why the server was away when it was asked last.
    pub(in crate::store) fn absence(&self) -> Option<String> {
        self.waiting.as_ref()?.state().absence.clone()
    }

    pub(in crate::store) fn waiting(&self) -> Result<Option<(usize, PathBuf)>, StoreError> {
        let Some(waiting) = &self.waiting else {
            return Ok(None);
        };
        let known = waiting.known()?;
        let runs = known.map_or(Ok(0), |files| files.ids().map(|ids| ids.len()))?;
        Ok(Some((runs, waiting.path.clone())))
    }

    pub(super) fn write(&self, entry: &Entry) -> Result<(), StoreError> {
        let waiting = self.to_wait()?;
        let files = waiting.files()?;
        let (header, before) = match entry {
            Entry::Begin(header) => {
                waiting.room()?;
                let turn = files.turn()?;
                files.refuse_known(&header.run.run)?;
                files.make(&turn, header)?;
                (header, Before::Nothing)
            }
            Entry::Trials { run, .. } => return files.append(run, entry),
            Entry::Finish(header) => {
                files.append(&header.run.run, entry)?;
                (header, Before::Anything)
            }
        };
        let (run, mut state) = (&header.run.run, waiting.state());
        match before {
            Before::Nothing => state.under_way.insert(run.clone()),
            Before::Anything => state.under_way.remove(run),
        };
        // A server that was unavailable is not waited for again.
        let patience = match state.absence {
            Some(_) => Duration::ZERO,
            None => PATIENCE,
        };
        match self.hand_over_run(files, &mut state, run, before, patience) {
            Ok(TakenOver::Superseded { by }) => match &header.run.shard {
                Some(shard) => Err(stored_already(shard, by)),
                None => Ok(()),
            },
            Err(error) if error.is_final() => {
                state.under_way.remove(run);
                match before {
                    Before::Nothing => files.remove(&files.turn()?, run)?,
                    Before::Anything => drop(files.put_aside(run)?),
                }
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn to_wait(&self) -> Result<&Waiting, StoreError> {
        self.waiting.as_ref().ok_or_else(|| StoreError::ToRead {
            location: self.location.clone(),
        })
    }

    /// Has the server take what is in the file of a run, and removes the file if the run
    /// has ended. On an error that is not final the server counts as away.
    fn hand_over_run(
        &self,
        files: &Folder,
        state: &mut State,
        run: &str,
        before: Before,
        patience: Duration,
    ) -> Result<TakenOver, StoreError> {
        let put = || match files.find(run)? {
            Some(found) => self.put(&[found], before, patience),
            None => Ok(Vec::new()),
        };
        match put() {
            Ok(mut taken) => {
                state.absence = None;
                let taken = taken.pop().unwrap_or(TakenOver::There);
                if matches!(taken, TakenOver::Superseded { .. }) {
                    state.under_way.remove(run);
                }
                if !state.under_way.contains(run) {
                    files.remove(&files.turn()?, run)?;
                }
                Ok(taken)
            }
            Err(error) => {
                if !error.is_final() {
                    state.absence = Some(told(&error));
                }
                Err(error)
            }
        }
    }

    pub(in crate::store) fn hand_over(
        &self,
        patience: Option<Duration>,
    ) -> Result<HandedOver, StoreError> {
        let patience = patience.unwrap_or(PATIENCE);
        let mut handed = HandedOver::default();
        let Some(waiting) = &self.waiting else {
            return Ok(handed);
        };
        let Some(files) = waiting.known()? else {
            return Ok(handed);
        };
        let mut state = waiting.state();
        for run in files.ids()? {
            let was_own = files.own().contains_key(&run);
            // A living writer hands over its own.
            if !was_own && !files.claim(&run)? {
                continue;
            }
            let taken = self.hand_over_run(files, &mut state, &run, Before::Anything, patience);
            match taken {
                Ok(TakenOver::Superseded { .. }) => handed.superseded += 1,
                Ok(_) => handed.stored += 1,
                Err(error) if error.is_final() => {
                    handed.refused.push((error, files.put_aside(&run)?));
                }
                Err(error) => {
                    if !was_own {
                        files.own().remove(&run);
                    }
                    return Err(error);
                }
            }
        }
        Ok(handed)
    }

    pub(super) fn take_over_or_wait(&self, runs: &[Run]) -> Result<Vec<TakenOver>, StoreError> {
        if self.absence().is_none() {
            match (self.put(runs, Before::Anything, PATIENCE), &self.waiting) {
                (Err(error @ StoreError::Unreachable { .. }), Some(waiting)) => {
                    waiting.state().absence = Some(told(&error));
                }
                (outcome, _) => return outcome,
            }
        }
        let waiting = self.to_wait()?;
        let files = waiting.files()?;
        waiting.room()?;
        let taken = judge_all(runs, |id| files.find(id))?;
        let new = runs.iter().zip(&taken);
        let new = new.filter(|(_, what)| **what != TakenOver::There);
        files.put_all(&files.turn()?, &new.map(|(run, _)| run).collect::<Vec<_>>())?;
        Ok(taken)
    }
}

/// An error and its causes in one line.
fn told(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let words = cause.to_string();
        // Some errors repeat the text of their source.
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}
