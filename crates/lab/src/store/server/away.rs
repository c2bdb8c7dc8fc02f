//! A server that may be away: everything is in the spool before it's asked, and what it
//! cannot take waits there until it can, and is stored exactly once.

use super::apply::Applied;
use super::spool::{self, Folder};
use super::{PATIENCE, Server};
use crate::store::entry::Entry;
use crate::store::{HandedOver, Spool, StoreError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What waits for a server that is away.
pub(super) struct Waiting {
    folder: Folder,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Files of runs that this process writes.
    own: BTreeMap<String, spool::Waiting>,
    /// Why the server was away when it was asked last.
    absence: Option<String>,
}

impl Waiting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// The server at `url`, for somebody who measures.
    ///
    /// # Errors
    /// Those of [`Server::reach`], but not where the server is away.
    pub(in crate::store) fn to_write(url: &str, spool: &Spool) -> Result<Self, StoreError> {
        let mut server = Self::new(url)?;
        let mut state = State::default();
        match server.reach() {
            Err(error @ StoreError::Unreachable { .. }) => state.absence = Some(told(&error)),
            outcome => outcome?,
        }
        server.waiting = Some(Waiting {
            folder: Folder::of(spool, &server.parameters.identity()),
            state: Mutex::new(state),
        });
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
        let folder = waiting.folder.path().to_owned();
        Ok(Some((waiting.folder.waiting()?, folder)))
    }

    pub(super) fn write_or_wait(&self, waiting: &Waiting, entry: Entry) -> Result<(), StoreError> {
        let mut state = waiting.state();
        let is_end = matches!(entry, Entry::Finish(_));
        // A disk that is full or not to be written matters only if the server is away.
        let mut file = match state.own.remove(entry.run()) {
            Some(file) => Ok(file),
            None => waiting.folder.open(entry.run()),
        };
        // What was said before waits, so this waits behind it.
        let (mut entries, mut appended) = (Vec::new(), Ok(()));
        if let Ok(file) = &mut file {
            entries = file.entries()?;
            appended = waiting.folder.append(file, &entry);
        }
        let again = !entries.is_empty();
        let run = entry.run().to_owned();
        entries.push(entry);
        // Who was away is not waited for again.
        let patience = match state.absence {
            Some(_) => Duration::ZERO,
            None => PATIENCE,
        };
        match (self.apply(&entries, again, patience), file) {
            (Ok(applied), file) => {
                state.absence = None;
                if let Ok(mut file) = file {
                    file.clear()?;
                    if !is_end {
                        state.own.insert(run, file);
                    }
                }
                applied.accepted()
            }
            (Err(error), Ok(mut file)) if error.is_final() => {
                match again {
                    true => drop(file.refuse()?),
                    false => file.clear()?,
                }
                Err(error)
            }
            (Err(error), Err(_)) if error.is_final() => Err(error),
            (Err(error), Ok(file)) => {
                state.absence = Some(told(&error));
                state.own.insert(run, file);
                appended
            }
            (Err(error), Err(unwritable)) => {
                state.absence = Some(told(&error));
                Err(unwritable)
            }
        }
    }

    fn hand_over_file(
        &self,
        file: &mut spool::Waiting,
        patience: Duration,
    ) -> Result<Applied, StoreError> {
        let entries = file.entries()?;
        self.apply(&entries, true, patience)
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
        let mut state = waiting.state();
        let own = std::mem::take(&mut state.own).into_iter();
        let own = own.filter(|(_, file)| !file.is_empty());
        let abandoned = waiting.folder.abandoned()?.map(|file| (None, file));
        let own = own.map(|(run, file)| (Some(run), file));
        let mut all = own.chain(abandoned);
        while let Some((run, mut file)) = all.next() {
            match self.hand_over_file(&mut file, patience) {
                Ok(Applied::Stored) => {
                    file.clear()?;
                    handed.stored += 1;
                }
                Ok(Applied::Superseded { .. }) => {
                    file.clear()?;
                    handed.superseded += 1;
                }
                Err(error) if error.is_final() => {
                    handed.refused.push((error, file.refuse()?));
                }
                Err(error) => {
                    // Nobody is there: what is ours stays ours.
                    state.own.extend(run.map(|run| (run, file)));
                    let rest = all.filter_map(|(run, file)| Some((run?, file)));
                    state.own.extend(rest);
                    state.absence = Some(told(&error));
                    return Err(error);
                }
            }
        }
        if handed.stored > 0 {
            state.absence = None;
        }
        Ok(handed)
    }
}

/// An error and its causes in one line.
fn told(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let words = cause.to_string();
        // Some errors repeat the words of their source.
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}
