//! Other Unix systems: files only, buffered, without discard and io_uring. Disks are refused,
//! because this program cannot see here whether a disk is in use.

use super::Alignment;
use crate::ByteRange;
use crate::file::PathKind;
use std::fs::{File, Metadata};
use std::io;
use std::path::PathBuf;

pub(in crate::file) fn kind(metadata: &Metadata) -> Option<PathKind> {
    metadata.is_file().then_some(PathKind::RegularFile)
}

/// Whether a name leads to the file.
pub(in crate::file) fn has_name(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 0
}

pub(in crate::file) fn read_inside_submit(_: &File) -> bool {
    false
}

pub(in crate::file) fn set_direct(_: &mut File, direct: bool, _: bool) -> io::Result<()> {
    match direct {
        true => Err(io::ErrorKind::Unsupported.into()),
        false => Ok(()),
    }
}

pub(in crate::file) fn direct_alignment(_: &File, _: PathKind) -> Alignment {
    Alignment::Impossible
}

pub(in crate::file) fn logical_block(_: &File, _: PathKind) -> u32 {
    512
}

pub(in crate::file) fn physical_block(_: &File, _: PathKind, _: &Metadata) -> u32 {
    4096
}

pub(in crate::file) fn discard_granularity(_: &File, _: PathKind, _: &Metadata) -> Option<u32> {
    None
}

pub(in crate::file) fn ring_permitted() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Never reached: no file offers discard.
/// There is no call for it that leaves the size alone.
pub(in crate::file) fn reserve(_: &File, _: ByteRange) -> io::Result<()> {
    Ok(())
}

pub(in crate::file) fn release(_: &File, _: PathKind, _: ByteRange) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Threads do not wait for each other at one description.
pub(in crate::file) fn for_a_thread(_: &File, _: bool, _: bool) -> io::Result<Option<File>> {
    Ok(None)
}

pub(in crate::file) fn path_for_others(_: &File) -> Option<PathBuf> {
    None
}
