//! `cryptmark volume reencrypt`: another cipher or key for the data where it is.

mod in_place;
mod tcrypt;

pub use in_place::is_beside;

use super::arguments::{VolumeArguments, side_header};
use super::create::watched;
use super::disk::{Disk, check_distinct};
use super::header::{out_of_date, refused};
use super::keyslot::{KdfArguments, KeptArguments, keyslot_options};
use super::losses::{accepted, at};
use super::secrets::{Empty, SecretArguments};
use super::volatile;
use crate::cli::{CliRemedy, Failure, print};
use block::{BlockDevice, ByteRange, folder_of, hold};
use cipher::Key;
use clap::Args;
use in_place::Settled;
use std::fs::File;
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;
use volume::judge::Use;
use volume::luks2::{Header, Keys, KeyslotOptions};
use volume::operate::{self, Chosen, KeySlotCost, Reencryption};
use volume::{Format, Hash, Limits, Place, VolumeError};

/// Options of `cryptmark volume reencrypt`.
///
/// --cipher, --key-size, --sector-size and --hash give the new values. With --type
/// veracrypt or tcrypt, a file beside the volume (or the file of --header) holds the
/// journal and both keys until all is done.
#[derive(Debug, Args)]
#[command(
    mut_arg("cipher", |arg| arg.help("The new cipher in dm-crypt notation; for VeraCrypt, e.g. serpent-aes [default: unchanged]")),
    mut_arg("key_size", |arg| arg.help("The new key size in bits as in cryptsetup, e.g. 512 for AES-256 in XTS")),
    mut_arg("sector_size", |arg| arg.help("The new encryption sector size in bytes: 512, 1024, 2048 or 4096 [default: unchanged]")),
    mut_arg("hash", |arg| arg.help("The new hash: of the passphrase for TrueCrypt and VeraCrypt, else of PBKDF2"))
)]
pub struct ReencryptOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
    #[command(flatten)]
    kdf: KdfArguments,
    #[command(flatten)]
    kept: KeptArguments,
    /// Encrypt a file or device that is not encrypted
    #[arg(long, conflicts_with = "decrypt")]
    encrypt: bool,
    /// With --encrypt: allow an empty passphrase
    #[arg(long, requires = "encrypt")]
    allow_empty_passphrase: bool,
    /// Decrypt the volume permanently
    #[arg(long)]
    decrypt: bool,
    /// Confirm the loss of key slots whose passphrases are not given, of a hidden volume, or of another volume that begins there; and accept a weak cipher
    #[arg(long)]
    yes: bool,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

impl ReencryptOptions {
    /// Whether the first passphrase may be empty.
    fn empty(&self) -> Empty {
        Empty::if_allowed(self.allow_empty_passphrase)
    }
}

/// Runs the command; what it says comes when all is done.
pub fn run(options: &ReencryptOptions) -> Result<(), Failure> {
    print(go_through(options)?)
}

/// The text that ends the output.
const DONE: &str = "done\n";

