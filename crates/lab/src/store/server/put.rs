//! How a server takes whole runs: all of them in one transaction, and twice if need be.

use super::records::stored;
use super::{Fault, Mode, Server, query};
use crate::record::{Run, Shard};
use crate::store::entry::{Header, records};
use crate::store::take_over::{TakenOver, judge};
use crate::store::{StoreError, no_such_run};
use postgres::Transaction;
use std::time::Duration;

/// The part of a run that may be stored before it is put.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// No part, because the run begins.
    Nothing,
    /// An earlier state of the run, or all of it.
    Anything,
}

/// A run as the tables have it.
struct Rows<'a> {
    run: &'a Run,
    header: Header,
    positions: Vec<i64>,
    records: Vec<String>,
}

impl<'a> Rows<'a> {
    fn of(run: &'a Run) -> Result<Self, StoreError> {
        let (positions, records) = records(&run.run, (0..).zip(&run.trials))?
            .into_iter()
            .map(|(at, record)| (i64::from(at), record))
            .unzip();
        Ok(Self {
            run,
            header: Header::of(run, run.partial)?,
            positions,
            records,
        })
    }
}

impl Server {
    /// Stores runs, and says of each what became of it.
    ///
    /// # Errors
    /// [`StoreError::RunExists`], [`StoreError::OtherExperiment`], or why the server
    /// cannot be asked; nothing is stored then.
    pub(super) fn put(
        &self,
        runs: &[Run],
        before: Before,
        patience: Duration,
    ) -> Result<Vec<TakenOver>, StoreError> {
        let rows: Vec<Rows<'_>> = runs.iter().map(Rows::of).collect::<Result<_, _>>()?;
        let mut before = before;
        self.transact(Mode::Write, patience, |tx| {
            // A transaction whose answer got lost may have been done.
            let before = std::mem::replace(&mut before, Before::Anything);
            rows.iter().map(|rows| put(tx, rows, before)).collect()
        })
    }
}

fn put(tx: &mut Transaction<'_>, rows: &Rows<'_>, before: Before) -> Result<TakenOver, Fault> {
    let (id, host) = (&rows.run.run, rows.run.host.key());
    if let Some(shard) = &rows.run.shard
        && let Some(by) = attempt(tx, shard, id)?.filter(|by| by != id)
    {
        return Ok(TakenOver::Superseded { by });
    }
    let taken = match stored(tx, id)? {
        None => TakenOver::Stored,
        Some(_) if before == Before::Nothing => {
            return Err(StoreError::RunExists { run: id.clone() }.into());
        }
        Some(found) => judge(&super::records::run(id, &found)?, rows.run)?,
    };
    if taken == TakenOver::There {
        return Ok(taken);
    }
    let columns: [&(dyn postgres::types::ToSql + Sync); 6] = [
        id,
        &rows.run.plan,
        &rows.run.started,
        &rows.run.partial,
        &host,
        &rows.header.json,
    ];
    tx.execute(query::ADD_RUN, &columns)?;
    if let Some(shard) = rows.run.shard.as_ref().filter(|_| !rows.run.partial) {
        let index = i64::from(shard.index);
        // The second writer waits here for the first one's commit. It must not hold the row of its
        // run meanwhile, because the first writer may drop that row.
        tx.execute(query::ADD_SHARD, &[&shard.experiment, &index, id])?;
        let by = shard_is(tx, shard)?.ok_or_else(|| no_such_run(id))?;
        tx.execute(
            query::DROP_OTHER_ATTEMPTS,
            &[&shard.experiment, &index, &by],
        )?;
        if by != *id {
            return Ok(TakenOver::Superseded { by });
        }
    }
    tx.execute(query::REPLACE_RUN, &columns)?;
    tx.execute(query::PUT_TRIALS, &[id, &rows.positions, &rows.records])?;
    Ok(taken)
}

/// Notes that a run has begun a shard. Returns the run that is stored for the shard, if there is
/// one.
fn attempt(tx: &mut Transaction<'_>, shard: &Shard, run: &str) -> Result<Option<String>, Fault> {
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
    let by = shard_is(tx, shard)?;
    if by.is_none() {
        tx.execute(query::ADD_ATTEMPT, &[&run, &shard.experiment, &index])?;
    }
    Ok(by)
}

fn shard_is(tx: &mut Transaction<'_>, shard: &Shard) -> Result<Option<String>, Fault> {
    let index = i64::from(shard.index);
    let row = tx.query_opt(query::SHARD_IS, &[&shard.experiment, &index])?;
    Ok(row.map(|row| row.get(0)))
}
