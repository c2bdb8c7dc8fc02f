//! A store whose server may be away: what is written waits in the spool.

use super::entry::{Applied, Entry};
use super::postgres::Server;
use super::spool::{Folder, Log};
use super::transact::transact;
use super::{Connection, HandedOver, Location, Spool, Store, StoreError};
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
    own: BTreeMap<String, Log>,
    /// Why the server was away when it was asked last.
    absence: Option<String>,
}

impl Waiting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    pub(super) fn open_with_server(location: &Location, spool: &Spool) -> Result<Self, StoreError> {
        let mut store = Self::new(location)?;
        let identity = store.with_server(|server| server.identity());
        let mut state = State::default();
        match store.reach() {
            Err(error @ StoreError::Unreachable { .. }) => state.absence = Some(told(&error)),
            outcome => outcome?,
        }
        store.waiting = Some(Waiting {
            folder: Folder::of(spool, &identity.unwrap_or_default()),
            state: Mutex::new(state),
        });
        Ok(store)
    }

    /// Asks the server for an answer.
    pub(super) fn reach(&self) -> Result<(), StoreError> {
        transact!(self, read, tx => {
            sqlx::query("SELECT 1").execute(&mut *tx).await?;
        })
    }

    fn with_server<T>(&self, act: impl FnOnce(&mut Server) -> T) -> Option<T> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut open.connection {
            Some(Connection::Postgres(server)) => Some(act(server)),
            _ => None,
        }
    }

    /// Why the server of this store was away when it was asked last.
    pub fn absence(&self) -> Option<String> {
        self.waiting.as_ref()?.state().absence.clone()
    }

    /// How many runs wait for the server, and where; none where nothing can.
    ///
    /// # Errors
    /// [`StoreError::Spool`].
    pub fn waiting(&self) -> Result<Option<(usize, PathBuf)>, StoreError> {
        let Some(waiting) = &self.waiting else {
            return Ok(None);
        };
        let folder = waiting.folder.path().to_owned();
        Ok(Some((waiting.folder.waiting()?, folder)))
    }

    pub(super) fn write_or_wait(&self, waiting: &Waiting, entry: Entry) -> Result<(), StoreError> {
        let mut state = waiting.state();
        if let Some(mut log) = state.own.remove(entry.run()) {
            // What was said before waits, so this waits behind it; and it is safe
            // before the server is asked, which takes a while.
            let appended = waiting.folder.append(&mut log, &entry);
            match self.hand_over_log(&mut log, Some(Duration::ZERO)) {
                Ok(applied) => {
                    log.remove()?;
                    state.absence = None;
                    applied.accepted()?;
                    if appended.is_ok() {
                        return Ok(());
                    }
                    // There was no room for it, and is no need any more.
                }
                Err(error) if error.is_final() => {
                    log.refuse()?;
                    return Err(error);
                }
                Err(error) => {
                    state.absence = Some(told(&error));
                    state.own.insert(entry.run().to_owned(), log);
                    return appended;
                }
            }
        }
        // Who was away is not waited for again.
        let patience = state.absence.is_some().then_some(Duration::ZERO);
        self.be_patient(patience);
        let applied = self.apply(std::slice::from_ref(&entry), false);
        self.be_patient(None);
        match applied {
            Ok(applied) => {
                state.absence = None;
                applied.accepted()
            }
            Err(error) if error.is_final() => Err(error),
            Err(error) => {
                state.absence = Some(told(&error));
                let mut log = waiting.folder.log(entry.run())?;
                if let Err(full) = waiting.folder.append(&mut log, &entry) {
                    log.remove()?;
                    return Err(full);
                }
                state.own.insert(entry.run().to_owned(), log);
                Ok(())
            }
        }
    }

    fn be_patient(&self, patience: Option<Duration>) {
        self.with_server(|server| server.be_patient(patience));
    }

    fn hand_over_log(
        &self,
        log: &mut Log,
        patience: Option<Duration>,
    ) -> Result<Applied, StoreError> {
        let entries = log.entries()?;
        self.be_patient(patience);
        let applied = self.apply(&entries, true);
        self.be_patient(None);
        applied
    }

    /// Stores what waits: what this process has written, and what others have
    /// left. Asks a server that is away for as long as `patience` says, or a few
    /// seconds.
    ///
    /// # Errors
    /// Why the server cannot take it; it waits on then.
    pub fn hand_over(&self, patience: Option<Duration>) -> Result<HandedOver, StoreError> {
        let mut handed = HandedOver::default();
        let Some(waiting) = &self.waiting else {
            return Ok(handed);
        };
        let mut state = waiting.state();
        let own = std::mem::take(&mut state.own);
        let abandoned = waiting.folder.abandoned()?.map(|log| (None, log));
        let own = own.into_iter().map(|(run, log)| (Some(run), log));
        let mut all = own.chain(abandoned);
        while let Some((run, mut log)) = all.next() {
            match self.hand_over_log(&mut log, patience) {
                Ok(Applied::Stored) => {
                    log.remove()?;
                    handed.stored += 1;
                }
                Ok(Applied::Superseded { .. }) => {
                    log.remove()?;
                    handed.superseded += 1;
                }
                Err(error) if error.is_final() => {
                    handed.refused.push((error, log.refuse()?));
                }
                Err(error) => {
                    // Nobody is there: what is ours stays ours.
                    state.own.extend(run.map(|run| (run, log)));
                    let rest = all.filter_map(|(run, log)| Some((run?, log)));
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
