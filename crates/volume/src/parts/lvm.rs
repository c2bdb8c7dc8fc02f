//! Logical volumes of LVM2 on one physical volume: linear ones; others are named with what is
//! in the way.
//!
//! The layout is that of LVM2's `lib/format_text/layout.h` and `lib/label/label.h`; the text is
//! described by `man 5 lvm.conf` and `vgcfgbackup`.

use super::lvm_text::{Section, Value, parse};
use super::{Division, Kind, Obstacle, Part};
use crate::VolumeError;
use crate::crc::step;
use crate::fields::Fields;
use crate::unaligned::read_up_to;
use block::{BlockDevice, ByteRange};
use std::collections::HashSet;

/// Numbers of sectors in metadata count these.
const SECTOR: u64 = 512;

/// A label is in one of the first four sectors.
const LABELS: u64 = 4;

/// The header of a metadata area, behind which its text goes round.
const HEADER: u64 = 512;
const MAGIC: &[u8] = b" LVM2 x[5A%r0N*>";

/// Most bytes of metadata that are read; LVM's areas have 1 MiB, unless its user says otherwise.
const MOST_TEXT: u64 = 8 << 20;

/// LVM's start of a CRC-32, which it does not invert in the end.
const CRC_START: u32 = 0xf597_a6cf;

fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(CRC_START, |crc, &byte| step(crc, byte))
}

/// The logical volumes, if `device` is a physical volume.
pub(super) fn read(device: &dyn BlockDevice) -> Result<Option<Division>, VolumeError> {
    let start = read_up_to(device, 0, LABELS * SECTOR)?;
    let label = start.chunks_exact(SECTOR as usize).find(|sector| {
        sector.starts_with(b"LABELONE")
            && sector[24..32] == *b"LVM2 001"
            && crc(&sector[20..]) == Fields(sector).le32(16)
    });
    let Some(label) = label else {
        return Ok(None);
    };
    let mut division = Division::default();
    let header = Fields(label).le32(20) as usize;
    let Some((own, areas)) = label.get(header..).and_then(physical_volume) else {
        division.remark("its LVM header is damaged");
        return Ok(Some(division));
    };
    let mut damaged = false;
    for (place, size) in areas {
        match metadata(device, place, size)? {
            Metadata::Text(text) => {
                division.bytes = text.len();
                match parse(text.trim_end_matches('\0')) {
                    Some(group) => division.take(&group, own, device),
                    None => division.remark("its LVM metadata has a wrong form, or is too large"),
                }
                return Ok(Some(division));
            }
            Metadata::Large => {
                division.remark("its LVM metadata is larger than what is read here");
                return Ok(Some(division));
            }
            Metadata::Damaged => damaged = true,
            Metadata::Elsewhere => {}
        }
    }
    division.remark(match damaged {
        true => "its LVM metadata is damaged: try to repair it with `vgcfgrestore`, on a copy",
        false => "the metadata of its LVM volume group is on another disk",
    });
    Ok(Some(division))
}

/// A volume's UUID, and where its metadata areas are.
type PhysicalVolume<'a> = (&'a [u8], Vec<(u64, u64)>);

fn physical_volume(header: &[u8]) -> Option<PhysicalVolume<'_>> {
    let own = header.get(..32)?;
    let (pairs, _) = header.get(40..)?.as_chunks::<16>();
    let mut pairs = pairs
        .iter()
        .map(|pair| (Fields(pair).le64(0), Fields(pair).le64(8)));
    // The areas of data, up to a pair of zeros; then those of metadata.
    pairs.by_ref().take_while(|pair| pair.0 != 0).for_each(drop);
    Some((own, pairs.take_while(|pair| pair.0 != 0).collect()))
}

enum Metadata {
    Text(String),
    /// There is none in this area.
    Elsewhere,
    Damaged,
    /// It is larger than what is read.
    Large,
}

/// The text in one area.
fn metadata(device: &dyn BlockDevice, place: u64, size: u64) -> Result<Metadata, VolumeError> {
    const IGNORED: u32 = 1;
    let header = read_up_to(device, place, HEADER)?;
    let fields = Fields(&header);
    let whole = header.len() as u64 == HEADER
        && header[4..20] == *MAGIC
        && crc(&header[4..]) == fields.le32(0);
    if !whole {
        return Ok(Metadata::Damaged);
    }
    let (at, length, sum) = (fields.le64(40), fields.le64(48), fields.le32(56));
    if at == 0 || fields.le32(60) & IGNORED != 0 {
        return Ok(Metadata::Elsewhere);
    }
    if at < HEADER || at >= size || length > size - HEADER {
        return Ok(Metadata::Damaged);
    }
    if length > MOST_TEXT {
        return Ok(Metadata::Large);
    }
    let first = length.min(size - at);
    let mut text = read_up_to(device, place.saturating_add(at), first)?.to_vec();
    text.extend_from_slice(&read_up_to(device, place + HEADER, length - first)?);
    if text.len() as u64 != length || crc(&text) != sum {
        return Ok(Metadata::Damaged);
    }
    Ok(String::from_utf8(text).map_or(Metadata::Damaged, Metadata::Text))
}

