//! `cryptmark store`: where runs are kept.

use super::{Failure, open_store_or_wait, print, told, waiting};
use clap::{Args, Subcommand};
#[cfg(feature = "postgres")]
use lab::store::schema;
use lab::store::{Location, Settings, Store};

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
    /// Change the version of a server's tables: down for an older cryptmark; a newer one raises it itself
    #[cfg(feature = "postgres")]
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
        #[cfg(feature = "postgres")]
        Some(Action::Migrate { to }) => migrate(to.unwrap_or(schema::VERSION), store),
    }
}

fn status(location: Option<&str>) -> Result<(), Failure> {
    let store = open_store_or_wait(location)?;
    let mut text = format!("{}\n", store.location());
    match store.absence() {
        Some(reason) => text.push_str(&format!("not reachable: {reason}\n")),
        None => text.push_str(&format!(
            "{} run(s){}\n",
            store.list()?.len(),
            version(&store)
        )),
    }
    if let Some(waiting) = waiting(&store)? {
        text.push_str(&format!("{waiting}\n"));
    }
    print(&text)
}

/// The version of a server's tables, for people.
fn version(store: &Store) -> String {
    match store.location() {
        Location::Folder(_) => String::new(),
        #[cfg(feature = "postgres")]
        Location::Postgres(_) => format!(", store version {}", schema::VERSION),
        #[cfg(not(feature = "postgres"))]
        Location::Postgres(_) => String::new(),
    }
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

#[cfg(feature = "postgres")]
fn migrate(to: i64, location: Option<&str>) -> Result<(), Failure> {
    let settings = Settings::load(location)?;
    let from = Store::migrate(&settings.location, to)?;
    print(&match from {
        from if from == to => format!("The store has version {to} already.\n"),
        0 => format!("The store is new, and has version {to}.\n"),
        from => format!("The store had version {from}, and has version {to} now.\n"),
    })
}
