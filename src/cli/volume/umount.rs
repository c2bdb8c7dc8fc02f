//! `cryptmark volume umount`: everything that mounting or serving has made, taken away again.

use super::disk::whole_name;
use crate::cli::Failure;
use ::serve::service::list;
use clap::Args;
use std::path::PathBuf;

/// Options of `cryptmark volume umount`.
#[derive(Debug, Args)]
pub struct UmountOptions {
    /// Where it is mounted or served, or the volume
    #[arg(value_name = "PLACE|IMAGE")]
    what: PathBuf,
}

/// Runs the command.
pub fn run(options: &UmountOptions) -> Result<(), Failure> {
    let what = &options.what;
    let path = whole_name(what).unwrap_or_else(|_| what.clone());
    let mut found = list()?;
    found.retain(|found| found.is_at(&path, what));
    if found.is_empty() {
        return Err(Failure::new(
            2,
            format!(
                "{} is neither mounted nor served by cryptmark",
                what.display()
            ),
            "List what is mounted or served: cryptmark volume status.",
        ));
    }
    let mut failed: Option<Failure> = None;
    let waits = |pid| {
        eprintln!(
            "note: waiting for the server (process {pid}): it stores what was written, or is stopped, \
             or another mount still has the place, such as a bind mount or a container's"
        );
    };
    for error in found.iter().filter_map(|found| found.end(&waits).err()) {
        // All are tried, and the last failure is the outcome.
        if let Some(before) = failed.replace(error.into()) {
            let _ = before.print();
        }
    }
    failed.map_or(Ok(()), Err)
}
