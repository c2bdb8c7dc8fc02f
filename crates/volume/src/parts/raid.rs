//! The data of a mirror (RAID1) on one disk of a Linux software RAID.
//!
//! Superblocks are those of the kernel's `include/uapi/linux/raid/md_p.h`, in little-endian
//! order.

use super::{Division, Kind, Obstacle, Part};
use crate::VolumeError;
use crate::fields::Fields;
use crate::unaligned::read_up_to;
use block::{BlockDevice, ByteRange};

const MAGIC: [u8; 4] = 0xa92b_4efc_u32.to_le_bytes();
const SECTOR: u64 = 512;

/// A superblock of version 1, before the roles of its disks.
const SUPERBLOCK: usize = 256;

/// Disks that an array of version 1 has at most.
const MOST_DISKS: u32 = 384;

/// Data, if a superblock of version 1.1 or 1.2 is there: at the start, or 4 KiB behind it.
pub(super) fn at_fixed_places(device: &dyn BlockDevice) -> Result<Option<Division>, VolumeError> {
    match version_1(device, 0)? {
        None => version_1(device, 4096),
        found => Ok(found),
    }
}

/// Data, if a superblock of version 1.0 or 0.90 is near the end.
pub(super) fn before_end(device: &dyn BlockDevice) -> Result<Option<Division>, VolumeError> {
    let size = device.geometry().size;
    let version_1_0 = size.checked_sub(8 << 10).map(|place| place & !4095);
    let version_0 = (size & !0xffff).checked_sub(64 << 10);
    if let Some(place) = version_1_0
        && let Some(found) = version_1(device, place)?
    {
        return Ok(Some(found));
    }
    match version_0 {
        Some(place) => version_0_90(device, place),
        None => Ok(None),
    }
}

fn version_1(device: &dyn BlockDevice, place: u64) -> Result<Option<Division>, VolumeError> {
    let bytes = read_up_to(device, place, (SUPERBLOCK + 2 * MOST_DISKS as usize) as u64)?;
    let fields = Fields(&bytes);
    if bytes.len() < SUPERBLOCK || !bytes.starts_with(&MAGIC) || fields.le32(4) != 1 {
        return Ok(None);
    }
    let roles = fields.le32(220);
    let summed = match bytes.get(..SUPERBLOCK + 2 * roles.min(MOST_DISKS + 1) as usize) {
        Some(summed) if roles <= MOST_DISKS => summed,
        _ => return Ok(None),
    };
    if fields.le64(144) != place / SECTOR || checksum(summed) != fields.le32(216) {
        return Ok(None);
    }
    let name = fields.text(32, 32);
    // The role of this disk: a place in the array, a spare, or failed.
    let number = fields.le32(160);
    let role = (number < roles).then(|| fields.le16(SUPERBLOCK + 2 * number as usize));
    let is_active = role.is_some_and(|role| role < 0xff00);
    const BEING_REBUILT: u32 = 2;
    let obstacle = if !is_active {
        unusable("this disk is a spare of its RAID, or has failed")
    } else if fields.le32(8) & BEING_REBUILT != 0 {
        unusable("this disk of its RAID was being rebuilt, and has only part of the data")
    } else {
        of_level(fields.le32(72), fields.le32(92))
    };
    let range = sectors(fields.le64(128), fields.le64(80), device);
    let uuid = fields.array::<16>(16);
    Ok(Some(data(range, obstacle, name.lossy().to_string(), &uuid)))
}

fn version_0_90(device: &dyn BlockDevice, place: u64) -> Result<Option<Division>, VolumeError> {
    const WORDS: usize = 1024;
    let bytes = read_up_to(device, place, 4 * WORDS as u64)?;
    let fields = Fields(&bytes);
    if bytes.len() < 4 * WORDS || !bytes.starts_with(&MAGIC) || fields.le32(4) != 0 {
        return Ok(None);
    }
    let sum: u64 = (0..WORDS)
        .filter(|word| *word != 38)
        .map(|word| u64::from(fields.le32(4 * word)))
        .sum();
    if folded(sum) != fields.le32(4 * 38) {
        return Ok(None);
    }
    let mut uuid = [0; 16];
    for (into, from) in [(0, 20), (4, 52), (8, 56), (12, 60)] {
        uuid[into..into + 4].copy_from_slice(&fields.array::<4>(from));
    }
    // The state of this disk, the last of the descriptors.
    const ACTIVE_AND_IN_SYNC: u32 = 0b110;
    let state = fields.le32(4 * (WORDS - 32) + 16);
    let obstacle = match state & ACTIVE_AND_IN_SYNC == ACTIVE_AND_IN_SYNC {
        true => of_level(fields.le32(28), fields.le32(40)),
        false => unusable("this disk is a spare of its RAID, or has failed"),
    };
    let range = sectors(0, u64::from(fields.le32(32)) * 2, device);
    Ok(Some(data(range, obstacle, String::new(), &uuid)))
}

/// The sum of all words, the checksum's own as zero.
fn checksum(superblock: &[u8]) -> u32 {
    let (words, rest) = superblock.as_chunks::<4>();
    let words = words.iter().map(|word| u32::from_le_bytes(*word));
    let own = Fields(superblock).le32(216);
    let rest = match rest {
        [low, high] => u64::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    };
    folded(words.map(u64::from).sum::<u64>() - u64::from(own) + rest)
}

fn folded(sum: u64) -> u32 {
    (sum as u32).wrapping_add((sum >> 32) as u32)
}

fn unusable(reason: &str) -> Option<Obstacle> {
    Some(Obstacle::Unusable(reason.to_owned()))
}

/// The restriction that a RAID level puts on the use of one of its disks.
fn of_level(level: u32, disks: u32) -> Option<Obstacle> {
    match (level.cast_signed(), disks) {
        (1, 0 | 1) => None,
        (1, disks) => Some(Obstacle::ReadOnly(format!(
            "it is one of {disks} disks of a mirror, and the others would differ from it"
        ))),
        (level, _) => Some(Obstacle::Unusable(format!(
            "one disk of a RAID of level {level} has only part of the data"
        ))),
    }
}

fn sectors(start: u64, count: u64, device: &dyn BlockDevice) -> Option<ByteRange> {
    let range = ByteRange::new(start.checked_mul(SECTOR)?, count.checked_mul(SECTOR)?);
    let inside = range.length > 0 && range.end()? <= device.geometry().size;
    inside.then_some(range)
}

fn data(
    range: Option<ByteRange>,
    obstacle: Option<Obstacle>,
    label: String,
    uuid: &[u8; 16],
) -> Division {
    let obstacle = match range {
        Some(_) => obstacle,
        None => unusable("not all of its data is on this disk: the image is cut off"),
    };
    let usable = !matches!(obstacle, Some(Obstacle::Unusable(_)));
    let mut text: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    for at in [24, 16, 8] {
        text.insert(at, ':');
    }
    Division {
        parts: vec![Part {
            name: "raid".to_owned(),
            kind: Kind::RaidData,
            label: Some(label).filter(|label| !label.is_empty()),
            uuid: Some(text),
            ranges: range.into_iter().filter(|_| usable).collect(),
            obstacle,
        }],
        ..Division::default()
    }
}
