//! [`Header`]: which of the two copies counts.

use super::binary::{BINARY_BYTES, Binary, HEADER_SIZES, Place, checksum_fits};
use super::json;
use super::metadata::{Metadata, Segment, SegmentKind};
use crate::{Damage, Format, VolumeError, unaligned};
use block::BlockDevice;
use serde_json::{Map, Value};

/// A header that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The fields before the JSON.
    pub binary: Binary,
    /// The JSON, checked.
    pub metadata: Metadata,
    /// The JSON as it is, with what this program does not know.
    pub json: Map<String, Value>,
    /// The copy that counts, and what is wrong with the other one.
    pub recovered: Recovered,
}

/// Which copy a header was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Both copies say the same.
    Both,
    /// Only this one can be used, or it is newer than the other.
    Only(Place),
}

/// A copy that can be used.
struct Copy {
    binary: Binary,
    metadata: Metadata,
    json: Map<String, Value>,
}

impl Header {
    /// Reads the header at the start of `device`: of two good copies the one
    /// with the larger epoch, else the one that is good. The second is looked
    /// for wherever it may stand if the first does not tell.
    ///
    /// # Errors
    /// [`VolumeError::NotThis`] where there is no copy, [`VolumeError::Header`]
    /// with what is wrong with the first where neither can be used,
    /// [`VolumeError::Block`].
    pub fn read(device: &dyn BlockDevice) -> Result<Self, VolumeError> {
        let primary = copy_at(device, Place::Primary, 0)?;
        let places: Vec<u64> = match &primary {
            Some(Ok(copy)) => vec![copy.binary.header_size],
            _ => HEADER_SIZES.to_vec(),
        };
        let mut secondary = None;
        for offset in places {
            match copy_at(device, Place::Secondary, offset)? {
                good @ Some(Ok(_)) => {
                    secondary = good;
                    break;
                }
                bad @ Some(Err(_)) => secondary = secondary.or(bad),
                None => {}
            }
        }
        let (copy, recovered) = match (primary, secondary) {
            (Some(Ok(first)), Some(Ok(second))) => {
                match first.binary.seqid.cmp(&second.binary.seqid) {
                    std::cmp::Ordering::Equal => (first, Recovered::Both),
                    std::cmp::Ordering::Greater => (first, Recovered::Only(Place::Primary)),
                    std::cmp::Ordering::Less => (second, Recovered::Only(Place::Secondary)),
                }
            }
            (Some(Ok(first)), _) => (first, Recovered::Only(Place::Primary)),
            (_, Some(Ok(second))) => (second, Recovered::Only(Place::Secondary)),
            (Some(Err(damage)), _) | (None, Some(Err(damage))) => {
                return Err(VolumeError::damaged(Format::Luks2, damage));
            }
            (None, None) => {
                return Err(VolumeError::NotThis {
                    format: Format::Luks2,
                });
            }
        };
        copy.metadata
            .check_device(device.geometry().size)
            .map_err(|damage| VolumeError::damaged(Format::Luks2, damage))?;
        Ok(Self {
            binary: copy.binary,
            metadata: copy.metadata,
            json: copy.json,
            recovered,
        })
    }
}

impl Header {
    /// Data on the header's own device lie behind the header and its key
    /// material: what is written there would destroy them. Where they lay before the header
    /// came is no matter.
    pub(crate) fn check_beside(
        &self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
    ) -> Result<(), VolumeError> {
        let end = 2 * self.binary.header_size + self.metadata.config.keyslots_size;
        let mut segments = self.metadata.segments.values();
        let was = |segment: &Segment| {
            segment.kind == SegmentKind::Linear
                && segment.flags.iter().any(|flag| flag == "backup-previous")
        };
        let upon = segments.any(|segment| segment.offset < end && !was(segment));
        match upon && std::ptr::addr_eq(device, data) {
            true => Err(VolumeError::DataUponHeader {
                format: Format::Luks2,
            }),
            false => Ok(()),
        }
    }
}

/// Whether a second copy begins at one of the places where it may; its
/// content is not looked at.
pub(crate) fn has_second_copy(device: &dyn BlockDevice) -> Result<bool, VolumeError> {
    for offset in HEADER_SIZES {
        let start = unaligned::read_up_to(device, offset, 8)?;
        if start.strip_prefix(Place::Secondary.magic()) == Some(&[0, 2]) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The copy at `offset`: nothing if there is none.
fn copy_at(
    device: &dyn BlockDevice,
    place: Place,
    offset: u64,
) -> Result<Option<Result<Copy, Damage>>, VolumeError> {
    let start = unaligned::read_up_to(device, offset, BINARY_BYTES as u64)?;
    let Some(start) = start.first_chunk() else {
        return Ok(None);
    };
    let binary = match Binary::parse(start, place, offset) {
        None => return Ok(None),
        Some(Err(damage)) => return Ok(Some(Err(damage))),
        Some(Ok(binary)) => binary,
    };
    let whole = unaligned::read_up_to(device, offset, binary.header_size)?;
    Ok(Some(parse(binary, &whole)))
}

fn parse(binary: Binary, whole: &[u8]) -> Result<Copy, Damage> {
    if (whole.len() as u64) < binary.header_size {
        return Err(Damage::Short {
            needed: binary.header_size,
            got: whole.len() as u64,
        });
    }
    if !checksum_fits(binary.checksum_hash, whole) {
        return Err(Damage::Checksum { what: "the header" });
    }
    let json = json::object(&whole[BINARY_BYTES..])?;
    Ok(Copy {
        metadata: Metadata::parse(&json, binary.header_size)?,
        binary,
        json,
    })
}
