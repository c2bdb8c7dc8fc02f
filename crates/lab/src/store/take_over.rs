//! Takes over complete runs, from a file or from a measurement before which nothing was stored.

use super::StoreError;
use super::folder::Folder;
use crate::record::Run;
use std::collections::BTreeMap;

/// The outcome of taking over a complete run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenOver {
    /// The run is stored now, and was not before.
    Stored,
    /// The run replaces a part of it that was stored.
    Completed,
    /// The store already has the run, or more of it.
    There,
    /// Another run is stored for its shard.
    Superseded {
        /// The run that is the shard.
        by: String,
    },
}

/// Decides the outcome of runs, one after the other, regardless of their shards. `find` returns the
/// run that is stored under an id.
///
/// # Errors
/// [`StoreError::RunExists`] if another run has the id.
pub(super) fn judge_all(
    runs: &[Run],
    find: impl Fn(&str) -> Result<Option<Run>, StoreError>,
) -> Result<Vec<TakenOver>, StoreError> {
    let mut taken: Vec<TakenOver> = Vec::with_capacity(runs.len());
    for (place, run) in runs.iter().enumerate() {
        let same =
            |earlier: &usize| runs[*earlier].run == run.run && taken[*earlier] != TakenOver::There;
        taken.push(match (0..place).rev().find(same) {
            Some(earlier) => judge(&runs[earlier], run)?,
            None => match find(&run.run)? {
                Some(stored) => judge(&stored, run)?,
                None => TakenOver::Stored,
            },
        });
    }
    Ok(taken)
}

/// Decides the outcome of `run`, if `stored` has the same id.
pub(super) fn judge(stored: &Run, run: &Run) -> Result<TakenOver, StoreError> {
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

/// Whether `run` has all trials and repetitions of `other`, another state of the same run.
fn has_all(run: &Run, other: &Run) -> bool {
    run.trials.len() >= other.trials.len()
        && run
            .trials
            .iter()
            .zip(&other.trials)
            .all(|(trial, other)| trial.repetitions >= other.repetitions)
}

impl Folder {
    pub(super) fn take_over_here(&self, runs: &[Run]) -> Result<Vec<TakenOver>, StoreError> {
        let turn = self.turn()?;
        let mut taken = judge_all(runs, |id| self.find(id))?;
        let mut experiments = BTreeMap::new();
        let mut shards = BTreeMap::new();
        let mut whole = Vec::new();
        for (run, what) in runs.iter().zip(&mut taken) {
            if *what == TakenOver::There {
                continue;
            }
            if let Some(shard) = &run.shard {
                let cut = (&shard.fingerprint, shard.of);
                if *experiments.entry(&shard.experiment).or_insert(cut) != cut {
                    let experiment = shard.experiment.clone();
                    return Err(StoreError::OtherExperiment { experiment });
                }
                let stored = match self.admit(shard, &run.run) {
                    Err(StoreError::ShardStored { run, .. }) => Some(run),
                    Err(error) => return Err(error),
                    Ok(()) => shards.get(&(&shard.experiment, shard.index)).cloned(),
                };
                match stored {
                    Some(by) if by != run.run => {
                        *what = TakenOver::Superseded { by };
                        continue;
                    }
                    None if !run.partial => {
                        shards.insert((&shard.experiment, shard.index), run.run.clone());
                    }
                    _ => {}
                }
            }
            whole.push(run);
        }
        self.put_all(&turn, &whole)?;
        for run in whole {
            if let Some(shard) = &run.shard {
                self.add_attempt(&turn, shard, &run.run)?;
                if !run.partial {
                    self.drop_attempts(&turn, shard)?;
                }
            }
        }
        Ok(taken)
    }
}
