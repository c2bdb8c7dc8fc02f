//! `cryptmark drive`: drives that are not here, simulated.

mod fit;
pub mod lifetime;
mod predict;
mod run;
pub mod sweep;
mod trace;

use super::report::put;
use super::whole::Kind;
use super::{Failure, print};
use ::drive::DriveError;
use ::drive::preset::Preset;
use clap::{Args, Subcommand};
use lab::experiment::{NoShare, Share};
use lab::system::simulated::{preset, toml};
use serde::Serialize;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options of `cryptmark drive`.
#[derive(Debug, Args)]
pub struct DriveOptions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the built-in drives
    List,
    /// Print a drive's TOML with the source of each number, to copy and edit
    Show {
        /// The drive's name, or a file that ends in .toml, which is checked
        name: String,
    },
    /// Write to a simulated SSD, and count what it writes to its flash
    Run(run::RunOptions),
    /// Predict what a plan would measure on a drive, plain and encrypted
    Predict(predict::PredictOptions),
    /// Convert a trace to another program's format
    Trace(trace::TraceOptions),
    /// Simulate how encryption and its TRIM policy wear an SSD over the years
    Lifetime(lifetime::LifetimeOptions),
    /// Simulate the wear of many SSDs: drives × over-provisioning × cleaning × fills × TRIM policies × ciphers × seeds
    Sweep(sweep::SweepOptions),
    /// Measure a disk of this machine for half a minute, and fit a simulated drive to it
    Fit(fit::FitOptions),
}

/// Runs the command.
pub fn run(options: &DriveOptions, store: Option<&str>) -> Result<(), Failure> {
    match &options.action {
        Action::List => list(),
        Action::Show { name } => show(name),
        Action::Run(options) => run::run(options),
        Action::Predict(options) => predict::run(options),
        Action::Trace(options) => trace::run(options),
        Action::Lifetime(options) => lifetime::run(options),
        Action::Sweep(options) => sweep::run(options, store),
        Action::Fit(options) => fit::run(options),
    }
}

fn list() -> Result<(), Failure> {
    let mut text = format!(
        "{:<18}a bare translation layer without timing, for `drive run` only\n",
        run::UNIFORM
    );
    for name in Preset::names() {
        let _ = writeln!(text, "{name:<18}{}", Preset::named(name)?.title());
    }
    text.push_str("\n`cryptmark drive show NAME` prints one with its sources, to copy and edit.\n");
    print(&text)
}

fn show(name: &str) -> Result<(), Failure> {
    preset(name)?;
    print(&toml(name)?)
}

impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        Self::of(2, &error, error.remedy())
    }
}

/// Whether a simulation goes on after what it was just told.
fn go_on(stop: &AtomicBool) -> ControlFlow<()> {
    match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// Writes what came of a simulation as JSON; `-` is standard output.
fn put_json(path: &Path, kind: Kind, record: &impl Serialize) -> Result<(), Failure> {
    let mut json = serde_json::to_string_pretty(record).map_err(Failure::unprintable)?;
    json.push('\n');
    put(path, kind, &json)
}

/// A share, `11.1%` or `0.111`.
fn share(text: &str) -> Result<f64, NoShare> {
    text.parse().map(|Share(share)| share)
}
