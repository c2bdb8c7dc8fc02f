//! Opening: what stands behind a path, and what it can do.

use super::system::{self, Alignment};
use super::{Engine, FileOptions, PathKind, Shared};
use crate::{AlignedBuffer, BlockError, Geometry, positioned};
use std::fs::{File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Finds out what a file can do. The second value tells whether its requests are
/// best done inside submit.
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
    let inside_submit = kind == PathKind::RegularFile && system::read_inside_submit(&file);
    let smallest = system::logical_block(&file, kind);
    let direct = if options.direct && !inside_submit {
        go_direct(&mut file, kind, smallest, options.write).map_err(refused)?
    } else {
        system::set_direct(&mut file, false, options.write).map_err(refused)?;
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
        cut_off: Arc::default(),
        named: system::has_name(&metadata),
        direct: direct.is_some(),
        write: options.write,
        memory_alignment: direct.map_or(1, |direct| direct.memory_alignment),
        file: Arc::new(file),
    };
    Ok((shared, inside_submit))
}

/// Whether the kernel lets this process have rings.
pub(super) fn ring_permitted() -> bool {
    system::ring_permitted().is_ok()
}

/// The engine asked for, or the best one that works.
pub(super) fn choose_engine(
    asked: Option<Engine>,
    inside_submit: bool,
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
        None if inside_submit => Ok(Engine::Pread),
        None if ring_permitted() => Ok(Engine::IoUring),
        None => Ok(Engine::Threads),
    }
}

fn kind(metadata: &Metadata, path: &Path) -> Result<PathKind, BlockError> {
    PathKind::of(metadata).ok_or_else(|| BlockError::NotADevice {
        path: path.to_owned(),
    })
}

/// The alignments of direct requests: in memory and in the file, bytes.
#[derive(Clone, Copy)]
struct Direct {
    memory_alignment: usize,
    offset_alignment: u32,
}

/// Switches the page cache off and proves it with a read; `None`, and the
/// cache on again, where the file system refuses either.
fn go_direct(
    file: &mut File,
    kind: PathKind,
    smallest: u32,
    write: bool,
) -> io::Result<Option<Direct>> {
    let stated = system::direct_alignment(file, kind);
    if !matches!(stated, Alignment::Impossible) && system::set_direct(file, true, write).is_ok() {
        let candidates = match stated {
            Alignment::Known { memory, offset } => vec![(memory, offset)],
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
    system::set_direct(file, false, write)?;
    Ok(None)
}

fn first_read(file: &File, length: usize) -> io::Result<usize> {
    let mut buffer = AlignedBuffer::new(length);
    loop {
        match positioned::read_at(file, &mut buffer, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
