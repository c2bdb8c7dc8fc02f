//! Headers saved, put back and mended.

mod repair;
mod save;

pub use repair::repair_header;
pub use save::{HeaderBackup, TCRYPT_HEADERS, backup_header, bounded, read, save_header};

use super::tcrypt::{first, known, opens_copy, strange_at};
use super::wipe::reserve;
use super::{Options, Report, impossible};
use crate::judge::{self, State, Use};
use crate::place::Place;
use crate::tcrypt::{Family, Opening, Place as At, Unlocked, stranger_at_start};
use crate::{Format, Loss, LuksHeader, Secret, VolumeError};
use block::{BlockDevice, ByteRange, signature};

/// What was done to a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// What, in lines of text.
    pub said: String,
    /// Whether anything was written.
    pub is_changed: bool,
    /// Whether something was lost, which was accepted.
    pub has_lost: bool,
}

/// Changes the label and subsystem label of a LUKS volume of `format`, and its UUID: to a random one
/// if that is `Some(None)`.
///
/// `place` is open for [`Use::ChangeHeader`].
///
/// # Errors
/// [`VolumeError::Foreign`] for what the format does not have, [`VolumeError::Impossible`],
/// [`VolumeError::Reencrypting`], [`VolumeError::Impossible`] for a label that is too long, and those
/// of reading and writing.
pub fn set_names(
    place: &Place,
    format: Format,
    (label, subsystem): (Option<&str>, Option<&str>),
    uuid: Option<Option<&str>>,
) -> Result<(), VolumeError> {
    const LUKS: &[Format] = &[Format::Luks1, Format::Luks2];
    let given = [
        ("label", label.is_some(), &LUKS[1..]),
        ("subsystem", subsystem.is_some(), &LUKS[1..]),
        ("uuid", uuid.is_some(), LUKS),
    ];
    let mut given = given.into_iter().filter(|(_, given, _)| *given);
    if let Some((parameter, _, formats)) = given.find(|(.., its)| !its.contains(&format)) {
        return Err(VolumeError::Foreign {
            parameter,
            format,
            formats,
        });
    }
    let device = place.header();
    match LuksHeader::read(device)? {
        header if header.is_reencrypting() => Err(VolumeError::Reencrypting),
        LuksHeader::Luks1(mut header) => match uuid {
            Some(uuid) => header.set_uuid(device, uuid),
            None => Ok(()),
        },
        LuksHeader::Luks2(mut header) => {
            // A program that does not know the header's requirements must not change it.
            header.keyslots_of_data()?;
            if label.or(subsystem).is_some() {
                header.set_labels(device, label, subsystem)?;
            }
            match uuid {
                Some(uuid) => header.set_uuid(device, uuid),
                None => Ok(()),
            }
        }
    }
}

/// Puts the header and key slots in `saved` back, and with them the secrets of that time.
///
/// `place` is open for [`Use::MendHeader`]. TrueCrypt and VeraCrypt need the `secret` that opens the
/// header in the backup.
///
/// # Errors
/// [`VolumeError::Judged`] if keys, key slots or something else would be lost, and that is not
/// accepted; [`VolumeError::Impossible`] for a backup that is cut off or larger than the volume;
/// those of reading, unlocking and writing.
pub fn restore_header(
    place: &Place,
    saved: &dyn BlockDevice,
    secret: Option<&Secret>,
    options: &Options,
    report: Report<'_>,
) -> Result<Mended, VolumeError> {
    if let Some(family) = options.family() {
        let format = family.format();
        let secret = secret.ok_or(VolumeError::NoSecret { format })?;
        return restore_tcrypt(place, saved, (family, secret), options, report);
    }
    let from = LuksHeader::read(saved)?;
    let length = bounded(from.bytes_with_keyslots())?;
    let mut bytes = Vec::new();
    let unread = read(saved, ByteRange::new(0, length), &mut bytes)?;
    if unread > 0 || (bytes.len() as u64) < length {
        return Err(impossible(
            "the backup ends before its key slots do",
            "Give a complete backup.",
        ));
    }
    let device = place.header();
    place.at_header(judge::check_device(
        Use::MendHeader,
        device,
        &options.accepted,
    ))?;
    let lost = lost(device, &from, &bytes)?;
    let has_lost = lost.is_some();
    place.at_header(check_replaced(lost, options))?;
    if device.geometry().size < length {
        return Err(impossible(
            "the volume is smaller than the backup",
            "Name the volume that the backup was made of.",
        ));
    }
    reserve(device, ByteRange::new(0, length))?;
    let before = LuksHeader::read(device);
    LuksHeader::put(device, &bytes)?;
    let mut said = format!(
        "restored {length} bytes of the {} volume {}\n",
        from.format(),
        from.uuid()
    );
    for back in before.iter().flat_map(|before| from.losses(before)) {
        if let Loss::Keyslots(slots) = back {
            let slots = slots.join(", ");
            said += &format!("what opened key slot {slots} at that time opens the volume again\n");
        }
    }
    Ok(Mended {
        said,
        is_changed: true,
        has_lost,
    })
}

/// Refuses to write a header where something would be lost with the one of now.
fn check_replaced(lost: Option<String>, options: &Options) -> Result<(), VolumeError> {
    match lost {
        Some(lost) => judge::check(Use::MendHeader, State::Replaced, lost, &options.accepted),
        None => Ok(()),
    }
}

