//! The operations of a store, done by a server.

use super::{Fault, Mode, PATIENCE, Server, query};
use crate::record::{Run, Shard};
use crate::store::entry::{Entry, assemble};
use crate::store::take_over::TakenOver;
use crate::store::{Names, Progress, Records, RunSummary, ShardState, StoreError};
use postgres::Transaction;
use std::collections::BTreeMap;

/// Headers that a page may have, however few trials their runs have.
const HEADERS: i64 = 64;

/// A run as it is stored: the header, and the records by position.
pub(super) type Stored = (String, Vec<(i64, String)>);

fn names(tx: &mut Transaction<'_>) -> Result<Names, Fault> {
    let ids = tx.query(query::IDS, &[])?;
    // Sorted here: the collations of databases differ.
    let mut ids: Vec<String> = ids.iter().map(|row| row.get(0)).collect();
    ids.sort();
    Ok(Names {
        ids,
        baselines: baselines(tx)?,
    })
}

fn baselines(tx: &mut Transaction<'_>) -> Result<BTreeMap<String, String>, Fault> {
    let rows = tx.query(query::BASELINES, &[])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

pub(super) fn stored(tx: &mut Transaction<'_>, run: &str) -> Result<Option<Stored>, Fault> {
    let Some(header) = tx.query_opt(query::HEADER, &[&run])? else {
        return Ok(None);
    };
    let trials = tx.query(query::TRIALS, &[&run])?;
    let trials = trials.iter().map(|row| (row.get(0), row.get(1))).collect();
    Ok(Some((header.get(0), trials)))
}

pub(super) fn run(id: &str, (header, trials): &Stored) -> Result<Run, StoreError> {
    let at = |ordinal: i64| u32::try_from(ordinal).unwrap_or(u32::MAX);
    let trials = trials
        .iter()
        .map(|(ordinal, record)| (at(*ordinal), record.as_str()));
    assemble(id, header, trials)
}

impl Records for Server {
    fn write(&self, entry: Entry) -> Result<(), StoreError> {
        Self::write(self, &entry)
    }

    fn take_over(&self, runs: &[Run]) -> Result<Vec<TakenOver>, StoreError> {
        self.take_over_or_wait(runs)
    }

    fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        let (mut runs, baselines) = self.read(|tx| {
            let rows = tx.query(query::LIST_RUNS, &[])?;
            let summary = |row: &postgres::Row| RunSummary {
                run: row.get(0),
                plan: row.get(1),
                started: row.get(2),
                partial: row.get(3),
                host: row.get(4),
                trials: u32::try_from(row.get::<_, i64>(5)).unwrap_or(u32::MAX),
                baselines: Vec::new(),
            };
            let runs: Vec<_> = rows.iter().map(summary).collect();
            Ok((runs, baselines(tx)?))
        })?;
        // Sorted here: the collations of databases differ.
        runs.sort_by(|a, b| a.run.cmp(&b.run));
        crate::store::name(&mut runs, baselines);
        Ok(runs)
    }

    fn load(&self, which: &str) -> Result<Run, StoreError> {
        let (id, found) = self.read(|tx| {
            let id = names(tx)?.resolve(which, &self.location)?;
            let found = stored(tx, &id)?;
            Ok((id, found))
        })?;
        let found = found.ok_or_else(|| crate::store::no_such_run(which))?;
        run(&id, &found)
    }

    fn runs_after(&self, after: &str, trials: usize) -> Result<Vec<Run>, StoreError> {
        let page = self.read(|tx| {
            let headers = tx.query(query::HEADERS_AFTER, &[&after, &HEADERS])?;
            let mut page: Vec<(String, Stored)> = Vec::new();
            let mut found = 0;
            for id in headers.iter().map(|row| row.get::<_, String>(0)) {
                let Some(stored) = stored(tx, &id)? else {
                    continue;
                };
                found += stored.1.len();
                page.push((id, stored));
                if found >= trials {
                    break;
                }
            }
            Ok(page)
        })?;
        page.iter().map(|(id, stored)| run(id, stored)).collect()
    }

    fn delete(&self, which: &str) -> Result<String, StoreError> {
        self.transact(Mode::Write, PATIENCE, |tx| {
            let run = names(tx)?.removable(which, &self.location)?;
            tx.execute(query::DELETE_RUN, &[&run])?;
            Ok(run)
        })
    }

    fn baselines(&self) -> Result<BTreeMap<String, String>, StoreError> {
        self.read(baselines)
    }

    fn set_baseline(&self, name: &str, which: &str) -> Result<String, StoreError> {
        self.transact(Mode::Write, PATIENCE, |tx| {
            let run = names(tx)?.baseline(name, which, &self.location)?;
            tx.execute(query::SET_BASELINE, &[&name, &run])?;
            Ok(run)
        })
    }

    fn remove_baseline(&self, name: &str) -> Result<(), StoreError> {
        self.transact(Mode::Write, PATIENCE, |tx| {
            match tx.execute(query::REMOVE_BASELINE, &[&name])? {
                0 => Err(StoreError::NoSuchBaseline {
                    name: name.to_owned(),
                }
                .into()),
                _ => Ok(()),
            }
        })
    }

    fn stored_shard(&self, shard: &Shard) -> Result<Option<String>, StoreError> {
        self.read(|tx| {
            let known = tx.query_opt(query::EXPERIMENT, &[&shard.experiment])?;
            let cut = (shard.fingerprint.as_str(), i64::from(shard.of));
            if known.is_some_and(|known| (known.get(0), known.get(1)) != cut) {
                let experiment = shard.experiment.clone();
                return Err(StoreError::OtherExperiment { experiment }.into());
            }
            let index = i64::from(shard.index);
            let run = tx.query_opt(query::SHARD_IS, &[&shard.experiment, &index])?;
            Ok(run.map(|row| row.get(0)))
        })
    }

    fn progress(&self, name: &str) -> Result<Progress, StoreError> {
        self.read(|tx| {
            let Some(experiment) = tx.query_opt(query::EXPERIMENT, &[&name])? else {
                let name = name.to_owned();
                return Err(StoreError::NoSuchExperiment { name }.into());
            };
            let of = usize::try_from(experiment.get::<_, i64>(1)).unwrap_or_default();
            let mut shards = vec![ShardState::default(); of];
            let place = |shard: i64| usize::try_from(shard - 1).unwrap_or(usize::MAX);
            for row in tx.query(query::SHARDS, &[&name])? {
                if let Some(state) = shards.get_mut(place(row.get(0))) {
                    state.run = Some(row.get(1));
                }
            }
            for row in tx.query(query::ATTEMPTS, &[&name])? {
                if let Some(state) = shards.get_mut(place(row.get(0))) {
                    state.attempts = u32::try_from(row.get::<_, i64>(1)).unwrap_or(u32::MAX);
                }
            }
            Ok(Progress {
                experiment: name.to_owned(),
                shards,
            })
        })
    }

    fn dropped_attempts(&self) -> Result<Vec<String>, StoreError> {
        self.read(|tx| {
            let rows = tx.query(query::DROPPED_ATTEMPTS, &[])?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }
}
