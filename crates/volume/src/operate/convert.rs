//! A LUKS1 header made one of LUKS2, or back.

use super::impossible;
use crate::judge::{self, Use};
use crate::place::Place;
use crate::{Format, LuksHeader, VolumeError};

/// Makes the LUKS volume one of `format`, [`Format::Luks1`] or [`Format::Luks2`]. Returns whether it
/// was another one.
///
/// `place` is open for [`Use::ChangeLayout`](crate::judge::Use::ChangeLayout). Key slots keep their
/// numbers and secrets, and the data stay where they are. A LUKS2 volume becomes LUKS1 only if LUKS1
/// has all that it uses.
///
/// # Errors
/// [`VolumeError::Lacks`] for what LUKS1 does not have, and for other formats; those of reading and
/// writing the header.
pub fn convert(place: &Place, format: Format) -> Result<bool, VolumeError> {
    if !matches!(format, Format::Luks1 | Format::Luks2) {
        return Err(impossible(
            format!("a volume cannot be converted to `{}`", format.name()),
            "Choose luks1 or luks2. For other formats, copy the data to a new volume.",
        ));
    }
    check_own(place)?;
    LuksHeader::convert(place.header(), format)
}

/// Refuses to change how data lie by a header that is apart if they have one of their own, which
/// contradicts it.
pub(super) fn check_own(place: &Place) -> Result<(), VolumeError> {
    match place.is_apart() {
        true => judge::check_own_header(Use::ChangeLayout, place.header(), place.data()).map(drop),
        false => Ok(()),
    }
}
