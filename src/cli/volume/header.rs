//! `cryptmark volume header`: saved, put back, mended, named.

mod restore;
mod save;

use super::arguments::VolumeArguments;
use super::backups;
use super::disk::Names;
use super::secrets::SecretArguments;
use crate::cli::Failure;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use volume::judge::Use;
use volume::operate::{
    self,
    backups::{Change, Otherwise},
};

/// Options of `cryptmark volume header`.
#[derive(Debug, Args)]
pub struct HeaderOptions {
    #[command(subcommand)]
    command: HeaderCommand,
}

#[derive(Debug, Subcommand)]
enum HeaderCommand {
    /// Copy the header and key slots to a file; keep it as secret as the volume
    Backup(BackupOptions),
    /// Restore the header and key slots from a file, and with them the passphrases of that time
    Restore(Box<RestoreOptions>),
    /// List the automatic backups that commands make before they change a header
    Backups(BackupsOptions),
    /// Repair a damaged header from its other copy, or from the remains of both
    Repair(Box<RepairOptions>),
    /// Change the label, subsystem label or UUID
    Set(SetOptions),
}

#[derive(Debug, Args)]
struct BackupOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    /// The new file
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, Args)]
struct RestoreOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    /// The file that `header backup` made
    #[arg(long, short, value_name = "FILE")]
    input: PathBuf,
    /// What opens the header in the backup of a TrueCrypt or VeraCrypt volume
    #[command(flatten)]
    secret: SecretArguments,
    /// Restore it even if keys, key slots or another volume are lost
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct BackupsOptions {
    #[command(flatten)]
    volume: VolumeArguments,
}

#[derive(Debug, Args)]
struct RepairOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    /// What opens the volume: for LUKS2 the proof that a rebuilt header is right
    #[command(flatten)]
    secret: SecretArguments,
    /// The UUID of a rebuilt header, if that is lost [default: a random one]
    #[arg(long)]
    uuid: Option<String>,
    /// Overwrite other contents there, and write a header that nothing proves to be right
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct SetOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    /// Label of the volume; LUKS2 only
    #[arg(long)]
    label: Option<String>,
    /// Subsystem label of the volume; LUKS2 only
    #[arg(long)]
    subsystem: Option<String>,
    /// The new UUID; `random` makes one
    #[arg(long)]
    uuid: Option<String>,
}

impl HeaderOptions {
    /// The change that the command makes to headers, if it makes one.
    pub fn change(&self) -> Option<Change> {
        let change = |command, otherwise| Some(Change { command, otherwise });
        let start = |volume: &VolumeArguments| match volume.family() {
            Some(_) => Otherwise::Nothing,
            None => Otherwise::Start,
        };
        match &self.command {
            HeaderCommand::Backup(_) | HeaderCommand::Backups(_) => None,
            HeaderCommand::Restore(options) => change("restore", start(&options.volume)),
            HeaderCommand::Repair(options) => change("repair", start(&options.volume)),
            HeaderCommand::Set(_) => change("set", Otherwise::Nothing),
        }
    }
}

/// Runs the command.
pub fn run(options: &HeaderOptions, names: &Names) -> Result<(), Failure> {
    match &options.command {
        HeaderCommand::Backup(options) => save::run(options, names),
        HeaderCommand::Restore(options) => restore::restore(options, names),
        HeaderCommand::Backups(options) => backups::list(&options.volume.with(names)),
        HeaderCommand::Repair(options) => restore::repair(options, names),
        HeaderCommand::Set(options) => set(options, names),
    }
}

fn set(options: &SetOptions, names: &Names) -> Result<(), Failure> {
    if options.label.is_none() && options.subsystem.is_none() && options.uuid.is_none() {
        return Err(Failure::new(
            2,
            "no field to set is given",
            "Give --label, --subsystem or --uuid.",
        ));
    }
    let volume = options.volume.with(names);
    let devices = volume.devices(Use::ChangeHeader)?;
    let format = volume.format(devices.header())?;
    let uuid = options.uuid.as_deref().map(|uuid| match uuid {
        "random" => None,
        uuid => Some(uuid),
    });
    let labels = (options.label.as_deref(), options.subsystem.as_deref());
    let set = operate::set_names(&devices.place(), format, labels, uuid);
    set.map_err(|error| volume.at(error))
}