fn go_through(options: &ReencryptOptions) -> Result<&'static str, Failure> {
    let image = options.volume.image();
    check_format(options)?;
    if let Some(header) = options.volume.header_path() {
        check_distinct("--header", &header, image)?;
    }
    if let Some(header) = options.volume.named_header()
        && is_at(header, &side_header(image))
    {
        return Err(Failure::new(
            2,
            format!(
                "{} is a name that this command uses itself",
                header.display()
            ),
            "Omit --header, or give the file with the header another name.",
        ));
    }
    // Checked first, so that the user types no passphrase for a refused command.
    let use_ = match options.encrypt {
        true => Use::Encrypt,
        false => Use::Reencrypt,
    };
    Disk::check_free(image, use_)?;
    let family = options.volume.family();
    if let Some(named) = options.volume.named_header()
        && in_place::header_beside(image)?.is_some_and(|beside| beside.is_reencrypting())
    {
        return Err(Failure::new(
            4,
            format!(
                "{} is the header of an unfinished reencryption of {}",
                side_header(image).display(),
                image.display()
            ),
            format!("Finish that first, without --header {}.", named.display()),
        ));
    }
    if in_place::is_beside(image)? {
        match in_place::settle(image)? {
            Settled::Begun => {}
            Settled::Decrypted if options.encrypt => {}
            Settled::Decrypted => return Ok(DONE),
            Settled::PutBack if options.decrypt => {}
            Settled::PutBack => {
                return Ok("the header is back in its place; no reencryption had begun\n");
            }
        }
    }
    let journal = options.volume.header_path().filter(|path| path.exists());
    if let Some(path) = &journal {
        // A run that was killed may have left its name in a cache, and nowhere else.
        sync_name(path)?;
    }
    let begun = match &journal {
        Some(path) => is_begun(path)?,
        // Their headers say nothing of it, and need not be readable.
        None => family.is_none() && is_begun(image)?,
    };
    if options.encrypt && !begun {
        return in_place::encrypt(options).map(|()| DONE);
    }
    if options.decrypt && !begun && journal.is_none() {
        return in_place::decrypt(options).map(|()| DONE);
    }
    if let (Some(family), None, false) = (family, &journal, options.decrypt) {
        return tcrypt::begin(options, family).map(|()| DONE);
    }
    let devices = options.volume.devices(Use::Reencrypt)?;
    let (header, data) = (devices.header(), devices.data());
    // A TrueCrypt or VeraCrypt volume has a header of LUKS2 meanwhile.
    let format = match family {
        Some(_) => Format::Luks2,
        None => options.volume.format(header)?,
    };
    if format == Format::Luks1 {
        return Err(Failure::from(operate::no_journal()).with_remedy(format!(
            "Make it a LUKS2 volume first: cryptmark volume convert {} --type luks2",
            options
                .volume
                .header_path()
                .as_deref()
                .unwrap_or(image)
                .display()
        )));
    }
    if format != Format::Luks2 {
        return Err(Failure::new(
            2,
            format!("a {} volume cannot be reencrypted in place", format.title()),
            "Make a LUKS2 volume, and copy with `volume export` and `volume import`.",
        ));
    }
    let mut parsed = Header::read(header)?;
    if let (true, Some(path)) = (parsed.is_for_another(), &journal) {
        check_mode(options, &parsed)?;
        return tcrypt::go_on(options, &mut parsed, (header, data), path).map(|()| DONE);
    }
    if let (Some(named), Some(_)) = (options.volume.named_header(), parsed.length_afterwards()) {
        return Err(Failure::new(
            4,
            format!(
                "{} is a header that belongs before the data of {}",
                named.display(),
                image.display()
            ),
            format!(
                "Rename it to {}, and run this again without --header.",
                side_header(image).display()
            ),
        ));
    }
    if let (Some(named), false) = (options.volume.named_header(), parsed.is_decrypted()) {
        let is_old = operate::check_apart(&parsed, data, accepted(options.yes))
            .map_err(|error| refused(named, image, [header, data], error))?;
        if is_old {
            eprintln!("warning: {}", out_of_date(named, image));
        }
    }
    if parsed.is_reencrypting() {
        check_mode(options, &parsed)?;
        let secret = options.secret.secret(format, image)?;
        let keys = parsed.unlock_both(header, &secret, &Limits::default())?;
        let length = parsed.length_afterwards();
        let end = parsed.end_of_encryption(data)?;
        work(
            options,
            &mut parsed,
            (header, data),
            &keys,
            journal.as_deref(),
        )?;
        let now = data.length()?;
        drop(devices);
        in_place::finish(image, &parsed, length)?;
        return match end {
            Some(end) if now > end => Err(in_place::added(image, end)),
            _ => Ok(DONE),
        };
    }
    if parsed.is_decrypted() {
        return match parsed.has_decrypted(data)? {
            Some(true) if options.decrypt => Ok(DONE),
            Some(false) => Err(VolumeError::OtherData.into()),
            _ => Err(Failure::new(
                4,
                "the header says that all data are decrypted, and nothing is left to do",
                "To encrypt them again, use --encrypt, with another file for the header.",
            )),
        };
    }
    if options.decrypt {
        let secret = options.secret.secret(format, image)?;
        let slot = options.volume.key_slot();
        let unlocked = parsed.unlock(header, &secret, slot, &Limits::default())?;
        let keys = Keys {
            old: unlocked.key,
            new: Key::from_slice(&[]),
        };
        let accepted = accepted(options.yes);
        let begun = parsed.begin_decryption(header, data, &keys, false, accepted);
        begun.map_err(|error| at(image, error))?;
        return work(
            options,
            &mut parsed,
            (header, data),
            &keys,
            journal.as_deref(),
        )
        .map(|()| DONE);
    }
    change(options, &mut parsed, &devices.into_place()).map(|()| DONE)
}

