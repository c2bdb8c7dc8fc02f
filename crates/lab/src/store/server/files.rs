//! What a folder in which runs wait for a server does beyond a store.

use crate::store::StoreError;
use crate::store::folder::Folder;
use std::fs;
use std::path::PathBuf;

impl Folder {
    /// Bytes of all runs.
    pub(super) fn bytes(&self) -> Result<u64, StoreError> {
        // A run that is gone in the meantime was handed over.
        let length = |run: &String| fs::metadata(self.file(run)).map_or(0, |file| file.len());
        Ok(self.ids()?.iter().map(length).sum())
    }

    /// Claims the file of a run. Returns false if another process has it, or has removed it.
    pub(super) fn claim(&self, run: &str) -> Result<bool, StoreError> {
        match self.with_log(run, |_| Ok(())) {
            Err(StoreError::Busy { .. } | StoreError::NoSuchRun { .. }) => Ok(false),
            claimed => claimed.map(|()| true),
        }
    }

    /// Puts the file of a run aside, for people; its new path.
    pub(super) fn put_aside(&self, run: &str) -> Result<PathBuf, StoreError> {
        let aside = self.file(run).with_extension("refused");
        self.with_log(run, |log| log.rename(&aside))?;
        self.own().remove(run);
        Ok(aside)
    }
}
