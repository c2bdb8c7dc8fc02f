//! Two headers of one volume, at its start and in a file. Decides which one may be changed, and
//! through which one the data may be changed.

use crate::cli::Failure;
use crate::cli::plain::word;
use crate::cli::volume::arguments::Devices;
use crate::cli::volume::losses;
use block::BlockDevice;
use std::path::Path;
use volume::judge::State;
use volume::{LuksHeader, Own, VolumeError, operate};

/// Refuses to write through a header that the volume's own header contradicts, because the data
/// written would be noise under the right one. Returns a warning to print when the volume has
/// opened, if there is one.
pub fn check_to_write(
    named: &Path,
    image: &Path,
    devices: &Devices,
) -> Result<Option<String>, Failure> {
    let headers = [devices.header(), devices.data()].map(|disk| LuksHeader::read(disk));
    let [Ok(header), Ok(own)] = headers else {
        return Ok(None);
    };
    match header.own(&own) {
        Own::Same | Own::Erased => Ok(None),
        Own::Other => Ok(Some(format!(
            "{} begins with the header of another LUKS volume, {}",
            image.display(),
            own.uuid()
        ))),
        Own::Older => Ok(Some(operate::out_of_date(image, named))),
        unlike @ (Own::Newer | Own::Unclear) => Err(refusal(named, image, &header, unlike)),
    }
}

/// What is said of a change of data that have a header of their own, beside the one that is named.
pub fn refused(
    named: &Path,
    image: &Path,
    headers: [&dyn BlockDevice; 2],
    error: VolumeError,
) -> Failure {
    let is_other = matches!(&error, VolumeError::Judged(it) if it.state == State::OtherHeader);
    match headers.map(LuksHeader::read) {
        [Ok(header), Ok(own)] if is_other && header.own(&own) != Own::Same => {
            refusal(named, image, &header, header.own(&own))
        }
        _ => losses::at(image, error),
    }
}

fn refusal(named: &Path, image: &Path, header: &LuksHeader, own: Own) -> Failure {
    let (whole, backup) = (image, named);
    let (image, named) = (image.display(), named.display());
    // Only then is there room for it before the data.
    let fits = header.bytes_with_keyslots() <= header.data_offset();
    let remedy = match own {
        Own::Newer => format!("Omit --header: {named} is from before a change of the data."),
        _ if !fits => {
            format!("Omit --header: by {named}, the data begin where the volume's header is.")
        }
        _ => format!(
            "One of them is out of date. Compare what `volume export` reads by each. If {named} is \
             right, put it there with `cryptmark volume header restore {} --input {}`; \
             otherwise, omit --header.",
            word(whole),
            word(backup)
        ),
    };
    Failure::new(
        4,
        format!(
            "{image} has a header of its own, and {named} describes another encryption of the data"
        ),
        remedy,
    )
}
