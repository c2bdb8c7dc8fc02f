//! `cryptmark volume passwd` and `volume key`: keyslots changed, added, removed.

use super::arguments::{Volume, VolumeArguments};
use super::backups::reminder;
use super::disk::Names;
use super::keyslot::{KdfArguments, NewSecretArguments};
use super::open::searching;
use super::secrets::SecretArguments;
use crate::cli::{Failure, print_done};
use clap::{Args, Subcommand};
use volume::judge::Use;
use volume::operate::{KeyChange, KeySlotCost, NewKey, PasswordChange};
use volume::tcrypt::Family;
use volume::{Format, Kdf, Limits, LuksHeader, Place, Secret};

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

/// Gives a keyslot another passphrase.
pub fn passwd(options: &PasswdOptions, names: &Names) -> Result<(), Failure> {
    let volume = &options.volume.with(names);
    if let Some(family) = volume.family() {
        return tcrypt_passwd(options, volume, family);
    }
    let (place, format) = look(volume)?;
    let secret = options.secret.secret(format, volume.image())?;
    let change = KeyChange::begin(&place, &secret, volume.key_slot(), Limits::default())?;
    change.slot()?;
    let (new, kdf) = new_key(volume, &change, &options.new, &options.kdf)?;
    drop(place);
    let place = take(volume)?;
    let slot = change.change(&place, &new)?;
    warn_of_another(&place, &secret, slot)?;
    drop(place);
    print_done(&format!(
        "key slot {slot} opens with the new passphrase: {kdf}\n{}{}",
        reminder(&names.backups, "the old passphrase"),
        unchanged(volume)
    ));
    Ok(())
}

/// A line that says that the volume has another header, which opens as before; nothing if not.
fn unchanged(volume: &Volume<'_>) -> String {
    let own = volume.header_path().and_then(|_| {
        let image = volume.names.open(volume.image(), Use::Read).ok()?;
        LuksHeader::read(&*image.device).ok()
    });
    let line = "the volume has its own header, which opens as before\n";
    own.map_or_else(String::new, |_| line.to_owned())
}

/// Warns of a secret that was taken from a key slot, and still opens another one.
fn warn_of_another(place: &Place, secret: &Secret, slot: u32) -> Result<(), Failure> {
    let header = LuksHeader::read(place.header())?;
    if let Some(other) = header.opens_also(place.header(), secret, slot, &Limits::default()) {
        eprintln!("warning: what opened key slot {slot} still opens key slot {other}");
    }
    Ok(())
}

/// The secret of a new key slot, and the derivation that was found for it.
fn new_key(
    volume: &Volume,
    change: &KeyChange,
    new: &NewSecretArguments,
    kdf: &KdfArguments,
) -> Result<(NewKey, Kdf), Failure> {
    let kdf = kdf.found(|cost| change.kdf(cost))?;
    let new = NewKey {
        secret: new.secret(volume.image())?,
        cost: kdf.into(),
        allow_empty: new.allow_empty_passphrase,
    };
    Ok((new, kdf))
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
    let place = volume.devices(Use::ChangeHeader)?.place();
    let secret = options.secret.secret(family.format(), volume.image())?;
    let wanted = volume.options(false)?;
    let said = |error| volume.at(error);
    let change = searching(|it| PasswordChange::begin(&place, &secret, &wanted, it))?;
    let change = change.map_err(said)?;
    let new = NewKey {
        secret: options
            .new
            .secret_beside(volume.image(), change.has_keyfiles())?,
        cost: KeySlotCost::default(),
        allow_empty: options.new.allow_empty_passphrase,
    };
    let weak = searching(|watch| change.finish(&new, watch))?;
    if let Some(weak) = weak.map_err(said)? {
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
    let (place, format) = look(volume)?;
    let secret = options.secret.secret(format, volume.image())?;
    let change = KeyChange::begin(&place, &secret, volume.key_slot(), Limits::default())?;
    let (new, kdf) = new_key(volume, &change, &options.new, &options.kdf)?;
    drop(place);
    let slot = change.add(&take(volume)?, &new, options.new_key_slot)?;
    print_done(&format!(
        "key slot {slot} opens with the new passphrase: {kdf}\n{}",
        unchanged(volume)
    ));
    Ok(())
}

fn kill(options: &KillOptions, names: &Names) -> Result<(), Failure> {
    let volume = &options.volume.with(names);
    let slot = match (volume.key_slot(), options.yes) {
        (Some(slot), true) if !options.secret.is_given() => {
            let place = opened(volume, Use::ChangeHeader)?.0;
            LuksHeader::read(place.header())?.kill_key(place.header(), slot, true)?;
            slot
        }
        (named, last_too) => {
            // A user that removes a key must have one that stays, or mean the one that opens.
            let (place, format) = look(volume)?;
            let secret = options.secret.secret(format, volume.image())?;
            let change = KeyChange::begin(&place, &secret, None, Limits::default())?;
            drop(place);
            let place = take(volume)?;
            let slot = change.remove(&place, named, last_too)?;
            if named.is_none() {
                warn_of_another(&place, &secret, slot)?;
            }
            slot
        }
    };
    print_done(&format!(
        "key slot {slot} is removed\n{}{}",
        reminder(&names.backups, "what it opened with"),
        unchanged(volume)
    ));
    Ok(())
}

/// Opens the volume for reading, after a check that the header can be changed. So the user types no
/// passphrase for a command that would be refused.
fn look(volume: &Volume) -> Result<(Place, Format), Failure> {
    volume.check_free()?;
    opened(volume, Use::Read)
}

/// Opens the header for a change, once the user has typed everything; from now on other processes
/// wait.
fn take(volume: &Volume) -> Result<Place, Failure> {
    Ok(opened(volume, Use::ChangeHeader)?.0)
}

/// Opens a volume with key slots. Returns its format as well.
fn opened(volume: &Volume, use_: Use) -> Result<(Place, Format), Failure> {
    let devices = volume.devices(use_)?;
    let format = volume.format(devices.header())?;
    volume.check_luks(devices.header())?;
    let what = match format {
        Format::Luks1 | Format::Luks2 => return Ok((devices.place(), format)),
        other => format!("a {} volume has no key slots", other.title()),
    };
    Err(Failure::new(2, what, "Only LUKS volumes have key slots."))
}
