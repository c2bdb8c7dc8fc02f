//! GUID partition tables: UEFI specification 2.10, section 5.3.

use super::{Division, Kind, Part, mbr, mixed_uuid, partition};
use crate::VolumeError;
use crate::crc::crc32;
use crate::fields::{Fields, utf16};
use crate::unaligned::read_up_to;
use block::{BlockDevice, ByteRange};

/// Sizes of sectors that disks have.
const SECTORS: [u64; 2] = [512, 4096];

/// Most bytes of a table that are read: 1,024 entries of 1 KiB, where 128 of 128 are usual.
const MOST_BYTES: u64 = 1 << 20;

/// A header that is whole, and its table.
struct Table {
    entry_bytes: usize,
    bytes: Vec<u8>,
}

/// Whether there is a table, with its partitions in `division`, which hears of a damaged copy. Like the kernel, this
/// takes a table only if the first sector has a protective entry. Any other first sector says that
/// the disk has become something else since.
pub(super) fn read(device: &dyn BlockDevice, division: &mut Division) -> Result<bool, VolumeError> {
    let signature = |at: u64| -> Result<bool, VolumeError> {
        Ok(read_up_to(device, at, 8)?.starts_with(b"EFI PART"))
    };
    if !mbr::is_protective(device)? {
        if signature(512)? {
            division.remark(
                "a partition table (GPT) is left here, but the first sector has no protective \
                 entry for it, so it is ignored",
            );
        }
        return Ok(false);
    }
    for sector in SECTORS {
        let last = (device.geometry().size / sector).saturating_sub(1);
        if last < 2 {
            continue;
        }
        for place in [1, last] {
            let Some(table) = table(device, sector, place)? else {
                continue;
            };
            if place == last {
                division.remark(
                    "the partition table at the start is damaged, so its copy at the end was used",
                );
            }
            division.bytes = table.bytes.len();
            division.parts = partitions(device, sector, &table);
            return Ok(true);
        }
    }
    if signature(512)? || signature(4096)? {
        division.remark(
            "both copies of the partition table (GPT) are damaged: try to repair them with \
             `gdisk`, on a copy of the disk",
        );
    }
    Ok(false)
}

/// The table whose header is in this sector, if both checksums are right.
fn table(device: &dyn BlockDevice, sector: u64, place: u64) -> Result<Option<Table>, VolumeError> {
    let header = read_up_to(device, place * sector, 512)?;
    if header.len() < 512 || !header.starts_with(b"EFI PART") {
        return Ok(None);
    }
    let fields = Fields(&header);
    let length = fields.le32(12) as usize;
    if !(92..=512).contains(&length)
        || fields.le64(24) != place
        || !Fields(&header[..length]).has_crc32(16)
    {
        return Ok(None);
    }
    let (count, entry_bytes) = (fields.le32(80), u64::from(fields.le32(84)));
    let bytes = u64::from(count) * entry_bytes;
    let start = fields.le64(72).checked_mul(sector);
    let (Some(start), 128..=4096, 1..=MOST_BYTES) = (start, entry_bytes, bytes) else {
        return Ok(None);
    };
    let entries = read_up_to(device, start, bytes)?;
    let whole = entries.len() as u64 == bytes && crc32(entries.iter()) == fields.le32(88);
    Ok(whole.then_some(Table {
        entry_bytes: entry_bytes as usize,
        bytes: entries.to_vec(),
    }))
}

fn partitions(device: &dyn BlockDevice, sector: u64, table: &Table) -> Vec<Part> {
    let entries = table.bytes.chunks_exact(table.entry_bytes).enumerate();
    let used = entries.filter(|(_, entry)| entry[..16] != [0; 16]);
    used.map(|(index, entry)| {
        let uuid = |at: usize| {
            let bytes: &[u8; 16] = entry[at..].first_chunk().expect("128 bytes or more");
            mixed_uuid(bytes)
        };
        let (first, last) = (Fields(entry).le64(32), Fields(entry).le64(40));
        let range = || {
            let count = last.checked_sub(first)?.checked_add(1)?;
            Some(ByteRange::new(
                first.checked_mul(sector)?,
                count.checked_mul(sector)?,
            ))
        };
        let kind = Kind::GptPartition { type_uuid: uuid(0) };
        let label = utf16(&entry[56..128]);
        Part {
            label: Some(label).filter(|label| !label.is_empty()),
            uuid: Some(uuid(16)),
            ..partition((index + 1).to_string(), kind, range(), device)
        }
    })
    .collect()
}
