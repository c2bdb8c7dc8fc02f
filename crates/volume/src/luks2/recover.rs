//! Recovery of damaged headers: it names foreign data in the place of a copy, and puts a header
//! together again.
//!
//! A copy that only lost its magic has a checksum that vouches for the rest. JSON without its
//! binary header suffices to open the volume. In that case only a passphrase can prove that the
//! JSON is right.

use super::binary::{BINARY_BYTES, Binary, HEADER_SIZES, Place, UUID_AT, checksum_fits};
use super::json;
use super::metadata::{Keyslot, Metadata};
use super::read::{Header, Recovered};
use crate::error::in_place_of_copy;
use crate::luks::{MAGIC, checked_uuid};
use crate::rest::{self, read_what_can_be};
use crate::{Format, VolumeError, unaligned};
use block::{BlockDevice, ByteRange};
use serde_json::{Map, Value};

/// Bytes of a magic and the version behind it.
const MAGIC_BYTES: u64 = 8;

/// How sure it is that a rebuilt header is what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The metadata make sense, and nothing says that no bit of them is wrong.
    Sensible,
    /// A checksum covers all but the magic.
    Sealed,
}

/// A header put together from what is left of its copies; on no device yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Rebuilt {
    /// The header.
    pub header: Header,
    /// How sure it is.
    pub certainty: Certainty,
    /// First byte of the copy that the metadata are from.
    pub offset: u64,
    /// Whether UUID and labels are lost as well: the UUID is a new one then.
    pub is_renamed: bool,
}

/// A copy of a header that is not one of the other copy.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherCopy {
    /// Its first byte.
    pub offset: u64,
    /// What it says, if it is newer, and its checksum vouches for all but the magic.
    pub newer: Option<Rebuilt>,
}

#[doc(hidden)]
impl Header {
    /// The name of foreign data in the place of the unusable copy, if there are any that have a
    /// name.
    ///
    /// # Errors
    /// Those of reading that concern the whole device.
    pub fn stranger(&self, device: &dyn BlockDevice) -> Result<Option<String>, VolumeError> {
        let Recovered::Only(place) = self.recovered else {
            return Ok(None);
        };
        let size = self.binary.header_size;
        self.stranger_beside(device, ByteRange::new(place.offset(size), size))
    }

    /// What stands where the first copy was, if that is neither blank nor left of a header of this
    /// volume: data without a name, such as another encrypted volume. While data move over the
    /// header, they are that.
    ///
    /// # Errors
    /// Those of reading that concern the whole device.
    pub fn nameless(&self, device: &dyn BlockDevice) -> Result<Option<String>, VolumeError> {
        if self.recovered != Recovered::Only(Place::Secondary) {
            return Ok(None);
        }
        let start = read_what_can_be(device, ByteRange::new(0, BINARY_BYTES as u64))?;
        let uuid = self.binary.uuid.to_string();
        let named = start.get(UUID_AT);
        let is_own = start.starts_with(MAGIC)
            || named.is_some_and(|named| !uuid.is_empty() && named.starts_with(uuid.as_bytes()));
        let is_blank = start.windows(2).all(|pair| pair[0] == pair[1]);
        Ok((!is_own && !is_blank).then(|| "data without a name".to_owned()))
    }

    /// Refuses to let a copy be written over something that is not the volume's.
    pub(super) fn check_places(&self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        let found = match self.stranger(device)? {
            None => self.nameless(device)?,
            found => found,
        };
        match found {
            Some(name) => Err(in_place_of_copy(name)),
            None => Ok(()),
        }
    }

