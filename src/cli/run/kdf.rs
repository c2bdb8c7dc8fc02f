//! `cryptmark run kdf`: what unlocking a volume costs here, and what a guess
//! at its passphrase costs.

use super::{Destination, Failure, Progress, RunOptions, print, seed_of_now, stop_on_signal};
use crate::cli::{VERSION, pause};
use lab::run::new_id;
use lab::session::Session;
use lab::session::unlock::{self, ROUNDS};
use lab::target::unlock::{ITER_TIME_MS, RECIPES};
use std::fmt::Write as _;

/// Runs the command.
pub(super) fn run(options: &RunOptions, store: Option<&str>) -> Result<(), Failure> {
    options.refuse_what_is_no_derivations()?;
    let rounds = options.repeat.unwrap_or(ROUNDS);
    if rounds == 0 {
        return Err(Failure::new(
            2,
            "--repeat 0 measures nothing",
            "Give at least 1; an interval needs 3.",
        ));
    }
    if options.dry_run {
        return print(&describe(rounds));
    }
    pause::begin();
    let destination = Destination::open(&options.output, store)?;
    let seed = options.seed.unwrap_or_else(seed_of_now);
    measure(options, rounds, seed, destination)
}

/// Measures all derivations so often.
pub(super) fn measure(
    options: &RunOptions,
    rounds: u32,
    seed: u64,
    destination: Destination<'_>,
) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let progress = Progress::new(options.output.no_progress, 0);
    let plan = unlock::plan(RECIPES, rounds);
    let session = Session::of_derivations(&plan, RECIPES, seed, new_id())?.built_as(VERSION);
    destination.begin(session.header())?;
    destination.receive(&progress, |keeper| session.measure(&stop, keeper))
}

impl RunOptions {
    /// Options that choose among ciphers or storage would be ignored in
    /// silence.
    fn refuse_what_is_no_derivations(&self) -> Result<(), Failure> {
        let given = [
            ("--size", self.size.is_some()),
            ("--time", self.time.is_some()),
            ("--precision", self.precision.is_some()),
            ("--system", !self.systems.is_empty()),
            ("--cipher", !self.ciphers.is_empty()),
            ("--key-size", self.key_size.is_some()),
            ("--sector-size", !self.sector_sizes.is_empty()),
            ("--threads", !self.threads.is_empty()),
            ("--cores", self.cores.is_some()),
            ("--driver", self.driver.is_some()),
            ("--backend", self.backend.is_some()),
            ("--tier", self.tier.is_some()),
            ("--op", !self.commands.is_empty()),
            ("--jobs", self.jobs.is_some()),
            ("--energy", self.energy.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => Err(Failure::new(
                2,
                format!("{name} does not apply to key derivations"),
                "Omit it. `cryptmark run kdf` takes --repeat, --quick, --json, --html and --baseline.",
            )),
        }
    }
}

/// The output of `--dry-run`.
pub(super) fn describe(rounds: u32) -> String {
    let mut text = String::from(
        "plan kdf: what unlocking costs here, and what a guess costs\nin memory; no storage is touched\n",
    );
    for recipe in RECIPES {
        let _ = match recipe.is_calibrated() {
            true => writeln!(text, "  {}, calibrated to {ITER_TIME_MS} ms", recipe.name),
            false => writeln!(text, "  {}", recipe.name),
        };
    }
    let _ = writeln!(
        text,
        "each to unlock and to guess, {rounds} times: {} visits",
        rounds * (2 * RECIPES.len() as u32 + 1)
    );
    text
}
