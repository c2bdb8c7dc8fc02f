//! The commands by which one process of this program starts another to measure file systems. Users
//! do not type them.

use super::Failure;
use clap::Args;
use lab::file_system::agent;
use lab::system::engine_file;
use std::path::PathBuf;

/// Options of `cryptmark agent`.
#[derive(Debug, Args)]
pub struct AgentOptions {
    /// The job, as JSON
    job: PathBuf,
    /// A file that is there, for the events
    told: PathBuf,
}

/// Runs a job.
pub fn run(options: &AgentOptions) -> Result<(), Failure> {
    Ok(agent::agent(&options.job, &options.told)?)
}

/// Serves the engine as a file.
pub fn serve() -> Result<(), Failure> {
    engine_file::serve().map_err(|error| Failure::of(1, &error, error.remedy()))
}
