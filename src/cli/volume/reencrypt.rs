//! `cryptmark volume reencrypt`: another cipher or key for the data where it is.

mod tcrypt;

use super::arguments::{VolumeArguments, side_header};
use super::copy::tell;
use super::create::{HEADER_FILE, natural, usual_key_bytes, warn};
use super::disk::{self, Disk};
use super::keyslot::{KdfArguments, KeptArguments, named_hash};
use super::secrets::SecretArguments;
use crate::cli::progress::Progress;
use crate::cli::{Failure, print, stop_on_signal};
use block::BlockDevice;
use cipher::{CipherSpec, Key};
use clap::Args;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;
use volume::luks2::{Creation, Header, Keys, KeyslotOptions, SegmentKind, SegmentSize, Target};
use volume::tcrypt::Family;
use volume::{Format, Hash, Limits, Secret, VolumeError};

/// What the data moves by when it makes room for a header.
const SHIFT: u64 = HEADER_FILE;

/// Options of `cryptmark volume reencrypt`.
///
/// --cipher, --key-size, --sector-size and --hash say what shall be. With --type
/// veracrypt or tcrypt a file beside the volume, or the one of --header, has the
/// journal and both keys until all is done.
#[derive(Debug, Args)]
#[command(
    mut_arg("cipher", |arg| arg.help("The new cipher, in dm-crypt notation; VeraCrypt's as in serpent-aes [default: as it is]")),
    mut_arg("key_size", |arg| arg.help("The new key's size in bits, counted as cryptsetup counts")),
    mut_arg("sector_size", |arg| arg.help("The new encryption sector size in bytes: 512, 1024, 2048 or 4096 [default: as it is]")),
    mut_arg("hash", |arg| arg.help("The new hash of the passphrase: for TrueCrypt and VeraCrypt, and of PBKDF2"))
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
    /// Decrypt the volume for good
    #[arg(long)]
    decrypt: bool,
    /// Lose the keyslots whose passphrases are not given, or a hidden volume, and take a cipher that protects little
    #[arg(long)]
    yes: bool,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

impl ReencryptOptions {
    /// Whose volume it is, if it is one of TrueCrypt or VeraCrypt.
    pub fn family(&self) -> Option<Family> {
        self.volume.family()
    }
}

/// Runs the command.
pub fn run(options: &ReencryptOptions) -> Result<(), Failure> {
    let image = options.volume.image();
    disk::check_usage(image)?;
    let side = side_header(image);
    let begun = side.exists();
    if options.encrypt && !begun {
        return encrypt(options);
    }
    if options.decrypt && options.volume.header_path().is_none() {
        return decrypt(options);
    }
    let journal = options.volume.header_path().filter(|path| path.exists());
    let family = options.volume.family();
    if let (Some(family), None, false) = (family, &journal, options.decrypt) {
        return tcrypt::begin(options, family);
    }
    let devices = options.volume.devices(true)?;
    let (header, data) = (devices.header(), devices.data());
    // A TrueCrypt or VeraCrypt volume has a header of LUKS2 meanwhile.
    let format = match family {
        Some(_) => Format::Luks2,
        None => options.volume.format(header)?,
    };
    if format == Format::Luks1 {
        return Err(Failure::new(
            2,
            "a LUKS1 volume cannot be reencrypted in place: its header has no room for a journal",
            format!(
                "Make it a LUKS2 volume first: cryptmark volume convert {} --type luks2",
                options
                    .volume
                    .header_path()
                    .as_deref()
                    .unwrap_or(image)
                    .display()
            ),
        ));
    }
    if format != Format::Luks2 {
        return Err(Failure::new(
            2,
            format!("a {} volume cannot be reencrypted in place", format.title()),
            "Make a LUKS2 volume, and copy with `volume export` and `volume import`.",
        ));
    }
    let mut parsed = Header::read(header)?;
    if parsed.is_reencrypting() {
        let secret = options.secret.secret(format, image)?;
        let secret = tcrypt::secret(&options.volume, secret)?;
        let keys = parsed.unlock_both(header, &secret, &Limits::default())?;
        work(options, &mut parsed, (header, data), &keys)?;
    } else if begun || (parsed.is_for_another() && journal.is_some()) {
        // All is done but for putting the header where it belongs.
    } else if options.decrypt {
        let secret = options.secret.secret(format, image)?;
        let slot = options.volume.key_slot();
        let unlocked = parsed.unlock(header, &secret, slot, &Limits::default())?;
        let offset = data_offset(&parsed);
        parsed.begin_decryption(header, data, offset)?;
        let keys = Keys {
            old: unlocked.key,
            new: Key::from_slice(&[]),
        };
        work(options, &mut parsed, (header, data), &keys)?;
    } else {
        change(options, &mut parsed, (header, data))?;
    }
    if let (true, Some(path)) = (parsed.is_for_another(), journal) {
        return tcrypt::finish(&parsed, data, &path);
    }
    drop(devices);
    match side.exists() {
        true => settle(image, &side),
        false => Ok(()),
    }
}

