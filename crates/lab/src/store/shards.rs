//! Experiments in shards: which are stored, and all of them as one run.

use super::transact::transact;
use super::{Store, StoreError, query};
use crate::record::{Run, Shard};
use crate::shard;

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

impl Store {
    /// The run that is the shard, where it is stored.
    ///
    /// Refuses a shard of an experiment that measures something else than the
    /// stored one of the same name.
    pub fn stored_shard(&self, shard: &Shard) -> Result<Option<String>, StoreError> {
        transact!(self, read, tx => {
            let known: Option<(String, i64)> = sqlx::query_as(query::EXPERIMENT)
                .bind(&shard.experiment)
                .fetch_optional(&mut *tx)
                .await?;
            if known.is_some_and(|known| known != (shard.fingerprint.clone(), i64::from(shard.of))) {
                let experiment = shard.experiment.clone();
                return Err(StoreError::OtherExperiment { experiment }.into());
            }
            let run: Option<(String,)> = sqlx::query_as(query::SHARD_IS)
                .bind(&shard.experiment)
                .bind(i64::from(shard.index))
                .fetch_optional(&mut *tx)
                .await?;
            run.map(|(run,)| run)
        })
    }

    /// How far the experiment `name` is.
    pub fn progress(&self, name: &str) -> Result<Progress, StoreError> {
        let (experiment, stored, attempts) = transact!(self, read, tx => {
            let experiment: Option<(String, i64)> = sqlx::query_as(query::EXPERIMENT)
                .bind(name)
                .fetch_optional(&mut *tx)
                .await?;
            let stored: Vec<(i64, String)> = sqlx::query_as(query::SHARDS)
                .bind(name)
                .fetch_all(&mut *tx)
                .await?;
            let attempts: Vec<(i64, i64)> = sqlx::query_as(query::ATTEMPTS)
                .bind(name)
                .fetch_all(&mut *tx)
                .await?;
            (experiment, stored, attempts)
        })?;
        let Some((_, of)) = experiment else {
            let name = name.to_owned();
            return Err(StoreError::NoSuchExperiment { name });
        };
        let mut shards = vec![ShardState::default(); usize::try_from(of).unwrap_or_default()];
        let place = |shard: i64| usize::try_from(shard - 1).unwrap_or(usize::MAX);
        for (shard, run) in stored {
            if let Some(state) = shards.get_mut(place(shard)) {
                state.run = Some(run);
            }
        }
        for (shard, count) in attempts {
            if let Some(state) = shards.get_mut(place(shard)) {
                state.attempts = u32::try_from(count).unwrap_or(u32::MAX);
            }
        }
        Ok(Progress {
            experiment: name.to_owned(),
            shards,
        })
    }

    /// Ids of runs that began a shard and were dropped when another run was stored as it.
    pub fn dropped_attempts(&self) -> Result<Vec<String>, StoreError> {
        let runs: Vec<(String,)> = transact!(self, read, tx => {
            sqlx::query_as(query::DROPPED_ATTEMPTS).fetch_all(&mut *tx).await?
        })?;
        Ok(runs.into_iter().map(|(run,)| run).collect())
    }

    /// The stored shards of an experiment as one run, which is partial while some
    /// are missing.
    ///
    /// Refuses an experiment whose shards are runs of their own.
    pub(super) fn load_experiment(&self, name: &str) -> Result<Run, StoreError> {
        let progress = self.progress(name)?;
        let of = progress.shards.len();
        let mut runs = Vec::new();
        for run in progress.shards.into_iter().filter_map(|shard| shard.run) {
            runs.push(self.load(&run)?);
        }
        shard::merge(name, of, runs).ok_or_else(|| StoreError::NotOneRun {
            experiment: name.to_owned(),
            runs: of,
        })
    }
}
