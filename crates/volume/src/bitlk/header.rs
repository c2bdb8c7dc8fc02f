//! The metadata. There are three copies. Each has a checksum, and in version 2 a digest that is
//! encrypted with the volume master key.
//!
//! ```text
//! 0    8   "-FVE-FS-"                    64   4   size of what follows here    
//! 8    2   size: bytes in version 1,     68   4   its version
//!          16 bytes in version 2         72   4   where the entries begin, from 64
//! 10   2   version                       76   4   and end
//! 12   2   state, 14: the next one       80  16   the volume's identifier
//! 16   8   how far it is encrypted      100   2   the method
//! 24   4   bytes of the log of that     104   8   when it was made
//! 28   4   sectors that lie elsewhere
//! 32  24   where the copies are
//! 56   8   where those sectors are; in version 1 a cluster for NTFS's boot sector
//!
//! behind it: u16 size │ u16 version │ u32 CRC-32 │ in version 2 an entry with the digest
//! ```

use super::boot::{BOOT_BYTES, Boot, Generation, SIGNATURE};
use super::bytes::{Entry, Sealed, entries, kind, role};
use super::conversion::{Conversion, ConversionState, OnWrite};
use super::protector::Protector;
use super::{damaged, unsupported};
use crate::crc::crc32;
use crate::fields::{Fields, utf16};
use crate::{Damage, Hash, VolumeError, unaligned};
use block::{BlockDevice, ByteRange};
use cipher::{CipherSpec, SectorSize};
use std::fmt;
use uuid::Uuid;

/// Length of the area of a copy in version 2, bytes.
pub(super) const AREA_BYTES: u64 = 64 << 10;

/// The same in version 1, to be rounded up to whole clusters.
const VISTA_AREA_BYTES: u64 = 16 << 10;

/// Least offset of the first entry.
const HEAD_BYTES: usize = 112;
const SET_AT: usize = 64;

/// Length of size, version and checksum behind the metadata, bytes.
const CHECK_BYTES: usize = 8;

/// The first bytes of a Vista volume, which are not encrypted.
pub(super) const VISTA_PLAIN_BYTES: u64 = 8 << 10;

/// The encryption method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// AES-CBC with the Elephant diffuser, 128 bits.
    Elephant128,
    /// AES-CBC with the Elephant diffuser, 256 bits.
    Elephant256,
    /// AES-CBC, 128 bits.
    Cbc128,
    /// AES-CBC, 256 bits.
    Cbc256,
    /// AES-XTS, 128 bits.
    Xts128,
    /// AES-XTS, 256 bits.
    Xts256,
    /// None, of a volume whose keys were removed when it was decrypted.
    Nothing,
}

impl Method {
    /// The method with this number.
    pub(super) fn numbered(number: u16) -> Option<Self> {
        Some(match number {
            0x8000 => Self::Elephant128,
            0x8001 => Self::Elephant256,
            0x8002 => Self::Cbc128,
            0x8003 => Self::Cbc256,
            0x8004 => Self::Xts128,
            0x8005 => Self::Xts256,
            _ => return None,
        })
    }

    /// The cipher.
    pub fn spec(self) -> CipherSpec {
        let notation = match self {
            Self::Elephant128 | Self::Elephant256 => "aes-cbc-elephant",
            Self::Cbc128 | Self::Cbc256 => "aes-cbc-eboiv",
            Self::Xts128 | Self::Xts256 => "aes-xts-plain64",
            Self::Nothing => "cipher_null-ecb",
        };
        notation.parse().expect("these are known")
    }

    /// Length of the data key, bytes; for XTS and the diffuser, of both keys together.
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Cbc128 => 16,
            Self::Cbc256 | Self::Xts128 | Self::Elephant128 => 32,
            Self::Xts256 | Self::Elephant256 => 64,
            Self::Nothing => 0,
        }
    }
}

/// The state of a copy of the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// It is good.
    Good,
    /// It is damaged.
    Damaged(Damage),
    /// It cannot be read.
    Unreadable,
    /// Its offset is unknown.
    Unknown,
}

impl fmt::Display for CopyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Good => f.write_str("good"),
            Self::Damaged(damage) => write!(f, "damaged: {damage}"),
            Self::Unreadable => f.write_str("it cannot be read"),
            Self::Unknown => f.write_str("not found, because only the first copy says where it is"),
        }
    }
}

/// The checked metadata of a volume.
#[derive(Debug)]
pub struct Header {
    /// The kind of BitLocker that made it.
    pub generation: Generation,
    /// Version of the metadata: 1 or 2.
    pub version: u16,
    /// Bytes of a sector.
    pub sector_size: SectorSize,
    /// The volume identifier.
    pub identifier: Uuid,
    /// Host name, volume name and date, as Windows writes them.
    pub description: Option<String>,
    /// Creation time, in 100 ns since 1601.
    pub created: u64,
    /// The encryption method.
    pub method: Method,
    /// Which part of it is encrypted.
    pub conversion: Conversion,
    /// The state of each copy.
    pub copies: [CopyState; 3],
    /// The protectors, each of which can open it.
    pub protectors: Vec<Protector>,
    pub(super) data_key: Option<Sealed>,
    /// In version 2, the encrypted SHA-256 digest of the metadata.
    pub(super) digest: Option<Sealed>,
    pub(super) sha256: Vec<u8>,
    pub(super) places: Places,
}

