//! Two headers of one volume, at its start and in a file. Decides which one may be changed, and
//! through which one the data may be changed.

use crate::cli::Failure;
use crate::cli::volume::arguments::{Devices, side_header};
use crate::cli::volume::beside;
use crate::cli::volume::disk::Disk;
use crate::cli::volume::losses;
use block::BlockDevice;
use std::path::Path;
use volume::judge::{State, Use};
use volume::{LuksHeader, Own, VolumeError, luks2};

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
        Own::Older => Ok(Some(out_of_date(named, image))),
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

/// Refuses to change the header beside a volume if it records no reencryption. That header goes
/// back to its place, which is recognised by its old content.
pub fn check_in_place(image: &Path) -> Result<(), Failure> {
    let side = side_header(image);
    if !side.exists() {
        return Ok(());
    }
    beside::check(image)?;
    match luks2::Header::read(&Disk::open(&side, Use::Read)?) {
        Ok(header) if !header.is_reencrypting() && !header.is_for_another() => Err(Failure::new(
            4,
            format!(
                "{} is a header of {} that an interrupted run left behind",
                side.display(),
                image.display()
            ),
            format!(
                "Run `cryptmark volume reencrypt {}` first: it puts that header where it belongs.",
                image.display()
            ),
        )),
        // One that is damaged may be mended.
        _ => Ok(()),
    }
}

/// What is said of a header at the start of the data that a separate one has overtaken.
pub fn out_of_date(named: &Path, image: &Path) -> String {
    format!(
        "{} has a header of its own, which is out of date: do not open the volume without \
         --header {}",
        image.display(),
        named.display()
    )
}

fn refusal(named: &Path, image: &Path, header: &LuksHeader, own: Own) -> Failure {
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
             right, put it there with `cryptmark volume header restore {image} --input {named}`; \
             otherwise, omit --header."
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
