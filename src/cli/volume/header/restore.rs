//! `cryptmark volume header restore`: a header of then takes the place of the one
//! of now, if nothing is lost with that.

use super::save::luks;
use super::{RestoreOptions, tcrypt};
use crate::cli::volume::backups;
use crate::cli::volume::disk::Disk;
use crate::cli::volume::losses::{accepted, at};
use crate::cli::{Failure, print_done};
use block::signature;
use block::{BlockDevice, ByteRange};
use volume::judge::{self, Use};
use volume::{Loss, LuksHeader, VolumeError, operate};

/// Puts header and keyslots back.
pub fn run(options: &RestoreOptions) -> Result<(), Failure> {
    if let Some(family) = options.volume.family() {
        return tcrypt::restore(options, family);
    }
    options.volume.check_distinct("--input", &options.input)?;
    let saved = Disk::open(&options.input, Use::Read)?;
    let from = luks(LuksHeader::read(&saved))?;
    let length = backups::bounded(from.bytes_with_keyslots())?;
    let mut bytes = Vec::new();
    let unread = backups::read(&saved, ByteRange::new(0, length), &mut bytes)?;
    if unread > 0 || (bytes.len() as u64) < length {
        return Err(Failure::new(
            2,
            format!("{} ends before its key slots do", options.input.display()),
            "Give a complete backup.",
        ));
    }
    let devices = options.volume.devices_for_header(Use::MendHeader)?;
    let device = devices.header();
    let image = options.volume.image().display();
    let judged = judge::check_device(Use::MendHeader, device, accepted(options.yes));
    judged.map_err(|error| at(options.volume.image(), error))?;
    let lost = lost(device, &from)?;
    if let (Some(lost), false) = (&lost, options.yes) {
        return Err(Failure::new(
            4,
            format!("{image} would lose {lost}"),
            "Nothing was changed. Give --yes if the backup belongs there all the same.",
        ));
    }
    if device.geometry().size < length {
        return Err(Failure::new(
            2,
            format!("{image} is smaller than the backup"),
            "Name the volume that the backup was made of.",
        ));
    }
    operate::reserve(device, ByteRange::new(0, length))?;
    let before = LuksHeader::read(device);
    LuksHeader::put(device, &bytes)?;
    backups::spare(&options.input);
    let mut text = format!(
        "restored {length} bytes of the {} volume {}\n",
        from.format(),
        from.uuid()
    );
    for back in before.iter().flat_map(|before| from.losses(before)) {
        if let Loss::Keyslots(slots) = back {
            let slots = slots.join(", ");
            text += &format!("what opened key slot {slots} at that time opens the volume again\n");
        }
    }
    if let (Some(_), Some(path)) = (lost, backups::kept()) {
        text += &format!("the previous contents are kept in {}\n", path.display());
    }
    print_done(&text);
    Ok(())
}

/// The losses, in words, if `from` takes the place of the header or the data on `device`; `None` if
/// there are none.
fn lost(device: &Disk, from: &LuksHeader) -> Result<Option<String>, Failure> {
    if let Ok(there) = LuksHeader::read(device) {
        let losses = there.losses(from);
        let mut losses: Vec<String> = losses.iter().map(ToString::to_string).collect();
        if let LuksHeader::Luks2(header) = &there
            && let Some(name) = header.stranger(device)?
        {
            losses.push(format!("{name}, which is in the place of the header"));
        }
        return Ok((!losses.is_empty()).then(|| losses.join("; ")));
    }
    let found = signature::names(device).map_err(VolumeError::Block)?;
    Ok(Some(match found.first() {
        Some(found) => format!("{found}, which it holds in place of that header"),
        None => "what it holds: no header that can be read and compared with the backup".to_owned(),
    }))
}
