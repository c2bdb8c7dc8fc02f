//! Partition tables of PCs: four entries in the first sector, and a chain of tables for
//! logical partitions, which are counted from 5 on.

use super::{Division, Kind, partition};
use crate::VolumeError;
use crate::fields::Fields;
use crate::unaligned::read_up_to;
use block::{BlockDevice, ByteRange};

const TABLE: usize = 446;
const ENTRY: usize = 16;
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];

/// Stands for a whole disk with a GPT.
const PROTECTIVE: u8 = 0xee;

/// Logical partitions that are looked for: a chain may be a ring.
const MOST_LOGICAL: usize = 128;

struct Entry {
    active: u8,
    kind: u8,
    start: u64,
    count: u64,
}

/// Whether the first sector says that the disk has a GPT.
pub(super) fn is_protective(device: &dyn BlockDevice) -> Result<bool, VolumeError> {
    let entries = table(device, 0)?;
    Ok(entries.is_some_and(|entries| entries.iter().any(|entry| entry.kind == PROTECTIVE)))
}

/// Whether there is such a table with any partitions, which `division` gets.
pub(super) fn read(device: &dyn BlockDevice, division: &mut Division) -> Result<bool, VolumeError> {
    let Some(entries) = table(device, 0)? else {
        return Ok(false);
    };
    let sector = u64::from(device.geometry().logical_block).max(512);
    let in_use: Vec<_> = (1..)
        .zip(&entries)
        .filter(|(_, entry)| entry.kind != 0 && entry.kind != PROTECTIVE)
        .collect();
    // File systems of PCs begin with a sector of the same form that has code there.
    let plausible = |entry: &Entry| {
        let empty = entry.kind == 0 && entry.start == 0 && entry.count == 0;
        entry.active & 0x7f == 0 && (empty || entry.kind != 0 && entry.start > 0 && entry.count > 0)
    };
    if in_use.is_empty() || !entries.iter().all(plausible) {
        return Ok(false);
    }
    let range = |start: u64, count: u64| {
        Some(ByteRange::new(
            start.checked_mul(sector)?,
            count.checked_mul(sector)?,
        ))
    };
    let part = |number: usize, entry: &Entry, start: u64| {
        let kind = Kind::MbrPartition {
            type_code: entry.kind,
        };
        partition(number.to_string(), kind, range(start, entry.count), device)
    };
    let parts = &mut division.parts;
    let mut chain = None;
    for (number, entry) in in_use {
        match EXTENDED.contains(&entry.kind) {
            true => chain = chain.or(Some(entry.start)),
            false => parts.push(part(number, entry, entry.start)),
        }
    }
    let Some(first) = chain else {
        return Ok(true);
    };
    let mut here = first;
    for number in 5..5 + MOST_LOGICAL {
        let Some(place) = here.checked_mul(sector) else {
            break;
        };
        let Some(entries) = table(device, place)? else {
            break;
        };
        let [logical, next, ..] = &entries;
        if logical.kind != 0 {
            let start = here.saturating_add(logical.start);
            parts.push(part(number, logical, start));
        }
        match EXTENDED.contains(&next.kind) {
            true => here = first.saturating_add(next.start),
            false => break,
        }
    }
    Ok(true)
}

/// The four entries of the sector at `place`, if it has a table's signature.
fn table(device: &dyn BlockDevice, place: u64) -> Result<Option<[Entry; 4]>, VolumeError> {
    let sector = read_up_to(device, place, 512)?;
    if sector.get(510..512) != Some(b"\x55\xaa") {
        return Ok(None);
    }
    Ok(Some(std::array::from_fn(|nth| {
        let entry = &sector[TABLE + nth * ENTRY..][..ENTRY];
        Entry {
            active: entry[0],
            kind: entry[4],
            start: Fields(entry).le32(8).into(),
            count: Fields(entry).le32(12).into(),
        }
    })))
}
