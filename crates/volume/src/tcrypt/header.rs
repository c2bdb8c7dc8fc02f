//! [`Header`]: what stands in a decrypted header, numbers big endian.
//!
//! ```text
//!   0  magic 4         4  version 2         6  least program version 2
//!   8  CRC of the key area 4               12  volume's time 8   20  header's time 8
//!  28  hidden size 8  36  volume size 8    44  data offset 8     52  encrypted bytes 8
//!  60  flags 4        64  sector size 4    68  zeros
//! 188  CRC of all before it 4             192  key area 256
//! ```

use super::layers::{ENCRYPTED_BYTES, Sector};
use super::{Family, HEADER_BYTES, HEADERS_BYTES, OLD_HIDDEN_BEFORE_END, Place, SYSTEM_AT, UNIT};
use crate::crc::crc32;
use crate::fields::Fields;
use crate::mapping::{described, described_to_end};
use crate::{Damage, VolumeError};
use block::{BlockDevice, ByteRange};
use cipher::{Key, SectorLayout};

const KEY_AREA: std::ops::Range<usize> = 192..ENCRYPTED_BYTES;
const CRC_AT: usize = 188;

/// Before it, the header's checksum did not exist.
const FIRST_WITH_CHECKSUM: u16 = 4;
pub(super) const NEWEST_VERSION: u16 = 5;

/// Both programs mount volumes with sectors up to this.
pub(super) const MOST_SECTOR_BYTES: u32 = 4096;

/// Of [`Header::flags`]: an encrypted system, or encrypted in place; either
/// perhaps not yet everywhere.
const ENCRYPTED_LATER: u32 = 1 | 2;

/// A decrypted header whose numbers were checked. A caller must only check whether the data lie
/// within the device.
#[derive(Debug)]
pub struct Header {
    /// By its magic.
    pub family: Family,
    /// Version of the format, 1 to 5.
    pub version: u16,
    /// The oldest version of the program that can open the volume, as it
    /// stands there: `0x0600` is 6.0.
    pub least_program: u16,
    /// When the volume was made, in 100 ns since 1601; VeraCrypt writes 0.
    pub volume_time: u64,
    /// When the header was written, likewise.
    pub header_time: u64,
    /// Size of the hidden volume, bytes; 0 in a normal volume's header.
    pub hidden_size: u64,
    /// Size of the volume, bytes; 0 in the oldest headers.
    pub volume_size: u64,
    /// First byte of the data; not used before version 3.
    pub data_offset: u64,
    /// Bytes of the data area that are encrypted.
    pub encrypted_bytes: u64,
    /// Flags: 1 an encrypted system, 2 encrypted in place.
    pub flags: u32,
    /// Sector size of the volume, bytes; XTS has units of 512 nevertheless.
    pub sector_size: u32,
    pub(super) key_area: Key,
}

impl Header {
    /// The header in what was decrypted of it, or nothing if the magic is
    /// not that of `family`.
    ///
    /// # Errors
    /// [`Damage`] if it cannot be used as the header at `place`.
    pub fn parse(
        family: Family,
        place: Place,
        decrypted: &[u8; ENCRYPTED_BYTES],
    ) -> Result<Option<Self>, Damage> {
        let fields = Fields(decrypted);
        if fields.array(0) != *family.magic() {
            return Ok(None);
        }
        let version = fields.be16(4);
        let oldest = match family {
            Family::TrueCrypt => 1,
            Family::VeraCrypt => FIRST_WITH_CHECKSUM,
        };
        if !(oldest..=NEWEST_VERSION).contains(&version) {
            let rule = format!("{oldest} to {NEWEST_VERSION} are supported");
            return Err(Damage::number("header version", version, rule));
        }
        if version >= FIRST_WITH_CHECKSUM && fields.be32(CRC_AT) != crc32(&decrypted[..CRC_AT]) {
            return Err(Damage::checksum("the header"));
        }
        if fields.be32(8) != crc32(&decrypted[KEY_AREA]) {
            return Err(Damage::checksum("the key area"));
        }
        let header = Self {
            family,
            version,
            least_program: fields.be16(6),
            volume_time: fields.be64(12),
            header_time: fields.be64(20),
            hidden_size: fields.be64(28),
            volume_size: fields.be64(36),
            data_offset: fields.be64(44),
            encrypted_bytes: fields.be64(52),
            flags: fields.be32(60),
            sector_size: match version {
                5.. => fields.be32(64),
                _ => UNIT as u32,
            },
            key_area: Key::from_slice(&decrypted[KEY_AREA]),
        };
        header.check(place)?;
        Ok(Some(header))
    }

