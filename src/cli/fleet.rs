//! `cryptmark fleet`: an experiment that many hosts share.

#[cfg(feature = "fleet")]
mod manifest;
#[cfg(feature = "fleet")]
mod report;

use super::report::put;
use super::whole::Kind;
use super::{Failure, open_store, print};
use block::plain::word;
use clap::{ArgGroup, Args, Subcommand};
use lab::shard::{FleetPlan, Matrix};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Options of `cryptmark fleet`.
#[derive(Debug, Args)]
pub struct FleetOptions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Split an experiment into shards, each measured by `cryptmark run FILE --shard I/N`
    Plan(PlanOptions),
    /// Show which shards of an experiment are stored
    Status {
        /// The experiment's name
        name: String,
    },
    /// Write a Slurm script or a Kubernetes manifest that runs the shards
    #[cfg(feature = "fleet")]
    Manifest(Box<manifest::ManifestOptions>),
    /// Summarise the trials of many hosts: overhead by CPU, device, kernel and cipher, outliers, slower versions
    #[cfg(feature = "fleet")]
    Report(report::ReportOptions),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("cut").required(true).args(["hosts", "matrix"]))]
struct PlanOptions {
    /// A name from `cryptmark plans`, or a TOML file
    plan: String,
    /// Make one shard for each of N hosts: they share simulated drives, and each measures all of its real storage
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    hosts: Option<u32>,
    /// Make one shard and run for every combination: system=S, cipher=C, workload=W, seed=1..20; can be repeated
    #[arg(long, value_name = "AXIS=VALUE")]
    matrix: Vec<String>,
    /// Name of the experiment in the store [default: the plan's name]
    #[arg(long)]
    name: Option<String>,
    /// Seed of offsets and data, the same on every host
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(..1 << 63))]
    seed: u64,
    /// The file to write the experiment to; - is standard output
    #[arg(short, long, value_name = "FILE|-", default_value = "-")]
    output: PathBuf,
}

/// Runs the command.
pub fn run(options: &FleetOptions, store: Option<&str>) -> Result<(), Failure> {
    match &options.action {
        Action::Plan(options) => plan(options),
        Action::Status { name } => status(name, store),
        #[cfg(feature = "fleet")]
        Action::Manifest(options) => manifest::run(options),
        #[cfg(feature = "fleet")]
        Action::Report(options) => report::run(options, store),
    }
}

fn plan(options: &PlanOptions) -> Result<(), Failure> {
    let name = options.name.as_deref();
    let fleet = match options.hosts {
        Some(hosts) => FleetPlan::of_hosts(name, &options.plan, options.seed, hosts)?,
        None => {
            let mut matrix = Matrix::default();
            for value in &options.matrix {
                matrix.add(value)?;
            }
            FleetPlan::of_matrix(name, &options.plan, options.seed, matrix)?
        }
    };
    let shards = fleet.shards();
    put(&options.output, Kind::Other, &fleet.to_toml())?;
    if options.output == Path::new("-") {
        eprintln!("{} has {shards} shards", fleet.name());
        return Ok(());
    }
    let file = word(&options.output);
    print(&format!(
        "{} has {shards} shards: cryptmark run {file} --shard 1/{shards} measures the first\n",
        fleet.name()
    ))
}

fn status(name: &str, store: Option<&str>) -> Result<(), Failure> {
    let progress = open_store(store)?.progress(name)?;
    let of = progress.shards.len();
    let missing: Vec<usize> = (1..=of)
        .filter(|index| progress.shards[index - 1].run.is_none())
        .collect();
    let repeated = progress.shards.iter().filter(|shard| shard.attempts > 1);
    let mut text = format!("{name}: {} of {of} shards are stored", of - missing.len());
    let _ = match repeated.count() {
        0 => writeln!(text),
        times => writeln!(text, "; {times} were begun more than once"),
    };
    if !missing.is_empty() {
        let _ = writeln!(text, "missing: {}", ranges(&missing));
    }
    for (index, shard) in (1..).zip(&progress.shards) {
        if let Some(run) = &shard.run {
            let _ = writeln!(text, "{index:>7}/{of}  {run}");
        }
    }
    print(&text)
}

/// Numbers as Slurm's --array takes them, `1,3-5`.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let words: Vec<String> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            several => format!("{}-{}", several[0], several[several.len() - 1]),
        })
        .collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    #[test]
    fn missing_shards_are_named_as_slurm_takes_them() {
        assert_eq!(super::ranges(&[1]), "1");
        assert_eq!(super::ranges(&[1, 3, 4, 5, 9]), "1,3-5,9");
    }
}
