//! More or less data in a file.

use super::convert::check_own;
use super::create::check_whole;
use super::{Options, Report, impossible};
use crate::judge::{self, State, Use};
use crate::place::Place;
use crate::tcrypt::Family;
use crate::{LuksHeader, Secret, VolumeError, volume};
use block::layer::Slice;
use block::{BlockDevice, ByteRange};

/// Gives the volume the new end `to`, which is that of its data and of its file, header included, in
/// bytes. Returns the length of its data, bytes.
///
/// `place` is open for [`Use::ChangeLayout`]. A volume of LUKS needs no `secret`, and a TrueCrypt or
/// VeraCrypt volume can only become larger.
///
/// # Errors
/// [`VolumeError::Judged`] for data that would be lost, [`VolumeError::Impossible`] for a size that
/// the volume cannot have, [`VolumeError::NoSecret`], and those of unlocking, reading and writing.
pub fn resize(
    place: &mut Place,
    to: u64,
    secret: Option<&Secret>,
    options: &Options,
    report: Report<'_>,
) -> Result<u64, VolumeError> {
    check_own(place)?;
    let Some(family) = options.family() else {
        return luks(place, to, options);
    };
    let format = family.format();
    let secret = secret.ok_or(VolumeError::NoSecret { format })?;
    grow(place, to, (family, secret), options, report)
}

fn luks(place: &mut Place, to: u64, options: &Options) -> Result<u64, VolumeError> {
    let header = match (LuksHeader::read(place.header()), options.format) {
        (Err(VolumeError::NotThis { .. }), format) => {
            let format = match format {
                Some(format) => format,
                None => volume::detect(place.header())?,
            };
            return Err(impossible(
                format!("{} is as large as its file", format.article()),
                "Change the size of the file.",
            ));
        }
        (header, _) => header?,
    };
    match &header {
        LuksHeader::Luks1(header) => header.check_beside(place.header(), place.data())?,
        LuksHeader::Luks2(header) => header.check_beside(place.header(), place.data())?,
    }
    if place.is_apart() {
        check_encrypted(place.data(), header.data_offset(), &options.accepted)?;
    }
    let (offset, unit, fixed) = match &header {
        LuksHeader::Luks1(header) => (header.payload_offset, 512, None),
        LuksHeader::Luks2(header) => {
            let (segment, sector) = header.only_segment()?;
            (segment.offset, sector, segment.size)
        }
    };
    let size = place.data().length()?;
    let is_file = place.data().is_resizable();
    if !is_file && (fixed.is_none() || to > size) {
        return Err(impossible(
            "the size of the device cannot be changed",
            "The volume takes all of its device. Change the size of the device.",
        ));
    }
    if to < offset + unit || !(to - offset).is_multiple_of(unit) {
        return Err(impossible(
            format!("{to} bytes are not the header's {offset} plus whole sectors of {unit}"),
            "Give a size that fits.",
        ));
    }
    let end = fixed.map_or(size, |bytes| offset.saturating_add(bytes));
    // A file is cut, also of what is behind the volume.
    let taken = if is_file { size } else { to };
    if to < end {
        let behind = match end < taken && !is_blank(place.data(), end, taken)? {
            true => format!(", and the {} bytes behind the volume", taken - end),
            false => String::new(),
        };
        let found = format!("the last {} bytes, from byte {to} on{behind}", end - to);
        judge::check(Use::ChangeLayout, State::CutOff, found, &options.accepted)?;
    }
    check_behind(place.data(), end, taken, &options.accepted)?;
    // The area that the header describes is there at any time.
    if to > size {
        place.set_len(to)?;
    }
    if let (Some(_), LuksHeader::Luks2(mut header)) = (fixed, header) {
        header.set_data_size(place.header(), to - offset)?;
    }
    if to < size && is_file {
        place.set_len(to)?;
    }
    Ok(to - offset)
}

