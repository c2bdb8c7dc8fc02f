//! Which part of a volume is encrypted: all of it, everything before an offset, or the chunks that
//! are set in bitmaps.
//!
//! With encrypt-on-write (Windows 10 and later, also for used-space-only encryption) a volume has
//! two copies of a head. The head lists bitmaps, and each bitmap covers a region:
//!
//! ```text
//! head                      bitmap                       record, two in each bitmap
//! 0   8  "FVE-EOW\0"        0  10  "FVE-EOWBM\0"         0  10  "FVE-EOWBR\0"
//! 8   2  size up to 56      12  4  size                  12  4  size
//! 10  2  size               20  8  start of the region   16  4  bits
//! 20  4  size of a chunk    28  8  its size              20  8  number: the larger one counts
//! 24  4  size of a log      36  8  where its log is      32  4  CRC-32, itself zero
//! 36  4  CRC-32             44  8  where the records     36     a bit a chunk: encrypted
//! 56     where they are            are
//! ```

use super::damaged;
use crate::fields::Fields;
use crate::{Damage, VolumeError, unaligned};
use block::{BlockDevice, ByteRange};
use cipher::SectorSize;
use zeroize::Zeroizing;

/// Lengths of the fixed parts of a head, a bitmap and a record, bytes.
const HEAD_BYTES: usize = 56;
const BITMAP_HEAD_BYTES: usize = 60;
const RECORD_HEAD_BYTES: usize = 36;

/// Limit for all bitmaps together, bytes. Windows uses chunks of 8 MiB and one bitmap per 256 MiB.
const MOST_BITMAP_BYTES: u64 = 16 << 20;

/// The state of an encryption or decryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionState {
    /// Nothing is encrypted.
    Decrypted,
    /// A crash interrupted a step. Its log is needed to finish the step.
    Interrupted,
    /// The conversion was paused.
    Paused,
    /// The volume is encrypted. With used-space-only encryption, the used space is.
    Encrypted,
    /// The conversion has not ended.
    UnderWay,
    /// An unknown state.
    Other(u16),
}

impl ConversionState {
    fn numbered(number: u16) -> Self {
        match number {
            1 => Self::Decrypted,
            2 => Self::Interrupted,
            3 => Self::Paused,
            4 => Self::Encrypted,
            5 => Self::UnderWay,
            other => Self::Other(other),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decrypted => "decrypted",
            Self::Interrupted => "encryption or decryption was interrupted in the middle of a step",
            Self::Paused => "encryption or decryption is paused",
            Self::Encrypted => "encrypted",
            Self::UnderWay => "encryption or decryption has not finished",
            Self::Other(_) => "unknown",
        }
    }
}

/// The state of a volume, and which part of it is encrypted.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The state of an encryption or decryption.
    pub state: ConversionState,
    pub(super) reach: Reach,
    /// Where the encrypted part ends by the metadata, which in version 2 say so also if all is
    /// encrypted; 0 if they do not say so.
    pub(super) up_to: u64,
}

/// The encrypted part of the volume.
#[derive(Clone, Debug)]
pub(super) enum Reach {
    Nothing,
    All,
    /// Everything before this offset.
    UpTo(u64),
    /// The chunks that are set in bitmaps.
    Chunks(OnWrite),
    /// Unknown: the bitmaps are damaged.
    Lost(Damage),
}

impl Conversion {
    /// Reads the state from the head of the metadata. `on_write` holds the bitmaps, if the volume has any.
    pub(super) fn new(
        fields: &Fields,
        on_write: Option<Result<OnWrite, Damage>>,
        sector_size: SectorSize,
    ) -> Result<Self, VolumeError> {
        let state = ConversionState::numbered(fields.le16(12));
        let up_to = fields.le64(16);
        let sector = sector_size.bytes() as u64;
        if !up_to.is_multiple_of(sector) {
            let rule = format!("must be a multiple of {sector}");
            return Err(damaged(Damage::number("encrypted size", up_to, rule)));
        }
        let reach = match (state, on_write) {
            (ConversionState::Decrypted, _) => Reach::Nothing,
            (_, Some(Ok(on_write))) => Reach::Chunks(on_write),
            (_, Some(Err(damage))) => Reach::Lost(damage),
            // Vista says nothing if all is encrypted.
            (_, None) if up_to == 0 => Reach::All,
            (_, None) => Reach::UpTo(up_to),
        };
        Ok(Self {
            state,
            reach,
            up_to,
        })
    }

