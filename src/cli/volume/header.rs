//! `cryptmark volume header`: saved, put back, mended, named.

use super::arguments::VolumeArguments;
use super::create_tcrypt::{passphrase_of, resealed};
use super::disk::Disk;
use super::open::Search;
use super::secrets::SecretArguments;
use crate::cli::{Failure, print};
use block::BlockDevice;
use clap::{Args, Subcommand};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use volume::tcrypt::{Family, Place};
use volume::{Format, Limits, VolumeError, luks1, luks2};

/// Options of `cryptmark volume header`.
#[derive(Debug, Args)]
pub struct HeaderOptions {
    #[command(subcommand)]
    command: HeaderCommand,
}

#[derive(Debug, Subcommand)]
enum HeaderCommand {
    /// Copy header and keyslots to a file, which is as secret as the volume's passphrases are weak
    Backup(BackupOptions),
    /// Put header and keyslots back from a file: with them the passphrases of then
    Restore(Box<RestoreOptions>),
    /// Write a damaged header anew from its other copy: LUKS2, TrueCrypt, VeraCrypt
    Repair(Box<RepairOptions>),
    /// Change label, second label or UUID
    Set(SetOptions),
}

#[derive(Debug, Args)]
struct BackupOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    /// The file to make
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
    /// Put it there even if the volume's header is another one, or none
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct RepairOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
}

#[derive(Debug, Args)]
struct SetOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    /// The volume's name; LUKS2 only
    #[arg(long)]
    label: Option<String>,
    /// A second name; LUKS2 only
    #[arg(long)]
    subsystem: Option<String>,
    /// The UUID; `random` makes one
    #[arg(long)]
    uuid: Option<String>,
}

/// Runs the command.
pub fn run(options: &HeaderOptions) -> Result<(), Failure> {
    match &options.command {
        HeaderCommand::Backup(options) => backup(options),
        HeaderCommand::Restore(options) => restore(options),
        HeaderCommand::Repair(options) => repair(options),
        HeaderCommand::Set(options) => set(options),
    }
}

/// What identifies a header, and how many bytes it and its keyslots take.
struct Extent {
    format: Format,
    uuid: String,
    bytes: u64,
}

fn extent(device: &Disk) -> Result<Extent, Failure> {
    let format = Format::detect(device)?;
    match format {
        Some(format @ Format::Luks1) => {
            let header = luks1::Header::read(device)?;
            Ok(Extent {
                format,
                bytes: header.bytes_with_keyslots(),
                uuid: header.uuid,
            })
        }
        Some(format @ Format::Luks2) => {
            let header = luks2::Header::read(device)?;
            Ok(Extent {
                format,
                bytes: header.bytes_with_keyslots(),
                uuid: header.binary.uuid,
            })
        }
        _ => Err(Failure::new(
            2,
            "there is no LUKS header",
            "Only headers of LUKS volumes are saved in this way.",
        )),
    }
}

/// What TrueCrypt and VeraCrypt keep before the data: whether it holds headers,
/// nobody can tell.
fn tcrypt_extent(family: Family, device: &Disk) -> Result<Extent, Failure> {
    const HEADERS: u64 = 128 << 10;
    match device.geometry().size >= HEADERS {
        true => Ok(Extent {
            format: family.format(),
            uuid: "that says nothing of itself".to_owned(),
            bytes: HEADERS,
        }),
        false => Err(Failure::new(
            2,
            format!("the volume has less than {HEADERS} bytes"),
            "Name a volume of TrueCrypt 6 or later, or of VeraCrypt.",
        )),
    }
}

/// Writes headers anew from the one in a backup, which the passphrase of then opens.
fn tcrypt_restore(options: &RestoreOptions, family: Family) -> Result<(), Failure> {
    options.volume.refuse_foreign_options(family.format())?;
    let saved = Disk::open(&options.input, false)?;
    let devices = options.volume.devices(true)?;
    let opening = options.volume.tcrypt(family)?;
    let secret = options.secret.secret(family.format(), &options.input)?;
    let limits = Limits::default();
    let search = Search::start()?;
    let watch = |progress| search.watch(progress);
    let unlocked = opening.unlock(&saved, &secret, &limits, &watch)?;
    drop(search);
    let sealing = resealed(&opening, &unlocked);
    unlocked.write_headers(devices.data(), &sealing, passphrase_of(&secret)?, &limits)?;
    print("the header and its copy are written anew from the backup\n")
}

fn backup(options: &BackupOptions) -> Result<(), Failure> {
    let devices = options.volume.devices(false)?;
    let device = devices.header();
    let extent = match options.volume.family() {
        Some(family) => tcrypt_extent(family, device)?,
        None => extent(device)?,
    };
    let mut bytes = vec![0; extent.bytes as usize];
    device.read_at(0, &mut bytes).map_err(VolumeError::Block)?;
    let path = &options.output;
    let write = || -> io::Result<()> {
        let mut options = File::options();
        options.write(true).create_new(true);
        // What opens the header opens this, even when the volume's is changed.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        file.write_all(&bytes)?;
        file.sync_all()
    };
    write().map_err(|error| {
        Failure::new(
            2,
            format!("cannot make {}: {error}", path.display()),
            "Give a new name in a folder that can be written.",
        )
    })?;
    print(&format!(
        "{} bytes of the {} volume {}\n",
        extent.bytes, extent.format, extent.uuid
    ))
}

