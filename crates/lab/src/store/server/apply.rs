//! How a server takes entries: in one transaction, and twice if need be.

use super::{Fault, Mode, Server, query};
use crate::record::Shard;
use crate::store::StoreError;
use crate::store::entry::{Entry, Header};
use postgres::{Row, Transaction};
use std::collections::BTreeMap;
use std::time::Duration;

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

impl Server {
    /// Takes entries of one run in one transaction. `again` if they may be stored
    /// already: they are then taken a second time, which changes nothing.
    pub(super) fn apply(
        &self,
        entries: &[Entry],
        again: bool,
        patience: Duration,
    ) -> Result<Applied, StoreError> {
        let superseded = self.apply_all(entries, again, patience)?;
        Ok(superseded.into_iter().next().unwrap_or(Applied::Stored))
    }

    /// The same with entries of any runs; those that are superseded.
    pub(super) fn apply_all(
        &self,
        entries: &[Entry],
        again: bool,
        patience: Duration,
    ) -> Result<Vec<Applied>, StoreError> {
        let mut tried = again;
        self.transact(Mode::Write, patience, |tx| {
            // A transaction whose answer got lost may have been done.
            let again = std::mem::replace(&mut tried, true);
            let mut superseded = Vec::new();
            // Nothing of it is kept any more.
            let mut dropped = None;
            for entry in entries {
                if dropped == Some(entry.run()) {
                    continue;
                }
                let applied = match entry {
                    Entry::Begin(header) => begin(tx, header, again)?,
                    Entry::Trials { run, trials } => put_trials(tx, run, trials)?,
                    Entry::Finish(header) => finish(tx, header)?,
                };
                if applied != Applied::Stored {
                    dropped = Some(entry.run());
                    superseded.push(applied);
                }
            }
            Ok(superseded)
        })
    }
}

fn text(row: &Row) -> String {
    row.get(0)
}

fn shard_is(tx: &mut Transaction<'_>, shard: &Shard) -> Result<Option<String>, Fault> {
    let index = i64::from(shard.index);
    let row = tx.query_opt(query::SHARD_IS, &[&shard.experiment, &index])?;
    Ok(row.as_ref().map(text))
}

fn superseded(attempt: &str, shard: &Shard, by: String) -> Applied {
    Applied::Superseded {
        attempt: attempt.to_owned(),
        experiment: shard.experiment.clone(),
        shard: shard.index.into(),
        by,
    }
}

fn begin(tx: &mut Transaction<'_>, header: &Header, again: bool) -> Result<Applied, Fault> {
    let run = &header.run;
    if let Some(shard) = &run.shard {
        let (index, of) = (i64::from(shard.index), i64::from(shard.of));
        tx.execute(
            query::ADD_EXPERIMENT,
            &[&shard.experiment, &shard.fingerprint, &of],
        )?;
        let known = tx.query_one(query::EXPERIMENT, &[&shard.experiment])?;
        if (known.get(0), known.get(1)) != (shard.fingerprint.as_str(), of) {
            let experiment = shard.experiment.clone();
            return Err(StoreError::OtherExperiment { experiment }.into());
        }
        if let Some(by) = shard_is(tx, shard)?.filter(|by| *by != run.run) {
            return Ok(superseded(&run.run, shard, by));
        }
        tx.execute(query::ADD_ATTEMPT, &[&run.run, &shard.experiment, &index])?;
    }
    let host = run.host.key();
    let added = tx.execute(
        query::ADD_RUN,
        &[
            &run.run,
            &run.plan,
            &run.started,
            &run.partial,
            &host,
            &header.json,
        ],
    )?;
    if added == 0 {
        let known: [&(dyn postgres::types::ToSql + Sync); 4] =
            [&run.run, &run.plan, &run.started, &host];
        if !again || tx.query_opt(query::SAME_RUN, &known)?.is_none() {
            let run = run.run.clone();
            return Err(StoreError::RunExists { run }.into());
        }
    }
    Ok(Applied::Stored)
}

fn put_trials(
    tx: &mut Transaction<'_>,
    run: &str,
    trials: &[(u32, String)],
) -> Result<Applied, Fault> {
    if tx.query_opt(query::RUN_IS, &[&run])?.is_none() {
        return gone(tx, run);
    }
    // A statement takes a position once.
    let trials: BTreeMap<_, _> = trials
        .iter()
        .map(|(at, record)| (i64::from(*at), record))
        .collect();
    let (positions, records): (Vec<_>, Vec<_>) = trials.into_iter().unzip();
    tx.execute(query::PUT_TRIALS, &[&run, &positions, &records])?;
    Ok(Applied::Stored)
}

fn finish(tx: &mut Transaction<'_>, header: &Header) -> Result<Applied, Fault> {
    let run = &header.run;
    if tx.query_opt(query::RUN_IS, &[&run.run])?.is_none() {
        return gone(tx, &run.run);
    }
    if let Some(shard) = run.shard.as_ref().filter(|_| !run.partial) {
        let index = i64::from(shard.index);
        // Who comes second waits here for the end of the first, and
        // must not hold his row meanwhile, which the first may drop.
        tx.execute(query::ADD_SHARD, &[&shard.experiment, &index, &run.run])?;
        let by = text(&tx.query_one(query::SHARD_IS, &[&shard.experiment, &index])?);
        tx.execute(
            query::DROP_OTHER_ATTEMPTS,
            &[&shard.experiment, &index, &by],
        )?;
        if by != run.run {
            return Ok(superseded(&run.run, shard, by));
        }
    }
    tx.execute(
        query::FINISH_RUN,
        &[
            &run.run,
            &run.plan,
            &run.started,
            &run.partial,
            &run.host.key(),
            &header.json,
        ],
    )?;
    Ok(Applied::Stored)
}

/// What became of a run that isn't there: another attempt at its shard may have dropped it.
fn gone(tx: &mut Transaction<'_>, run: &str) -> Result<Applied, Fault> {
    match tx.query_opt(query::SHARD_OF_ATTEMPT, &[&run])? {
        None => Err(crate::store::no_such_run(run).into()),
        Some(row) => Ok(Applied::Superseded {
            attempt: run.to_owned(),
            experiment: row.get(0),
            shard: row.get(1),
            by: row.get(2),
        }),
    }
}