    /// Whether the head of the metadata says that nothing is encrypted.
    pub(super) fn is_decrypted(fields: &Fields) -> bool {
        ConversionState::numbered(fields.le16(12)) == ConversionState::Decrypted
    }

    /// The number of encrypted bytes in a volume of `size` bytes; `None` if the bitmaps are damaged.
    pub fn encrypted_bytes(&self, size: u64) -> Option<u64> {
        match &self.reach {
            Reach::Nothing => Some(0),
            Reach::All => Some(size),
            Reach::UpTo(end) => Some(size.min(*end)),
            Reach::Chunks(chunks) => Some(chunks.encrypted_bytes().min(size)),
            Reach::Lost(_) => None,
        }
    }

    /// Whether the volume uses encrypt-on-write.
    pub fn is_on_write(&self) -> bool {
        matches!(self.reach, Reach::Chunks(_) | Reach::Lost(_))
    }

    /// The damage to the bitmaps, if there is any.
    pub fn lost(&self) -> Option<&Damage> {
        match &self.reach {
            Reach::Lost(damage) => Some(damage),
            _ => None,
        }
    }

    /// Whether Windows has begun an encryption or decryption and not ended it.
    pub fn is_under_way(&self) -> bool {
        !matches!(
            self.state,
            ConversionState::Encrypted | ConversionState::Decrypted
        )
    }

    /// Whether a step of the conversion was interrupted. Then the log has data that belong on the
    /// volume.
    pub(super) const fn is_unsettled(&self) -> bool {
        matches!(
            self.state,
            ConversionState::Interrupted | ConversionState::Other(_)
        )
    }

    /// Whether byte `at` is encrypted, and the end of the run for which that holds.
    pub(super) fn at(&self, at: u64) -> (bool, u64) {
        match &self.reach {
            Reach::Nothing => (false, u64::MAX),
            Reach::All | Reach::Lost(_) => (true, u64::MAX),
            Reach::UpTo(end) if at < *end => (true, *end),
            Reach::UpTo(_) => (false, u64::MAX),
            Reach::Chunks(chunks) => chunks.at(at),
        }
    }

    /// Areas that Windows reserves for the conversion.
    pub(super) fn own(&self) -> &[ByteRange] {
        match &self.reach {
            Reach::Chunks(chunks) => &chunks.own,
            _ => &[],
        }
    }
}

/// The bitmaps of a volume with encrypt-on-write.
#[derive(Clone, Debug)]
pub(super) struct OnWrite {
    chunk_bytes: u64,
    /// Sorted, without gaps between them.
    regions: Vec<Region>,
    own: Vec<ByteRange>,
}

#[derive(Clone, Debug)]
struct Region {
    range: ByteRange,
    bits: Vec<u8>,
}

