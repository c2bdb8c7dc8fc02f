//! [`Entry`]: what a writer tells the store, and how the store takes it.

use super::transact::transact;
use super::{Store, StoreError, query};
use crate::record::{Run, Shard, Trial};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One thing that a writer tells the store; also a line of the spool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Entry {
    /// A run begins.
    Begin(Header),
    /// Trials, each in place of one that stands at its position.
    Trials {
        /// Id of the run.
        run: String,
        /// Position and JSON.
        trials: Vec<(u32, String)>,
    },
    /// A run is at its end.
    Finish(Header),
}

/// A run without its trials, as the columns have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    run: String,
    plan: String,
    started: String,
    partial: bool,
    host_key: String,
    json: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shard: Option<Shard>,
}

/// What became of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// They are stored.
    Stored,
    /// Another run is the shard that theirs was begun for: nothing of theirs is
    /// kept any more.
    Superseded {
        attempt: String,
        experiment: String,
        shard: i64,
        by: String,
    },
}

impl Applied {
    /// The same, where the caller has nothing more to do if it was superseded.
    pub(super) fn accepted(self) -> Result<(), StoreError> {
        match self {
            Self::Stored => Ok(()),
            Self::Superseded {
                experiment,
                shard,
                by,
                ..
            } => Err(StoreError::ShardStored {
                experiment,
                shard,
                run: by,
            }),
        }
    }
}

impl Entry {
    pub(super) fn begin(run: &Run) -> Result<Self, StoreError> {
        Header::of(run, true).map(Self::Begin)
    }

    pub(super) fn finish(run: &Run) -> Result<Self, StoreError> {
        Header::of(run, run.partial).map(Self::Finish)
    }

    pub(super) fn trials(run: &str, trials: &[(u32, &Trial)]) -> Result<Self, StoreError> {
        let mut records = Vec::with_capacity(trials.len());
        for (ordinal, trial) in trials {
            let unstorable = |source| StoreError::Unstorable {
                run: run.to_owned(),
                ordinal: Some(*ordinal),
                source,
            };
            let record = serde_json::to_string(trial).map_err(unstorable)?;
            // JSON writes NaN and infinity as null, which no reader would accept.
            serde_json::from_str::<Trial>(&record).map_err(unstorable)?;
            records.push((*ordinal, record));
        }
        Ok(Self::Trials {
            run: run.to_owned(),
            trials: records,
        })
    }

    /// All that a run is, from its beginning to its end.
    pub(super) fn whole(run: &Run) -> Result<[Self; 3], StoreError> {
        let trials: Vec<_> = (0..).zip(&run.trials).collect();
        Ok([
            Self::begin(run)?,
            Self::trials(&run.run, &trials)?,
            Self::finish(run)?,
        ])
    }

    /// Id of the run that it is about.
    pub(super) fn run(&self) -> &str {
        match self {
            Self::Begin(header) | Self::Finish(header) => &header.run,
            Self::Trials { run, .. } => run,
        }
    }
}

impl Header {
    fn of(run: &Run, partial: bool) -> Result<Self, StoreError> {
        let unstorable = |source| StoreError::Unstorable {
            run: run.run.clone(),
            ordinal: None,
            source,
        };
        let header = Run {
            partial,
            trials: Vec::new(),
            schema: run.schema.clone(),
            run: run.run.clone(),
            plan: run.plan.clone(),
            started: run.started.clone(),
            seed: run.seed,
            shard: run.shard.clone(),
            fingerprint: run.fingerprint.clone(),
            host: run.host.clone(),
            noise: run.noise.clone(),
            paper: run.paper.clone(),
            conditioning: run.conditioning.clone(),
            marks: run.marks.clone(),
            warnings: run.warnings.clone(),
        };
        let json = serde_json::to_string(&header).map_err(unstorable)?;
        serde_json::from_str::<Run>(&json).map_err(unstorable)?;
        Ok(Self {
            json,
            partial,
            host_key: header.host.key(),
            run: header.run,
            plan: header.plan,
            started: header.started,
            shard: header.shard,
        })
    }
}

impl Store {
    /// Takes entries of one run in one transaction. `again` if they may be stored
    /// already: they are then taken a second time, which changes nothing.
    pub(super) fn apply(&self, entries: &[Entry], again: bool) -> Result<Applied, StoreError> {
        let superseded = self.apply_all(entries, again)?;
        Ok(superseded.into_iter().next().unwrap_or(Applied::Stored))
    }

