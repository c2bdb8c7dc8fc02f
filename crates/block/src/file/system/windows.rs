//! Windows: files only, around the cache by `FILE_FLAG_NO_BUFFERING`, without discard. Disks are
//! refused, because this program cannot see here whether a disk is in use.

use super::Alignment;
use crate::ByteRange;
use crate::file::PathKind;
use crate::sys::windows;
use std::fs::{File, Metadata};
use std::io;
use std::path::PathBuf;

pub(in crate::file) fn kind(metadata: &Metadata) -> Option<PathKind> {
    metadata.is_file().then_some(PathKind::RegularFile)
}

/// A file that is open keeps its name.
pub(in crate::file) fn has_name(_: &Metadata) -> bool {
    true
}

pub(in crate::file) fn read_inside_submit(_: &File) -> bool {
    false
}

/// Whether the cache is used is decided when a file is opened: it is opened anew.
pub(in crate::file) fn set_direct(file: &mut File, direct: bool, write: bool) -> io::Result<()> {
    *file = windows::reopen(file, write, direct)?;
    Ok(())
}

pub(in crate::file) fn direct_alignment(file: &File, _: PathKind) -> Alignment {
    match windows::sectors(file) {
        Ok(sectors) => Alignment::Known {
            memory: sectors.logical,
            offset: sectors.logical,
        },
        Err(_) => Alignment::Unknown,
    }
}

pub(in crate::file) fn logical_block(_: &File, _: PathKind) -> u32 {
    512
}

pub(in crate::file) fn physical_block(file: &File, _: PathKind, _: &Metadata) -> u32 {
    windows::sectors(file).map_or(4096, |sectors| sectors.physical)
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

/// Requests of one handle wait for each other, whichever threads they come from:
/// every thread needs one of its own.
pub(in crate::file) fn for_a_thread(
    file: &File,
    write: bool,
    direct: bool,
) -> io::Result<Option<File>> {
    windows::reopen(file, write, direct).map(Some)
}

pub(in crate::file) fn path_for_others(_: &File) -> Option<PathBuf> {
    None
}
