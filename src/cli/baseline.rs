//! `cryptmark baseline`: name a stored run.

use super::{Failure, open_store, print};
use clap::{Args, Subcommand};
use std::fmt::Write as _;

/// Options of `cryptmark baseline`.
#[derive(Debug, Args)]
pub struct BaselineOptions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Give a run a name; a name that is in use moves to this run
    Set {
        /// The name
        name: String,
        /// The run: its id or the start of its id, another baseline, or `latest`
        #[arg(default_value = "latest")]
        id: String,
    },
    /// List the names
    List,
    /// Remove a name, but keep the run
    Rm {
        /// The name
        name: String,
    },
}

/// Runs the command.
pub fn run(options: &BaselineOptions, store: Option<&str>) -> Result<(), Failure> {
    let store = open_store(store)?;
    match &options.action {
        Action::Set { name, id } => {
            let run = store.set_baseline(name, id)?;
            print(&format!("baseline {name} is run {run}\n"))
        }
        Action::List => {
            let mut text = String::new();
            for (name, run) in store.baselines()? {
                let _ = writeln!(text, "{name:<24}{run}");
            }
            if text.is_empty() {
                text.push_str("No baselines are set: `cryptmark baseline set NAME` names a run.\n");
            }
            print(&text)
        }
        Action::Rm { name } => {
            store.remove_baseline(name)?;
            print(&format!(
                "baseline {name} is removed; its run stays stored\n"
            ))
        }
    }
}