    /// The same with entries of any runs; those that are superseded.
    pub(super) fn apply_all(
        &self,
        entries: &[Entry],
        again: bool,
    ) -> Result<Vec<Applied>, StoreError> {
        let mut tried = again;
        transact!(self, write, tx => {
            // A transaction whose answer got lost may have been done.
            let again = std::mem::replace(&mut tried, true);
            let mut superseded = Vec::new();
            // Nothing of it is kept any more.
            let mut dropped = None;
            for entry in entries {
                if dropped == Some(entry.run()) {
                    continue;
                }
                let run = match entry {
                    Entry::Begin(header) => {
                        if let Some(shard) = &header.shard {
                            sqlx::query(query::ADD_EXPERIMENT)
                                .bind(&shard.experiment)
                                .bind(&shard.fingerprint)
                                .bind(i64::from(shard.of))
                                .execute(&mut *tx)
                                .await?;
                            let known: (String, i64) = sqlx::query_as(query::EXPERIMENT)
                                .bind(&shard.experiment)
                                .fetch_one(&mut *tx)
                                .await?;
                            if known != (shard.fingerprint.clone(), i64::from(shard.of)) {
                                let experiment = shard.experiment.clone();
                                return Err(StoreError::OtherExperiment { experiment }.into());
                            }
                            let stored: Option<(String,)> = sqlx::query_as(query::SHARD_IS)
                                .bind(&shard.experiment)
                                .bind(i64::from(shard.index))
                                .fetch_optional(&mut *tx)
                                .await?;
                            if let Some((by,)) = stored.filter(|(by,)| *by != header.run) {
                                superseded.push(Applied::Superseded {
                                    attempt: header.run.clone(),
                                    experiment: shard.experiment.clone(),
                                    shard: i64::from(shard.index),
                                    by,
                                });
                                dropped = Some(entry.run());
                                continue;
                            }
                            sqlx::query(query::ADD_ATTEMPT)
                                .bind(&header.run)
                                .bind(&shard.experiment)
                                .bind(i64::from(shard.index))
                                .execute(&mut *tx)
                                .await?;
                        }
                        let added = sqlx::query(query::ADD_RUN)
                            .bind(&header.run)
                            .bind(&header.plan)
                            .bind(&header.started)
                            .bind(header.partial)
                            .bind(&header.host_key)
                            .bind(&header.json)
                            .execute(&mut *tx)
                            .await?
                            .rows_affected();
                        let same: Option<(String,)> = match added {
                            0 => sqlx::query_as(query::SAME_RUN)
                                .bind(&header.run)
                                .bind(&header.plan)
                                .bind(&header.started)
                                .bind(&header.host_key)
                                .fetch_optional(&mut *tx)
                                .await?,
                            _ => None,
                        };
                        if added == 0 && !(again && same.is_some()) {
                            let run = header.run.clone();
                            return Err(StoreError::RunExists { run }.into());
                        }
                        continue;
                    }
                    Entry::Trials { run, trials } => {
                        let known: Option<(String,)> = sqlx::query_as(query::RUN_IS)
                            .bind(run)
                            .fetch_optional(&mut *tx)
                            .await?;
                        if known.is_some() {
                            // PostgreSQL takes a position once in a statement.
                            let positions: BTreeMap<_, _> =
                                trials.iter().map(|(ordinal, record)| (ordinal, record)).collect();
                            let rows: Vec<_> = positions.into_iter().collect();
                            for rows in rows.chunks(query::TRIALS_AT_ONCE) {
                                let mut put = sqlx::query(query::put_trials(rows.len())).bind(run);
                                for (ordinal, record) in rows {
                                    put = put.bind(i64::from(**ordinal)).bind(*record);
                                }
                                put.execute(&mut *tx).await?;
                            }
                            continue;
                        }
                        run
                    }
                    Entry::Finish(header) => {
                        let known: Option<(String,)> = sqlx::query_as(query::RUN_IS)
                            .bind(&header.run)
                            .fetch_optional(&mut *tx)
                            .await?;
                        if let (Some(shard), false, true) =
                            (&header.shard, header.partial, known.is_some())
                        {
                            // Who comes second waits here for the end of the first, and
                            // must not hold his row meanwhile, which the first may drop.
                            sqlx::query(query::ADD_SHARD)
                                .bind(&shard.experiment)
                                .bind(i64::from(shard.index))
                                .bind(&header.run)
                                .execute(&mut *tx)
                                .await?;
                            let (by,): (String,) = sqlx::query_as(query::SHARD_IS)
                                .bind(&shard.experiment)
                                .bind(i64::from(shard.index))
                                .fetch_one(&mut *tx)
                                .await?;
                            sqlx::query(query::DROP_OTHER_ATTEMPTS)
                                .bind(&shard.experiment)
                                .bind(i64::from(shard.index))
                                .bind(&by)
                                .execute(&mut *tx)
                                .await?;
                            if by != header.run {
                                superseded.push(Applied::Superseded {
                                    attempt: header.run.clone(),
                                    experiment: shard.experiment.clone(),
                                    shard: i64::from(shard.index),
                                    by,
                                });
                                dropped = Some(entry.run());
                                continue;
                            }
                        }
                        if known.is_some() {
                            sqlx::query(query::FINISH_RUN)
                                .bind(&header.run)
                                .bind(&header.plan)
                                .bind(&header.started)
                                .bind(header.partial)
                                .bind(&header.host_key)
                                .bind(&header.json)
                                .execute(&mut *tx)
                                .await?;
                            continue;
                        }
                        &header.run
                    }
                };
                // The run is not there: another attempt at its shard may have dropped it.
                let other: Option<(String, i64, String)> =
                    sqlx::query_as(query::SHARD_OF_ATTEMPT)
                        .bind(run)
                        .fetch_optional(&mut *tx)
                        .await?;
                let Some((experiment, shard, by)) = other else {
                    return Err(super::no_such_run(run).into());
                };
                let attempt = run.clone();
                superseded.push(Applied::Superseded { attempt, experiment, shard, by });
                dropped = Some(entry.run());
            }
            superseded
        })
    }
}
