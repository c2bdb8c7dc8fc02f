//! `cryptmark export`: stored trials for programs that analyse tables.

use super::progress::Progress;
use super::{Failure, open_store, print, stop_on_signal};
use clap::Args;
use fleet::export::{Export, Written};
use fleet::{FleetError, Storage};
use lab::store::{Store, StoreError};
use std::sync::atomic::Ordering;

/// Trials of the store that are in memory at the same time, about.
const PAGE: usize = 4096;

/// Options of `cryptmark export`.
#[derive(Debug, Args)]
pub struct ExportOptions {
    /// A folder, which is created, or s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH with credentials from the environment
    #[arg(long, required = true, value_name = "DIR|URL")]
    parquet: String,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let code = match &error {
            FleetError::NoPlace { .. } | FleetError::Setting { .. } | FleetError::Folder { .. } => {
                2
            }
            #[cfg(feature = "fleet-report")]
            FleetError::Empty { .. } | FleetError::Foreign { .. } | FleetError::Newer { .. } => 2,
            _ => 1,
        };
        Self::of(code, &error, error.remedy()).on_one_line()
    }
}

/// Runs the command.
pub fn run(options: &ExportOptions, store: Option<&str>) -> Result<(), Failure> {
    let store = open_store(store)?;
    let create = || Storage::create(&options.parquet);
    let written = all(&store, create, options.no_progress)?;
    let mut text = format!(
        "Exported {} trials of {} run(s): {:.1} MB\n",
        written.trials,
        written.runs,
        written.bytes as f64 / 1e6
    );
    if written.removed > 0 {
        text.push_str(&format!(
            "Removed {} file(s) of earlier attempts at shards that other runs replace\n",
            written.removed
        ));
    }
    print(&text)
}

/// Writes all runs of a store to a place, which is made once there is something for it.
pub fn all(
    store: &Store,
    create: impl FnOnce() -> Result<Storage, FleetError>,
    silent: bool,
) -> Result<Written, Failure> {
    let stop = stop_on_signal()?;
    let mut runs = store.runs_after("", PAGE)?;
    if runs.is_empty() {
        let location = store.location().clone();
        return Err(StoreError::Empty { location }.into());
    }
    let export = Export::to(create()?)?;
    let progress = Progress::trials(silent);
    let mut written = Written::default();
    while let Some(last) = runs.last() {
        let after = last.run.clone();
        written += export.write(&runs)?;
        progress.filled(written.trials);
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::new(
                130,
                format!("interrupted after {} runs", written.runs),
                "Run it again. It writes the finished files again as well.",
            ));
        }
        runs = store.runs_after(&after, PAGE)?;
    }
    // An attempt that was exported while it was under way would be counted beside its shard.
    let dropped = store.dropped_attempts()?;
    if !dropped.is_empty() {
        written.removed = export.remove(&dropped)?;
    }
    progress.finish();
    Ok(written)
}