/// Refuses a type that `--encrypt` does not make, and `--decrypt` does not read.
fn check_format(options: &ReencryptOptions) -> Result<(), Failure> {
    let change = match (options.encrypt, options.decrypt) {
        (true, _) => "encrypt",
        (_, true) => "decrypt",
        _ => return Ok(()),
    };
    match options.volume.named_format() {
        None | Some(Format::Luks2) => Ok(()),
        Some(other) => Err(Failure::new(
            2,
            format!(
                "--{change} is for LUKS2, and not for {} volumes",
                other.title()
            ),
            "Omit --type if this is a LUKS2 volume, or is to become one. Otherwise, copy with \
             `volume export` and `volume import`.",
        )),
    }
}

/// Refuses to go on with something else than the user asked for.
fn check_mode(options: &ReencryptOptions, header: &Header) -> Result<(), Failure> {
    let asked = match (options.encrypt, options.decrypt) {
        (true, _) => "encrypt",
        (_, true) => "decrypt",
        _ => return Ok(()),
    };
    match header.reencryption_mode() {
        Some(mode) if mode != asked => Err(Failure::new(
            4,
            format!("the volume is in the middle of another change: `{mode}`"),
            format!("Finish that first, without --{asked}."),
        )),
        _ => Ok(()),
    }
}

/// Whether a file that need not be there has this name, however that is spelled.
fn is_at(path: &Path, name: &Path) -> bool {
    let folder = folder_of(path).canonicalize();
    folder.is_ok_and(|folder| folder.join(path.file_name().unwrap_or_default()) == name)
}

