//! `cryptmark drive sweep`: lives of many SSDs.

use crate::cli::progress::Progress;
use crate::cli::run::{Destination, Output};
use crate::cli::{Failure, VERSION, print, stop_on_signal};
use clap::Args;
use lab::experiment::{Experiment, Lives};
use lab::run::new_id;
use lab::session::Session;
use lab::store::Store;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

/// Lives from which on it is said how long they take, before they begin.
const MANY: u64 = 100;

/// Options of `cryptmark drive sweep`.
#[derive(Debug, Args)]
pub struct SweepOptions {
    /// The specification, a TOML file
    #[arg(value_name = "SPEC.toml")]
    specification: String,
    /// The first seed; the same seed gives the same results
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..1 << 62))]
    seed: u64,
    /// Resume the newest interrupted run of this specification
    #[arg(long)]
    resume: bool,
    /// Print what would be simulated and how long that takes, but simulate nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub fn run(options: &SweepOptions, store: Option<&str>) -> Result<(), Failure> {
    let name = &options.specification;
    let experiment = Experiment::load(name)?;
    let Experiment::Lives(lives) = &experiment else {
        return Err(Failure::new(
            2,
            format!("{name} isn't a sweep: it has no devices"),
            format!("Write `devices`, or run it as a plan: cryptmark run {name}."),
        ));
    };
    let session = Session::of_lives(lives, cores(), options.seed, new_id())?;
    if options.dry_run {
        let mut text = experiment.describe(Path::new(""));
        let time = estimate(lives, &session, options.output.no_progress)?;
        let _ = writeln!(text, "about {} on {} cores", told(time), cores());
        return print(&text);
    }
    let destination = Destination::open(&options.output, store)?;
    let session = session.built_as(VERSION);
    match options.resume {
        false => begin(session, lives, &options.output, destination),
        true => {
            let session = beginning(&destination.store, session, name)?;
            eprintln!(
                "resuming {}: {} of {} drives and settings are done",
                session.header().run,
                session.places_done(),
                lives.numbers().len()
            );
            go_on(session, lives, &options.output, destination)
        }
    }
}

/// Lives what one shard has.
pub fn measure(
    lives: &Lives,
    seed: u64,
    output: &Output,
    destination: Destination<'_>,
) -> Result<(), Failure> {
    let session = Session::of_lives(lives, cores(), seed, new_id())?.built_as(VERSION);
    begin(session, lives, output, destination)
}

fn begin(
    session: Session<'_>,
    lives: &Lives,
    output: &Output,
    destination: Destination<'_>,
) -> Result<(), Failure> {
    destination.begin(session.header())?;
    go_on(session, lives, output, destination)
}

fn go_on(
    session: Session<'_>,
    lives: &Lives,
    output: &Output,
    destination: Destination<'_>,
) -> Result<(), Failure> {
    if lives.lives() >= MANY {
        let time = estimate(lives, &session, output.no_progress)?;
        eprintln!(
            "{} lives, about {} on {} cores; `cryptmark fleet plan` shares them among hosts, and --resume continues an interrupted run",
            lives.lives(),
            told(time),
            cores()
        );
    }
    let stop = stop_on_signal()?;
    let progress = Progress::new(output.no_progress, 0);
    destination.receive(&progress, |keeper| session.measure(&stop, keeper))
}

/// The newest interrupted run of the same specification, seed and program.
fn beginning<'a>(store: &Store, session: Session<'a>, name: &str) -> Result<Session<'a>, Failure> {
    let plan = session.header().plan.clone();
    let runs = store.list()?.into_iter().rev();
    for run in runs.filter(|run| run.partial && run.plan == plan) {
        let run = store.load(&run.run)?;
        if session.goes_on_with(&run) {
            return Ok(session.resumed(run));
        }
    }
    Err(Failure::new(
        2,
        format!("no interrupted run of {name} with this seed and version is stored"),
        "Omit --resume to begin anew. `cryptmark list` shows the stored runs.",
    ))
}

/// About how long all of it takes here, from the first place and seed that are missing.
fn estimate(lives: &Lives, session: &Session<'_>, no_progress: bool) -> Result<Duration, Failure> {
    let stop = stop_on_signal()?;
    let progress = Progress::steps(no_progress);
    progress.step("simulating one life to estimate the time", 0, 1);
    let start = Instant::now();
    let outcome = session.try_one(&stop);
    let time = start.elapsed();
    progress.finish();
    outcome?;
    let all = lives.numbers().len() - session.places_done();
    let tries = lives.lives() as f64 / lives.setups().len() as f64;
    let left = tries * all as f64 / lives.numbers().len().max(1) as f64;
    Ok(time.mul_f64(left / cores() as f64))
}

/// Cores that this process may use.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// A duration in the two units that suit.
fn told(time: Duration) -> String {
    let seconds = time.as_secs().max(1);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{minutes} min"),
        7200..172_800 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} days {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_in_units_that_suit() {
        let of = |seconds| told(Duration::from_secs(seconds));
        assert_eq!((of(0), of(119)), ("1 s".into(), "119 s".into()));
        assert_eq!((of(120), of(7199)), ("2 min".into(), "119 min".into()));
        assert_eq!(of(7200), "2 h 0 min");
        assert_eq!(of(1_000_000), "11 days 13 h");
    }
}
