//! `cryptmark plans`: the experiments that ship.

use super::{Failure, print};
use clap::{Args, Subcommand};
use lab::experiment;
use std::fmt::Write as _;

/// Options of `cryptmark plans`.
#[derive(Debug, Args)]
pub struct PlansOptions {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print a plan's TOML, to copy and edit
    Show {
        /// Name of the plan
        name: String,
    },
}

/// Runs the command.
pub fn run(options: &PlansOptions) -> Result<(), Failure> {
    if let Some(Action::Show { name }) = &options.action {
        return print(experiment::toml(name)?);
    }
    let mut text = String::new();
    for (name, title) in experiment::shipped() {
        let _ = writeln!(text, "{name:<22}{title}");
    }
    let others = experiment::other_names().iter();
    let others: Vec<_> = others
        .map(|(other, name)| format!("{other} for {name}"))
        .collect();
    let _ = writeln!(text, "\nOther names: {}.", others.join(", "));
    text.push_str(
        "Run one with `cryptmark run NAME`; `cryptmark plans show NAME` prints it to copy and edit.\n",
    );
    print(&text)
}