    /// The name of foreign data in the space of the header and key slots. The volume's `own` range
    /// doesn't count.
    fn stranger_beside(
        &self,
        device: &dyn BlockDevice,
        own: ByteRange,
    ) -> Result<Option<String>, VolumeError> {
        let mut hidden = vec![own];
        // A damaged copy may still have its magic, which isn't foreign. LUKS1's magic at the start
        // is.
        let start = read_what_can_be(device, ByteRange::new(0, MAGIC_BYTES))?;
        if start.strip_prefix(MAGIC) == Some(&[0, 2]) {
            hidden.push(ByteRange::new(0, MAGIC_BYTES));
        }
        for offset in HEADER_SIZES {
            let range = ByteRange::new(offset, MAGIC_BYTES);
            // Other formats have their names in one of these places.
            if read_what_can_be(device, range)?.starts_with(Place::Secondary.magic()) {
                hidden.push(range);
            }
        }
        let space = ByteRange::new(0, self.bytes_with_keyslots());
        rest::stranger(device, space, hidden)
    }

    /// The copy that is not one of this header: newer than it, or of another volume. Its remains
    /// count, if only its magic, its checksum or its metadata are damaged.
    ///
    /// # Errors
    /// Those of reading that concern the whole device.
    pub fn other_copy(&self, device: &dyn BlockDevice) -> Result<Option<OtherCopy>, VolumeError> {
        let place = match self.recovered {
            Recovered::Only(Place::Secondary) => Place::Primary,
            _ => Place::Secondary,
        };
        let offset = place.offset(self.binary.header_size);
        let remains = Remains::read(device, place, offset)?;
        let Some(binary) = &remains.binary else {
            return Ok(None);
        };
        let is_same = binary.uuid == self.binary.uuid;
        let is_newer = binary.seqid > self.binary.seqid;
        let is_sealed = remains.certainty == Certainty::Sealed;
        // A reencryption writes its header all the time, and its key slots stay: what a cut has left
        // half written was not yet needed.
        if is_same && (!is_newer || (self.is_reencrypting() && !is_sealed)) {
            return Ok(None);
        }
        let newer = match is_same && is_sealed {
            true => remains.rebuild(None, None)?,
            false => None,
        };
        Ok(Some(OtherCopy { offset, newer }))
    }

    /// The headers that can be put together from the remains on `device`, the likeliest first. The
    /// device is one on which [`read`](Self::read) finds no usable header. `uuid` is the UUID to
    /// use if the remains have none.
    ///
    /// # Errors
    /// [`VolumeError::NotThis`] if nothing is left that would do, and those of
    /// reading that concern the whole device.
    pub fn rebuild(
        device: &dyn BlockDevice,
        uuid: Option<&str>,
    ) -> Result<Vec<Rebuilt>, VolumeError> {
        let mut left = Vec::new();
        let places = HEADER_SIZES.map(|offset| (Place::Secondary, offset));
        for (place, offset) in [(Place::Primary, 0)].into_iter().chain(places) {
            if offset < device.geometry().size {
                left.push(Remains::read(device, place, offset)?);
            }
        }
        let named = left.iter().find_map(|remains| remains.binary.clone());
        let mut rebuilt: Vec<Rebuilt> = Vec::new();
        for remains in left {
            let Some(next) = remains.rebuild(named.as_ref(), uuid)? else {
                continue;
            };
            let size = device.geometry().size;
            let fits = next.header.metadata.check_device(size).is_ok();
            let better = |known: &Rebuilt| {
                known.header.json == next.header.json && known.certainty >= next.certainty
            };
            if fits && !rebuilt.iter().any(better) {
                rebuilt.push(next);
            }
        }
        rebuilt.sort_by_key(|rebuilt| {
            std::cmp::Reverse((rebuilt.certainty, rebuilt.header.binary.seqid))
        });
        match rebuilt.is_empty() {
            true => Err(VolumeError::NotThis {
                format: Format::Luks2,
            }),
            false => Ok(rebuilt),
        }
    }

    /// The keyslots whose key material is gone: a part of it cannot be read, or
    /// is not the noise that it has to be.
    ///
    /// # Errors
    /// Those of reading that concern the whole device.
    pub fn lost_keyslots(&self, device: &dyn BlockDevice) -> Result<Vec<u32>, VolumeError> {
        let mut lost = Vec::new();
        for (&number, keyslot) in &self.metadata.keyslots {
            let Keyslot::Luks2(keyslot) = keyslot else {
                continue;
            };
            let length = keyslot.key_bytes as u64 * u64::from(keyslot.af.stripes);
            let used = ByteRange::new(keyslot.area.offset, length.min(keyslot.area.length));
            if !unaligned::is_noise(device, used)? {
                lost.push(number);
            }
        }
        Ok(lost)
    }
}

