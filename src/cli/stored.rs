//! `cryptmark list` and `cryptmark show`: stored runs.

use super::{Failure, absent, open_store, open_store_of_runs, print, style};
use clap::Args;
use std::fmt::Write as _;

/// Options of `cryptmark show`.
#[derive(Debug, Args)]
pub struct ShowOptions {
    /// A run's id or its beginning, a baseline, or `latest`
    #[arg(default_value = "latest")]
    id: String,
    /// Print the record as JSON
    #[arg(long)]
    json: bool,
}

/// Lists the stored runs, the newest first.
pub fn list(store: Option<&str>) -> Result<(), Failure> {
    const NONE: &str = "No runs are stored yet: `cryptmark run` measures.\n";
    if let Some(path) = absent(store)? {
        return print(&format!("{} does not exist. {NONE}", path.display()));
    }
    let runs = open_store(store)?.list()?;
    if runs.is_empty() {
        return print(NONE);
    }
    let mut text = String::new();
    for run in runs {
        let mut remarks = Vec::new();
        if run.partial {
            remarks.push("partial".to_owned());
        }
        remarks.extend(run.baselines.iter().map(|name| format!("baseline {name}")));
        let _ = writeln!(
            text,
            "{:<28}{:<16}{:<28}{:>4} cells  {}",
            run.run,
            run.plan,
            run.started,
            run.trials,
            remarks.join(", ")
        );
    }
    print(&text)
}

/// Prints a stored run as it was printed when it was measured.
pub fn show(options: &ShowOptions, store: Option<&str>) -> Result<(), Failure> {
    let run = open_store_of_runs(store)?.load(&options.id)?;
    if options.json {
        return print(
            &::report::json::render(std::slice::from_ref(&run)).map_err(Failure::unprintable)?,
        );
    }
    print(&::report::text::table(&run, &style()))
}
