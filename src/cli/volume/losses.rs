//! Descriptions of the data that would be lost, before anything is overwritten.

mod fitting;

use super::disk::{self, Names};
use crate::cli::Failure;
use block::signature::{self, Bytes, Content};
use block::{AlignedBuffer, BlockDevice, BlockError, ByteRange};
use fitting::Fitting;
use std::fs::File;
use std::path::Path;
use volume::judge::{State, Use};
use volume::{VolumeError, operate};

/// Refuses to let `place` be overwritten if it is in use, or a reencryption of it has stopped.
/// To be called before it is opened for writing.
///
/// # Errors
/// Exit code 4; those of reading it.
pub fn guard_use(place: &Path, names: &Names) -> Result<(), Failure> {
    let side = names.side_header(place);
    if side.exists() {
        return Err(Failure::new(
            4,
            format!(
                "{} has the header of a reencryption of {} that was stopped",
                side.display(),
                place.display()
            ),
            "Continue with `cryptmark volume reencrypt`. If you don't need that any more, remove the file \
             with the header first.",
        ));
    }
    if disk::is_remote(place) {
        return Ok(());
    }
    // The loss is confirmed as far as this goes: what it holds is asked for when it is held.
    signature::guard(place, true).map_err(VolumeError::Block)?;
    names.check_settled(place)
}

/// Refuses to let what is open as `file` be overwritten if it holds anything.
///
/// # Errors
/// Exit code 4 with all that is known of what it holds; those of reading it.
pub fn guard_file(place: &Path, file: &File) -> Result<(), Failure> {
    let content = signature::stored(place, file).map_err(VolumeError::Block)?;
    if content.is_blank() {
        return Ok(());
    }
    let disk = Names::default().open(place, Use::Read)?;
    operate::check_content(&content, &disk, &[]).map_err(|error| at(place, error))
}

/// The losses that the user accepts with `--yes`: all that can be accepted.
pub const fn accepted(yes: bool) -> &'static [State] {
    match yes {
        true => &State::ALL,
        false => &[],
    }
}

/// What is said of `place` if it has this error.
pub fn at(place: &Path, error: VolumeError) -> Failure {
    let what = match &error {
        VolumeError::Judged(finding) => Some(format!("{} {finding}", place.display())),
        VolumeError::Impossible { what, .. } => Some(format!("{}: {what}", place.display())),
        _ => None,
    };
    let failure = Failure::from(error);
    match what {
        Some(what) => failure.with_what(what),
        None => failure,
    }
}

/// Refuses because the volume in `place` holds what `words` say.
pub fn refusal_inside(place: &Path, words: &str) -> Failure {
    Failure::new(
        4,
        format!("the volume in {} holds {words}", place.display()),
        "All of that would be lost. If you don't need it, confirm with --yes.",
    )
}

/// A description of the data in the plaintext of a volume, in which blocks that were never written
/// are zeros; `None` if there are none. `written` is where something is stored, as far as that is
/// known.
///
/// # Errors
/// Those of reading it.
pub fn inside(volume: &dyn BlockDevice, written: &[ByteRange]) -> Result<Option<String>, Failure> {
    let volume = Fitting::of(volume);
    let look = || -> Result<Option<String>, BlockError> {
        let found = signature::names(&volume)?;
        if !found.is_empty() {
            return Ok(Some(Content { found, data: None }.to_string()));
        }
        let samples = signature::samples(volume.geometry().size);
        for range in written.iter().chain(&samples) {
            return Ok(Some(match first_data(&volume, *range)? {
                None => continue,
                Some((place, Bytes::Readable)) => {
                    format!("readable data at byte {place}, with no known signature")
                }
                Some((place, _)) => format!(
                    "data from byte {place} on, with no known signature (encrypted data and media \
                     look like this, and so does a new volume that was filled with noise)"
                ),
            }));
        }
        Ok(volume.damaged().map(|place| {
            format!(
                "sectors that cannot be read (the first at byte {place}: its tag does not fit) and \
                 others that can"
            )
        }))
    };
    Ok(look().map_err(VolumeError::Block)?)
}

/// The first sector in `range` with anything but zeros or ones: its place and kind.
fn first_data(
    volume: &dyn BlockDevice,
    range: ByteRange,
) -> Result<Option<(u64, Bytes)>, BlockError> {
    const PIECE: u64 = 1 << 20;
    let geometry = volume.geometry();
    let unit = u64::from(geometry.logical_block);
    let end = range.offset.saturating_add(range.length).min(geometry.size);
    let mut at = range.offset / unit * unit;
    while at < end {
        let length = (end - at).next_multiple_of(unit).min(PIECE);
        let mut bytes = AlignedBuffer::new(length as usize);
        volume.read_at(at, &mut bytes)?;
        let sectors = bytes.chunks_exact(512).map(Bytes::of);
        let mut sectors = (at..).step_by(512).zip(sectors);
        if let Some(found) = sectors.find(|(_, kind)| *kind != Bytes::Blank) {
            return Ok(Some(found));
        }
        at += length;
    }
    Ok(None)
}
