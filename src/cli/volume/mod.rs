//! `cryptmark volume`: encrypted volumes, opened and kept.

mod arguments;
mod copy;
mod info;
mod open;
mod secrets;

use super::Failure;
use clap::{Args, Subcommand};

/// Options of `cryptmark volume`.
#[derive(Debug, Args)]
pub struct VolumeOptions {
    #[command(subcommand)]
    command: VolumeCommand,
}

#[derive(Debug, Subcommand)]
enum VolumeCommand {
    /// Check that a volume opens, and say how its data is mapped
    Open(open::OpenOptions),
    /// Print what a volume's header says, without opening it
    Info(info::InfoOptions),
    /// Write the decrypted volume to a file, a device or a pipe
    Export(copy::ExportOptions),
    /// Write a file or a pipe into the volume, encrypted
    Import(copy::ImportOptions),
}

/// Runs the command.
pub fn run(options: &VolumeOptions) -> Result<(), Failure> {
    match &options.command {
        VolumeCommand::Open(options) => open::run(options),
        VolumeCommand::Info(options) => info::run(options),
        VolumeCommand::Export(options) => copy::export(options),
        VolumeCommand::Import(options) => copy::import(options),
    }
}
