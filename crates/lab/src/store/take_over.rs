//! Runs that come as a whole: from a file, or measured before anything was stored.

use super::entry::{Applied, Entry};
use super::transact::transact;
use super::{Store, StoreError, assemble, query};
use crate::record::Run;

/// What became of a run that came as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenOver {
    /// It is stored, and was not before.
    Stored,
    /// A part of it was stored, whose place it takes.
    Completed,
    /// The store has it already, or more of it.
    There,
    /// Another run is the shard that it was measured for.
    Superseded {
        /// The run that is the shard.
        by: String,
    },
}

impl Store {
    /// Stores runs from their beginning to their end: all of them or, on an error, none.
    /// Says of each what became of it; to do it again changes nothing.
    ///
    /// Refuses a run if another one is stored under its id, and what [`Store::begin`] and
    /// [`Store::put_trials`] refuse. What a server that is away cannot take waits, run by run.
    pub fn take_over(&self, runs: &[Run]) -> Result<Vec<TakenOver>, StoreError> {
        if self.absence().is_none() {
            match self.take_over_now(runs) {
                Err(StoreError::Unreachable { .. }) if self.waiting()?.is_some() => {}
                outcome => return outcome,
            }
        }
        for run in runs {
            for entry in Entry::whole(run)? {
                self.write(entry)?;
            }
        }
        Ok(vec![TakenOver::Stored; runs.len()])
    }

    fn take_over_now(&self, runs: &[Run]) -> Result<Vec<TakenOver>, StoreError> {
        let mut taken: Vec<TakenOver> = Vec::with_capacity(runs.len());
        let mut entries = Vec::new();
        for (place, run) in runs.iter().enumerate() {
            let same = |earlier: &usize| {
                runs[*earlier].run == run.run && taken[*earlier] != TakenOver::There
            };
            let what = match (0..place).rev().find(same) {
                Some(earlier) => judge(&runs[earlier], run)?,
                None => match self.find(&run.run)? {
                    Some(stored) => judge(&stored, run)?,
                    None => TakenOver::Stored,
                },
            };
            if what != TakenOver::There {
                entries.extend(Entry::whole(run)?);
            }
            taken.push(what);
        }
        for superseded in self.apply_all(&entries, true)? {
            let Applied::Superseded { attempt, by, .. } = superseded else {
                continue;
            };
            for (run, what) in runs.iter().zip(&mut taken) {
                if run.run == attempt {
                    *what = TakenOver::Superseded { by: by.clone() };
                }
            }
        }
        Ok(taken)
    }

    /// The run with exactly this id.
    fn find(&self, id: &str) -> Result<Option<Run>, StoreError> {
        let found = transact!(self, read, tx => {
            let header: Option<(String,)> = sqlx::query_as(query::HEADER)
                .bind(id)
                .fetch_optional(&mut *tx)
                .await?;
            let trials: Vec<(i64, String)> = sqlx::query_as(query::TRIALS)
                .bind(id)
                .fetch_all(&mut *tx)
                .await?;
            header.map(|(header,)| (header, trials))
        })?;
        found
            .map(|(header, trials)| assemble(id.to_owned(), &header, &trials))
            .transpose()
    }
}

/// What becomes of a run of which `stored` is there under the same id.
fn judge(stored: &Run, run: &Run) -> Result<TakenOver, StoreError> {
    if stored == run {
        return Ok(TakenOver::There);
    }
    let begun = |run: &Run| (run.plan.clone(), run.started.clone(), run.host.key());
    let is_same = begun(stored) == begun(run);
    match (is_same, stored.partial, run.partial) {
        (true, true, _) if has_all(run, stored) => Ok(TakenOver::Completed),
        // An older state of what is stored.
        (true, _, true) if has_all(stored, run) => Ok(TakenOver::There),
        _ => Err(StoreError::RunExists {
            run: run.run.clone(),
        }),
    }
}

/// Whether a state of a run has as much as another one of it.
fn has_all(run: &Run, other: &Run) -> bool {
    run.trials.len() >= other.trials.len()
        && run
            .trials
            .iter()
            .zip(&other.trials)
            .all(|(trial, other)| trial.repetitions >= other.repetitions)
}