#[doc(hidden)]
impl Rebuilt {
    /// The name of foreign data in the header's space, if there are any that have a name.
    ///
    /// # Errors
    /// Those of reading that concern the whole device.
    pub fn stranger(&self, device: &dyn BlockDevice) -> Result<Option<String>, VolumeError> {
        let size = self.header.binary.header_size;
        let binary = BINARY_BYTES as u64;
        let own = match self.certainty {
            Certainty::Sealed => ByteRange::new(self.offset, size),
            Certainty::Sensible => ByteRange::new(self.offset + binary, size - binary),
        };
        self.header.stranger_beside(device, own)
    }

    /// Writes both copies to `device`, whatever stands there. The copy from which the metadata come
    /// stays until the other one is there.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(mut self, device: &dyn BlockDevice) -> Result<Header, VolumeError> {
        self.header.write_over(device)?;
        Ok(self.header)
    }
}

/// The remains of a copy.
struct Remains {
    place: Place,
    offset: u64,
    /// The fields, if they make sense; their checksum may be wrong.
    binary: Option<Binary>,
    /// The metadata, if they make sense, and the header's size by them.
    metadata: Option<(Metadata, Map<String, Value>, u64)>,
    certainty: Certainty,
}

impl Remains {
    fn read(device: &dyn BlockDevice, place: Place, offset: u64) -> Result<Self, VolumeError> {
        let binary_bytes = BINARY_BYTES as u64;
        let mut start = read_what_can_be(device, ByteRange::new(offset, binary_bytes))?;
        start.resize(BINARY_BYTES, 0);
        start[..MAGIC.len()].copy_from_slice(place.magic());
        start[MAGIC.len()..][..2].copy_from_slice(&[0, 2]);
        let fields = start.first_chunk().expect("it is as long as that");
        let binary = Binary::parse(fields, place, offset).and_then(Result::ok);
        let mut remains = Self {
            place,
            offset,
            binary,
            metadata: None,
            certainty: Certainty::Sensible,
        };
        let sizes = HEADER_SIZES.into_iter();
        // The second copy stands as far from the first as that is long.
        for size in sizes.filter(|&size| place == Place::Primary || size == offset) {
            let area = ByteRange::new(offset + binary_bytes, size - binary_bytes);
            let area = read_what_can_be(device, area)?;
            if !area.starts_with(b"{") {
                break;
            }
            let Ok(json) = json::object(&area) else {
                continue;
            };
            let Ok(metadata) = Metadata::parse(&json, size) else {
                continue;
            };
            let whole = [&start[..], &area].concat();
            let of_size = remains.binary.take_if(|binary| binary.header_size == size);
            if of_size
                .as_ref()
                .is_some_and(|binary| checksum_fits(binary.checksum_hash, &whole))
            {
                remains.certainty = Certainty::Sealed;
            }
            remains.binary = of_size;
            remains.metadata = Some((metadata, json, size));
            break;
        }
        Ok(remains)
    }

    /// A header, if the metadata are left: with the fields from before them, with
    /// those `named` by the other copy, or with new ones.
    fn rebuild(
        self,
        named: Option<&Binary>,
        uuid: Option<&str>,
    ) -> Result<Option<Rebuilt>, VolumeError> {
        let Some((metadata, json, header_size)) = self.metadata else {
            return Ok(None);
        };
        let known = self.binary.as_ref().or(named);
        let is_renamed = known.is_none();
        let mut binary = match known {
            Some(known) => known.clone(),
            None => Binary::new(header_size, checked_uuid(uuid)?.into()),
        };
        binary.header_size = header_size;
        Ok(Some(Rebuilt {
            header: Header {
                binary,
                metadata,
                json,
                recovered: Recovered::Only(self.place),
            },
            certainty: self.certainty,
            offset: self.offset,
            is_renamed,
        }))
    }
}