/// Makes a TrueCrypt or VeraCrypt volume as large as its file becomes, or as
/// its device is.
fn grow(
    place: &mut Place,
    to: u64,
    (family, secret): (Family, &Secret),
    options: &Options,
    report: Report<'_>,
) -> Result<u64, VolumeError> {
    let limits = &options.limits;
    let opening = options.tcrypt(family)?;
    let passphrase = secret.words(family.format())?;
    let mut unlocked = opening.unlock(place.data(), secret, limits, report)?;
    unlocked.check_original(&opening)?;
    let size = place.data().length()?;
    let is_file = place.data().is_resizable();
    if is_file && to < size {
        return Err(impossible(
            format!("{} cannot become smaller", family.format().article()),
            "Make a smaller one, and copy the data.",
        ));
    }
    if !is_file && to != size {
        return Err(impossible(
            "the size of the device cannot be changed",
            format!(
                "The volume takes all of its device. Give {size}, or change the size of the device."
            ),
        ));
    }
    check_whole(to)?;
    unlocked.check_growth(place.data())?;
    let end = unlocked.end(place.data().geometry().size);
    if to == size && end == size {
        // It has this size already.
        return Ok(unlocked.header.volume_size);
    }
    check_behind(place.data(), end, size, &options.accepted)?;
    if is_file {
        // Until its header says otherwise, the volume is as large as it was.
        place.set_len(to)?;
    }
    let sealing = unlocked.sealing(&opening);
    let before = unlocked.header.volume_size;
    let grown = unlocked.grow(place.data(), &sealing, passphrase, limits);
    if grown.is_err() && unlocked.header.volume_size == before && is_file {
        // The copy of the header is where it was, at the end.
        place.set_len(size)?;
    }
    grown?;
    Ok(unlocked.header.volume_size)
}

/// Refuses to cut or take data in which there is a name, where all should be encrypted by a header
/// that is apart.
fn check_encrypted(
    data: &dyn BlockDevice,
    offset: u64,
    accepted: &[State],
) -> Result<(), VolumeError> {
    let size = data.geometry().size;
    let Some(length) = size.checked_sub(offset).filter(|length| *length > 0) else {
        return Ok(());
    };
    let names = judge::names(&Slice::new(data, ByteRange::new(offset, length))?)?;
    match names.first() {
        Some(name) => judge::check(
            Use::ChangeLayout,
            State::Unencrypted,
            name.to_string(),
            accepted,
        ),
        None => Ok(()),
    }
}

/// Refuses to take what is stored from `start` to `end`, which lies behind the volume.
fn check_behind(
    device: &dyn BlockDevice,
    start: u64,
    end: u64,
    accepted: &[State],
) -> Result<(), VolumeError> {
    match start >= end || is_blank(device, start, end)? {
        true => Ok(()),
        false => {
            let found = format!("from byte {start} on");
            judge::check(Use::ChangeLayout, State::Behind, found, accepted)
        }
    }
}

/// Whether nothing is stored in these bytes; of a device, as far as samples tell.
pub fn is_blank(device: &dyn BlockDevice, start: u64, end: u64) -> Result<bool, VolumeError> {
    const PIECE: u64 = 1 << 20;
    let geometry = device.geometry();
    if end > geometry.size {
        // Behind the last whole block nothing is read, and something is there.
        return Ok(false);
    }
    if !device.is_resizable() {
        let block = u64::from(geometry.logical_block);
        let start = start.next_multiple_of(block).min(end);
        let part = Slice::new(device, ByteRange::new(start, end - start))?;
        return Ok(part.content()?.is_blank());
    }
    let range = ByteRange::new(start, end.saturating_sub(start));
    let mut bytes = vec![0; PIECE as usize];
    for extent in device.extents(range)?.iter().filter(|extent| !extent.hole) {
        let (mut at, mut left) = (extent.range.offset, extent.range.length);
        while left > 0 {
            let part = left.min(PIECE);
            let bytes = &mut bytes[..part as usize];
            device.read_at(at, bytes)?;
            if bytes.iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            at += part;
            left -= part;
        }
    }
    Ok(true)
}
