//! A folder in which runs wait for a server. The server decides which shards they are.

use crate::record::Run;
use crate::store::StoreError;
use crate::store::entry::{Entry, Header};
use crate::store::folder::Folder;
use std::fs;
use std::path::PathBuf;

impl Folder {
    /// Makes the file of a run that begins; it is this process's own until it is dropped.
    pub(super) fn start(&self, header: &Header) -> Result<(), StoreError> {
        let turn = self.turn()?;
        self.refuse_known(&header.run.run)?;
        self.make(&turn, header)
    }

    /// Appends to the file of a run.
    pub(super) fn append(&self, run: &str, entry: &Entry) -> Result<(), StoreError> {
        self.with_log(run, |log| log.append(entry))
    }

    /// Stores whole runs, each in place of what is here of it: all or, on an error, none.
    pub(super) fn put_files(&self, runs: &[&Run]) -> Result<(), StoreError> {
        let turn = self.turn()?;
        self.put_all(&turn, runs)
    }

    /// Bytes of all runs.
    pub(super) fn bytes(&self) -> Result<u64, StoreError> {
        // A run that is gone in the meantime was handed over.
        let length = |run: &String| fs::metadata(self.file(run)).map_or(0, |file| file.len());
        Ok(self.ids()?.iter().map(length).sum())
    }

    /// Whether this process holds the file of a run.
    pub(super) fn owns(&self, run: &str) -> bool {
        self.own().contains_key(run)
    }

    /// Claims the file of a run. Returns false if another process has it, or has removed it.
    pub(super) fn claim(&self, run: &str) -> Result<bool, StoreError> {
        match self.with_log(run, |_| Ok(())) {
            Err(StoreError::Busy { .. } | StoreError::NoSuchRun { .. }) => Ok(false),
            claimed => claimed.map(|()| true),
        }
    }

    /// Leaves the file of a run to others.
    pub(super) fn let_go(&self, run: &str) {
        self.own().remove(run);
    }

    /// Removes the file of a run.
    pub(super) fn drop_file(&self, run: &str) -> Result<(), StoreError> {
        let turn = self.turn()?;
        self.remove(&turn, run)
    }

    /// Puts the file of a run aside, for people; its new path.
    pub(super) fn put_aside(&self, run: &str) -> Result<PathBuf, StoreError> {
        let aside = self.file(run).with_extension("refused");
        self.with_log(run, |log| log.rename(&aside))?;
        self.let_go(run);
        Ok(aside)
    }
}
