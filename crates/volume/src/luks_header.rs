//! [`LuksHeader::losses`]: what is lost when one header takes another's place.

mod keys;
mod own;

pub(crate) use self::keys::no_argon2;
pub use self::own::Own;

use crate::{Format, VolumeError, luks1, luks2, unaligned};
use block::{BlockDevice, ByteRange};
use serde_json::{Value, json};
use std::fmt;

/// A header of LUKS, of either version.
#[derive(Clone, Debug, PartialEq)]
pub enum LuksHeader {
    /// Of version 1.
    Luks1(Box<luks1::Header>),
    /// Of version 2.
    Luks2(Box<luks2::Header>),
}

/// A part of a volume that would be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The header is of another volume.
    Volume {
        /// The UUID of the volume that is there.
        uuid: String,
    },
    /// A reencryption is under way, in one of the two at least.
    Reencryption,
    /// The key that the data are encrypted with.
    Key,
    /// Where the data lie and how they are encrypted.
    Data,
    /// Keyslots, and with them passphrases.
    Keyslots(Vec<String>),
    /// Tokens.
    Tokens(Vec<String>),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[String]| numbers.join(", ");
        match self {
            Self::Volume { uuid } => write!(f, "the header of another volume, {uuid}"),
            Self::Reencryption => {
                f.write_str("how far it is reencrypted, without which the data is noise")
            }
            Self::Key => f.write_str(
                "the volume key, which differs from that of the backup: the data would be lost \
                 forever",
            ),
            Self::Data => f.write_str(
                "the start, the end and the encryption of the data, which differ from those in the \
                 backup",
            ),
            Self::Keyslots(slots) => {
                write!(f, "keyslot {}, which the backup does not have", list(slots))
            }
            Self::Tokens(tokens) => {
                write!(f, "token {}, which the backup does not have", list(tokens))
            }
        }
    }
}

impl LuksHeader {
    /// Reads the header at the start of `device`.
    ///
    /// # Errors
    /// [`VolumeError::NotThis`] if there is none, and those of reading one.
    pub fn read(device: &dyn BlockDevice) -> Result<Self, VolumeError> {
        match Format::detect(device)? {
            Some(Format::Luks1) => Ok(Self::Luks1(Box::new(luks1::Header::read(device)?))),
            _ => Ok(Self::Luks2(Box::new(luks2::Header::read(device)?))),
        }
    }

    /// Whether something is left on `device`, which has no header, that one can be
    /// made of again.
    pub fn has_remains(device: &dyn BlockDevice) -> bool {
        luks2::Header::rebuild(device, None).is_ok() || luks1::Header::rebuild(device).is_ok()
    }

    /// The version.
    pub const fn format(&self) -> Format {
        match self {
            Self::Luks1(_) => Format::Luks1,
            Self::Luks2(_) => Format::Luks2,
        }
    }

    /// The UUID as it stands there.
    pub fn uuid(&self) -> String {
        match self {
            Self::Luks1(header) => header.uuid.to_string(),
            Self::Luks2(header) => header.binary.uuid.to_string(),
        }
    }

    /// Bytes from the start of the device that header and keyslots take.
    pub fn bytes_with_keyslots(&self) -> u64 {
        match self {
            Self::Luks1(header) => header.bytes_with_keyslots(),
            Self::Luks2(header) => header.bytes_with_keyslots(),
        }
    }

    /// The ranges of those bytes that are in use: the header, and the areas of its key slots.
    pub fn areas_in_use(&self) -> Vec<ByteRange> {
        let (header, keyslots): (u64, Vec<ByteRange>) = match self {
            Self::Luks1(header) => {
                let active = header.keyslots.iter().filter(|keyslot| keyslot.active);
                (4096, active.map(|keyslot| header.area(keyslot)).collect())
            }
            Self::Luks2(header) => {
                let keyslots = header.metadata.keyslots.values();
                let areas = keyslots.filter_map(luks2::Keyslot::area);
                (2 * header.binary.header_size, areas.collect())
            }
        };
        let all = self.bytes_with_keyslots();
        let mut areas = vec![ByteRange::new(0, header.min(all))];
        let space = ByteRange::new(0, all);
        areas.extend(keyslots.into_iter().filter(|area| area.within(space)));
        areas
    }

    /// Where the first data begin on the device that they are on.
    pub fn data_offset(&self) -> u64 {
        match self {
            Self::Luks1(header) => header.payload_offset,
            Self::Luks2(header) => {
                let segments = header.metadata.segments.values();
                segments.map(|segment| segment.offset).min().unwrap_or(0)
            }
        }
    }