/// Areas that don't hold data in their place.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Offsets of the copies. Each area has [`area_bytes`](Self::area_bytes).
    pub(super) copies: [u64; 3],
    pub(super) area_bytes: u64,
    /// Where the first sectors of the plaintext are stored.
    pub(super) first_sectors: Option<ByteRange>,
    /// For Vista: the field of the boot sector as NTFS needs it, and as BitLocker needs it.
    pub(super) boot_fields: [u64; 2],
    /// The log of an interrupted conversion.
    pub(super) log: Option<ByteRange>,
}

/// A copy whose checksum is right.
struct Copy {
    bytes: Vec<u8>,
    version: u16,
    digest: Option<Sealed>,
}

impl Header {
    /// The least size of a device that holds all copies, the moved sectors and all that is
    /// encrypted, bytes.
    pub(super) fn needed(&self) -> u64 {
        let copies = self.places.copies.into_iter();
        let ends = copies.map(|at| at.saturating_add(self.places.area_bytes));
        let moved = self.places.first_sectors;
        let moved = moved.map(|moved| moved.end().unwrap_or(u64::MAX));
        let ends = ends.chain(moved).chain([self.conversion.up_to]);
        ends.max().unwrap_or(0)
    }

    /// Reads the metadata of the volume on `device` from the first good copy.
    ///
    /// # Errors
    /// [`VolumeError::NotThis`]; [`VolumeError::Cut`]; [`VolumeError::Header`] if no copy is
    /// good; [`VolumeError::Unsupported`] for methods and versions that are not known;
    /// [`VolumeError::Block`].
    pub fn read(device: &dyn BlockDevice) -> Result<Self, VolumeError> {
        let boot = Boot::parse(&unaligned::read_up_to(device, 0, BOOT_BYTES)?)?;
        let mut copies = [const { CopyState::Unknown }; 3];
        let mut good: Option<Copy> = None;
        let mut places = boot.metadata;
        for nth in 0..copies.len() {
            let Some(place) = places[nth] else { continue };
            copies[nth] = match Copy::read(device, nth, place) {
                Ok(copy) => {
                    if nth == 0 && boot.generation == Generation::Vista {
                        places = copy.places().map(Some);
                    }
                    good.get_or_insert(copy);
                    CopyState::Good
                }
                Err(VolumeError::Header { damage, .. }) => CopyState::Damaged(damage),
                Err(error) if error.is_of_place() => CopyState::Unreadable,
                Err(error) => return Err(error),
            };
        }
        let Some(copy) = good else {
            let damage = copies.into_iter().find_map(|state| match state {
                CopyState::Damaged(damage) => Some(damage),
                _ => None,
            });
            return Err(damaged(damage.unwrap_or(Damage::missing("metadata"))));
        };
        let on_write = boot.on_write.map(|at| match OnWrite::read(device, at) {
            Err(VolumeError::Header { damage, .. }) => Ok(Err(damage)),
            Err(error) if error.is_of_place() => Ok(Err(Damage::missing("bitmaps"))),
            on_write => on_write.map(Ok),
        });
        copy.header(&boot, copies, on_write.transpose()?)
    }
}

impl Copy {
    /// The copy at `place`.
    fn read(device: &dyn BlockDevice, nth: usize, place: u64) -> Result<Self, VolumeError> {
        let bytes = unaligned::read_up_to(device, place, AREA_BYTES)?;
        let cut_off = |needed: usize| {
            damaged(Damage::length(
                "metadata",
                bytes.len(),
                format!("need {needed}"),
            ))
        };
        if bytes.len() < HEAD_BYTES + CHECK_BYTES {
            return Err(cut_off(HEAD_BYTES + CHECK_BYTES));
        }
        let fields = Fields(&bytes);
        if !bytes.starts_with(&SIGNATURE) {
            return Err(damaged(Damage::kind("signature", "`-FVE-FS-`")));
        }
        let version = fields.le16(10);
        let size = match version {
            1 => usize::from(fields.le16(8)),
            2 => usize::from(fields.le16(8)) * 16,
            other => return Err(unsupported(format!("metadata of version {other}"))),
        };
        let most = AREA_BYTES as usize - CHECK_BYTES;
        if !(HEAD_BYTES..=most).contains(&size) {
            let rule = format!("must be {HEAD_BYTES} to {most} bytes");
            return Err(damaged(Damage::number("size", size as u64, rule)));
        }
        let (metadata, rest) = match bytes.split_at_checked(size) {
            Some((metadata, rest)) if rest.len() >= CHECK_BYTES => (metadata, rest),
            _ => return Err(cut_off(size + CHECK_BYTES)),
        };
        let check = Fields(rest);
        if crc32(metadata) != check.le32(4) {
            return Err(damaged(Damage::checksum("the metadata")));
        }
        let copy = Self {
            bytes: metadata.to_vec(),
            version,
            digest: match version {
                1 => None,
                // Windows leaves none behind where it has removed the keys.
                _ if Conversion::is_decrypted(&fields) => digest(rest, check.le16(0)).ok(),
                _ => Some(digest(rest, check.le16(0))?),
            },
        };
        if copy.places()[nth] != place {
            return Err(damaged(Damage::number(
                "information offset",
                copy.places()[nth],
                format!("it was found at {place}"),
            )));
        }
        Ok(copy)
    }

