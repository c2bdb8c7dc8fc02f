//! Writing to a server that may be away: what it cannot take waits in the spool
//! and is handed over later, exactly once.

use super::entry::{Applied, Entry};
use super::{Location, Store, StoreError};
use std::path::PathBuf;

/// Where to keep what a server cannot take, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spool {
    /// A folder on a file system that outlives the program; it is created. Every
    /// store has one of its own in it.
    pub folder: PathBuf,
    /// Bytes of all records of a store that wait there, at most.
    pub limit: u64,
}

/// What became of the runs that waited.
#[derive(Debug, Default)]
pub struct HandedOver {
    /// Runs that are stored now.
    pub stored: usize,
    /// Runs that were dropped: another run is the shard that they were begun for.
    pub superseded: usize,
    /// Runs that the store refuses, or that cannot be read: why, and the file that
    /// has them now.
    pub refused: Vec<(StoreError, PathBuf)>,
}

impl Store {
    /// Opens the store at `location` for somebody who measures: where a PostgreSQL
    /// server is away, records wait in `spool` until it is back.
    ///
    /// Fails as [`Store::open`] does, but not where the server is away.
    pub fn open_to_write(location: &Location, spool: &Spool) -> Result<Self, StoreError> {
        #[cfg(feature = "postgres")]
        if let Location::Postgres(_) = location {
            return Self::open_with_server(location, spool);
        }
        let _ = spool;
        Self::open(location)
    }

    pub(super) fn write(&self, entry: Entry) -> Result<(), StoreError> {
        #[cfg(feature = "postgres")]
        if let Some(waiting) = &self.waiting {
            return self.write_or_wait(waiting, entry);
        }
        self.apply(&[entry], false).and_then(Applied::accepted)
    }
}

#[cfg(not(feature = "postgres"))]
impl Store {
    /// Why the server of this store is away; never, where it is a file.
    pub fn absence(&self) -> Option<String> {
        None
    }

    /// How many runs wait for the server, and where.
    pub fn waiting(&self) -> Result<Option<(usize, PathBuf)>, StoreError> {
        Ok(None)
    }

    /// Stores what waits.
    pub fn hand_over(&self, _: Option<std::time::Duration>) -> Result<HandedOver, StoreError> {
        Ok(HandedOver::default())
    }
}