    /// The decrypted sector that [`parse`](Self::parse) reads, with its
    /// checksums; what is behind the header is zero.
    pub(super) fn to_sector(&self) -> Sector {
        let mut sector = Sector::new([0; 512]);
        let mut put = |at: usize, bytes: &[u8]| sector[at..][..bytes.len()].copy_from_slice(bytes);
        put(0, self.family.magic());
        put(4, &self.version.to_be_bytes());
        put(6, &self.least_program.to_be_bytes());
        put(8, &crc32(self.key_area.as_bytes()).to_be_bytes());
        put(12, &self.volume_time.to_be_bytes());
        put(20, &self.header_time.to_be_bytes());
        put(28, &self.hidden_size.to_be_bytes());
        put(36, &self.volume_size.to_be_bytes());
        put(44, &self.data_offset.to_be_bytes());
        put(52, &self.encrypted_bytes.to_be_bytes());
        put(60, &self.flags.to_be_bytes());
        put(64, &self.sector_size.to_be_bytes());
        put(KEY_AREA.start, self.key_area.as_bytes());
        let checksum = crc32(&sector[..CRC_AT]);
        sector[CRC_AT..KEY_AREA.start].copy_from_slice(&checksum.to_be_bytes());
        sector
    }

    /// The same once more.
    pub(super) fn duplicate(&self) -> Self {
        Self {
            key_area: Key::from_slice(self.key_area.as_bytes()),
            ..*self
        }
    }

    fn check(&self, place: Place) -> Result<(), Damage> {
        let sector_size = self.sector_size;
        if !sector_size.is_power_of_two()
            || !(UNIT as u32..=MOST_SECTOR_BYTES).contains(&sector_size)
        {
            let rule = "must be 512, 1024, 2048 or 4096";
            return Err(Damage::number("sector size", sector_size, rule));
        }
        let since_3 = [
            ("volume size", self.volume_size),
            ("data offset", self.data_offset),
            ("encrypted size", self.encrypted_bytes),
        ];
        let used = since_3.into_iter().filter(|_| self.version >= 3);
        for (field, value) in used.chain([("hidden volume size", self.hidden_size)]) {
            if !value.is_multiple_of(UNIT) {
                return Err(Damage::number(field, value, "must be a multiple of 512"));
            }
        }
        // An encrypted system counts the rest of the disk.
        if place != Place::System && self.version >= 3 && self.encrypted_bytes > self.volume_size {
            let rule = format!("the volume size is {}", self.volume_size);
            return Err(Damage::number("encrypted size", self.encrypted_bytes, rule));
        }
        if place.is_hidden() {
            self.check_hidden()?;
        }
        // An encrypted system begins behind its header at the earliest.
        let (first, least) = match (place, self.has_old_layout()) {
            (Place::System, _) => ("the header", SYSTEM_AT + HEADER_BYTES),
            (_, true) => return Ok(()),
            (_, false) => ("the headers", HEADERS_BYTES),
        };
        if self.volume_size == 0 {
            return Err(Damage::number("volume size", 0_u64, "must be at least 512"));
        }
        if self.start() < least {
            return Err(Damage::overlap(
                first,
                format!("the data from {}", self.start()),
            ));
        }
        Ok(())
    }

    fn check_hidden(&self) -> Result<(), Damage> {
        let size = self.hidden_size;
        if size == 0 {
            let rule = "must be at least 512 in the header of a hidden volume";
            return Err(Damage::number("hidden volume size", size, rule));
        }
        if !self.has_old_layout() && size != self.volume_size {
            let rule = format!("the volume size is {}", self.volume_size);
            return Err(Damage::number("hidden volume size", size, rule));
        }
        Ok(())
    }

    /// Whether data begin right behind the header, and hidden volumes end
    /// before their header.
    pub(super) const fn has_old_layout(&self) -> bool {
        self.version < FIRST_WITH_CHECKSUM
    }

    /// First byte of a normal volume's data.
    pub(super) const fn start(&self) -> u64 {
        match (self.version, self.data_offset) {
            (..3, _) | (3, 0) => UNIT,
            (_, offset) => offset,
        }
    }

    /// Where the data lie on `device`, whether it has all of them or not.
    pub(super) fn data(
        &self,
        place: Place,
        device: &dyn BlockDevice,
    ) -> Result<ByteRange, VolumeError> {
        let layout = SectorLayout::default();
        let damaged = |damage| Err(VolumeError::damaged(self.family.format(), damage));
        if place.is_hidden() && self.has_old_layout() {
            let size = device.geometry().size;
            let end = size.saturating_sub(OLD_HIDDEN_BEFORE_END);
            let start = end.checked_sub(self.hidden_size);
            // The outer volume has a header, if nothing else.
            let Some(start) = start.filter(|&start| start >= HEADER_BYTES) else {
                let room = end.saturating_sub(HEADER_BYTES);
                let rule = format!("there is room for {room}");
                return damaged(Damage::number("hidden volume size", self.hidden_size, rule));
            };
            return described(start, self.hidden_size, layout);
        }
        let length = match place {
            Place::Hidden | Place::HiddenBackup => self.hidden_size,
            Place::Normal | Place::NormalBackup | Place::System => self.volume_size,
        };
        if self.version < 3 || length == 0 {
            return Ok(described_to_end(device, self.start(), layout));
        }
        if self.encrypted_bytes < length && self.flags & ENCRYPTED_LATER != 0 {
            return Err(VolumeError::unsupported(
                self.family.format(),
                format!(
                    "an unfinished encryption in place, at {} of {length} bytes",
                    self.encrypted_bytes
                ),
            ));
        }
        described(self.start(), length, layout)
    }
}
