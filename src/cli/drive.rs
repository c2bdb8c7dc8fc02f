//! `cryptmark drive`: drives that are not here, simulated.

mod run;

use super::Failure;
use ::drive::DriveError;
use clap::{Args, Subcommand};

/// Options of `cryptmark drive`.
#[derive(Debug, Args)]
pub struct DriveOptions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write to a simulated drive, and count what it writes to its flash
    Run(run::RunOptions),
}

/// Runs the command.
pub fn run(options: &DriveOptions) -> Result<(), Failure> {
    match &options.action {
        Action::Run(options) => run::run(options),
    }
}

impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        Self::of(2, &error, error.remedy())
    }
}

/// A share, `11.1%` or `0.111`.
fn share(text: &str) -> Result<f64, String> {
    let (number, percent) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), true),
        None => (text, false),
    };
    let value: f64 = number
        .parse()
        .map_err(|_| format!("{text} is not a share; write 11.1% or 0.111"))?;
    match percent {
        _ if !value.is_finite() || value < 0.0 => Err(format!("{text} is not a share")),
        true => Ok(value / 100.0),
        false if value > 1.0 => Err(format!("{text} is more than all; did you mean {text}%?")),
        false => Ok(value),
    }
}
