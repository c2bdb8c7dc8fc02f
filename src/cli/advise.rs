//! `cryptmark advise`: the set-up to choose here, or what to expect of a machine
//! that is not here.

mod estimates;
mod here;

use super::Failure;
use clap::Args;
use lab::system::Backend;
use std::path::PathBuf;

/// Options of `cryptmark advise`.
#[derive(Debug, Args)]
pub struct AdviseOptions {
    #[command(flatten)]
    here: here::HereOptions,
    /// Instead estimate file system operations on the machine that this TOML file describes
    #[arg(
        long,
        value_name = "SPEC.toml",
        conflicts_with_all = ["at", "system", "cpu", "cores", "ciphers", "key_size", "sector_size", "kind", "yes"]
    )]
    target: Option<PathBuf>,
    /// Force a backend of the built-in engine, e.g. portable for a CPU without AES instructions
    #[arg(long, conflicts_with = "cpu", value_parser = super::run::backend)]
    backend: Option<Backend>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(options: &AdviseOptions, store: Option<&str>) -> Result<(), Failure> {
    super::pause::begin();
    match &options.target {
        Some(target) => estimates::run(target, options.backend, options.json, store),
        None => options.here.advise(options.backend, options.json, store),
    }
}
