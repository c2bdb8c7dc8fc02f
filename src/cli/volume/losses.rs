//! What would be lost, in words, before anything is overwritten.

use super::arguments::side_header;
use super::create::fill;
use super::disk::{self, Disk};
use crate::cli::Failure;
use block::signature::{self, Content, Found};
use block::{BlockDevice, BlockError, ByteRange};
use std::path::Path;
use volume::{Format, VolumeError, luks1, luks2};

/// Refuses to let `place` be overwritten if it is in use or, unless the loss is
/// `confirmed`, holds anything.
///
/// # Errors
/// Exit code 4 with all that is known of what it holds; those of reading it.
pub fn guard(place: &Path, confirmed: bool) -> Result<(), Failure> {
    let side = side_header(place);
    if side.exists() {
        return Err(Failure::new(
            4,
            format!(
                "{} has the header of a reencryption of {} that was stopped",
                side.display(),
                place.display()
            ),
            "Go on with `cryptmark volume reencrypt`. If nobody needs that any more, remove the file \
             with the header first.",
        ));
    }
    let refused = match disk::is_remote(place) {
        true if confirmed => return Ok(()),
        true => signature::guard_content(place, &Disk::open(place, false)?),
        false => signature::guard(place, confirmed),
    };
    match refused {
        Err(BlockError::Holds { path, content }) => Err(refusal(&path, &content)),
        Err(other) => Err(VolumeError::Block(other).into()),
        Ok(()) => disk::check_settled(place),
    }
}

/// Refuses because `place` holds `content`.
pub fn refusal(place: &Path, content: &Content) -> Failure {
    let device = Disk::open(place, false).ok();
    let words = content.in_words(|found| known_better(found, device.as_ref()?));
    Failure::new(
        4,
        format!("{} holds {words}", place.display()),
        "All of that would be lost. If nobody needs it, confirm with --yes.",
    )
}

/// Refuses because the volume in `place` holds what `words` say.
pub fn refusal_inside(place: &Path, words: &str) -> Failure {
    Failure::new(
        4,
        format!("the volume in {} holds {words}", place.display()),
        "All of that would be lost. If nobody needs it, confirm with --yes.",
    )
}

/// What `place` holds, which is open as `device`: of a file, all that it stores.
///
/// # Errors
/// Those of reading it.
pub fn content(place: &Path, device: &Disk) -> Result<Content, Failure> {
    let content = match disk::is_remote(place) {
        true => signature::content(device),
        false => signature::inspect(place).map(|occupancy| occupancy.content),
    };
    Ok(content.map_err(VolumeError::Block)?)
}

/// What the plaintext of a volume shows, in words. Of a fresh one it is noise, or zeros
/// where nothing is stored: only what has a name, or what noise never looks like, counts.
///
/// # Errors
/// Those of reading it.
pub fn shown(volume: &dyn BlockDevice) -> Result<Option<String>, Failure> {
    let look = || -> Result<Option<String>, BlockError> {
        let found = signature::names(volume)?;
        if !found.is_empty() {
            return Ok(Some(Content { found, data: None }.to_string()));
        }
        let place = signature::readable(volume)?;
        Ok(place.map(|place| format!("readable data at byte {place}, with no known signature")))
    };
    match look() {
        // What has no right tag was never written, or is lost.
        Err(BlockError::Tampered { .. }) => Ok(None),
        looked => Ok(looked.map_err(VolumeError::Block)?),
    }
}

/// A LUKS volume by its version, name and key slots: what nobody can make again.
fn known_better(found: &Found, device: &Disk) -> Option<String> {
    (found.name == signature::LUKS && found.at == 0).then_some(())?;
    let format = Format::detect(device).ok()??;
    let (uuid, label, slots): (String, String, Vec<u32>) = match format {
        Format::Luks1 => {
            let header = luks1::Header::read(device).ok()?;
            let slots = (0..).zip(&header.keyslots);
            let active = slots.filter(|(_, slot)| slot.active);
            let numbers = active.map(|(number, _)| number).collect();
            (header.uuid.to_string(), String::new(), numbers)
        }
        Format::Luks2 => {
            let header = luks2::Header::read(device).ok()?;
            let slots = header.metadata.keyslots.keys().copied().collect();
            (
                header.binary.uuid.to_string(),
                header.binary.label.to_string(),
                slots,
            )
        }
        _ => return None,
    };
    let label = match label.is_empty() {
        true => String::new(),
        false => format!(" \"{}\"", label.escape_debug()),
    };
    let slots: Vec<String> = slots.iter().map(u32::to_string).collect();
    let slots = match slots.as_slice() {
        [] => "no key slots".to_owned(),
        [one] => format!("key slot {one}"),
        several => format!("key slots {}", several.join(", ")),
    };
    Some(format!(
        "a {} volume{label} (UUID {uuid}, {slots})",
        format.title()
    ))
}

/// Overwrites the header of a LUKS volume that is about to be replaced on `device`,
/// and all its key slots, with noise: key material outlives what points to it.
///
/// # Errors
/// Those of writing.
pub fn shred_header(device: &Disk) -> Result<(), Failure> {
    let end = match Format::detect(device) {
        Ok(Some(Format::Luks1)) => luks1::Header::read(device).map(|header| header.payload_offset),
        Ok(Some(Format::Luks2)) => luks2::Header::read(device).map(|header| {
            let segments = header.metadata.segments.values();
            segments.map(|segment| segment.offset).min().unwrap_or(0)
        }),
        _ => return Ok(()),
    };
    // A header that is damaged does not say where its key slots end, and one whose
    // data is elsewhere may take all of its file.
    let end = match end.unwrap_or(0) {
        0 => USUAL_HEADER,
        end => end.min(MOST_HEADER),
    };
    let end = end.min(device.geometry().size) & !511;
    fill(device, ByteRange::new(0, end), true)
}

/// What cryptsetup and this program leave for a header, and the most of it that is
/// overwritten.
const USUAL_HEADER: u64 = 16 << 20;
const MOST_HEADER: u64 = 1 << 30;
