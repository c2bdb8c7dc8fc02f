//! Linux.

use super::Alignment;
use crate::file::PathKind;
use crate::sys::ring::Ring;
use crate::{ByteRange, sys};
use rustix::fs::{
    AtFlags, FallocateFlags, OFlags, StatxFlags, fallocate, fcntl_getfl, fcntl_setfl, fstatfs,
    ioctl_blkpbszget, ioctl_blksszget, major, minor, statx,
};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Magic numbers of statfs(2): tmpfs, ramfs, hugetlbfs.
const MEMORY_FILE_SYSTEMS: [u32; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

pub(in crate::file) fn kind(metadata: &Metadata) -> Option<PathKind> {
    let kind = metadata.file_type();
    if kind.is_file() {
        Some(PathKind::RegularFile)
    } else if kind.is_block_device() {
        Some(PathKind::BlockDevice)
    } else {
        None
    }
}

/// Whether a name leads to the file.
pub(in crate::file) fn has_name(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 0
}

/// Whether a file is best read by the thread that asks, without a ring and through the cache. That
/// is so if the file lives in memory, or if rings do not work on it.
pub(in crate::file) fn read_inside_submit(file: &File) -> bool {
    // In User-Mode Linux files are the host's, and the workers to whom a ring hands
    // their requests never finish. Only that kernel has this entry.
    Path::new("/proc/exitcode").exists()
        || fstatfs(file).is_ok_and(|system| MEMORY_FILE_SYSTEMS.contains(&(system.f_type as u32)))
}

pub(in crate::file) fn set_direct(file: &mut File, direct: bool, _: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(&*file)?;
    if flags.contains(OFlags::DIRECT) != direct {
        flags.set(OFlags::DIRECT, direct);
        fcntl_setfl(&*file, flags)?;
    }
    Ok(())
}

pub(in crate::file) fn direct_alignment(file: &File, kind: PathKind) -> Alignment {
    let answer = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    match answer {
        Ok(answer) if answer.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            if answer.stx_dio_offset_align > 0 {
                Alignment::Known {
                    memory: answer.stx_dio_mem_align,
                    offset: answer.stx_dio_offset_align,
                }
            } else if kind == PathKind::RegularFile {
                Alignment::Impossible
            } else {
                Alignment::Unknown
            }
        }
        _ => Alignment::Unknown,
    }
}

pub(in crate::file) fn logical_block(file: &File, kind: PathKind) -> u32 {
    match kind {
        PathKind::RegularFile => 512,
        PathKind::BlockDevice => power_of_two(ioctl_blksszget(file).unwrap_or(512), 512),
    }
}

pub(in crate::file) fn physical_block(file: &File, kind: PathKind, metadata: &Metadata) -> u32 {
    let size = match kind {
        PathKind::RegularFile => u32::try_from(metadata.blksize()).unwrap_or(4096),
        PathKind::BlockDevice => ioctl_blkpbszget(file).unwrap_or(4096),
    };
    power_of_two(size, 4096)
}

fn power_of_two(size: u32, otherwise: u32) -> u32 {
    if size.is_power_of_two() && size >= 512 {
        size
    } else {
        otherwise
    }
}

pub(in crate::file) fn discard_granularity(
    file: &File,
    kind: PathKind,
    metadata: &Metadata,
) -> Option<u32> {
    match kind {
        PathKind::RegularFile => {
            // A hole behind the end changes nothing and tells whether
            // holes are known here.
            let behind = metadata.len().next_multiple_of(4096);
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(file, hole, behind, 4096)
                .is_ok()
                .then(|| physical_block(file, kind, metadata))
        }
        PathKind::BlockDevice => {
            let number = metadata.rdev();
            let directory = format!("/sys/dev/block/{}:{}", major(number), minor(number));
            // A partition's queue is its disk's.
            ["queue", "../queue"].iter().find_map(|queue| {
                let path = format!("{directory}/{queue}/discard_granularity");
                let granularity: u32 = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
                (granularity > 0).then_some(granularity)
            })
        }
    }
}

pub(in crate::file) fn ring_permitted() -> io::Result<()> {
    Ring::permitted()
}

pub(in crate::file) fn release(file: &File, kind: PathKind, range: ByteRange) -> io::Result<()> {
    match kind {
        PathKind::BlockDevice => sys::ioctl::discard(file, range),
        PathKind::RegularFile => Ok(fallocate(
            file,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            range.offset,
            range.length,
        )?),
    }
}

/// Takes the room of a file's holes, whose zeros stay.
pub(in crate::file) fn reserve(file: &File, range: ByteRange) -> io::Result<()> {
    match fallocate(file, FallocateFlags::KEEP_SIZE, range.offset, range.length) {
        // Not every file system can.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        done => Ok(done?),
    }
}

/// Threads do not wait for each other at one description.
pub(in crate::file) fn for_a_thread(_: &File, _: bool, _: bool) -> io::Result<Option<File>> {
    Ok(None)
}

pub(in crate::file) fn path_for_others(file: &File) -> Option<PathBuf> {
    let descriptor = file.as_raw_fd();
    // In a process namespace of its own, /proc may know it by another number.
    let process =
        std::fs::read_link("/proc/self").unwrap_or_else(|_| std::process::id().to_string().into());
    Some(format!("/proc/{}/fd/{descriptor}", process.display()).into())
}