/// Another cipher, sector size or key.
fn change(
    options: &ReencryptOptions,
    header: &mut Header,
    (device, data): (&Disk, &Disk),
) -> Result<(), Failure> {
    let image = options.volume.image();
    let Some(segment) = header.metadata.segments.get(&0) else {
        return Err(several_segments());
    };
    let SegmentKind::Crypt {
        encryption,
        sector_size,
        ..
    } = &segment.kind
    else {
        return Err(several_segments());
    };
    let old: CipherSpec = encryption.parse().map_err(VolumeError::Cipher)?;
    let spec = options.volume.cipher()?.unwrap_or(old);
    warn(spec, data.geometry().size, options.yes)?;
    let sector_size = options.volume.named_sector_size()?.unwrap_or(*sector_size);
    let secret = options.secret.secret(Format::Luks2, image)?;
    let slot = options.volume.key_slot();
    let unlocked = header.unlock(device, &secret, slot, &Limits::default())?;
    let (Secret::Passphrase(passphrase) | Secret::KeyFile(passphrase), Some(slot)) =
        (secret, unlocked.slot)
    else {
        return Err(Failure::new(
            2,
            "the new keyslot needs a passphrase",
            "Give one that opens the volume, not its volume key.",
        ));
    };
    let first = (slot, passphrase);
    let kept = options.kept.keyslots(header, device, first, !options.yes)?;
    let kept: Vec<(u32, &Key)> = kept.iter().map(|(slot, key)| (*slot, key)).collect();
    // Before the costs of new keyslots are looked for, which takes seconds.
    header.check_kept(&kept, options.yes)?;
    let key_bytes = options.volume.key_bytes()?;
    let new_key = Key::random(key_bytes.unwrap_or_else(|| usual_key_bytes(&spec)))
        .map_err(VolumeError::Cipher)?;
    let target = Target {
        spec,
        sector_size,
        keyslot: keyslot(options)?,
    };
    header.begin_reencryption(device, data, &target, &new_key, &kept, options.yes)?;
    let keys = Keys {
        old: unlocked.key,
        new: new_key,
    };
    work(options, header, (device, data), &keys)
}

/// Encrypts a file or device that is not encrypted: with a header of its own
/// file for good if the user named one, or until the data has moved.
fn encrypt(options: &ReencryptOptions) -> Result<(), Failure> {
    let image = options.volume.image();
    let side = side_header(image);
    let data = Disk::open(image, true)?;
    if let Some(format) = Format::detect(&data)? {
        return Err(Failure::new(
            4,
            format!("{} is a {} volume already", image.display(), format.title()),
            "Leave --encrypt away to change its cipher or key.",
        ));
    }
    let detached = options.volume.header_path();
    if detached.is_none() && !data.is_file() {
        return Err(Failure::new(
            2,
            format!("{} has no room for a header", image.display()),
            "Name a file for it with --header.",
        ));
    }
    let spec = options
        .volume
        .cipher()?
        .unwrap_or("aes-xts-plain64".parse().map_err(VolumeError::Cipher)?);
    let length = data.geometry().size;
    warn(spec, length, options.yes)?;
    let sector_size = match options.volume.named_sector_size()? {
        Some(size) => size,
        None => natural(&data),
    };
    drop(data);
    let passphrase = options.secret.first_secret(image)?;
    let key_bytes = options.volume.key_bytes()?;
    let key_bytes = key_bytes.unwrap_or_else(|| usual_key_bytes(&spec));
    let key = Key::random(key_bytes).map_err(VolumeError::Cipher)?;
    let creation = Creation {
        spec,
        key_bytes,
        sector_size,
        keyslot: keyslot(options)?,
        data_offset: Some(if detached.is_some() { 0 } else { SHIFT }),
        detached: true,
        label: String::new(),
        subsystem: String::new(),
        uuid: None,
    };
    let path = detached.as_deref().unwrap_or(&side);
    let (draft, device) = draft(path, |file| file.set_len(HEADER_FILE))?;
    let mut header = Header::begin_encryption(&device, &creation, 0, length, &key, &passphrase)?;
    if detached.is_none() {
        // Stopped before the header has its name, the image is as it was, and longer.
        let file = File::options().write(true).open(image);
        let grown = file.and_then(|file| file.set_len(length + SHIFT));
        grown.map_err(|error| cannot_write(image, &error))?;
    }
    publish(draft, path)?;
    let data = Disk::open(image, true)?;
    let keys = Keys {
        old: Key::from_slice(&[]),
        new: key,
    };
    work(options, &mut header, (&device, &data), &keys)?;
    drop((data, device));
    match detached {
        Some(_) => Ok(()),
        None => settle(image, &side),
    }
}

