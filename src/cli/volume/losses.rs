//! Descriptions of the data that would be lost, before anything is overwritten.

use super::disk::{self, Names};
use crate::cli::Failure;
use block::signature;
use std::fs::File;
use std::path::Path;
use volume::judge::{State, Use};
use volume::{VolumeError, is_unsupported, operate};

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
    // As it is stored: QEMU would want the lock of an image that is to be replaced.
    let stored = volume::open_file(place, Use::Read, false).map_err(VolumeError::Block)?;
    operate::check_content(&content, &stored, &[]).map_err(|error| at(place, error))
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
    of("", place, error)
}

/// The same of something in `place`, such as `the volume in `.
pub fn of(something: &str, place: &Path, error: VolumeError) -> Failure {
    let place = format!("{something}{}", place.display());
    let what = match &error {
        VolumeError::Judged(finding) => Some(format!("{place} {finding}")),
        VolumeError::StartLost => Some(format!("{place} has lost the start of its LUKS header")),
        VolumeError::NoSignature { holds, is_blank } => Some(match (holds, is_blank) {
            (Some(what), _) if is_unsupported(what) => {
                format!("{place} holds {what}, which is not supported")
            }
            (Some(what), _) => format!("{place} holds {what}, and no signature of a volume"),
            (None, true) => format!("{place} is blank, and has no signature of a volume"),
            (None, false) => format!("{place} has no signature of a volume"),
        }),
        _ => None,
    };
    let failure = Failure::from(error);
    match what {
        Some(what) => failure.with_what(what),
        None => failure,
    }
}
