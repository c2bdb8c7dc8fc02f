//! Writes to a server. A run is a file of this machine first. It is handed over exactly once: when
//! it begins and when it has ended, or later if the server is unavailable.

use super::{Location, Store, StoreError};
use std::path::PathBuf;
use std::time::Duration;

/// The place for runs that a server cannot take, and its size limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spool {
    /// A folder on a file system that outlives the program; it is created. Every
    /// store has one of its own in it.
    pub folder: PathBuf,
    /// Maximum number of bytes that wait for a store, above which no run begins. A run that has
    /// begun is always kept whole.
    pub limit: u64,
}

/// The outcome of handing over the waiting runs.
#[derive(Debug, Default)]
pub struct HandedOver {
    /// Runs that are stored now.
    pub stored: usize,
    /// Runs that were dropped, because another run is stored for their shard.
    pub superseded: usize,
    /// Runs that the store refuses or that cannot be read, with the reason and the file that holds
    /// them now.
    pub refused: Vec<(StoreError, PathBuf)>,
}

impl Store {
    /// Opens the store at `location` for a process that measures. Runs for a PostgreSQL server are
    /// files in `spool` until the server has taken them.
    ///
    /// Fails as [`Store::open`] does, except that an unavailable server is not an error.
    pub fn open_to_write(location: &Location, spool: &Spool) -> Result<Self, StoreError> {
        #[cfg(feature = "postgres")]
        if let Location::Postgres(url) = location {
            return Ok(Self {
                location: location.clone(),
                kept: super::Kept::Server(Box::new(super::server::Server::to_write(url, spool)?)),
            });
        }
        let _ = spool;
        Self::open(location)
    }

    /// The reason why the server of this store was unavailable at the last attempt; `None` if it
    /// was not, or the store is a folder.
    pub fn absence(&self) -> Option<String> {
        match &self.kept {
            super::Kept::Files(_) => None,
            #[cfg(feature = "postgres")]
            super::Kept::Server(server) => server.absence(),
        }
    }

    /// The number of runs that wait for the server, and their folder; `None` if runs cannot wait.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the folder cannot be read.
    pub fn waiting(&self) -> Result<Option<(usize, PathBuf)>, StoreError> {
        match &self.kept {
            super::Kept::Files(_) => Ok(None),
            #[cfg(feature = "postgres")]
            super::Kept::Server(server) => server.waiting(),
        }
    }

    /// Stores what waits: what this process has written, and what others have
    /// left. Asks a server that is away for as long as `patience` says, or a few
    /// seconds.
    ///
    /// # Errors
    /// Why the server cannot take it; it waits on then.
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables))]
    pub fn hand_over(&self, patience: Option<Duration>) -> Result<HandedOver, StoreError> {
        match &self.kept {
            super::Kept::Files(_) => Ok(HandedOver::default()),
            #[cfg(feature = "postgres")]
            super::Kept::Server(server) => server.hand_over(patience),
        }
    }
}