/// Goes through all data.
fn work(
    options: &ReencryptOptions,
    header: &mut Header,
    (device, data): (&Disk, &Disk),
    keys: &Keys,
) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let progress = Progress::bytes(options.no_progress, data.geometry().size);
    let report = |done| tell(&progress, &stop, done);
    let outcome = header.reencrypt(device, data, keys, &report);
    progress.finish();
    outcome?;
    print("done\n")
}

/// Puts the header from beside the volume where it belongs, or drops it where
/// there is nothing to open any more.
fn settle(image: &Path, side: &Path) -> Result<(), Failure> {
    let device = Disk::open(side, true)?;
    let header = Header::read(&device)?;
    let Some(segment) = header.metadata.segments.get(&0) else {
        return Err(several_segments());
    };
    let file = File::options().read(true).write(true).open(image);
    let file = file.map_err(|error| cannot_write(image, &error))?;
    let settled = match (&segment.kind, segment.size) {
        (SegmentKind::Linear, SegmentSize::Fixed(length)) if fs_length(&file)? > length => {
            file.set_len(length)
        }
        (SegmentKind::Linear, _) => Ok(()),
        (SegmentKind::Crypt { .. }, _) => {
            let mut from = File::open(side).map_err(|error| cannot_write(side, &error))?;
            let mut to = &file;
            io::copy(&mut from, &mut to).map(drop)
        }
    };
    settled
        .and_then(|()| file.sync_all())
        .map_err(|error| cannot_write(image, &error))?;
    fs::remove_file(side).map_err(|error| cannot_write(side, &error))?;
    sync_folder(image)
}

/// Decrypts a volume with its header at its start: the header goes into a file
/// beside it, for the data is going to move over it.
fn decrypt(options: &ReencryptOptions) -> Result<(), Failure> {
    let image = options.volume.image();
    let data = Disk::open(image, true)?;
    if disk::is_remote(image) {
        return Err(Failure::new(
            2,
            "beside an NBD export there is no place for a header",
            "Copy the plaintext out with `volume export`.",
        ));
    }
    let original = Header::read(&data)?;
    let secret = options.secret.secret(Format::Luks2, image)?;
    let slot = options.volume.key_slot();
    let unlocked = original.unlock(&data, &secret, slot, &Limits::default())?;
    let side = side_header(image);
    let (draft, device) = draft(&side, |mut file| {
        let start = File::open(image)?;
        io::copy(
            &mut io::Read::take(start, data_offset(&original)),
            &mut file,
        )
        .map(drop)
    })?;
    let mut header = Header::read(&device)?;
    header.begin_decryption(&device, &data, 0)?;
    publish(draft, &side)?;
    let keys = Keys {
        old: unlocked.key,
        new: Key::from_slice(&[]),
    };
    work(options, &mut header, (&device, &data), &keys)?;
    drop((data, device));
    settle(image, &side)
}

/// A header for `path` that nobody finds before it is published: until it says
/// what has begun, it says something that is not so.
fn draft(
    path: &Path,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(NamedTempFile, Disk), Failure> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    let unwritable = |error| cannot_write(path, &error);
    if path.exists() {
        return Err(Failure::new(
            4,
            format!("{} exists already", path.display()),
            "Name another file for the header.",
        ));
    }
    let draft = NamedTempFile::with_prefix_in(".cryptmark-", folder).map_err(unwritable)?;
    fill(draft.as_file()).map_err(unwritable)?;
    let device = Disk::open(draft.path(), true)?;
    Ok((draft, device))
}

/// Gives a draft its name.
fn publish(draft: NamedTempFile, path: &Path) -> Result<(), Failure> {
    let unwritable = |error| cannot_write(path, &error);
    draft.as_file().sync_all().map_err(unwritable)?;
    let named = draft.persist_noclobber(path);
    named.map_err(|error| unwritable(error.error))?;
    sync_folder(path)
}

/// The first byte of the data.
fn data_offset(header: &Header) -> u64 {
    let segment = header.metadata.segments.values().next();
    segment.map_or(0, |segment| segment.offset)
}

fn keyslot(options: &ReencryptOptions) -> Result<KeyslotOptions, Failure> {
    let hash = named_hash(options.volume.hash())?;
    Ok(KeyslotOptions {
        af_hash: hash.unwrap_or(Hash::Sha256),
        ..KeyslotOptions::new(options.kdf.kdf(Format::Luks2, hash)?)
    })
}

fn fs_length(file: &File) -> Result<u64, Failure> {
    match file.metadata() {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) => Err(Failure::new(
            1,
            format!("cannot examine the volume: {error}"),
            "Check the file system.",
        )),
    }
}

/// A new name is only there after its folder is on the disk.
fn sync_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let synced = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    synced.map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        1,
        format!("cannot write {}: {error}", path.display()),
        "Check the permissions and the free space, and run it again.",
    )
}

fn several_segments() -> Failure {
    Failure::new(
        2,
        "the volume has not one segment of encrypted data",
        "Go on with the program that made it so.",
    )
}
