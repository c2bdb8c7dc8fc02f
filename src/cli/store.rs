//! `cryptmark store`: where runs are kept.

use super::{Failure, open_store_or_wait, print, told, waiting};
use clap::{Args, Subcommand};
use lab::store::{Settings, Store};

/// Options of `cryptmark store`.
#[derive(Debug, Args)]
pub struct StoreOptions {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show where runs are kept and what waits to be stored; the default
    Status,
    /// Move the runs that wait on this machine to the store
    HandOver,
}

/// Runs the command.
pub fn run(options: &StoreOptions, store: Option<&str>) -> Result<(), Failure> {
    match &options.action {
        None | Some(Action::Status) => status(store),
        Some(Action::HandOver) => hand_over(store),
    }
}

fn status(location: Option<&str>) -> Result<(), Failure> {
    let store = open_store_or_wait(location)?;
    let mut text = format!("{}\n", store.location());
    match store.absence() {
        Some(reason) => text.push_str(&format!("not reachable: {reason}\n")),
        None => text.push_str(&format!("{} run(s)\n", store.list()?.len())),
    }
    if let Some(waiting) = waiting(&store)? {
        text.push_str(&format!("{waiting}\n"));
    }
    print(&text)
}

fn hand_over(location: Option<&str>) -> Result<(), Failure> {
    let settings = Settings::load(location)?;
    let store = Store::open_to_write(&settings.location, &settings.spool)?;
    let handed = store.hand_over(None)?;
    let text = match told(&handed) {
        nothing if nothing.is_empty() => "Nothing waits to be stored.\n".to_owned(),
        text => text,
    };
    print(&text)?;
    match handed.refused.is_empty() {
        true => Ok(()),
        false => Err(Failure::told(1)),
    }
}
