//! `cryptmark run PLAN --shard I/N`: a part of an experiment.

use super::{Destination, RunOptions, ShardError, ShardNumber, describe, measure};
use super::{file_systems, kdf};
use crate::cli::drive::sweep;
use crate::cli::{Failure, print};
use lab::plan::Experiment;
use lab::record::Shard;
use lab::session::unlock::ROUNDS;
use lab::shard::FleetPlan;

/// Seed of a plan that is cut here, and by every other host: the same for all.
const SEED: u64 = 1;

/// Runs the command.
pub(super) fn run(options: &RunOptions, number: &str, store: Option<&str>) -> Result<(), Failure> {
    let number: ShardNumber = number.parse()?;
    let fleet = match FleetPlan::load(&options.plan)? {
        Some(_) if options.seed.is_some() => {
            return Err(Failure::new(
                2,
                format!("{} contains its seed", options.plan),
                "Omit --seed, or write the experiment anew: cryptmark fleet plan --seed.",
            ));
        }
        Some(fleet) => fleet,
        None => {
            let seed = options.seed.unwrap_or(SEED);
            FleetPlan::of_hosts(None, &options.plan, seed, number.of)?
        }
    };
    let part = fleet.shard(number)?;
    if options.dry_run {
        return print(&match &part.experiment {
            Experiment::Storage(plan) => describe(plan, &options.at),
            Experiment::FileSystems(plan) => file_systems::describe(plan, &options.at),
            Experiment::KeyDerivations => kdf::describe(ROUNDS),
            Experiment::Sweep(part) => sweep::describe(part),
        });
    }
    let mut destination = Destination::open(&options.output, store)?;
    // An unreachable store is asked again when there is something to store.
    if destination.store.absence().is_none()
        && let Some(run) = destination.store.stored_shard(&part.shard)?
    {
        return stored_already(&part.shard, &run);
    }
    destination.shard = Some(part.shard);
    let seed = part.seed;
    match &part.experiment {
        Experiment::Storage(plan) => measure(options, plan, seed, destination),
        Experiment::FileSystems(plan) => file_systems::measure(options, plan, seed, destination),
        Experiment::KeyDerivations => kdf::measure(options, ROUNDS, seed, destination),
        Experiment::Sweep(part) => sweep::measure(part, seed, &options.output, destination),
    }
}

/// Says that there is nothing to do: another run is the shard.
pub(super) fn stored_already(shard: &Shard, run: &str) -> Result<(), Failure> {
    print(&format!(
        "Shard {}/{} of {} is stored already, as {run}\n",
        shard.index, shard.of, shard.experiment
    ))
}

/// An experiment in shards is not one run.
pub(super) fn refuse_whole(options: &RunOptions) -> Result<(), Failure> {
    match FleetPlan::load(&options.plan) {
        Ok(Some(fleet)) => Err(Failure::new(
            2,
            format!("{} has {} shards", options.plan, fleet.shards()),
            format!("Name one: --shard 1/{}.", fleet.shards()),
        )),
        // A file that is not a plan either is reported by the code that reads it.
        Ok(None) | Err(ShardError::Plan(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
