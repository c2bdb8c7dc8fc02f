//! `cryptmark run PLAN --shard I/N`: a part of an experiment.

use super::{Destination, RunOptions, ShardError, ShardNumber, energy, measure};
use crate::cli::{Failure, print};
use lab::experiment::Changes;
use lab::record::Shard;
use lab::shard::FleetPlan;

/// Seed of a plan that is cut here, and by every other host: the same for all.
const SEED: u64 = 1;

/// Runs the command.
pub(super) fn run(options: &RunOptions, number: &str, store: Option<&str>) -> Result<(), Failure> {
    let number: ShardNumber = number.parse()?;
    let fleet = match FleetPlan::load(options.plan())? {
        Some(_) if options.seed.is_some() => {
            return Err(Failure::new(
                2,
                format!("{} contains its seed", options.plan()),
                "Omit --seed, or write the experiment anew: cryptmark fleet plan --seed.",
            ));
        }
        Some(fleet) => fleet,
        None => {
            let seed = options.seed.unwrap_or(SEED);
            FleetPlan::of_hosts(None, options.plan(), seed, number.of)?
        }
    };
    let part = fleet.shard(number)?;
    // The experiment takes the same as without shards; what would change it is refused already.
    let changes = Changes {
        energy: options.energy.clone(),
        backend: options.backend,
        seed: options.seed,
        at: options.at.clone(),
        overwrite: options.yes,
        ..Changes::default()
    };
    let experiment = part.experiment.changed(&changes)?;
    energy::check(options)?;
    if options.dry_run {
        return options.try_dry(&experiment, store);
    }
    options.check(&experiment)?;
    let mut destination = Destination::open(&options.output, store)?;
    // An unreachable store is asked again when there is something to store.
    if destination.store.absence().is_none()
        && let Some(run) = destination.store.stored_shard(&part.shard)?
    {
        return stored_already(&part.shard, &run);
    }
    destination.shard = Some(part.shard);
    measure(options, &experiment, part.seed, destination)
}

/// Says that there is nothing to do: another run is the shard.
pub(super) fn stored_already(shard: &Shard, run: &str) -> Result<(), Failure> {
    print(&format!(
        "Shard {}/{} of {} is stored already, as {run}\n",
        shard.index, shard.of, shard.experiment
    ))
}

/// An experiment in shards is not one run.
pub(super) fn refuse_whole(plan: &str) -> Result<(), Failure> {
    match FleetPlan::load(plan) {
        Ok(Some(fleet)) => Err(Failure::new(
            2,
            format!("{plan} has {} shards", fleet.shards()),
            format!("Name one: --shard 1/{}.", fleet.shards()),
        )),
        // A file that is not a plan either is reported by the code that reads it.
        Ok(None) | Err(ShardError::Plan(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
