//! `cryptmark volume passwd` and `volume key`: keyslots changed, added, removed.

use super::arguments::{Devices, Volume, VolumeArguments};
use super::disk::{Disk, Names};
use super::keyslot::{KdfArguments, NewSecretArguments};
use super::open::Search;
use super::secrets::{Empty, SecretArguments};
use crate::cli::{Failure, print_done, standard};
use clap::{Args, Subcommand};
use volume::judge::Use;
use volume::operate::{KeySlotCost, NewKey, PasswordChange};
use volume::tcrypt::{Family, Progress};
use volume::{Format, Limits, LuksHeader, Secret, Unlocked, VolumeError};

/// Options of `cryptmark volume passwd`.
#[derive(Debug, Args)]
pub struct PasswdOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
    #[command(flatten)]
    new: NewSecretArguments,
    #[command(flatten)]
    kdf: KdfArguments,
}

/// Options of `cryptmark volume key`.
#[derive(Debug, Args)]
pub struct KeyOptions {
    #[command(subcommand)]
    command: KeyCommand,
}

impl KeyOptions {
    /// How the command is called in backups that it makes.
    pub const fn name(&self) -> &'static str {
        match self.command {
            KeyCommand::Add(_) => "key-add",
            KeyCommand::Kill(_) => "key-kill",
        }
    }
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Add a passphrase or key file, in a key slot of its own
    Add(AddOptions),
    /// Remove the key slot that --key-slot names, or that the passphrase opens
    Kill(KillOptions),
}

#[derive(Debug, Args)]
struct AddOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
    #[command(flatten)]
    new: NewSecretArguments,
    #[command(flatten)]
    kdf: KdfArguments,
    /// The key slot to fill [default: the first free one]
    #[arg(long, value_name = "N")]
    new_key_slot: Option<u32>,
}

#[derive(Debug, Args)]
struct KillOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
    /// Remove it without a passphrase, even if it is the last one
    #[arg(long)]
    yes: bool,
}

/// The header of a volume with key slots.
fn header(format: Format, device: &Disk) -> Result<LuksHeader, Failure> {
    match format {
        Format::Luks1 | Format::Luks2 => Ok(LuksHeader::read(device)?),
        other => Err(Failure::new(
            2,
            format!("a {} volume has no key slots", other.title()),
            "Only LUKS volumes have key slots.",
        )),
    }
}

fn unlock(
    header: &LuksHeader,
    devices: &Devices,
    secret: &Secret,
    slot: Option<u32>,
) -> Result<Unlocked, Failure> {
    Ok(header.unlock(devices.header(), secret, slot, &Limits::default())?)
}

/// Gives a keyslot another passphrase.
pub fn passwd(options: &PasswdOptions, names: &Names) -> Result<(), Failure> {
    let volume = &options.volume.with(names);
    check_new(volume, &options.new)?;
    if let Some(family) = volume.family() {
        return tcrypt_passwd(options, volume, family);
    }
    let (devices, format, header) = look(volume)?;
    let secret = options.secret.secret(format, volume.image())?;
    let found = unlock(&header, &devices, &secret, volume.key_slot())?;
    let slot = found.slot.or(volume.key_slot());
    slot.ok_or(VolumeError::UnnamedKeyslot)?;
    let kdf = options.kdf.kdf(format, header.hash())?;
    let new = options.new.secret(volume.image())?;
    drop(devices);
    let (devices, mut header, unlocked) =
        take(volume, (header, found), &secret, volume.key_slot())?;
    let slot = unlocked.slot.or(volume.key_slot());
    let slot = slot.ok_or(VolumeError::UnnamedKeyslot)?;
    let slot = header.change_key(devices.header(), (&unlocked.key, &new), kdf, slot)?;
    print_done(&format!(
        "key slot {slot} opens with the new passphrase: {kdf}\n{}",
        names.backups.reminder("the old passphrase")
    ));
    Ok(())
}

/// Refuses a new secret in a file that the command changes, because the secret would be lost.
fn check_new(volume: &Volume, new: &NewSecretArguments) -> Result<(), Failure> {
    for (option, path) in new.named() {
        volume.check_distinct(option, standard::input(path))?;
    }
    Ok(())
}

