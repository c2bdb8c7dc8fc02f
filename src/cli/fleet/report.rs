//! `cryptmark fleet report`: what the trials of many hosts come to.

#[cfg(feature = "fleet-report")]
mod ask;

use crate::cli::Failure;
use clap::Args;
use std::path::PathBuf;

/// Options of `cryptmark fleet report`.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// An export by `cryptmark export`, as a folder or URL, or a store [default: the store]
    #[arg(value_name = "DIR|URL|STORE")]
    from: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Also write the report as an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

/// Runs the command.
#[cfg(feature = "fleet-report")]
pub fn run(options: &ReportOptions, store: Option<&str>) -> Result<(), Failure> {
    ask::run(options, store)
}

/// Says that it cannot be run.
#[cfg(not(feature = "fleet-report"))]
pub fn run(_: &ReportOptions, _: Option<&str>) -> Result<(), Failure> {
    Err(Failure::new(
        1,
        "this program was built without reports on fleets",
        "Build it with --features fleet-report, or query the output of `cryptmark export` with DuckDB.",
    ))
}
