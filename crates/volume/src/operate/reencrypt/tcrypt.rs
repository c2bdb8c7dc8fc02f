//! Reencryption of TrueCrypt and VeraCrypt volumes. Their headers have no room for a journal, so a
//! file keeps the journal and both keys until the end.

use super::in_place::HEADER_FILE;
use super::journal::{Draft, cannot_write, sync_name};
use super::{Caller, begun_with, work};
use crate::judge::{self, State, Use};
use crate::luks2::{Header, Keys, KeyslotOptions};
use crate::operate::tcrypt::check_behind;
use crate::operate::{Options, impossible};
use crate::place::{Place, Site};
use crate::tcrypt::{Family, Place as At, Sealing};
use crate::{Format, Secret, VolumeError};
use block::BlockDevice;
use cipher::{CipherSpec, Key};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Begins, and goes on to the end if nothing stops it.
pub fn begin(
    site: &Site<'_>,
    family: Family,
    options: &Options,
    caller: &dyn Caller,
) -> Result<(), VolumeError> {
    let format = family.format();
    let said = &options.parameters;
    if said.sector_size()?.is_some() || said.key_bytes()?.is_some() {
        return Err(impossible(
            format!("{} has no choice of sector or key size", format.title()),
            "Say neither.",
        ));
    }
    let mut opening = said.tcrypt(family)?;
    // The options name the new encryption; the current one is found by a search.
    let (algorithms, prf) = (opening.algorithms.take(), opening.prf.take());
    if !matches!(opening.place, At::Hidden | At::HiddenBackup) {
        let found = "would be destroyed";
        judge::check(Use::Reencrypt, State::Hidden, found, &options.accepted)?;
    }
    let data = site.open(Use::Reencrypt)?;
    let path = site.apart();
    if matches!(opening.place, At::Hidden | At::HiddenBackup) {
        let file = path.clone().unwrap_or_else(|| site.side());
        let found = format!(
            "until all is done, {} shows that there is a hidden volume, and where",
            file.display()
        );
        judge::check(Use::Reencrypt, State::Weak, found, &options.accepted)?;
    }
    if path.is_none() && !data.is_resizable() {
        return Err(impossible(
            "a journal beside a device would not be safe from a power cut",
            "Name a file on another disk for the header. Name the same file until all is done.",
        ));
    }
    let path = path.unwrap_or_else(|| site.side());
    let secret = caller.secret(format)?;
    let report = |done, total| caller.search(done, total);
    let unlocked = opening.unlock(&data, &secret, &options.limits, &report)?;
    unlocked.check_original(&opening)?;
    check_behind(&opening, &unlocked, &data, &secret, (options, &report))?;
    let sealing = Sealing {
        prf: prf.unwrap_or(unlocked.prf),
        ..unlocked.sealing(&opening)
    };
    let passphrase = secret.words(format)?;
    let limits = &options.limits;
    let next = unlocked.rekeyed(&data, algorithms.as_deref(), &sealing, passphrase, limits)?;
    let keyslot = KeyslotOptions {
        // The password may be empty beside key files.
        allow_empty: true,
        stop: options.limits.stop,
        ..KeyslotOptions::new(caller.derivation(None)?)
    };
    caller.begin()?;
    let draft = Draft::new(&path, |file| file.set_len(HEADER_FILE))?;
    let old = unlocked.mapping(&data)?;
    let mut header = Header::begin_for_another(
        (draft.device(), &data),
        (&old, &next.mapping),
        &next.headers,
        &keyslot,
        &opening.password(&secret)?,
    )?;
    let device = draft.publish()?;
    header.take_headers(&data)?;
    let keys = Keys {
        old: old.key,
        new: next.mapping.key,
    };
    work(
        site,
        &mut header,
        (&device, &data),
        &keys,
        (Some(&path), caller),
    )?;
    finish(&header, &data, &path, &keys.new)
}

/// Goes on from where it was stopped, to the end. `place` has its journal at `path`.
pub fn go_on(
    site: &Site<'_>,
    header: &mut Header,
    (place, path): (&Place, &Path),
    options: &Options,
    caller: &dyn Caller,
) -> Result<(), VolumeError> {
    let (device, data) = (place.header(), place.data());
    let secret = secret_of(options, caller.secret(Format::Luks2)?)?;
    // Any file may be beside it, so the volume must be the one with which this began.
    header.check_headers(data)?;
    let key = match header.is_reencrypting() {
        true => {
            let keys = header.unlock_both(device, &secret, &options.limits)?;
            header.take_headers(data)?;
            work(site, header, (device, data), &keys, (Some(path), caller))?;
            keys.new
        }
        // All is done but for putting the headers where they belong.
        false => {
            let key = header.unlock(device, &secret, None, &options.limits)?.key;
            header.take_headers(data)?;
            key
        }
    };
    finish(header, data, path, &key)
}

/// Refuses to go on with other ciphers than it began with.
pub fn check_choice(options: &Options, header: &Header) -> Result<(), VolumeError> {
    let (Some(family), Some((encryption, sector_size))) = (options.family(), header.becomes())
    else {
        return Ok(());
    };
    let began: CipherSpec = encryption.parse()?;
    match options.parameters.tcrypt(family)?.algorithms {
        Some(algorithms) if algorithms != began.algorithms() => {
            Err(begun_with(encryption, sector_size))
        }
        _ => Ok(()),
    }
}

/// The secret that opens the journal's file: the passphrase, mixed with the key files.
fn secret_of(options: &Options, secret: Secret) -> Result<Secret, VolumeError> {
    match options.family() {
        Some(family) => {
            let opening = options.parameters.tcrypt(family)?;
            Ok(Secret::Passphrase(opening.password(&secret)?))
        }
        None => Ok(secret),
    }
}

/// Writes the volume's new headers, and drops the file with the keys.
fn finish(
    header: &Header,
    data: &dyn BlockDevice,
    path: &Path,
    key: &Key,
) -> Result<(), VolumeError> {
    header.put_headers(data, key)?;
    let unwritable = |error| cannot_write(path, error);
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