    /// The losses if `next` takes the place of this header.
    pub fn losses(&self, next: &Self) -> Vec<Loss> {
        let mut losses = Vec::new();
        if self.uuid() != next.uuid() {
            losses.push(Loss::Volume { uuid: self.uuid() });
        }
        // Of two headers of the same state, one may not know how far the data are.
        if self.is_reencrypting() || next.is_reencrypting() {
            losses.push(Loss::Reencryption);
        }
        if self.digests() != next.digests() {
            losses.push(Loss::Key);
        }
        if self.segments() != next.segments() {
            losses.push(Loss::Data);
        }
        let gone = |own: Vec<(String, Value)>, others: Vec<(String, Value)>| {
            let left = |one: &Value| others.iter().any(|(_, other)| one == other);
            let gone = own.into_iter().filter(|(_, one)| !left(one));
            gone.map(|(number, _)| number).collect::<Vec<_>>()
        };
        let slots = gone(self.keyslots(), next.keyslots());
        if !slots.is_empty() {
            losses.push(Loss::Keyslots(slots));
        }
        let tokens = gone(self.members("tokens"), next.members("tokens"));
        if !tokens.is_empty() {
            losses.push(Loss::Tokens(tokens));
        }
        losses
    }

    /// All that it says of the data: keys, places and ciphers.
    pub(crate) fn of_data(&self) -> String {
        let reencrypting = self.is_reencrypting();
        json!([self.digests(), self.segments(), reencrypting]).to_string()
    }

    /// Whether `device` ends where the data would begin: a backup of the header, without data.
    pub fn is_alone(&self, device: &dyn BlockDevice) -> bool {
        let (size, data) = (device.geometry().size, self.data_offset());
        let is_whole = size >= self.bytes_with_keyslots().min(data);
        is_whole && size <= data && !self.is_reencrypting()
    }

    /// Whether the data are being encrypted anew, by this program or another.
    pub fn is_reencrypting(&self) -> bool {
        matches!(self, Self::Luks2(header) if header.is_reencrypting())
    }

    /// The members of one of the JSON's objects, by their names: in LUKS1, of the JSON that says
    /// the same.
    fn members(&self, name: &str) -> Vec<(String, Value)> {
        let json = match self {
            Self::Luks1(header) => luks2::document(header, 0),
            Self::Luks2(header) => header.json.clone(),
        };
        match json.get(name).cloned() {
            Some(Value::Object(members)) => members.into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// An identifier for each key slot, by its number. It is the salt, which is new with each
    /// passphrase.
    fn keyslots(&self) -> Vec<(String, Value)> {
        let mut keyslots = self.members("keyslots");
        for (_, keyslot) in &mut keyslots {
            let salt = keyslot["kdf"]["salt"].clone();
            if salt.is_string() {
                *keyslot = salt;
            }
        }
        keyslots
    }

    /// The salts and digests that identify the keys of the data.
    fn digests(&self) -> Vec<Value> {
        let mut digests: Vec<_> = self.bound_digests().iter().map(Self::told).collect();
        digests.sort_by_key(Value::to_string);
        digests
    }

    /// The salt and the digest that identify the key of a digest.
    fn told(digest: &Value) -> Value {
        json!([digest["salt"], digest["digest"]])
    }

    /// The digests that have segments.
    fn bound_digests(&self) -> Vec<Value> {
        let digests = self.members("digests").into_iter();
        let bound = |digest: &Value| {
            let segments = digest["segments"].as_array();
            segments.is_some_and(|segments| !segments.is_empty())
        };
        let digests = digests.map(|(_, digest)| digest);
        digests.filter(bound).collect()
    }

    /// The place and the encryption of the data, by segment.
    fn segments(&self) -> Vec<Value> {
        let segments = self.members("segments").into_iter();
        segments.map(|(_, segment)| Self::said(&segment)).collect()
    }

    /// The members of a segment that describe the data.
    fn said(segment: &Value) -> Value {
        const FIELDS: [&str; 9] = [
            "type",
            "offset",
            "size",
            "iv_tweak",
            "encryption",
            "sector_size",
            "integrity",
            "flags",
            "opal_segment_number",
        ];
        FIELDS.map(|field| segment[field].clone()).into()
    }
}

/// Bytes that are written and read back at a time.
const PIECE: usize = 1 << 20;

/// The header itself, or its first copy's binary part.
const FIRST: usize = 4096;

impl LuksHeader {
    /// Writes a header with its keyslots to the start of `device`: `bytes` are
    /// what [`bytes_with_keyslots`](Self::bytes_with_keyslots) counts. The header
    /// that speaks of the keyslots comes last.
    ///
    /// # Errors
    /// Those of writing.
    pub fn put(device: &dyn BlockDevice, bytes: &[u8]) -> Result<(), VolumeError> {
        let (first, rest) = bytes.split_at(FIRST.min(bytes.len()));
        for (piece, at) in rest.chunks(PIECE).zip(0..) {
            let offset = (FIRST + at * PIECE) as u64;
            unaligned::write_verified(device, offset, piece)?;
        }
        unaligned::write_verified(device, 0, first)
    }
}