    fn places(&self) -> [u64; 3] {
        let fields = Fields(&self.bytes);
        [32, 40, 48].map(|at| fields.le64(at))
    }

    fn header(
        self,
        boot: &Boot,
        copies: [CopyState; 3],
        on_write: Option<Result<OnWrite, Damage>>,
    ) -> Result<Header, VolumeError> {
        let fields = Fields(&self.bytes);
        let [set_bytes, begin, end] = [64, 72, 76].map(|at| fields.le32(at) as usize);
        let room = self.bytes.len() - SET_AT;
        if set_bytes > room || begin > end || end > set_bytes || begin < HEAD_BYTES - SET_AT {
            let rule = format!("must be 48 to {room}, and hold what begins at {begin}");
            return Err(damaged(Damage::number("entries end", end as u64, rule)));
        }
        let entries = entries(&self.bytes[SET_AT + begin..SET_AT + end]).map_err(damaged)?;
        let number = fields.le16(100);
        let none =
            Some(Method::Nothing).filter(|_| number == 0 && Conversion::is_decrypted(&fields));
        let method = Method::numbered(number)
            .or(none)
            .ok_or_else(|| unsupported(format!("encryption method {number:#06x}")))?;
        let of = |role| move |entry: &&Entry| entry.role == role;
        let protectors = entries
            .iter()
            .filter(of(role::PROTECTOR))
            .filter(|entry| entry.kind == kind::PROTECTOR)
            .map(|entry| Protector::parse(entry.body))
            .collect::<Result<_, _>>()
            .map_err(damaged)?;
        let sealed = |entry: &Entry| Sealed::parse(entry.body).map_err(damaged);
        let data_key = entries
            .iter()
            .filter(of(role::DATA_KEY))
            .find(|entry| entry.kind == kind::SEALED)
            .map(sealed)
            .transpose()?;
        let description = entries
            .iter()
            .find(of(role::DESCRIPTION))
            .map(|entry| utf16(entry.body));
        let conversion = Conversion::new(&fields, on_write, boot.sector_size)?;
        let sector = boot.sector_size.bytes() as u64;
        let log = ByteRange::new(fields.le64(16), fields.le32(24).into());
        Ok(Header {
            generation: boot.generation,
            version: self.version,
            sector_size: boot.sector_size,
            identifier: Uuid::from_bytes_le(fields.array(80)),
            description,
            created: fields.le64(104),
            method,
            places: Places {
                copies: self.places(),
                area_bytes: match self.version {
                    1 => VISTA_AREA_BYTES.next_multiple_of(boot.cluster_bytes.max(sector)),
                    _ => AREA_BYTES,
                },
                first_sectors: match self.version {
                    1 => None,
                    _ => Some(first_sectors(&fields, &entries, sector)?),
                },
                boot_fields: [
                    fields.le64(56),
                    self.places()[0] / boot.cluster_bytes.max(1),
                ],
                log: (conversion.state == ConversionState::Interrupted).then_some(log),
            },
            conversion,
            copies,
            protectors,
            data_key,
            sha256: Hash::Sha256.digest(&[&self.bytes]).to_vec(),
            digest: self.digest,
        })
    }
}

/// Where the first sectors of the plaintext are stored. Old versions use an entry for that.
fn first_sectors(
    fields: &Fields,
    entries: &[Entry],
    sector: u64,
) -> Result<ByteRange, VolumeError> {
    let (at, sectors) = (fields.le64(56), u64::from(fields.le32(28)));
    if sectors > 0 {
        return Ok(ByteRange::new(at, sectors * sector));
    }
    let entry = entries
        .iter()
        .find(|entry| entry.role == role::FIRST_SECTORS && entry.kind == kind::PLACE);
    match entry.and_then(|entry| entry.body.first_chunk::<16>()) {
        Some(place) => {
            let place = Fields(place);
            Ok(ByteRange::new(place.le64(0), place.le64(8)))
        }
        None => Err(damaged(Damage::missing("first sectors"))),
    }
}

/// The encrypted digest behind the checksum.
fn digest(rest: &[u8], said: u16) -> Result<Sealed, VolumeError> {
    let entry = rest[..usize::from(said).min(rest.len())]
        .get(CHECK_BYTES..)
        .map(entries);
    let entry = entry.transpose().map_err(damaged)?;
    let first = entry.as_deref().and_then(<[_]>::first);
    match first.filter(|entry| entry.kind == kind::SEALED) {
        Some(entry) => Sealed::parse(entry.body).map_err(damaged),
        None => Err(damaged(Damage::missing("validation"))),
    }
}