/// Sets another passphrase of a TrueCrypt or VeraCrypt volume, in the header and its copy.
fn tcrypt_passwd(options: &PasswdOptions, volume: &Volume, family: Family) -> Result<(), Failure> {
    volume.refuse_foreign_options(family.format())?;
    if let Some(option) = options.kdf.given() {
        let title = family.format().title();
        return Err(Failure::new(
            2,
            format!("{option} has no meaning for a {title} volume"),
            "Omit it: the volume keeps its key derivation.",
        ));
    }
    let place = volume.devices(Use::ChangeHeader)?.into_place();
    let secret = options.secret.secret(family.format(), volume.image())?;
    let wanted = volume.options(false)?;
    let said = |error| volume.at(error);
    let search = Search::start()?;
    let watch = |done, total| search.watch(Progress { done, total });
    let change = PasswordChange::begin(&place, &secret, &wanted, &watch).map_err(said)?;
    drop(search);
    let empty = options.new.empty() == Empty::Allowed;
    let new = NewKey {
        secret: options
            .new
            .secret_beside(volume.image(), change.has_keyfiles())?,
        cost: KeySlotCost::default(),
        allow_empty: empty,
    };
    let search = Search::start()?;
    let watch = |done, total| search.watch(Progress { done, total });
    let weak = change.finish(&new, &watch).map_err(said)?;
    drop(search);
    if let Some(weak) = weak {
        eprintln!("warning: {weak}");
    }
    print_done("the volume opens with the new passphrase\n");
    Ok(())
}

/// Runs `volume key`.
pub fn key(options: &KeyOptions, names: &Names) -> Result<(), Failure> {
    match &options.command {
        KeyCommand::Add(options) => add(options, names),
        KeyCommand::Kill(options) => kill(options, names),
    }
}

fn add(options: &AddOptions, names: &Names) -> Result<(), Failure> {
    let volume = &options.volume.with(names);
    check_new(volume, &options.new)?;
    let (devices, format, header) = look(volume)?;
    let secret = options.secret.secret(format, volume.image())?;
    let found = unlock(&header, &devices, &secret, volume.key_slot())?;
    let kdf = options.kdf.kdf(format, header.hash())?;
    let new = options.new.secret(volume.image())?;
    drop(devices);
    let (devices, mut header, unlocked) =
        take(volume, (header, found), &secret, volume.key_slot())?;
    let keys = (&unlocked.key, &new);
    let slot = header.add_key(devices.header(), keys, kdf, options.new_key_slot)?;
    print_done(&format!(
        "key slot {slot} opens with the new passphrase: {kdf}\n"
    ));
    Ok(())
}

fn kill(options: &KillOptions, names: &Names) -> Result<(), Failure> {
    let volume = &options.volume.with(names);
    let (devices, mut header, slot) = match (volume.key_slot(), options.yes) {
        (Some(slot), true) if !options.secret.is_given() => {
            let (devices, _, header) = open(volume, volume.devices(Use::ChangeHeader)?)?;
            (devices, header, Some(slot))
        }
        (named, _) => {
            // A user that removes a key must have one that stays, or mean the one that opens.
            let (devices, format, header) = look(volume)?;
            let secret = options.secret.secret(format, volume.image())?;
            let found = unlock(&header, &devices, &secret, None)?;
            drop(devices);
            let (devices, header, unlocked) = take(volume, (header, found), &secret, None)?;
            (devices, header, named.or(unlocked.slot))
        }
    };
    let slot = slot.ok_or(VolumeError::UnnamedKeyslot)?;
    header.kill_key(devices.header(), slot, options.yes)?;
    print_done(&format!(
        "key slot {slot} is removed\n{}",
        names.backups.reminder("what it opened with")
    ));
    Ok(())
}

/// Opens the volume for reading, after a check that the header can be changed. So the user types no
/// passphrase for a command that would be refused.
fn look(volume: &Volume) -> Result<(Devices, Format, LuksHeader), Failure> {
    volume.check_free()?;
    open(volume, volume.devices(Use::Read)?)
}

/// The format of the volume on `devices`, and its header.
fn open(volume: &Volume, devices: Devices) -> Result<(Devices, Format, LuksHeader), Failure> {
    let format = volume.format(devices.header())?;
    volume.check_luks(devices.header())?;
    let header = header(format, devices.header())?;
    Ok((devices, format, header))
}

/// Opens the header for a change, once the user has typed everything; from now on other processes
/// wait. If `secret` opened another header than this one, it must open this one as well, or nothing
/// is changed.
fn take(
    volume: &Volume,
    (header, unlocked): (LuksHeader, Unlocked),
    secret: &Secret,
    slot: Option<u32>,
) -> Result<(Devices, LuksHeader, Unlocked), Failure> {
    let (devices, _, now) = open(volume, volume.devices(Use::ChangeHeader)?)?;
    let unlocked = match now == header {
        true => unlocked,
        false => unlock(&now, &devices, secret, slot)?,
    };
    Ok((devices, now, unlocked))
}