fn restore(options: &RestoreOptions) -> Result<(), Failure> {
    if let Some(family) = options.volume.family() {
        return tcrypt_restore(options, family);
    }
    let saved = Disk::open(&options.input, false)?;
    let from = extent(&saved)?;
    if saved.geometry().size < from.bytes {
        return Err(Failure::new(
            2,
            format!("{} ends before its keyslots do", options.input.display()),
            "Give a whole backup.",
        ));
    }
    let devices = options.volume.devices_for_header()?;
    let device = devices.header();
    let there = extent(device).ok();
    let same = there.as_ref().is_some_and(|there| there.uuid == from.uuid);
    if !same && !options.yes {
        let (what, image) = (there.map(|there| there.uuid), options.volume.image());
        return Err(Failure::new(
            4,
            match what {
                Some(uuid) => format!("the backup is of {}, and this is {uuid}", from.uuid),
                None => format!("{} has no header that can be read", image.display()),
            },
            "Give --yes if the backup belongs there all the same.",
        ));
    }
    let moving = luks2::Header::read(device).is_ok_and(|header| header.is_reencrypting());
    if moving && !options.yes {
        return Err(Failure::new(
            4,
            "the volume is being reencrypted, and without its header nobody can go on",
            "Go on with `cryptmark volume reencrypt` first; give --yes if the data shall be lost.",
        ));
    }
    if device.geometry().size < from.bytes {
        return Err(Failure::new(
            2,
            format!(
                "{} is smaller than the backup",
                options.volume.image().display()
            ),
            "Name the volume that the backup was made of.",
        ));
    }
    let mut bytes = Vec::new();
    let file = File::open(&options.input);
    let read = file.and_then(|file| file.take(from.bytes).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(&options.input, &error))?;
    // The keyslots first: the header that speaks of them comes last.
    const FIRST: usize = 4096;
    let write = |offset: usize, bytes: &[u8]| {
        let written = device.write_at(offset as u64, bytes);
        written
            .and_then(|()| device.flush())
            .map_err(VolumeError::Block)
    };
    write(FIRST, &bytes[FIRST..])?;
    write(0, &bytes[..FIRST])?;
    print(&format!(
        "restored {} bytes of the {} volume {}\n",
        from.bytes, from.format, from.uuid
    ))
}

fn repair(options: &RepairOptions) -> Result<(), Failure> {
    if let Some(family) = options.volume.family() {
        return tcrypt_repair(options, family);
    }
    let devices = options.volume.devices_for_header()?;
    let device = devices.header();
    let mut header = luks2::Header::read(device)?;
    match header.repair(device)? {
        true => print("both copies of the header are good again\n"),
        false => print("both copies of the header are good\n"),
    }
}

/// Writes the header anew from its copy, or the copy from the header with
/// `--tcrypt-backup` left away.
fn tcrypt_repair(options: &RepairOptions, family: Family) -> Result<(), Failure> {
    let image = options.volume.image();
    options.volume.refuse_foreign_options(family.format())?;
    let devices = options.volume.devices(true)?;
    let opening = options.volume.tcrypt(family)?;
    let secret = options.secret.secret(family.format(), image)?;
    let limits = Limits::default();
    let search = Search::start()?;
    let watch = |progress| search.watch(progress);
    let unlocked = opening.unlock(devices.data(), &secret, &limits, &watch)?;
    drop(search);
    let sealing = resealed(&opening, &unlocked);
    unlocked.restore(devices.data(), &sealing, passphrase_of(&secret)?, &limits)?;
    print(match opening.place {
        Place::NormalBackup | Place::HiddenBackup => "the header is written anew from its copy\n",
        _ => "the copy is written anew from the header\n",
    })
}

fn set(options: &SetOptions) -> Result<(), Failure> {
    let devices = options.volume.devices_for_header()?;
    let device = devices.header();
    let format = options.volume.format(device)?;
    let uuid = options.uuid.as_deref().map(|uuid| match uuid {
        "random" => None,
        uuid => Some(uuid),
    });
    let labels = (options.label.as_deref(), options.subsystem.as_deref());
    match (format, labels) {
        (Format::Luks1, (None, None)) => {
            let mut header = luks1::Header::read(device)?;
            if let Some(uuid) = uuid {
                header.set_uuid(device, uuid)?;
            }
            Ok(())
        }
        (Format::Luks2, (label, subsystem)) => {
            let mut header = luks2::Header::read(device)?;
            if label.or(subsystem).is_some() {
                header.set_labels(device, label, subsystem)?;
            }
            if let Some(uuid) = uuid {
                header.set_uuid(device, uuid)?;
            }
            Ok(())
        }
        (format, _) => Err(Failure::new(
            2,
            format!("a {} volume has no labels", format.title()),
            "LUKS2 has labels and a UUID, LUKS1 a UUID.",
        )),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        2,
        format!("cannot read {}: {error}", path.display()),
        "Check the path and its permissions.",
    )
}
