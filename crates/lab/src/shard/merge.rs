//! [`merge`]: shards as one run.

use crate::record::Run;
use crate::stats::{self, Looks};

/// Merges the shards of an experiment into the run that one machine would have made. It is partial,
/// with a remark, if not all `of` shards are there. `None` if the shards are runs of their own, or
/// there are none.
pub fn merge(experiment: &str, of: usize, runs: Vec<Run>) -> Option<Run> {
    let found = runs.len();
    let mut portions = Vec::new();
    let mut merged: Option<Run> = None;
    for mut run in runs {
        let numbers = run.shard.take()?.portions;
        let each = run.trials.len().checked_div(numbers.len())?;
        if each * numbers.len() != run.trials.len() {
            return None;
        }
        let mut trials = std::mem::take(&mut run.trials).into_iter();
        for number in numbers {
            portions.push((number, trials.by_ref().take(each).collect::<Vec<_>>()));
        }
        match &mut merged {
            None => merged = Some(run),
            Some(merged) => {
                let begun = |run: &Run| run.started.parse::<jiff::Timestamp>().ok();
                if begun(&run) < begun(merged) {
                    merged.started = run.started;
                }
                for warning in run.warnings {
                    if !merged.warnings.contains(&warning) {
                        merged.warnings.push(warning);
                    }
                }
            }
        }
    }
    let mut merged = merged?;
    portions.sort_by_key(|(number, _)| *number);
    // Every portion begins and ends with the plain drive, but for those of a sweep: what they
    // differ by is the noise, as in a run of one machine.
    let pairs: Vec<f64> = portions
        .iter()
        .filter_map(|(_, trials)| trials.first().zip(trials.last()))
        .filter(|(first, _)| first.life().is_none())
        .flat_map(|(first, again)| again.samples_mb_s.iter().zip(&first.samples_mb_s))
        .map(|(again, first)| again / first)
        .collect();
    merged.noise = stats::noise(&pairs, Looks::Once);
    merged.run = experiment.to_owned();
    // It was a shard's own.
    merged.fingerprint = None;
    merged.trials = portions
        .into_iter()
        .flat_map(|(_, trials)| trials)
        .collect();
    merged.partial = found < of;
    if merged.partial {
        merged.warnings.push(format!(
            "{found} of {of} shards are stored: `cryptmark fleet status {experiment}` names the others"
        ));
    }
    Some(merged)
}
