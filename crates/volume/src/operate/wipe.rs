//! What stands where something new is written: looked at, and overwritten.

use super::Report;
use crate::judge::{self, State, Use};
use crate::{CryptDevice, Format, Mapping, VolumeError, luks1, luks2};
use block::signature::Content;
use block::transfer::{self, TransferError};
use block::{BlockDevice, BlockError, ByteRange, OperationKind};
use cipher::{CipherSpec, IvSector, Key, SectorLayout, Weakness};

/// What noise is made with.
const NOISE: &str = "aes-xts-plain64";

/// The usual length of the area that cryptsetup and this program leave for a header, bytes, and the
/// most bytes of it that are overwritten.
const USUAL_HEADER: u64 = 16 << 20;
const MOST_HEADER: u64 = 1 << 30;

/// Refuses to overwrite what `device` holds, unless the loss is accepted. Returns whether it holds
/// anything.
///
/// # Errors
/// [`VolumeError::Judged`], and those of reading, unless the loss is accepted: data that are
/// overwritten need not be readable.
pub fn check_blank(device: &dyn BlockDevice, accepted: &[State]) -> Result<bool, VolumeError> {
    match device.content() {
        Ok(content) if content.is_blank() => Ok(false),
        Ok(content) => check_content(&content, device, accepted).map(|()| true),
        Err(_) if accepted.contains(&State::Data) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Refuses to overwrite `content`, which is not nothing, on `device`, unless the loss is accepted.
///
/// # Errors
/// [`VolumeError::Judged`].
pub fn check_content(
    content: &Content,
    device: &dyn BlockDevice,
    accepted: &[State],
) -> Result<(), VolumeError> {
    let words = content.in_words(|found| judge::known_better(found, device));
    judge::check(Use::Overwrite, State::Data, words, accepted)
}

/// Refuses a cipher that does not protect `size` bytes, unless that is accepted. Returns what else is
/// weak about it, in words.
///
/// # Errors
/// [`VolumeError::Judged`].
pub fn check_cipher(
    use_: Use,
    spec: CipherSpec,
    size: u64,
    accepted: &[State],
) -> Result<Vec<String>, VolumeError> {
    let mut warnings = Vec::new();
    for weakness in spec.weaknesses() {
        let is_broken = match weakness {
            Weakness::NoEncryption
            | Weakness::ShortKey { .. }
            | Weakness::EqualBlocksShow
            | Weakness::EqualSectorsShow => true,
            Weakness::SmallBlock { limit } | Weakness::RepeatedIvs { limit } => size > limit,
            _ => false,
        };
        if is_broken {
            let found = format!("{spec} does not protect: {weakness}");
            judge::check(use_, State::Weak, found, accepted)?;
        }
        warnings.push(format!("{spec}: {weakness}"));
    }
    Ok(warnings)
}

/// Makes sure that there is room for writes to `range`.
///
/// # Errors
/// [`VolumeError::NoRoom`].
pub fn reserve(device: &dyn BlockDevice, range: ByteRange) -> Result<(), VolumeError> {
    device.reserve(range).map_err(VolumeError::NoRoom)
}

/// Fills `data` with noise: zeros that are encrypted under a random key, which is then forgotten.
///
/// # Errors
/// Those of writing, and [`VolumeError::Stopped`].
pub fn fill(
    device: &dyn BlockDevice,
    data: ByteRange,
    report: Report<'_>,
) -> Result<(), VolumeError> {
    let spec: CipherSpec = NOISE.parse()?;
    let (key, layout) = (
        Key::random(spec.default_key_size())?,
        SectorLayout::default(),
    );
    let mapping = Mapping::new(spec, key, layout, data, IvSector::new(0));
    zero(&CryptDevice::new(device, mapping)?, report)
}

/// Writes zeros everywhere.
pub(super) fn zero(device: &dyn BlockDevice, report: Report<'_>) -> Result<(), VolumeError> {
    let total = device.geometry().size;
    transfer::zero(device, &|done| report(done, total)).map_err(|error| match error {
        TransferError::Block(error) => error.into(),
        TransferError::Input(source) | TransferError::Output(source) => BlockError::Io {
            operation: OperationKind::Write,
            offset: 0,
            length: total,
            source,
        }
        .into(),
        TransferError::TooLong { .. } | TransferError::Stopped => VolumeError::Stopped,
    })
}

/// Overwrites the header of a LUKS volume that is about to be replaced on `device`, and all its key
/// slots, with noise. Otherwise the key material would outlive the header.
///
/// # Errors
/// Those of writing.
pub fn shred_header(device: &dyn BlockDevice) -> Result<(), VolumeError> {
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
    fill(device, ByteRange::new(0, end), &super::unwatched)
}
