//! `cryptmark volume header restore` and `repair`.

use super::{RepairOptions, RestoreOptions};
use crate::cli::volume::arguments::Volume;
use crate::cli::volume::disk::Names;
use crate::cli::volume::losses;
use crate::cli::volume::open::searching;
use crate::cli::{Failure, print_done};
use volume::judge::{State, Use};
use volume::operate::{self, Mended};
use volume::{Format, LuksHeader, Place, VolumeError};

/// Puts header and keyslots back.
pub fn restore(options: &RestoreOptions, names: &Names) -> Result<(), Failure> {
    let volume = &options.volume.with(names);
    volume.check_distinct("--input", &options.input)?;
    let saved = names.open(&options.input, Use::Read)?.device;
    let format = volume.family().map(|family| family.format());
    if format.is_none() {
        // No passphrase is typed, and nothing held, for a file that is no backup.
        LuksHeader::read(&*saved).map_err(|error| losses::at(&options.input, error))?;
    }
    let place = place(volume)?;
    let secret = format.map(|format| options.secret.secret(format, &options.input));
    let secret = secret.transpose()?;
    let (secret, wanted) = (secret.as_ref(), volume.options(options.yes)?);
    let mended = searching(|it| operate::restore_header(&place, &*saved, secret, &wanted, it))?;
    let mended = mended.map_err(|error| volume.at(error))?;
    names.backups.spare(&options.input);
    say(&mended, mended.has_lost, names)
}

/// Mends what can be mended.
pub fn repair(options: &RepairOptions, names: &Names) -> Result<(), Failure> {
    let volume = &options.volume.with(names);
    let format = volume.family().map(|family| family.format());
    let place = place(volume)?;
    let proved_as = format.or(options.secret.is_given().then_some(Format::Luks2));
    let secret = proved_as.map(|format| options.secret.secret(format, volume.image()));
    let secret = secret.transpose()?;
    let is_luks1 = format.is_none() && Format::detect(place.header())? == Some(Format::Luks1);
    let (secret, wanted) = (secret.as_ref(), volume.options(options.yes)?);
    let uuid = options.uuid.as_deref();
    let mended = searching(|it| operate::repair_header(&place, secret, uuid, &wanted, it))?;
    let mended = mended.map_err(|error| refused(volume, is_luks1, error))?;
    say(&mended, mended.is_changed, names)
}

/// Holds the volume so that its header can be written.
fn place(volume: &Volume) -> Result<Place, Failure> {
    let devices = volume.devices(Use::MendHeader)?;
    match volume.family() {
        Some(family) => volume.refuse_foreign_options(family.format())?,
        None => volume.check_luks(devices.header())?,
    }
    Ok(devices.place())
}

/// What is said if a header cannot be mended: where there may be another one.
fn refused(volume: &Volume, is_luks1: bool, error: VolumeError) -> Failure {
    const BACKUPS: &str = "see `cryptmark volume header backups`, and put a backup back with \
                           `header restore`.";
    let remedy = match &error {
        VolumeError::Judged(finding) if finding.state == State::Unproved => {
            "Prove it with --passphrase-file or --key-file, which must open it, or give --yes."
                .to_owned()
        }
        VolumeError::Header { .. } | VolumeError::Cut { .. } | VolumeError::Unsupported { .. }
            if is_luks1 =>
        {
            format!("LUKS1 has one header and no copy of it: {BACKUPS}")
        }
        VolumeError::NotThis { .. } | VolumeError::Header { .. } if volume.family().is_none() => {
            format!("Nothing is left that a header could be made of: {BACKUPS}")
        }
        error => error.remedy(),
    };
    volume.at(error).with_remedy(remedy)
}

/// Says what was done, and where the header of before is if it was replaced.
fn say(mended: &Mended, replaced: bool, names: &Names) -> Result<(), Failure> {
    let mut text = mended.said.clone();
    if let (true, Some(path)) = (replaced, names.backups.kept()) {
        text += &format!("the previous contents are kept in {}\n", path.display());
    }
    match mended.is_changed {
        true => print_done(&text),
        false => crate::cli::print(&text)?,
    }
    Ok(())
}
