//! `cryptmark volume`: encrypted volumes, opened and kept.

mod arguments;
mod backups;
mod convert;
mod copy;
mod create;
mod create_tcrypt;
pub mod disk;
mod find;
mod header;
mod info;
mod keys;
mod keyslot;
pub mod losses;
mod open;
mod protection;
mod recall;
pub mod recognise;
mod reencrypt;
mod resize;
mod secret_files;
mod secrets;
mod typed;

#[cfg(target_os = "linux")]
mod mount;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
pub mod service;
#[cfg(target_os = "linux")]
mod status;
#[cfg(target_os = "linux")]
mod trim_check;
#[cfg(target_os = "linux")]
mod umount;

#[cfg(not(target_os = "linux"))]
use super::elsewhere::{mount, serve, status, trim_check, umount};

use super::Failure;
use clap::{ArgMatches, Args, Subcommand};
use disk::Names;
use std::path::{Path, PathBuf};
use volume::operate::backups::{Change, Otherwise};

/// Options of `cryptmark volume`.
#[derive(Debug, Args)]
pub struct VolumeOptions {
    /// Do not keep a copy of the header in the user's state folder before it is changed
    #[arg(
        long,
        global = true,
        help_heading = "For every command that changes a header"
    )]
    no_header_backup: bool,
    /// Work on a part of the disk or image: the number or name of a partition, or a part that `volume find` lists
    #[arg(long, value_name = "N|LABEL", global = true)]
    partition: Option<String>,
    #[command(subcommand)]
    command: VolumeCommand,
}

#[derive(Debug, Subcommand)]
enum VolumeCommand {
    /// Create an encrypted volume in a file or on a device
    Create(Box<create::CreateOptions>),
    /// Check that a volume opens, and say how its data is mapped
    Open(open::OpenOptions),
    /// List the parts of a disk or its image, and which of them hold volumes
    Find(find::FindOptions),
    /// Recover a passphrase that you still know in part
    ///
    /// Tries variants of the given passphrase on one volume: other line ends, other forms of
    /// Unicode, typing errors, another keyboard, a range of PIMs, or unknown characters. Every
    /// attempt costs one key derivation of the volume, so this isn't a cracker. The volume is only
    /// read.
    Recall(Box<recall::RecallOptions>),
    /// Print what a volume's header says, without opening it
    Info(info::InfoOptions),
    /// Change a passphrase
    Passwd(Box<keys::PasswdOptions>),
    /// Add or remove a passphrase
    Key(Box<keys::KeyOptions>),
    /// Change cipher, sector size or volume key in place; encrypt or decrypt in place
    Reencrypt(Box<reencrypt::ReencryptOptions>),
    /// Convert a volume between LUKS1 and LUKS2 in place
    Convert(convert::ConvertOptions),
    /// Make a volume in a file larger or smaller
    Resize(resize::ResizeOptions),
    /// Back up, restore, repair or label a header
    Header(header::HeaderOptions),
    /// Write the decrypted volume to a file, a device or a pipe
    Export(copy::ExportOptions),
    /// Serve the opened volume to other programs as a disk or a file
    Serve(Box<serve::ServeOptions>),
    /// Write a file or a pipe into the volume, encrypted
    Import(copy::ImportOptions),
    /// Mount a volume: its file system, or its plaintext as a file
    Mount(Box<mount::MountOptions>),
    /// Unmount a volume, also after its server was killed
    Umount(umount::UmountOptions),
    /// List the volumes that are served or mounted
    Status(status::StatusOptions),
    /// Check which layers discards reach, and what they reveal
    TrimCheck(trim_check::TrimCheckOptions),
}

/// Runs the command; `arguments` are those of the whole program.
pub fn run(options: &VolumeOptions, arguments: &ArgMatches) -> Result<(), Failure> {
    let chosen = match &options.partition {
        Some(partition) => Some((image(arguments)?.to_owned(), partition.clone())),
        None => None,
    };
    let change = options.command.change();
    let names = &Names {
        chosen,
        backups: backups::before(change.filter(|_| !options.no_header_backup)),
        ..Names::default()
    };
    secret_files::check(arguments, names)?;
    let outcome = match &options.command {
        VolumeCommand::Create(options) => create::run(options, names),
        VolumeCommand::Passwd(options) => keys::passwd(options, names),
        VolumeCommand::Key(options) => keys::key(options, names),
        VolumeCommand::Reencrypt(options) => reencrypt::run(options, names),
        VolumeCommand::Convert(options) => convert::run(options, names),
        VolumeCommand::Resize(options) => resize::run(options, names),
        VolumeCommand::Header(options) => header::run(options, names),
        VolumeCommand::Open(options) => open::run(options, names),
        VolumeCommand::Find(options) => find::run(options, names),
        VolumeCommand::Recall(options) => recall::run(options, names),
        VolumeCommand::Info(options) => info::run(options, names),
        VolumeCommand::Export(options) => copy::export(options, names),
        VolumeCommand::Serve(options) => serve::run(options, names),
        VolumeCommand::Import(options) => copy::import(options, names),
        VolumeCommand::Mount(options) => mount::run(options, names),
        VolumeCommand::Umount(options) => umount::run(options),
        VolumeCommand::TrimCheck(options) => trim_check::run(options),
        VolumeCommand::Status(options) => status::run(options),
    };
    if outcome.is_ok() {
        names.backups.end();
    }
    outcome
}

/// The image that a command works on.
fn image(arguments: &ArgMatches) -> Result<&Path, Failure> {
    let mut here = arguments;
    while let Some((_, inner)) = here.subcommand() {
        here = inner;
    }
    match here.try_get_one::<PathBuf>("image") {
        Ok(Some(image)) => Ok(image),
        _ => Err(Failure::new(
            2,
            "this command does not work on an image, so --partition does not apply",
            "Omit --partition.",
        )),
    }
}

impl VolumeCommand {
    /// The change that it makes to headers, if it makes one.
    fn change(&self) -> Option<Change> {
        let luks = |command| Change {
            command,
            otherwise: Otherwise::Nothing,
        };
        match self {
            Self::Create(options) => Some(Change {
                otherwise: match options.family() {
                    Some(_) => Otherwise::Nothing,
                    None => Otherwise::Ends,
                },
                ..luks("create")
            }),
            Self::Passwd(_) => Some(luks("passwd")),
            Self::Key(options) => Some(luks(options.name())),
            Self::Reencrypt(_) => Some(luks("reencrypt")),
            Self::Convert(_) => Some(luks("convert")),
            Self::Resize(_) => Some(luks("resize")),
            Self::Header(options) => options.change(),
            // A mapping without a header may be laid over one.
            Self::Import(options) if options.is_headless() => Some(Change {
                otherwise: Otherwise::Ends,
                ..luks("import")
            }),
            Self::Open(_)
            | Self::Find(_)
            | Self::Recall(_)
            | Self::Info(_)
            | Self::Export(_)
            | Self::Serve(_)
            | Self::Import(_)
            | Self::Mount(_)
            | Self::Umount(_)
            | Self::Status(_)
            | Self::TrimCheck(_) => None,
        }
    }
}