/// The losses, in words, if `from` takes the place of the header or the data on `device`; `None` if
/// there are none. `bytes` are those of the backup.
fn lost(
    device: &dyn BlockDevice,
    from: &LuksHeader,
    bytes: &[u8],
) -> Result<Option<String>, VolumeError> {
    if let Ok(there) = LuksHeader::read(device) {
        let losses = there.losses(from);
        let mut losses: Vec<String> = losses.iter().map(ToString::to_string).collect();
        if let LuksHeader::Luks2(header) = &there {
            let found = [header.stranger(device)?, header.nameless(device)?];
            let said = |name| format!("{name}, which is in the place of the header");
            losses.extend(found.into_iter().flatten().map(said));
        }
        if losses.is_empty() && has_other_material(device, &there, (from, bytes))? {
            let lost = "the key material of its key slots, which is not that of the backup";
            losses.push(lost.to_owned());
        }
        return Ok((!losses.is_empty()).then(|| losses.join("; ")));
    }
    let found = signature::names(device)?;
    Ok(Some(match found.first() {
        Some(found) => format!("{found}, which it holds in place of that header"),
        None => "what it holds: no header that can be read and compared with the backup".to_owned(),
    }))
}

/// Whether key slots that `there`, the header on `device`, and the backup have in common hold other
/// key material in the backup. One of the two is damaged. If some material is no
/// noise, it is lost already, and the backup is what may have it.
fn has_other_material(
    device: &dyn BlockDevice,
    there: &LuksHeader,
    (from, bytes): (&LuksHeader, &[u8]),
) -> Result<bool, VolumeError> {
    let lost = match there {
        LuksHeader::Luks1(header) => header.lost_keyslots(device)?,
        LuksHeader::Luks2(header) => header.lost_keyslots(device)?,
    };
    if there.format() != from.format() || !lost.is_empty() {
        return Ok(false);
    }
    let own = there.areas_in_use();
    let common = from.areas_in_use().into_iter().skip(1);
    for area in common.filter(|area| own.contains(area)) {
        let mut material = Vec::new();
        read(device, area, &mut material)?;
        let at = area.offset as usize;
        if bytes.get(at..at + material.len()) != Some(&material[..]) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes headers anew from the one in a backup, which the secret of then opens.
fn restore_tcrypt(
    place: &Place,
    saved: &dyn BlockDevice,
    (family, secret): (Family, &Secret),
    options: &Options,
    report: Report<'_>,
) -> Result<Mended, VolumeError> {
    let opening = options.tcrypt(family)?;
    let passphrase = secret.words(family.format())?;
    let places = [Some(opening.place), opening.place.copy()];
    let places: Vec<At> = places.into_iter().flatten().collect();
    let unlocked = first(&opening, &places, saved, secret, (options, report))?;
    let device = place.data();
    let there = known(&opening, &unlocked);
    let there = first(&there, &places, device, secret, (options, report));
    let lost = tcrypt_lost(
        (&opening, places[0]),
        &unlocked,
        there,
        device,
        secret,
        (options, report),
    )?;
    let has_lost = lost.is_some();
    check_replaced(lost, options)?;
    let sealing = unlocked.sealing(&opening);
    unlocked.write_headers(device, &sealing, passphrase, &options.limits)?;
    Ok(Mended {
        said: "the header and its copy are rewritten from the backup\n".to_owned(),
        is_changed: true,
        has_lost,
    })
}

/// The losses, in words, if the header of a backup takes the place of the bytes on `device`.
fn tcrypt_lost(
    (opening, at): (&Opening, At),
    saved: &Unlocked,
    there: Result<Unlocked, VolumeError>,
    device: &dyn BlockDevice,
    secret: &Secret,
    how: (&Options, Report<'_>),
) -> Result<Option<String>, VolumeError> {
    match there {
        Ok(there) if there.is_of_same_data(saved) => {
            if at != At::System
                && let Some(name) = stranger_at_start(device)?
            {
                return Ok(Some(format!(
                    "{name}, which it holds in place of that header"
                )));
            }
            let behind = there.behind(device, at)?;
            let strange = |_: &u64| !opens_copy(opening, saved, at, device, secret, how);
            Ok(behind.filter(strange).map(strange_at))
        }
        Ok(there) if there.has_same_keys(saved) => {
            let place = |unlocked: &Unlocked| -> Result<String, VolumeError> {
                let data = unlocked.mapping(device)?.data;
                Ok(format!("{} bytes from byte {}", data.length, data.offset))
            };
            Ok(Some(format!(
                "the place of its data: {}, and in the backup {}",
                place(&there)?,
                place(saved)?
            )))
        }
        Ok(_) => Ok(Some(
            "the keys of its data, which are not the backup's: they could never be read again"
                .to_owned(),
        )),
        Err(stopped) if is_stop(&stopped) => Err(stopped),
        Err(_) => Ok(Some(match saved.stranger(device, true)? {
            Some(name) => format!("{name}, which it holds in place of that header"),
            None => "what it holds: no header there opens with what opens the backup, and that of \
                     another volume or another passphrase looks like noise"
                .to_owned(),
        })),
    }
}

/// Whether the caller has ended the search.
fn is_stop(error: &VolumeError) -> bool {
    error.verdict() == crate::Verdict::Interrupted
}
