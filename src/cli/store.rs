//! `cryptmark store`: where runs are kept.

use super::{Failure, open_store_or_wait, print, told, waiting};
use clap::{Args, Subcommand};
use lab::store::{Settings, Store, schema};

/// Options of `cryptmark store`.
#[derive(Debug, Args)]
pub struct StoreOptions {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say where runs are kept and what waits to be stored; the default
    Status,
    /// Have the store take what waits on this machine
    HandOver,
    /// Bring the tables to a version: up by itself when a newer cryptmark opens them, down for an older one
    Migrate {
        /// The version [default: the newest that this program knows]
        #[arg(long, value_name = "VERSION")]
        to: Option<i64>,
    },
}

/// Runs the command.
pub fn run(options: &StoreOptions, store: Option<&str>) -> Result<(), Failure> {
    match &options.action {
        None | Some(Action::Status) => status(store),
        Some(Action::HandOver) => hand_over(store),
        Some(Action::Migrate { to }) => migrate(to.unwrap_or(schema::VERSION), store),
    }
}

fn status(location: Option<&str>) -> Result<(), Failure> {
    let store = open_store_or_wait(location)?;
    let mut text = format!("{}\n", store.location());
    match store.absence() {
        Some(reason) => text.push_str(&format!("away: {reason}\n")),
        None => text.push_str(&format!(
            "{} run(s), store version {}\n",
            store.list()?.len(),
            schema::VERSION
        )),
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

fn migrate(to: i64, location: Option<&str>) -> Result<(), Failure> {
    let settings = Settings::load(location)?;
    let from = Store::migrate(&settings.location, to)?;
    print(&match from {
        from if from == to => format!("The store has version {to} already.\n"),
        0 => format!("The store is new, and has version {to}.\n"),
        from => format!("The store had version {from}, and has version {to} now.\n"),
    })
}
