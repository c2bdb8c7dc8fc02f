//! Where a file has holes.

use super::{PathKind, Shared};
use crate::{BlockError, ByteRange, Extent, OperationKind};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// Extents that are told apart: a file may have any number, and an answer has
/// to have an end.
const MOST: usize = 4096;

impl Shared {
    /// The stored extents and holes of `range`, in order and without gaps. `range` must lie on the
    /// device.
    ///
    /// Holes begin and end at block boundaries of the device, or with the range. After the first
    /// few thousand extents, the rest of the range counts as stored.
    pub(super) fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        let end = range.offset + range.length;
        let failed = |errno: Errno| BlockError::Io {
            operation: OperationKind::Read,
            offset: range.offset,
            length: range.length,
            source: errno.into(),
        };
        let mut extents = Vec::new();
        let mut at = range.offset;
        while at < end && extents.len() < MOST && self.kind == PathKind::RegularFile {
            let data = match seek(&*self.file, SeekFrom::Data(at)) {
                // Nothing but a hole up to the end of the file.
                Err(Errno::NXIO) => end,
                // This file system does not tell.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => break,
                answer => answer.map_err(failed)?,
            };
            let stored = self.down(data).clamp(at, end);
            let hole = Extent {
                range: ByteRange::new(at, stored - at),
                hole: true,
            };
            hole.append_to(&mut extents);
            if stored == end {
                at = end;
                break;
            }
            let next = match seek(&*self.file, SeekFrom::Hole(data)) {
                Err(Errno::NXIO) => end,
                answer => self.up(answer.map_err(failed)?).min(end),
            };
            // Another program may punch a hole or cut the file meanwhile.
            if next <= stored {
                at = stored;
                break;
            }
            let data = Extent {
                range: ByteRange::new(stored, next - stored),
                hole: false,
            };
            data.append_to(&mut extents);
            at = next;
        }
        let rest = Extent {
            range: ByteRange::new(at, end - at),
            hole: false,
        };
        rest.append_to(&mut extents);
        Ok(extents)
    }

    fn down(&self, offset: u64) -> u64 {
        offset - offset % u64::from(self.geometry.logical_block)
    }

    fn up(&self, offset: u64) -> u64 {
        offset.next_multiple_of(u64::from(self.geometry.logical_block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockDevice, FileDevice, FileOptions};

    const SIZE: u64 = 1 << 20;

    /// A device of a file with these ranges stored, buffered or direct.
    fn file(stored: &[(u64, u64)], direct: bool) -> (tempfile::NamedTempFile, FileDevice) {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(SIZE).unwrap();
        let options = FileOptions {
            write: true,
            direct,
            ..FileOptions::default()
        };
        let device = FileDevice::open(file.path(), &options).unwrap();
        for &(offset, length) in stored {
            device.write_at(offset, &vec![7; length as usize]).unwrap();
        }
        (file, device)
    }

    fn holes(device: &FileDevice, offset: u64, length: u64) -> Vec<(u64, u64)> {
        let extents = device.extents(ByteRange::new(offset, length)).unwrap();
        let mut at = offset;
        for (index, extent) in extents.iter().enumerate() {
            assert_eq!(extent.range.offset, at, "without gaps");
            assert!(extent.range.length > 0);
            assert!(index == 0 || extents[index - 1].hole != extent.hole);
            at += extent.range.length;
        }
        assert_eq!(at, offset + length);
        let holes = extents.iter().filter(|extent| extent.hole);
        holes
            .map(|extent| (extent.range.offset, extent.range.length))
            .collect()
    }

    /// Whether files here have holes of 4096 bytes at all.
    fn skipped(device: &FileDevice) -> bool {
        let without = holes(device, 0, SIZE).is_empty();
        if without {
            println!("skipped: the file system tells of no holes");
        }
        without
    }

    #[test]
    fn holes_are_found_at_both_ends_and_between() {
        for direct in [false, true] {
            let (_file, device) = file(&[(65_536, 65_536), (262_144, 131_072)], direct);
            if skipped(&device) {
                return;
            }
            assert_eq!(
                holes(&device, 0, SIZE),
                [(0, 65_536), (131_072, 131_072), (393_216, SIZE - 393_216)]
            );
            // Ranges that begin or end in the middle of an extent.
            assert_eq!(holes(&device, 4096, 65_536), [(4096, 61_440)]);
            assert_eq!(holes(&device, 65_536, 65_536), []);
            assert_eq!(holes(&device, 135_168, 4096), [(135_168, 4096)]);
            assert_eq!(holes(&device, SIZE - 4096, 4096), [(SIZE - 4096, 4096)]);
            assert_eq!(holes(&device, SIZE, 0), []);
            assert_eq!(holes(&device, 1, 65_540), [(1, 65_535)]);
            assert_eq!(holes(&device, 131_071, 9), [(131_072, 8)]);
            device.discard(ByteRange::new(65_536, 8192)).unwrap();
            assert_eq!(holes(&device, 0, 131_072), [(0, 73_728)]);
        }
    }

    #[test]
    fn what_is_stored_everywhere_or_nowhere_is_one_extent() {
        let (_file, device) = file(&[(0, SIZE)], true);
        assert_eq!(holes(&device, 0, SIZE), []);
        let (_file, device) = file(&[], true);
        if !skipped(&device) {
            assert_eq!(holes(&device, 0, SIZE), [(0, SIZE)]);
        }
    }

    #[test]
    fn holes_are_whole_blocks() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // The last block of the device ends before the file does.
        file.as_file().set_len(3 * 65_536 + 700).unwrap();
        let options = FileOptions {
            write: true,
            ..FileOptions::default()
        };
        let device = FileDevice::open(file.path(), &options).unwrap();
        let size = device.geometry().size;
        let block = u64::from(device.geometry().logical_block);
        device.write_at(65_536, &vec![1; block as usize]).unwrap();
        for (offset, length) in holes(&device, 0, size) {
            assert!(offset.is_multiple_of(block) && length.is_multiple_of(block));
        }
        for (offset, length) in [(size, 1), (0, size + 1), (u64::MAX, 2)] {
            let refused = device.extents(ByteRange::new(offset, length));
            assert!(matches!(refused, Err(BlockError::OutOfRange { .. })));
        }
    }
}
