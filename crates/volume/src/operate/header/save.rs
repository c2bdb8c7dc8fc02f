//! The bytes of a header.

use super::super::{Options, impossible};
use crate::place::{NewFile, Place};
use crate::{Format, LuksHeader, VolumeError, check_new_name, luks1};
use block::{AlignedBuffer, BlockDevice, ByteRange};
use std::path::Path;

/// The length of the headers of TrueCrypt and VeraCrypt at either end of a volume, bytes.
pub const TCRYPT_HEADERS: u64 = 128 << 10;

/// The most bytes of a header that are kept, whatever the header says. Eight key slots of LUKS1
/// take less, and so does a whole LUKS2 header.
const MOST_HEADER: u64 = 256 << 20;

/// How often a header is read until nothing has changed meanwhile.
const TIMES: usize = 20;

/// A copy of a header and its key slots. It opens with the secrets of its time.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderBackup {
    /// The content of its file.
    pub bytes: Vec<u8>,
    /// Bytes that could not be read, and are zeros.
    pub unread: u64,
    /// Whose it is, in words.
    pub of: String,
    /// Whether it is useless as soon as more data are reencrypted.
    pub is_passing: bool,
}

impl std::fmt::Debug for HeaderBackup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeaderBackup")
            .field("length", &self.bytes.len())
            .field("of", &self.of)
            .finish_non_exhaustive()
    }
}

/// Copies the header and key slots of a LUKS volume, or the place of the headers of TrueCrypt and
/// VeraCrypt, of which nothing says whether it holds any.
///
/// # Errors
/// [`VolumeError::NotThis`] if there is no LUKS header, [`VolumeError::Impossible`] for a volume that
/// is too small, [`VolumeError::RecoveryNeeded`] while a TrueCrypt or VeraCrypt volume is reencrypted,
/// [`VolumeError::HeaderChanged`] while another program changes it, and those of
/// reading.
pub fn backup_header(place: &Place, options: &Options) -> Result<HeaderBackup, VolumeError> {
    let device = place.header();
    let size = device.geometry().size;
    let (length, of, is_passing) = match options.family() {
        // It has no header but the one beside it, of another format.
        Some(_) if place.is_beside() => return Err(VolumeError::RecoveryNeeded),
        Some(family) if size >= TCRYPT_HEADERS => {
            let of = format!("the {} volume that says nothing of itself", family.format());
            (TCRYPT_HEADERS, of, false)
        }
        Some(_) => {
            return Err(impossible(
                format!("the volume has less than {TCRYPT_HEADERS} bytes"),
                "Name a volume of TrueCrypt 6 or later, or of VeraCrypt.",
            ));
        }
        None => match LuksHeader::read(device) {
            // To copy it, nothing of it need be known but how long it is.
            Err(VolumeError::Unsupported { .. }) => {
                let outline = luks1::Outline::read(device)?;
                let of = format!("the LUKS1 volume {}", outline.texts.uuid.lossy());
                (outline.bytes_with_keyslots(), of, false)
            }
            header => {
                let header = header?;
                let of = format!("the {} volume {}", header.format(), header.uuid());
                (header.bytes_with_keyslots(), of, header.is_reencrypting())
            }
        },
    };
    let (bytes, unread) = steady(device, bounded(length.min(size))?)?;
    Ok(HeaderBackup {
        bytes,
        unread,
        of,
        is_passing,
    })
}

/// Writes such a [copy](backup_header) to the new file `output`, which only this user may read.
/// Returns whose header it is.
///
/// # Errors
/// Those of [`backup_header`], and [`VolumeError::Block`] if the file cannot be written, or is there.
pub fn save_header(place: &Place, output: &Path, options: &Options) -> Result<String, VolumeError> {
    check_new_name(output)?;
    let backup = backup_header(place, options)?;
    let file = NewFile::make(output, 0).map_err(|source| {
        VolumeError::Block(block::BlockError::Open {
            path: output.to_owned(),
            source,
        })
    })?;
    file.fill(&backup.bytes)?;
    Ok(backup.of)
}

/// The first bytes of the device, and how many of them cannot be read. Another program may be
/// changing them: metadata of before and key material of afterwards would open with nothing.
fn steady(device: &dyn BlockDevice, length: u64) -> Result<(Vec<u8>, u64), VolumeError> {
    let read = || -> Result<_, VolumeError> {
        let mut bytes = Vec::new();
        let unread = read(device, ByteRange::new(0, length), &mut bytes)?;
        Ok((bytes, unread))
    };
    let mut last = read()?;
    for _ in 0..TIMES {
        let again = read()?;
        if again == last {
            return Ok(last);
        }
        last = again;
    }
    let format = Format::Luks2;
    Err(VolumeError::HeaderChanged { format })
}

/// Refuses to keep more than any header needs.
///
/// # Errors
/// [`VolumeError::Impossible`].
pub fn bounded(bytes: u64) -> Result<u64, VolumeError> {
    match bytes <= MOST_HEADER {
        true => Ok(bytes),
        false => Err(impossible(
            format!("the header says that it takes {bytes} bytes with its key slots"),
            "No program writes such a header: check that it is the right volume.",
        )),
    }
}

/// Reads `range`, as far as the device has it, with zeros for bytes that cannot be read. Returns the
/// number of such bytes.
///
/// # Errors
/// Those of reading that are not about one place.
pub fn read(
    device: &dyn BlockDevice,
    range: ByteRange,
    into: &mut Vec<u8>,
) -> Result<u64, VolumeError> {
    const UNIT: u64 = 4096;
    let geometry = device.geometry();
    let block = u64::from(geometry.logical_block);
    let end = (range.offset + range.length).min(geometry.size);
    let (mut at, mut unread) = (range.offset, 0);
    while at < end {
        let start = at / block * block;
        let stop = ((at / UNIT + 1) * UNIT).min(end);
        let mut part = AlignedBuffer::new((stop.next_multiple_of(block) - start) as usize);
        match device.read_at(start, &mut part) {
            Err(error) if error.is_of_place() => {
                part.fill(0);
                unread += stop - at;
            }
            read => read?,
        }
        into.extend_from_slice(&part[(at - start) as usize..][..(stop - at) as usize]);
        at = stop;
    }
    Ok(unread)
}