/// Whether there is a header that tells of a reencryption.
fn is_begun(path: &Path) -> Result<bool, Failure> {
    match Header::read(&Disk::open(path, Use::Read)?) {
        Ok(header) => Ok(header.is_reencrypting()),
        Err(VolumeError::NotThis { .. } | VolumeError::Header { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Another cipher, sector size or key.
fn change(options: &ReencryptOptions, header: &mut Header, place: &Place) -> Result<(), Failure> {
    let image = options.volume.image();
    let device = place.header();
    let mut wanted = Reencryption {
        parameters: options.volume.plain_parameters(),
        accepted: accepted(options.yes).to_vec(),
        ..Reencryption::default()
    };
    let said = |error| at(image, error);
    let chosen = Chosen::of(header, place.data(), &wanted).map_err(|error| {
        let others = header.keyslots_of_data().map_or(0, <[u32]>::len);
        let lost = others.saturating_sub(1 + options.kept.count());
        match (&error, lost) {
            // All that --yes would accept is said at once.
            (VolumeError::Judged(_), 1..) => {
                let failure = said(error);
                let all = format!(
                    "{}; and {lost} more of its key slots would be lost, whose secrets were not given",
                    failure.what()
                );
                failure.with_what(all)
            }
            _ => said(error),
        }
    })?;
    for warning in &chosen.warnings {
        eprintln!("warning: {warning}");
    }
    let secret = options.secret.secret(Format::Luks2, image)?;
    let slot = options.volume.key_slot();
    let unlocked = header.unlock(device, &secret, slot, &Limits::default())?;
    let first = operate::first_kept(&secret, unlocked.slot)?;
    let kept = options.kept.keyslots(header, device, first, !options.yes)?;
    let kept_now: Vec<(u32, &Key)> = kept.iter().map(|(slot, key)| (*slot, key)).collect();
    // Before the costs of new key slots are looked for, which takes seconds.
    header
        .check_kept(&kept_now, &wanted.accepted)
        .map_err(said)?;
    let hash = wanted.parameters.hash()?;
    wanted.cost = KeySlotCost::Fixed(options.kdf.kdf(Format::Luks2, hash)?);
    let keys = chosen
        .begin(header, place, (unlocked.key, &kept), &wanted)
        .map_err(said)?;
    let journal = options.volume.header_path();
    let devices = (device, place.data());
    work(options, header, devices, &keys, journal.as_deref())
}

/// Goes through all data. `journal` is the file that has the header meanwhile, if it is not at the
/// start of the data.
fn work(
    options: &ReencryptOptions,
    header: &mut Header,
    devices: (&dyn BlockDevice, &dyn BlockDevice),
    keys: &Keys,
    journal: Option<&Path>,
) -> Result<(), Failure> {
    let outcome = watched(options.no_progress, |report| {
        operate::run(header, devices, keys, report)
    })?;
    outcome.map_err(|error| {
        let again = match error {
            VolumeError::Stopped => AGAIN.to_owned(),
            _ => format!("{} {AGAIN}", error.cli_remedy()),
        };
        let failure = Failure::from(error);
        let image = options.volume.image();
        let change = format!("a part of the data in {} is converted", image.display());
        // One that the data begin with goes where they go.
        let Some(path) = journal.filter(|path| !hold::is_same(path, image)) else {
            return failure.after(change, format!("The header keeps both keys. {again}"));
        };
        failure.after(
            change,
            format!(
                "Keep {} with the volume: without that file, nothing opens it. {again}",
                path.display()
            ),
        )
    })
}

/// What to do about a reencryption that has stopped.
const AGAIN: &str = "Run the command again to continue.";

/// A header for `path` whose file has no name before it is published. Until it records that the
/// reencryption has begun, its content is not true.
fn draft(
    path: &Path,
    image: &Path,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(NamedTempFile, Disk), Failure> {
    let folder = folder_of(path);
    let unwritable = |error| cannot_write(path, &error);
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(unwritable(error)),
        // A link that leads nowhere is there as well.
        Ok(_) => {
            return Err(Failure::new(
                4,
                format!("{} exists already", path.display()),
                "Name another file for the header.",
            ));
        }
    }
    let draft = NamedTempFile::with_prefix_in(".cryptmark-", folder).map_err(unwritable)?;
    fill(draft.as_file()).map_err(unwritable)?;
    let device = Disk::open(draft.path(), Use::Overwrite)?;
    // All of it is written in the end.
    operate::reserve(&device, ByteRange::new(0, device.geometry().size))?;
    volatile::warn(path, image);
    Ok((draft, device))
}

/// Gives a draft its name.
fn publish(draft: NamedTempFile, path: &Path) -> Result<(), Failure> {
    let unwritable = |error| cannot_write(path, &error);
    draft.as_file().sync_all().map_err(unwritable)?;
    let named = draft.persist_noclobber(path);
    named.map_err(|error| unwritable(error.error))?;
    // Nothing has begun if it is unknown whether the name stays.
    sync_name(path).inspect_err(|_| drop(std::fs::remove_file(path)))
}

fn keyslot(options: &ReencryptOptions) -> Result<KeyslotOptions, Failure> {
    let hash = options.volume.plain_parameters().hash()?;
    Ok(KeyslotOptions {
        af_hash: hash.unwrap_or(Hash::Sha256),
        ..keyslot_options(options.kdf.kdf(Format::Luks2, hash)?)
    })
}

fn sync_name(path: &Path) -> Result<(), Failure> {
    block::sync_name(path).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        1,
        format!("cannot write {}: {error}", path.display()),
        "Check the permissions and the free space, and run it again.",
    )
}
