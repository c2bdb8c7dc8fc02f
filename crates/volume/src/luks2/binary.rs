//! The binary header: 4096 bytes, numbers big endian.
//!
//! ```text
//!   0  magic 6         6  version 2        8  hdr_size 8     16  seqid 8
//!  24  label 48       72  csum_alg 32    104  salt 64       168  uuid 40
//! 208  subsystem 48  256  hdr_offset 8   264  padding 184   448  csum 64
//! ```
//!
//! The checksum covers the 4096 bytes, itself as zeros, and the JSON area.

use crate::fields::{Fields, HeaderText};
use crate::luks::MAGIC;
use crate::{Damage, Hash};

/// Length of the binary header, bytes.
pub(super) const BINARY_BYTES: usize = 4096;

/// The first bytes of the second copy.
pub(super) const SECOND_MAGIC: &[u8] = b"SKUL\xBA\xBE";

/// The sizes that a header may have, binary and JSON together.
pub(super) const HEADER_SIZES: [u64; 9] = [
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
];

/// Where the UUID is.
pub(super) const UUID_AT: std::ops::Range<usize> = 168..208;

const CHECKSUM_AT: usize = 448;
const CHECKSUM_BYTES: usize = 64;

/// Which of the two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the start of the device.
    Primary,
    /// Behind the first.
    Secondary,
}

impl Place {
    pub(super) const fn magic(self) -> &'static [u8] {
        match self {
            Self::Primary => MAGIC,
            Self::Secondary => SECOND_MAGIC,
        }
    }

    /// Its first byte, if copies have `header_size` bytes.
    pub(super) const fn offset(self, header_size: u64) -> u64 {
        match self {
            Self::Primary => 0,
            Self::Secondary => header_size,
        }
    }
}

/// The fields of a binary header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// Length of this copy, binary and JSON, bytes: one of nine.
    pub header_size: u64,
    /// The epoch: the copy with the larger one is newer.
    pub seqid: u64,
    /// The user's name for the volume.
    pub label: HeaderText,
    /// The hash of the checksum.
    pub checksum_hash: Hash,
    /// Makes the copies differ.
    pub salt: [u8; 64],
    /// The UUID as it stands there.
    pub uuid: HeaderText,
    /// A second label.
    pub subsystem: HeaderText,
}

impl Binary {
    /// That of a volume with this UUID that has no label and was never written.
    pub(super) fn new(header_size: u64, uuid: HeaderText) -> Self {
        Self {
            header_size,
            seqid: 0,
            label: HeaderText::default(),
            checksum_hash: Hash::Sha256,
            salt: [0; 64],
            uuid,
            subsystem: HeaderText::default(),
        }
    }

    /// The header in `bytes`, read from `offset` of the device; `None` if it
    /// does not begin with the magic of `place` and version 2.
    ///
    /// The checksum is not looked at.
    pub(super) fn parse(
        bytes: &[u8; BINARY_BYTES],
        place: Place,
        offset: u64,
    ) -> Option<Result<Self, Damage>> {
        let fields = Fields(bytes);
        if !bytes.starts_with(place.magic()) || fields.be16(6) != 2 {
            return None;
        }
        Some(Self::fields(&fields, place, offset))
    }

    fn fields(fields: &Fields, place: Place, offset: u64) -> Result<Self, Damage> {
        let header_size = fields.be64(8);
        if !HEADER_SIZES.contains(&header_size) {
            let rule = "must be 16 KiB to 4 MiB, a power of two";
            return Err(Damage::number("hdr_size", header_size, rule));
        }
        if place == Place::Secondary && header_size != offset {
            let rule = format!("the second copy was read from {offset}");
            return Err(Damage::number("hdr_size", header_size, rule));
        }
        let hdr_offset = fields.be64(256);
        if hdr_offset != offset {
            let rule = format!("it was read from {offset}");
            return Err(Damage::number("hdr_offset", hdr_offset, rule));
        }
        let hash = fields.text(72, 32);
        Ok(Self {
            header_size,
            seqid: fields.be64(16),
            label: fields.text(24, 48),
            checksum_hash: Hash::in_header("csum_alg", &hash.lossy())?,
            salt: fields.array(104),
            uuid: fields.text(168, 40),
            subsystem: fields.text(208, 48),
        })
    }

    /// Writes the fields to the start of `copy`, which has zeros there.
    pub(super) fn write(&self, place: Place, copy: &mut [u8]) {
        let mut put = |at: usize, bytes: &[u8]| copy[at..][..bytes.len()].copy_from_slice(bytes);
        put(0, place.magic());
        put(6, &2_u16.to_be_bytes());
        put(8, &self.header_size.to_be_bytes());
        put(16, &self.seqid.to_be_bytes());
        put(24, self.label.as_bytes());
        put(72, self.checksum_hash.name().as_bytes());
        put(104, &self.salt);
        put(168, self.uuid.as_bytes());
        put(208, self.subsystem.as_bytes());
        put(256, &place.offset(self.header_size).to_be_bytes());
    }
}

/// Writes the checksum into a whole copy.
pub(super) fn seal(hash: Hash, copy: &mut [u8]) {
    let checksum = checksum(hash, copy);
    copy[CHECKSUM_AT..][..checksum.len()].copy_from_slice(&checksum);
}

/// Whether the checksum of a whole copy is right.
pub(super) fn checksum_fits(hash: Hash, copy: &[u8]) -> bool {
    copy[CHECKSUM_AT..].starts_with(&checksum(hash, copy))
}

/// The checksum of a whole copy.
fn checksum(hash: Hash, copy: &[u8]) -> Vec<u8> {
    let (before, rest) = copy.split_at(CHECKSUM_AT);
    let digest = hash.digest(&[before, &[0; CHECKSUM_BYTES], &rest[CHECKSUM_BYTES..]]);
    digest.to_vec()
}
