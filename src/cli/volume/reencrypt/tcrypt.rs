//! Reencryption of TrueCrypt and VeraCrypt volumes. Their headers have no room for a journal, so a
//! file keeps the journal and both keys until the end.

use super::keyslot_options;
use super::{ReencryptOptions, cannot_write, draft, publish, sync_name, work};
use crate::cli::Failure;
use crate::cli::volume::arguments::{VolumeArguments, side_header};
use crate::cli::volume::create::HEADER_FILE;
use crate::cli::volume::disk::Disk;
use crate::cli::volume::losses::{accepted, at};
use crate::cli::volume::open::Search;
use block::BlockDevice;
use cipher::Key;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use volume::judge::{self, State, Use};
use volume::luks2::{Header, Keys};
use volume::tcrypt::{Family, Place, Progress, Sealing};
use volume::{Format, Limits, Secret, operate};

/// Begins, and goes on to the end if nothing stops it.
pub fn begin(options: &ReencryptOptions, family: Family) -> Result<(), Failure> {
    let image = options.volume.image();
    let format = family.format();
    let sized = options.volume.named_sector_size()?.is_some();
    if sized || options.volume.key_bytes()?.is_some() {
        return Err(Failure::new(
            2,
            format!("{} has no choice of sector or key size", format.title()),
            "Omit --sector-size and --key-size.",
        ));
    }
    let mut opening = options.volume.tcrypt(family)?;
    // The options name the new encryption; the current one is found by a search.
    let (algorithms, prf) = (opening.algorithms.take(), opening.prf.take());
    if !matches!(opening.place, Place::Hidden | Place::HiddenBackup) {
        let found = "would be destroyed";
        judge::check(Use::Reencrypt, State::Hidden, found, accepted(options.yes))
            .map_err(|error| at(image, error))?;
    }
    let data = Disk::open(image, Use::Reencrypt)?;
    let path = options.volume.header_path();
    if path.is_none() && !data.is_resizable() {
        return Err(Failure::new(
            2,
            "a journal beside a device would not be safe from a power cut",
            "Name a file on another disk with --header. Name the same file until all is done.",
        ));
    }
    let path = path.unwrap_or_else(|| side_header(image));
    let secret = options.secret.secret(format, image)?;
    let limits = Limits::default();
    let search = Search::start()?;
    let watch = |progress| search.watch(progress);
    let unlocked = opening.unlock(&data, &secret, &limits, &watch)?;
    drop(search);
    unlocked.check_original(&opening)?;
    let search = Search::start()?;
    let watch = |done, total| search.watch(Progress { done, total });
    let how = (
        &options.volume.options(false)?,
        &watch as operate::Report<'_>,
    );
    operate::check_behind(&opening, &unlocked, &data, &secret, how)
        .map_err(|error| at(image, error))?;
    drop(search);
    let sealing = Sealing {
        prf: prf.unwrap_or(unlocked.prf),
        ..unlocked.sealing(&opening)
    };
    let passphrase = secret.words(family.format())?;
    let next = unlocked.rekeyed(&data, algorithms.as_deref(), &sealing, passphrase, &limits)?;
    let keyslot = keyslot_options(options.kdf.kdf(Format::Luks2, None)?);
    let (draft, device) = draft(&path, image, |file| file.set_len(HEADER_FILE))?;
    let old = unlocked.mapping(&data)?;
    let mut header = Header::begin_for_another(
        (&device, &data),
        (&old, &next.mapping),
        &next.headers,
        &keyslot,
        &opening.password(&secret)?,
    )?;
    publish(draft, &path)?;
    header.take_headers(&data)?;
    let keys = Keys {
        old: old.key,
        new: next.mapping.key,
    };
    work(options, &mut header, (&device, &data), &keys, Some(&path))?;
    finish(&header, &data, &path, &keys.new)
}

/// Goes on from where it was stopped, to the end.
pub fn go_on(
    options: &ReencryptOptions,
    header: &mut Header,
    (device, data): (&Disk, &Disk),
    path: &Path,
) -> Result<(), Failure> {
    let secret = options
        .secret
        .secret(Format::Luks2, options.volume.image())?;
    let secret = secret_of(&options.volume, secret)?;
    let limits = Limits::default();
    // Any file may be beside it, so the volume must be the one with which this began.
    header.check_headers(data)?;
    let key = match header.is_reencrypting() {
        true => {
            let keys = header.unlock_both(device, &secret, &limits)?;
            header.take_headers(data)?;
            work(options, header, (device, data), &keys, Some(path))?;
            keys.new
        }
        // All is done but for putting the headers where they belong.
        false => {
            let key = header.unlock(device, &secret, None, &limits)?.key;
            header.take_headers(data)?;
            key
        }
    };
    finish(header, data, path, &key)
}

/// The secret that opens the journal's file: the passphrase, mixed with the key files.
fn secret_of(volume: &VolumeArguments, secret: Secret) -> Result<Secret, Failure> {
    match volume.family() {
        Some(family) => Ok(Secret::Passphrase(
            volume.tcrypt(family)?.password(&secret)?,
        )),
        None => Ok(secret),
    }
}

/// Writes the volume's new headers, and drops the file with the keys.
fn finish(header: &Header, data: &Disk, path: &Path, key: &Key) -> Result<(), Failure> {
    header.put_headers(data, key)?;
    let unwritable = |error| cannot_write(path, &error);
    let file = File::options().write(true).open(path).map_err(unwritable)?;
    fs::remove_file(path).map_err(unwritable)?;
    sync_name(path)?;
    // Without its name it is not taken for a journal. Now the key that opens the volume's keys may
    // be removed from the disk.
    let length = file.metadata().map_err(unwritable)?.len();
    let wiped = io::copy(&mut io::Read::take(io::repeat(0), length), &mut &file);
    wiped
        .and_then(|_| (&file).flush())
        .and_then(|()| file.sync_all())
        .map_err(unwritable)
}
