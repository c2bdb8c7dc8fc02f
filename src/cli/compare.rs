//! `cryptmark compare`: two stored runs, pair by pair.

use super::run::first_failure;
use super::{Failure, open_store_of_runs, print, style};
use ::report::compare::{self, Comparison, Normalise, Options, compare};
use clap::{Args, ValueEnum};
use lab::record::Run;

/// Options of `cryptmark compare`.
#[derive(Debug, Args)]
pub struct CompareOptions {
    /// The run to compare with: an id or its beginning, a baseline, or `latest`
    a: String,
    /// The run to compare
    b: String,
    /// Compare even if the machines or devices differ; the result says so
    #[arg(long)]
    across_machines: bool,
    /// Normalise rates before comparing: by the core clock, or by the plain rate of the same run
    #[arg(long, value_enum, value_name = "BY")]
    normalise: Option<By>,
    /// Exit with 5 if the whole interval of any cell shows B slower than A by more than this
    #[arg(long, value_name = "PCT", value_parser = percent)]
    fail_if_slower: Option<f64>,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// Cycles per byte, of bare ciphers
    Cycles,
    /// Share of the plain rate that encryption leaves
    Plain,
}

/// A percentage, with its sign or without.
pub fn percent(text: &str) -> Result<f64, std::num::ParseFloatError> {
    text.strip_suffix('%').unwrap_or(text).trim().parse()
}

/// Runs the command.
pub fn run(options: &CompareOptions, store: Option<&str>) -> Result<(), Failure> {
    let store = open_store_of_runs(store)?;
    let (a, b) = (store.load(&options.a)?, store.load(&options.b)?);
    let comparison = compare(
        &a,
        &b,
        &Options {
            across_machines: options.across_machines,
            normalise: options.normalise.map(|by| match by {
                By::Cycles => Normalise::Cycles,
                By::Plain => Normalise::Plain,
            }),
            slower_than: options.fail_if_slower,
        },
    )?;
    let shown = match options.json {
        true => compare::json(&comparison).map_err(Failure::unprintable),
        false => Ok(compare::text(&comparison, &style())),
    };
    first_failure([judge(&comparison), shown.and_then(|text| print(&text))])
}

/// Compares a run just measured with a baseline.
pub fn against(baseline: &Run, run: &Run, fail_if_slower: Option<f64>) -> Result<(), Failure> {
    let options = Options {
        slower_than: fail_if_slower,
        ..Options::default()
    };
    let comparison = compare(baseline, run, &options)?;
    let shown = print(&format!("\n{}", compare::text(&comparison, &style())));
    first_failure([judge(&comparison), shown])
}

/// Exit code 5 when a cell exceeds the threshold.
fn judge(comparison: &Comparison) -> Result<(), Failure> {
    let mut exceeding = comparison.exceeding();
    let Some(first) = exceeding.next() else {
        return Ok(());
    };
    Err(Failure::new(
        5,
        format!(
            "{} of {} compared cells are slower by more than {} %",
            exceeding.count() + 1,
            comparison.cells.len(),
            comparison.slower_than.unwrap_or_default()
        ),
        format!("The first is {} on {}.", first.key.title, first.key.label),
    ))
}
