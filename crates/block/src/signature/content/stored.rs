//! Whether anything is stored at all, and from where on.

use super::super::Bytes;
use std::io;

/// Read at a time.
const STEP: usize = 1 << 20;

/// Of a file that is stored in full this much is read; behind it, samples are.
const MOST: u64 = 4 << 30;

/// Devices that cannot report their empty ranges are read whole up to this size, bytes. A disk
/// reads that much within seconds.
const WHOLE: u64 = 256 << 20;

/// Samples of what is larger, evenly over all of it, and their length.
const SAMPLES: u64 = 512;
const SAMPLE: u64 = 64 << 10;

/// The data of a device or file that is not blank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The first byte that was found: the first of all in a file, and in a device
    /// the first in what was read.
    pub first: u64,
    /// Bytes of a file that take space; `None` for a device, which does not report it.
    pub stored: Option<u64>,
}

/// Looks for a byte that is not like the others: all zeros is blank, and all ones
/// is what erased flash reads as.
#[derive(Default)]
pub(super) struct Blank {
    fill: Option<u8>,
}

impl Blank {
    /// The place of the first odd one among `bytes`, which begin at `offset`.
    pub(super) fn odd(&mut self, offset: u64, bytes: &[u8]) -> Option<u64> {
        let fill = *self.fill.get_or_insert(*bytes.first()?);
        let blank = matches!(fill, 0x00 | 0xff);
        let place = bytes.iter().position(|&byte| !blank || byte != fill);
        place.map(|place| offset + place as u64)
    }

    /// A hole, which reads as zeros.
    pub(super) fn hole(&mut self, offset: u64) -> Option<u64> {
        self.odd(offset, &[0])
    }
}

/// The places to look at of `size` bytes without any knowledge: all, or powers of two,
/// where partitions and backup headers begin, and evenly between both ends.
pub(in super::super) fn places(size: u64) -> Vec<(u64, u64)> {
    if size <= WHOLE {
        let starts = (0..size).step_by(STEP);
        return starts
            .map(|start| (start, (STEP as u64).min(size - start)))
            .collect();
    }
    let powers = (20..63).map(|shift| 1 << shift);
    let step = (size / SAMPLES).max(SAMPLE);
    let even = (0..SAMPLES).map(|index| {
        let place = index * step;
        // Where file systems have their groups, if there is a choice.
        let rounded = place & !((1 << 20) - 1);
        if step > 4 << 20 {
            rounded
        } else {
            place & !4095
        }
    });
    let mut starts: Vec<u64> = powers.chain(even).filter(|&place| place < size).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
        .into_iter()
        .map(|start| (start, SAMPLE.min(size - start)))
        .collect()
}

/// The first odd byte in `ranges`, each an offset and a length.
pub(super) fn first_odd<E>(
    blank: &mut Blank,
    ranges: impl IntoIterator<Item = (u64, u64)>,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Option<u64>, E> {
    let mut buffer = Vec::new();
    for (mut offset, mut length) in ranges {
        while length > 0 {
            let part = length.min(STEP as u64);
            buffer.resize(part as usize, 0);
            read(offset, &mut buffer)?;
            if let Some(odd) = blank.odd(offset, &buffer) {
                return Ok(Some(odd));
            }
            offset += part;
            length -= part;
        }
    }
    Ok(None)
}

/// The first sector in `ranges` that is neither blank nor like noise.
pub(super) fn first_readable<E>(
    ranges: impl IntoIterator<Item = (u64, u64)>,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Option<u64>, E> {
    let mut buffer = Vec::new();
    for (offset, length) in ranges {
        buffer.resize(length as usize, 0);
        read(offset, &mut buffer)?;
        let mut sectors = (offset..).step_by(SECTOR).zip(buffer.chunks_exact(SECTOR));
        if let Some((place, _)) = sectors.find(|(_, sector)| kind(sector) == Bytes::Readable) {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// The least that is encrypted at a time.
const SECTOR: usize = 512;

/// The kind of a sector. Noise never has one byte 24 times, where two are usual, and 16 are once
/// among ten thousand million sectors.
pub(in super::super) fn kind(sector: &[u8]) -> Bytes {
    let mut counts = [0_u16; 256];
    for &byte in sector {
        counts[usize::from(byte)] += 1;
    }
    let is_all = |fill: usize| usize::from(counts[fill]) == sector.len();
    match counts.into_iter().max().unwrap_or(0) {
        _ if is_all(0x00) || is_all(0xff) => Bytes::Blank,
        24.. => Bytes::Readable,
        _ => Bytes::Noise,
    }
}

/// The data that a file stores, from its extents: offset and length of each, in order.
pub(super) fn of_file(
    blank: &mut Blank,
    size: u64,
    extents: &[(u64, u64)],
    read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Option<Data>> {
    let stored = extents.iter().map(|(_, length)| length).sum();
    let mut left = MOST;
    let mut end = 0;
    let mut whole = Vec::new();
    for &(offset, length) in extents {
        if offset > end
            && let Some(first) = blank.hole(end)
        {
            return Ok(Some(Data {
                first,
                stored: Some(stored),
            }));
        }
        end = offset + length;
        let part = length.min(left);
        whole.push((offset, part));
        left -= part;
        if part < length {
            let rest = places(length - part).into_iter();
            whole.extend(rest.map(|(place, length)| (offset + part + place, length)));
        }
    }
    if end < size
        && let Some(first) = blank.hole(end)
    {
        return Ok(Some(Data {
            first,
            stored: Some(stored),
        }));
    }
    let first = first_odd(blank, whole, read)?;
    Ok(first.map(|first| Data {
        first,
        stored: Some(stored),
    }))
}

/// The extents of a file, without its holes; all of it where the system does not
/// tell.
#[cfg(target_os = "linux")]
pub(super) fn extents(file: &std::fs::File, size: u64) -> io::Result<Vec<(u64, u64)>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;
    let mut extents = Vec::new();
    let mut at = 0;
    while at < size {
        let start = match seek(file, SeekFrom::Data(at)) {
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(vec![(0, size)]),
            found => found?.min(size),
        };
        let end = match seek(file, SeekFrom::Hole(start)) {
            Err(Errno::NXIO) => size,
            found => found?.min(size),
        };
        // Another program may cut the file meanwhile.
        if end <= start {
            extents.push((start, size - start));
            break;
        }
        extents.push((start, end - start));
        at = end;
    }
    Ok(extents)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn extents(_: &std::fs::File, size: u64) -> io::Result<Vec<(u64, u64)>> {
    Ok(vec![(0, size)])
}