impl Division {
    /// The volumes of the group on the physical volume with the UUID `own`.
    fn take(&mut self, text: &Section<'_>, own: &[u8], device: &dyn BlockDevice) {
        let Some((name, group)) = text.sections().next() else {
            return self.remark("its LVM metadata names no volume group");
        };
        let is_own = |(_, volume): &(&str, &Section)| {
            let digits = volume.text("id").unwrap_or_default().bytes();
            digits.filter(|byte| *byte != b'-').eq(own.iter().copied())
        };
        let physical = group.section("physical_volumes");
        let own = physical.and_then(|volumes| volumes.sections().find(is_own));
        let Some((own, physical)) = own else {
            return self.remark("its LVM volume group does not include this disk");
        };
        let disk = Disk {
            name: own,
            start: physical.number("pe_start"),
            extents: physical.number("pe_count"),
            extent: group.number("extent_size"),
            device,
        };
        let Some(volumes) = group.section("logical_volumes") else {
            return;
        };
        let segments = volumes.sections().flat_map(|(_, volume)| volume.sections());
        let origins: HashSet<&str> = segments
            .filter_map(|(_, segment)| segment.text("origin"))
            .collect();
        for (logical, volume) in volumes.sections() {
            if !volume.lists("status", "VISIBLE") {
                continue;
            }
            let name = format!("{name}/{logical}");
            let (ranges, mut obstacle) = match disk.ranges(volume) {
                Ok(ranges) => (ranges, None),
                Err(reason) => (Vec::new(), Some(Obstacle::Unusable(reason))),
            };
            for (is_read_only, reason) in [
                (
                    origins.contains(logical),
                    "writing would change a snapshot of it",
                ),
                (
                    !volume.lists("status", "WRITE"),
                    "LVM marks it as read-only",
                ),
            ] {
                let read_only = is_read_only.then(|| Obstacle::ReadOnly(reason.to_owned()));
                obstacle = obstacle.or(read_only);
            }
            self.parts.push(Part {
                label: Some(name.clone()),
                name,
                kind: Kind::LogicalVolume,
                uuid: volume.text("id").map(str::to_owned),
                ranges,
                obstacle,
            });
        }
    }
}

/// A physical volume, as its group describes it: places and lengths in sectors, and how many
/// extents there are.
struct Disk<'a> {
    name: &'a str,
    start: Option<u64>,
    extents: Option<u64>,
    extent: Option<u64>,
    device: &'a dyn BlockDevice,
}

impl Disk<'_> {
    /// Where a logical volume is, or why that cannot be said.
    fn ranges(&self, volume: &Section<'_>) -> Result<Vec<ByteRange>, String> {
        let mut segments: Vec<_> = volume
            .sections()
            .filter(|(name, _)| name.starts_with("segment"))
            .map(|(_, segment)| (segment.number("start_extent"), segment))
            .collect();
        segments.sort_by_key(|(start, _)| *start);
        let damaged = || "its LVM metadata is inconsistent".to_owned();
        let (mut ranges, mut next) = (Vec::new(), 0);
        for (start, segment) in segments {
            let kind = segment.text("type").unwrap_or_default();
            let count = segment.number("extent_count").ok_or_else(damaged)?;
            if kind != "striped" {
                return Err(format!(
                    "it is an LVM volume of type `{}`, and only linear volumes can be read",
                    kind.escape_debug()
                ));
            }
            let stripes = segment.list("stripes");
            let [Value::Text(disk), Value::Number(first)] = stripes else {
                return Err("its data is striped across several disks".to_owned());
            };
            if disk != self.name {
                return Err("part of it is on another disk".to_owned());
            }
            if start != Some(next) {
                return Err(damaged());
            }
            ranges.push(self.range(*first, count).ok_or_else(damaged)?);
            next = next.saturating_add(count);
        }
        match ranges.is_empty() {
            true => Err(damaged()),
            false => Ok(ranges),
        }
    }

    /// Extents, if the disk has them.
    fn range(&self, first: u64, count: u64) -> Option<ByteRange> {
        let end = first.checked_add(count).filter(|_| count > 0)?;
        if end > self.extents? {
            return None;
        }
        let extent = self.extent?.checked_mul(SECTOR)?;
        let start = self.start?.checked_mul(SECTOR)?;
        let offset = start.checked_add(first.checked_mul(extent)?)?;
        let range = ByteRange::new(offset, count.checked_mul(extent)?);
        let size = self.device.geometry().size;
        (range.end()? <= size).then_some(range)
    }
}
