//! BLKDISCARD, which no safe wrapper offers.

use crate::ByteRange;
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
use std::fs::File;
use std::io;

/// `_IO(0x12, 119)` of linux/fs.h.
const BLKDISCARD: Opcode = opcode::none(0x12, 119);

/// Discards a range of a block device.
pub(crate) fn discard(file: &File, range: ByteRange) -> io::Result<()> {
    let argument = [range.offset, range.length];
    // SAFETY: the kernel reads two u64, offset and length, through the
    // pointer, which is what an array of them is.
    unsafe { ioctl(file, Setter::<BLKDISCARD, [u64; 2]>::new(argument)) }?;
    Ok(())
}
