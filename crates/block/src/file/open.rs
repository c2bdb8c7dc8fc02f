//! Opening: what stands behind a path, and what it can do.

use super::{Engine, FileOptions, PathKind, Shared};
use crate::{AlignedBuffer, BlockError, Geometry};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Opens `path` if a device can be made of it. Asks first, because opening a
/// pipe would block.
pub(super) fn file(path: &Path, options: &FileOptions) -> Result<File, BlockError> {
    let refused = |source| BlockError::Open {
        path: path.to_owned(),
        source,
    };
    let kind = kind(&std::fs::metadata(path).map_err(refused)?, path)?;
    let mut open = OpenOptions::new();
    open.read(true).write(options.write);
    if options.exclusive && kind == PathKind::BlockDevice {
        open.custom_flags(rustix::fs::OFlags::EXCL.bits() as i32);
    }
    open.open(path).map_err(|source| match source.kind() {
        io::ErrorKind::ResourceBusy => BlockError::InUse {
            path: path.to_owned(),
        },
        _ => refused(source),
    })
}

/// Finds out what a file can do. The second value tells whether its file
/// system lives in memory.
pub(super) fn examine(
    mut file: File,
    path: &Path,
    options: &FileOptions,
) -> Result<(Shared, bool), BlockError> {
    let refused = |source| BlockError::Open {
        path: path.to_owned(),
        source,
    };
    let metadata = file.metadata().map_err(refused)?;
    let kind = kind(&metadata, path)?;
    let size = match kind {
        PathKind::RegularFile => metadata.len(),
        PathKind::BlockDevice => file.seek(SeekFrom::End(0)).map_err(refused)?,
    };
    let memory_backed = kind == PathKind::RegularFile && system::lives_in_memory(&file);
    let smallest = system::logical_block(&file, kind);
    let direct = if options.direct && !memory_backed {
        go_direct(&file, kind, smallest).map_err(refused)?
    } else {
        system::set_direct(&file, false).map_err(refused)?;
        None
    };
    let logical_block = direct.map_or(smallest, |direct| direct.offset_alignment);
    let shared = Shared {
        geometry: Geometry {
            size: size - size % u64::from(logical_block),
            logical_block,
            physical_block: system::physical_block(&file, kind, &metadata).max(logical_block),
            discard_granularity: if options.write {
                system::discard_granularity(&file, kind, &metadata)
            } else {
                None
            },
            // A hole in a file is zeros; of disks only some say so, and fewer mean it.
            discard_zeroes: kind == PathKind::RegularFile,
        },
        kind,
        direct: direct.is_some(),
        write: options.write,
        memory_alignment: direct.map_or(1, |direct| direct.memory_alignment),
        file: Arc::new(file),
    };
    Ok((shared, memory_backed))
}

/// Whether the kernel lets this process have rings.
pub(super) fn ring_permitted() -> bool {
    system::ring_permitted().is_ok()
}

/// The engine asked for, or the best one that works.
pub(super) fn choose_engine(
    asked: Option<Engine>,
    memory_backed: bool,
) -> Result<Engine, BlockError> {
    match asked {
        Some(Engine::IoUring) => match system::ring_permitted() {
            Ok(()) => Ok(Engine::IoUring),
            Err(source) => Err(BlockError::Engine {
                engine: Engine::IoUring.name(),
                source,
            }),
        },
        Some(engine) => Ok(engine),
        None if memory_backed => Ok(Engine::Pread),
        None if ring_permitted() => Ok(Engine::IoUring),
        None => Ok(Engine::Threads),
    }
}

fn kind(metadata: &Metadata, path: &Path) -> Result<PathKind, BlockError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        Ok(PathKind::RegularFile)
    } else if kind.is_block_device() {
        Ok(PathKind::BlockDevice)
    } else {
        Err(BlockError::NotADevice {
            path: path.to_owned(),
        })
    }
}

/// What direct requests must be multiples of.
#[derive(Clone, Copy)]
struct Direct {
    memory_alignment: usize,
    offset_alignment: u32,
}

