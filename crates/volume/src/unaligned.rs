//! Bytes of a device at any offset: headers and key material do not care for
//! a device's blocks, and the device does.

use crate::VolumeError;
use block::{AlignedBuffer, BlockDevice, BlockError, ByteRange};
use zeroize::Zeroizing;

/// Reads `range`, which must lie within the device.
pub(crate) fn read(
    device: &(impl BlockDevice + ?Sized),
    range: ByteRange,
) -> Result<Zeroizing<Vec<u8>>, VolumeError> {
    let geometry = device.geometry();
    let block = u64::from(geometry.logical_block);
    let outside = || BlockError::OutOfRange {
        offset: range.offset,
        length: range.length,
        size: geometry.size,
    };
    let end = range
        .end()
        .filter(|&end| end <= geometry.size)
        .ok_or_else(outside)?;
    let start = range.offset / block * block;
    let mut buffer = AlignedBuffer::new((end.next_multiple_of(block) - start) as usize);
    device.read_at(start, &mut buffer)?;
    let skip = (range.offset - start) as usize;
    Ok(Zeroizing::new(
        buffer[skip..][..range.length as usize].to_vec(),
    ))
}

/// Reads what there is of the `length` bytes from `offset`.
pub(crate) fn read_up_to(
    device: &(impl BlockDevice + ?Sized),
    offset: u64,
    length: u64,
) -> Result<Zeroizing<Vec<u8>>, VolumeError> {
    let there = device.geometry().size.saturating_sub(offset).min(length);
    match there {
        0 => Ok(Zeroizing::default()),
        length => read(device, ByteRange { offset, length }),
    }
}

/// Whether `range` can be read, and no sector of it is one byte over and over:
/// what encrypted data never are.
///
/// # Errors
/// Those of reading that concern the whole device.
pub(crate) fn is_noise(
    device: &(impl BlockDevice + ?Sized),
    range: ByteRange,
) -> Result<bool, VolumeError> {
    const SECTOR: usize = 512;
    let bytes = match read(device, range) {
        Err(error) if error.is_of_place() => return Ok(false),
        bytes => bytes?,
    };
    let mixed = |sector: &[u8]| sector.iter().any(|byte| *byte != sector[0]);
    Ok(bytes.chunks_exact(SECTOR).all(mixed))
}

/// Writes `bytes` at `offset`; the rest of the device's blocks keep what they hold.
pub(crate) fn write(
    device: &(impl BlockDevice + ?Sized),
    offset: u64,
    bytes: &[u8],
) -> Result<(), VolumeError> {
    Ok(write_blocks(device, offset, bytes)?)
}

/// The same, for a device over this one.
pub(crate) fn write_blocks(
    device: &(impl BlockDevice + ?Sized),
    offset: u64,
    bytes: &[u8],
) -> Result<(), BlockError> {
    let block = u64::from(device.geometry().logical_block);
    let start = offset / block * block;
    let end = (offset + bytes.len() as u64).next_multiple_of(block);
    if (start, end) == (offset, offset + bytes.len() as u64) {
        return device.write_at(offset, bytes);
    }
    let mut buffer = AlignedBuffer::new((end - start) as usize);
    device.read_at(start, &mut buffer)?;
    buffer[(offset - start) as usize..][..bytes.len()].copy_from_slice(bytes);
    device.write_at(start, &buffer)
}

/// Writes `bytes` at `offset` so that they are there when this returns, and
/// reads them back.
pub(crate) fn write_verified(
    device: &(impl BlockDevice + ?Sized),
    offset: u64,
    bytes: &[u8],
) -> Result<(), VolumeError> {
    write(device, offset, bytes)?;
    device.flush()?;
    let length = bytes.len() as u64;
    match *read(device, ByteRange { offset, length })? == *bytes {
        true => Ok(()),
        false => Err(VolumeError::Unverified { offset, length }),
    }
}
