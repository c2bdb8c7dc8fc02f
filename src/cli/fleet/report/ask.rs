//! The report's trials, and what is made of them.

use super::ReportOptions;
use crate::cli::progress::Progress;
use crate::cli::report::put;
use crate::cli::whole::Kind;
use crate::cli::{Failure, export, open_store, print};
use fleet::Storage;
use std::path::Path;

/// Runs the command.
pub fn run(options: &ReportOptions, store: Option<&str>) -> Result<(), Failure> {
    let parquet = options.from.as_deref().filter(|from| is_parquet(from));
    let report = match parquet {
        Some(place) => asked(&Storage::open(place)?, options.no_progress)?,
        None => of_store(options, store)?,
    };
    if let Some(path) = &options.html {
        put(path, Kind::Html, &::report::html::fleet(&report))?;
    }
    if options.json {
        let json = serde_json::to_string_pretty(&report).map_err(Failure::unprintable)?;
        return print(&format!("{json}\n"));
    }
    print(&::report::fleet::text(&report, &crate::cli::style()))
}

/// Whether the user named a place of Parquet files, and not a store.
fn is_parquet(from: &str) -> bool {
    let postgres = ["postgres://", "postgresql://"];
    let is_server = postgres.iter().any(|scheme| from.starts_with(scheme));
    let path = Path::new(from);
    !is_server && (fleet::is_url(from) || !path.is_file() && !lab::store::is_store(path))
}

/// A store's records are text, and a query would read all of them each time. So they are written as
/// Parquet first, to temporary files.
fn of_store(
    options: &ReportOptions,
    store: Option<&str>,
) -> Result<::report::fleet::FleetReport, Failure> {
    let store = open_store(options.from.as_deref().or(store))?;
    let folder = tempfile::tempdir().map_err(|error| {
        Failure::new(
            1,
            format!("cannot make a folder for temporary files: {error}"),
            "Check its free space, or name another one as TMPDIR.",
        )
    })?;
    let create = || Storage::create(&folder.path().to_string_lossy());
    export::all(&store, create, options.no_progress)?;
    let storage = Storage::open(&folder.path().to_string_lossy())?;
    let mut report = asked(&storage, options.no_progress)?;
    report.place = store.location().to_string();
    Ok(report)
}

fn asked(storage: &Storage, silent: bool) -> Result<::report::fleet::FleetReport, Failure> {
    let progress = (!silent).then(|| Progress::waiting("reading trials"));
    let report = fleet::report::of(storage);
    if let Some(progress) = progress {
        progress.finish();
    }
    Ok(report?)
}