impl OnWrite {
    /// Reads the bitmaps. `at` are the offsets of the two copies of the head.
    pub(super) fn read(device: &dyn BlockDevice, at: [u64; 2]) -> Result<Self, VolumeError> {
        let head = match read_head(device, at[0]) {
            Err(error) if is_of_copy(&error) => read_head(device, at[1])?,
            head => head?,
        };
        let fields = Fields(&head);
        let chunk_bytes = u64::from(fields.le32(20));
        let log_bytes = u64::from(fields.le32(24));
        if !chunk_bytes.is_power_of_two() || chunk_bytes < 4096 {
            let rule = "must be a power of two and at least 4096";
            return Err(damaged(Damage::number("chunk size", chunk_bytes, rule)));
        }
        let mut own: Vec<_> = at.map(|at| ByteRange::new(at, head.len() as u64)).to_vec();
        let (mut regions, mut room) = (Vec::new(), MOST_BITMAP_BYTES);
        for place in head[HEAD_BYTES..].as_chunks().0 {
            let place = u64::from_le_bytes(*place);
            let (region, size, log) = bitmap(device, place, chunk_bytes, &mut room)?;
            own.push(ByteRange::new(place, size));
            own.push(ByteRange::new(log, log_bytes));
            regions.push(region);
        }
        regions.sort_by_key(|region| region.range.offset);
        // The first sectors are in none: what is there is BitLocker's own.
        for pair in regions.windows(2) {
            let (end, next) = (pair[0].range.end(), pair[1].range.offset);
            if end != Some(next) {
                let rule = "must begin at the end of the region before it";
                return Err(damaged(Damage::number("region offset", next, rule)));
            }
        }
        Ok(Self {
            chunk_bytes,
            regions,
            own,
        })
    }

    fn encrypted_bytes(&self) -> u64 {
        let ones = |region: &Region| -> u64 {
            let chunks = region.range.length.div_ceil(self.chunk_bytes);
            let set = (0..chunks).filter(|&chunk| region.is_set(chunk)).count();
            (set as u64 * self.chunk_bytes).min(region.range.length)
        };
        self.regions.iter().map(ones).sum()
    }

    /// Outside the regions, nothing is encrypted.
    fn at(&self, at: u64) -> (bool, u64) {
        let behind = self
            .regions
            .partition_point(|region| region.range.offset <= at);
        let Some(region) = behind.checked_sub(1).map(|nth| &self.regions[nth]) else {
            let first = self.regions.first();
            return (false, first.map_or(u64::MAX, |first| first.range.offset));
        };
        let end = region.range.offset + region.range.length;
        if at >= end {
            return (false, u64::MAX);
        }
        let mut chunk = (at - region.range.offset) / self.chunk_bytes;
        let set = region.is_set(chunk);
        // Far enough for any request; a longer one asks again.
        let most = chunk + (64 << 20) / self.chunk_bytes + 1;
        let mut until = at;
        while until < end && chunk < most && region.is_set(chunk) == set {
            chunk += 1;
            until = (region.range.offset + chunk * self.chunk_bytes).min(end);
        }
        (set, until)
    }
}

impl Region {
    fn is_set(&self, chunk: u64) -> bool {
        self.bits[(chunk / 8) as usize] & 1 << (chunk % 8) != 0
    }
}

/// The region of the bitmap at `place`, the bitmap's size, and where its log is. All of them
/// together have `room`.
fn bitmap(
    device: &dyn BlockDevice,
    place: u64,
    chunk_bytes: u64,
    room: &mut u64,
) -> Result<(Region, u64, u64), VolumeError> {
    let head = exactly(device, place, BITMAP_HEAD_BYTES as u64, "bitmap")?;
    let fields = Fields(&head);
    check_signature(&head, b"FVE-EOWBM\0")?;
    let size = u64::from(fields.le32(12));
    if size > *room {
        let rule = "all bitmaps together may have 16 MiB";
        return Err(damaged(Damage::number("bitmap size", size, rule)));
    }
    *room -= size;
    let bytes = exactly(device, place, size, "bitmap")?;
    let records = [44, 48].map(|at| fields.le32(at) as usize);
    let head_bytes = records[0];
    if !(BITMAP_HEAD_BYTES..=bytes.len()).contains(&head_bytes) {
        let rule = format!("must be {BITMAP_HEAD_BYTES} to {size}");
        return Err(damaged(Damage::number(
            "record offset",
            head_bytes as u64,
            rule,
        )));
    }
    check_sum(&bytes[..head_bytes], 56, "a bitmap")?;
    let range = ByteRange::new(fields.le64(20), fields.le64(28));
    let chunks = range.length.div_ceil(chunk_bytes);
    if range.end().is_none() || chunks.div_ceil(8) > size {
        let rule = "must be the size that its bitmap covers";
        return Err(damaged(Damage::number("region size", range.length, rule)));
    }
    let records = records.map(|at| record(&bytes, at, chunks));
    let newest = match records {
        [Ok(first), Ok(second)] if second.0 > first.0 => second.1,
        [Ok(first), _] => first.1,
        [_, Ok(second)] => second.1,
        [Err(damage), Err(_)] => return Err(damage),
    };
    let bits = newest.to_vec();
    Ok((Region { range, bits }, size, fields.le64(36)))
}

