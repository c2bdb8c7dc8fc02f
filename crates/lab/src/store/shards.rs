//! Experiments in shards: the stored shards, and the runs that have begun them.

use super::folder::{Folder, Turn, file_name};
use super::{Records, Store, StoreError};
use crate::record::{Run, Shard};
use crate::shard;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// How far an experiment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Its name.
    pub experiment: String,
    /// Every shard, from the first.
    pub shards: Vec<ShardState>,
}

/// A shard in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardState {
    /// The run that it is, once it is whole.
    pub run: Option<String>,
    /// Runs that began it.
    pub attempts: u32,
}

/// The file of an experiment.
#[derive(Default, Serialize, Deserialize)]
struct Experiment {
    name: String,
    /// Of what it measures.
    fingerprint: String,
    /// Their number.
    shards: u32,
    /// Every run that has begun a shard, with the number of that; also one that was dropped.
    attempts: Vec<(String, u32)>,
}

impl Experiment {
    fn check(&self, shard: &Shard) -> Result<(), StoreError> {
        match (&self.fingerprint, self.shards) == (&shard.fingerprint, shard.of) {
            true => Ok(()),
            false => Err(StoreError::OtherExperiment {
                experiment: shard.experiment.clone(),
            }),
        }
    }
}

/// The stored shards of an experiment as one run, which is partial while some are missing.
///
/// Refuses an experiment whose shards are runs of their own.
pub(super) fn load_experiment(store: &Store, name: &str) -> Result<Run, StoreError> {
    let progress = store.progress(name)?;
    let of = progress.shards.len();
    let mut runs = Vec::new();
    for run in progress.shards.into_iter().filter_map(|shard| shard.run) {
        runs.push(store.load(&run)?);
    }
    shard::merge(name, of, runs).ok_or_else(|| StoreError::NotOneRun {
        experiment: name.to_owned(),
        runs: of,
    })
}

/// Why a run is not stored as a shard that the run `by` is.
pub(super) fn stored_already(shard: &Shard, by: String) -> StoreError {
    StoreError::ShardStored {
        experiment: shard.experiment.clone(),
        shard: shard.index.into(),
        run: by,
    }
}

impl Folder {
    fn experiment_file(&self, name: &str) -> PathBuf {
        self.path.join("experiments").join(file_name(name, "json"))
    }

    fn experiment(&self, name: &str) -> Result<Option<Experiment>, StoreError> {
        self.read_json(&self.experiment_file(name))
    }

    fn experiments(&self) -> Result<Vec<Experiment>, StoreError> {
        let folder = self.path.join("experiments");
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| self.failed(error))? {
            let path = entry.map_err(|error| self.failed(error))?.path();
            found.extend(self.read_json(&path)?);
        }
        Ok(found)
    }

    /// The run that is a shard: the first of its attempts that is there and whole.
    fn stored(&self, experiment: &Experiment, shard: u32) -> Result<Option<String>, StoreError> {
        for (run, _) in experiment.attempts.iter().filter(|(_, of)| *of == shard) {
            if self.is_whole(run)? {
                return Ok(Some(run.clone()));
            }
        }
        Ok(None)
    }

    /// Refuses a run whose shard is of another experiment, or is another run.
    pub(super) fn admit(&self, shard: &Shard, run: &str) -> Result<(), StoreError> {
        match self.shard_here(shard)? {
            Some(by) if by != run => Err(stored_already(shard, by)),
            _ => Ok(()),
        }
    }

    pub(super) fn add_attempt(
        &self,
        turn: &Turn,
        shard: &Shard,
        run: &str,
    ) -> Result<(), StoreError> {
        let known = self.experiment(&shard.experiment)?;
        let mut experiment = known.unwrap_or_else(|| Experiment {
            name: shard.experiment.clone(),
            fingerprint: shard.fingerprint.clone(),
            shards: shard.of,
            attempts: Vec::new(),
        });
        experiment.check(shard)?;
        if experiment.attempts.iter().any(|(known, _)| known == run) {
            return Ok(());
        }
        experiment.attempts.push((run.to_owned(), shard.index));
        self.publish_json(turn, &self.experiment_file(&shard.experiment), &experiment)
    }

    /// Removes what other attempts have left of a shard that is stored now; a baseline stays.
    pub(super) fn drop_attempts(&self, turn: &Turn, shard: &Shard) -> Result<(), StoreError> {
        let Some(experiment) = self.experiment(&shard.experiment)? else {
            return Ok(());
        };
        let Some(by) = self.stored(&experiment, shard.index)? else {
            return Ok(());
        };
        let baselines = self.baselines()?;
        for (run, of) in experiment.attempts {
            if of == shard.index && run != by && !baselines.values().any(|named| *named == run) {
                self.remove(turn, &run)?;
            }
        }
        Ok(())
    }

    /// Why a run is not there: another attempt at its shard may have dropped it.
    pub(super) fn gone(&self, run: &str) -> Result<StoreError, StoreError> {
        for experiment in self.experiments()? {
            let attempt = experiment.attempts.iter().find(|(known, _)| known == run);
            if let Some((_, shard)) = attempt
                && let Some(by) = self.stored(&experiment, *shard)?
            {
                return Ok(StoreError::ShardStored {
                    experiment: experiment.name,
                    shard: (*shard).into(),
                    run: by,
                });
            }
        }
        Ok(super::no_such_run(run))
    }

    pub(super) fn shard_here(&self, shard: &Shard) -> Result<Option<String>, StoreError> {
        let Some(experiment) = self.experiment(&shard.experiment)? else {
            return Ok(None);
        };
        experiment.check(shard)?;
        self.stored(&experiment, shard.index)
    }

    pub(super) fn progress_here(&self, name: &str) -> Result<Progress, StoreError> {
        let Some(experiment) = self.experiment(name)? else {
            let name = name.to_owned();
            return Err(StoreError::NoSuchExperiment { name });
        };
        let mut shards = vec![ShardState::default(); experiment.shards as usize];
        for (run, shard) in experiment.attempts {
            let Some(state) = shards.get_mut((shard as usize).wrapping_sub(1)) else {
                continue;
            };
            state.attempts += 1;
            if state.run.is_none() && self.is_whole(&run)? {
                state.run = Some(run);
            }
        }
        Ok(Progress {
            experiment: experiment.name,
            shards,
        })
    }

    pub(super) fn dropped_here(&self) -> Result<Vec<String>, StoreError> {
        let mut dropped = Vec::new();
        for experiment in self.experiments()? {
            for (run, shard) in &experiment.attempts {
                let is_gone = !self.file(run).exists();
                if is_gone && self.stored(&experiment, *shard)?.is_some() {
                    dropped.push(run.clone());
                }
            }
        }
        Ok(dropped)
    }
}