/// Switches the page cache off and proves it with a read; `None`, and the
/// cache on again, where the file system refuses either.
fn go_direct(file: &File, kind: PathKind, smallest: u32) -> io::Result<Option<Direct>> {
    let stated = system::direct_alignment(file, kind);
    if !matches!(stated, system::Alignment::Impossible) && system::set_direct(file, true).is_ok() {
        let candidates = match stated {
            system::Alignment::Known { memory, offset } => vec![(memory, offset)],
            _ => vec![(smallest, smallest), (4096, 4096)],
        };
        for (memory, offset) in candidates {
            let (memory, offset) = (memory.max(1), offset.max(smallest));
            let usable = memory.is_power_of_two()
                && offset.is_power_of_two()
                && memory as usize <= AlignedBuffer::ALIGNMENT;
            if usable && first_read(file, offset as usize).is_ok() {
                return Ok(Some(Direct {
                    memory_alignment: memory as usize,
                    offset_alignment: offset,
                }));
            }
        }
    }
    system::set_direct(file, false)?;
    Ok(None)
}

fn first_read(file: &File, length: usize) -> io::Result<usize> {
    let mut buffer = AlignedBuffer::new(length);
    loop {
        match file.read_at(&mut buffer, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    //! What Linux tells about a file.

    use super::*;
    use crate::sys::ring::Ring;
    use rustix::fs::{
        AtFlags, FallocateFlags, OFlags, StatxFlags, fallocate, fcntl_getfl, fcntl_setfl, fstatfs,
        ioctl_blkpbszget, ioctl_blksszget, major, minor, statx,
    };

    /// Magic numbers of statfs(2): tmpfs, ramfs, hugetlbfs.
    const MEMORY_FILE_SYSTEMS: [u32; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

    pub(super) enum Alignment {
        Known { memory: u32, offset: u32 },
        Unknown,
        Impossible,
    }

    pub(super) fn lives_in_memory(file: &File) -> bool {
        fstatfs(file).is_ok_and(|system| MEMORY_FILE_SYSTEMS.contains(&(system.f_type as u32)))
    }

    pub(super) fn set_direct(file: &File, direct: bool) -> io::Result<()> {
        let mut flags = fcntl_getfl(file)?;
        if flags.contains(OFlags::DIRECT) != direct {
            flags.set(OFlags::DIRECT, direct);
            fcntl_setfl(file, flags)?;
        }
        Ok(())
    }

    pub(super) fn direct_alignment(file: &File, kind: PathKind) -> Alignment {
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

    pub(super) fn logical_block(file: &File, kind: PathKind) -> u32 {
        match kind {
            PathKind::RegularFile => 512,
            PathKind::BlockDevice => power_of_two(ioctl_blksszget(file).unwrap_or(512), 512),
        }
    }

    pub(super) fn physical_block(file: &File, kind: PathKind, metadata: &Metadata) -> u32 {
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

    pub(super) fn discard_granularity(
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
                    let granularity: u32 =
                        std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
                    (granularity > 0).then_some(granularity)
                })
            }
        }
    }

    pub(super) fn ring_permitted() -> io::Result<()> {
        Ring::permitted()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    //! Other Unix systems: buffered, without discard and io_uring.

    use super::*;

    pub(super) enum Alignment {
        Impossible,
        #[expect(dead_code, reason = "what Linux can say")]
        Known {
            memory: u32,
            offset: u32,
        },
    }

    pub(super) fn lives_in_memory(_: &File) -> bool {
        false
    }

    pub(super) fn set_direct(_: &File, direct: bool) -> io::Result<()> {
        if direct {
            Err(io::ErrorKind::Unsupported.into())
        } else {
            Ok(())
        }
    }

    pub(super) fn direct_alignment(_: &File, _: PathKind) -> Alignment {
        Alignment::Impossible
    }

    pub(super) fn logical_block(_: &File, _: PathKind) -> u32 {
        512
    }

    pub(super) fn physical_block(_: &File, _: PathKind, _: &Metadata) -> u32 {
        4096
    }

    pub(super) fn discard_granularity(_: &File, _: PathKind, _: &Metadata) -> Option<u32> {
        None
    }

    pub(super) fn ring_permitted() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