/// The sequence number and the bits of the record at `at`, for `chunks` chunks.
fn record(bytes: &[u8], at: usize, chunks: u64) -> Result<(u64, &[u8]), VolumeError> {
    let bytes = bytes.get(at..).unwrap_or_default();
    let short = |needed: usize| {
        damaged(Damage::length(
            "bitmap record",
            bytes.len(),
            format!("needs {needed}"),
        ))
    };
    if bytes.len() < RECORD_HEAD_BYTES {
        return Err(short(RECORD_HEAD_BYTES));
    }
    let fields = Fields(bytes);
    check_signature(bytes, b"FVE-EOWBR\0")?;
    let size = fields.le32(12) as usize;
    let needed = RECORD_HEAD_BYTES + chunks.div_ceil(8) as usize;
    let whole = bytes.get(..size).ok_or_else(|| short(size))?;
    if size < needed || u64::from(fields.le32(16)) < chunks {
        return Err(short(needed));
    }
    check_sum(whole, 32, "a bitmap record")?;
    Ok((fields.le64(20), &whole[RECORD_HEAD_BYTES..needed]))
}

/// Reads and checks the head at `at`.
fn read_head(device: &dyn BlockDevice, at: u64) -> Result<Zeroizing<Vec<u8>>, VolumeError> {
    let start = exactly(device, at, HEAD_BYTES as u64, "head")?;
    check_signature(&start, b"FVE-EOW\0")?;
    let fields = Fields(&start);
    let (head_bytes, size) = (fields.le16(8), fields.le16(10));
    if usize::from(head_bytes) != HEAD_BYTES || size < head_bytes {
        let rule = format!("must be {HEAD_BYTES}, and not beyond {size}");
        return Err(damaged(Damage::number("head size", head_bytes, rule)));
    }
    let head = exactly(device, at, size.into(), "head")?;
    check_sum(&head, 36, "the description of the bitmaps")?;
    Ok(head)
}

fn exactly(
    device: &dyn BlockDevice,
    at: u64,
    length: u64,
    field: &str,
) -> Result<Zeroizing<Vec<u8>>, VolumeError> {
    let bytes = unaligned::read_up_to(device, at, length)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(damaged(Damage::length(
            field,
            bytes.len(),
            format!("needs {length}"),
        ))),
    }
}

fn check_signature(bytes: &[u8], signature: &'static [u8]) -> Result<(), VolumeError> {
    match bytes.starts_with(signature) {
        true => Ok(()),
        false => Err(damaged(Damage::kind(
            "signature of the bitmaps",
            "one of BitLocker's",
        ))),
    }
}

/// Checks the checksum at `at`, which is computed with that field set to zero.
fn check_sum(bytes: &[u8], at: usize, what: &'static str) -> Result<(), VolumeError> {
    match Fields(bytes).has_crc32(at) {
        true => Ok(()),
        false => Err(damaged(Damage::checksum(what))),
    }
}

/// Whether the error concerns only this copy.
fn is_of_copy(error: &VolumeError) -> bool {
    matches!(error, VolumeError::Header { .. }) || error.is_of_place()
}
