//! [`Header`]: which of the two copies counts.

use super::binary::{BINARY_BYTES, Binary, HEADER_SIZES, Place, checksum_fits};
use super::json;
use super::metadata::{Metadata, Segment, SegmentKind};
use crate::error::data_upon_header;
use crate::{Damage, Format, VolumeError, unaligned};
use block::BlockDevice;
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// A header that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The fields before the JSON.
    #[doc(hidden)]
    pub binary: Binary,
    /// The JSON, checked.
    #[doc(hidden)]
    pub metadata: Metadata,
    /// The JSON as it is, with what this program does not know.
    #[doc(hidden)]
    pub json: Map<String, Value>,
    /// The copy that counts, and what is wrong with the other one.
    #[doc(hidden)]
    pub recovered: Recovered,
}

/// Which copy a header was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Both copies say the same.
    Both,
    /// Only this one can be used, or it is newer than the other.
    Only(Place),
}

impl Header {
    /// Reads the header at the start of `device`. Of two good copies, the one with the larger epoch
    /// counts; otherwise the good one does. If the first copy does not tell the place of the
    /// second, all possible places are searched. A copy that the device cannot read is a bad one.
    ///
    /// # Errors
    /// [`VolumeError::NotThis`] if there is no copy, [`VolumeError::Header`] with the damage of the
    /// first copy if neither can be used, and [`VolumeError::Block`] if read errors are all that is
    /// known.
    pub fn read(device: &dyn BlockDevice) -> Result<Self, VolumeError> {
        let primary = Found::at(device, Place::Primary, 0)?;
        let places = match &primary {
            Found::Good(header) => vec![header.binary.header_size],
            _ => HEADER_SIZES.to_vec(),
        };
        let mut secondary = Found::Nothing;
        for offset in places {
            secondary = secondary.or(Found::at(device, Place::Secondary, offset)?);
        }
        let header = match (primary, secondary) {
            (Found::Good(mut first), Found::Good(second)) => {
                match first.binary.seqid.cmp(&second.binary.seqid) {
                    Ordering::Equal => {
                        first.recovered = Recovered::Both;
                        first
                    }
                    Ordering::Greater => first,
                    Ordering::Less => second,
                }
            }
            (Found::Good(only), _) | (_, Found::Good(only)) => only,
            (Found::Bad(damage), _) | (_, Found::Bad(damage)) => {
                return Err(VolumeError::damaged(Format::Luks2, damage));
            }
            (Found::Unreadable(error), _) | (_, Found::Unreadable(error)) => return Err(error),
            (Found::Nothing, Found::Nothing) => {
                return Err(VolumeError::NotThis {
                    format: Format::Luks2,
                });
            }
        };
        header
            .metadata
            .check_device(device.geometry().size)
            .map_err(|damage| VolumeError::damaged(Format::Luks2, damage))?;
        Ok(*header)
    }

    /// Refuses data on the header's own device that overlap the header and its key material,
    /// because writes to such data would destroy them. The place of the data before the header came
    /// doesn't count.
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
            true => Err(data_upon_header(Format::Luks2)),
            false => Ok(()),
        }
    }
}

/// Whether a second copy begins at one of the places where it may; its
/// content is not looked at.
pub(crate) fn has_second_copy(device: &dyn BlockDevice) -> Result<bool, VolumeError> {
    for offset in HEADER_SIZES {
        // A place that cannot be read has none.
        let start = match unaligned::read_up_to(device, offset, 8) {
            Err(error) if error.is_of_place() => continue,
            start => start?,
        };
        if start.strip_prefix(Place::Secondary.magic()) == Some(&[0, 2]) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The content of the place of a copy.
enum Found {
    /// A copy that can be used.
    Good(Box<Header>),
    /// A copy that cannot be used.
    Bad(Damage),
    /// The device cannot read the place.
    Unreadable(VolumeError),
    /// No copy.
    Nothing,
}

impl Found {
    /// The copy of `place` at `offset`.
    ///
    /// # Errors
    /// Those that concern the whole device.
    fn at(device: &dyn BlockDevice, place: Place, offset: u64) -> Result<Self, VolumeError> {
        match Self::read(device, place, offset) {
            Err(error) if error.is_of_place() => Ok(Self::Unreadable(error)),
            found => found,
        }
    }

    fn read(device: &dyn BlockDevice, place: Place, offset: u64) -> Result<Self, VolumeError> {
        let start = unaligned::read_up_to(device, offset, BINARY_BYTES as u64)?;
        let Some(start) = start.first_chunk() else {
            return Ok(Self::Nothing);
        };
        let binary = match Binary::parse(start, place, offset) {
            None => return Ok(Self::Nothing),
            Some(Err(damage)) => return Ok(Self::Bad(damage)),
            Some(Ok(binary)) => binary,
        };
        let whole = unaligned::read_up_to(device, offset, binary.header_size)?;
        Ok(match parse(binary, place, &whole) {
            Ok(header) => Self::Good(Box::new(header)),
            Err(damage) => Self::Bad(damage),
        })
    }

    /// The better one of the two; this one if they are equally good.
    fn or(self, other: Self) -> Self {
        let worth = |found: &Self| match found {
            Self::Good(_) => 3,
            Self::Bad(_) => 2,
            Self::Unreadable(_) => 1,
            Self::Nothing => 0,
        };
        if worth(&other) > worth(&self) {
            other
        } else {
            self
        }
    }
}

fn parse(binary: Binary, place: Place, whole: &[u8]) -> Result<Header, Damage> {
    if (whole.len() as u64) < binary.header_size {
        return Err(Damage::Short {
            needed: binary.header_size,
            got: whole.len() as u64,
        });
    }
    if !checksum_fits(binary.checksum_hash, whole) {
        return Err(Damage::checksum("the header"));
    }
    let json = json::object(&whole[BINARY_BYTES..])?;
    Ok(Header {
        metadata: Metadata::parse(&json, binary.header_size)?,
        binary,
        json,
        recovered: Recovered::Only(place),
    })
}
