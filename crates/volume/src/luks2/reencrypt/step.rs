//! One window of the data: protected, and made new.

use super::conversion::Side;
use super::plan::{Plan, Protection, Window};
use super::room::is_made_of;
use crate::luks2::read::Header;
use crate::{Hash, VolumeError, unaligned};
use block::{AlignedBuffer, BlockDevice, ByteRange};
use cipher::SectorCipher;

/// Bytes that are in memory at a time. Blocks of checksums are smaller.
const PIECE: u64 = 1 << 20;

/// The two devices of a volume.
#[derive(Clone, Copy)]
pub(super) struct Devices<'a> {
    pub(super) header: &'a dyn BlockDevice,
    pub(super) data: &'a dyn BlockDevice,
}

impl Plan {
    /// Keeps what is needed to make `window` new after a crash in the middle of that.
    pub(super) fn protect(&self, devices: Devices, window: Window) -> Result<(), VolumeError> {
        let mut buffer = AlignedBuffer::new(PIECE.min(window.length()) as usize);
        match self.protection(window) {
            Protection::Elsewhere => return Ok(()),
            Protection::Nothing => unreachable!("a journal was made before"),
            Protection::Journal(area) => {
                for piece in window.pieces(PIECE) {
                    let bytes = &mut buffer[..piece.length() as usize];
                    devices.data.read_at(self.old_at(piece.from), bytes)?;
                    let at = area.offset + (piece.from - window.from);
                    unaligned::write(devices.header, at, bytes)?;
                }
            }
            Protection::Checksum { area, hash, block } => {
                let mut digests = Vec::new();
                for piece in window.pieces(PIECE) {
                    let bytes = &mut buffer[..piece.length() as usize];
                    devices.data.read_at(self.old_at(piece.from), bytes)?;
                    for block in bytes.chunks(block as usize) {
                        digests.extend_from_slice(&hash.digest(&[block]));
                    }
                }
                unaligned::write(devices.header, area.offset, &digests)?;
            }
        }
        Ok(devices.header.flush()?)
    }

    /// Makes `window` new, which was protected, whatever part of it is new already.
    pub(super) fn apply(
        &self,
        devices: Devices,
        sides: &(Side, Side),
        window: Window,
    ) -> Result<(), VolumeError> {
        let mut buffer = AlignedBuffer::new(PIECE.min(window.length()) as usize);
        let protection = self.protection(window);
        for piece in window.pieces(PIECE) {
            let bytes = &mut buffer[..piece.length() as usize];
            match protection {
                Protection::Nothing => unreachable!("a journal was made before"),
                Protection::Elsewhere | Protection::Checksum { .. } => {
                    devices.data.read_at(self.old_at(piece.from), bytes)?;
                }
                Protection::Journal(area) => {
                    let at = area.offset + (piece.from - window.from);
                    let kept = ByteRange::new(at, piece.length());
                    bytes.copy_from_slice(&unaligned::read(devices.header, kept)?);
                }
            }
            match protection {
                Protection::Checksum { area, hash, block } => {
                    let digests = digests(devices.header, area, (hash, block), window, piece)?;
                    let blocks = bytes.chunks_mut(block as usize);
                    for (at, (bytes, old)) in (piece.from..)
                        .step_by(block as usize)
                        .zip(blocks.zip(digests.chunks(hash.digest_bytes())))
                    {
                        if *hash.digest(&[bytes]) == old {
                            convert(sides, at, bytes);
                        }
                    }
                }
                _ => convert(sides, piece.from, bytes),
            }
            devices.data.write_at(self.new_at(piece.from), bytes)?;
        }
        Ok(devices.data.flush()?)
    }

    /// Whether the first `most` bytes of a hot `window` on the device are those in the journal's
    /// `area`, or their converted form. Replaying the journal would overwrite any other data.
    pub(super) fn is_of_journal(
        &self,
        devices: Devices,
        sides: &(Side, Side),
        (window, area): (Window, ByteRange),
        most: u64,
    ) -> Result<bool, VolumeError> {
        let length = most.min(window.length());
        let old = unaligned::read(devices.header, ByteRange::new(area.offset, length))?;
        let mut new = old.clone();
        convert(sides, window.from, &mut new);
        let place = ByteRange::new(self.new_at(window.from), length);
        let there = unaligned::read(devices.data, place)?;
        Ok(is_made_of(&there, [&old, &new]))
    }

    /// Which parts of a hot window that checksums protect are old still.
    pub(super) fn old_parts(
        &self,
        devices: Devices,
        window: Window,
        (area, hash, block): (ByteRange, Hash, u64),
    ) -> Result<Vec<(bool, Window)>, VolumeError> {
        let mut parts: Vec<(bool, Window)> = Vec::new();
        let mut buffer = AlignedBuffer::new(PIECE.min(window.length()) as usize);
        for piece in window.pieces(PIECE) {
            let bytes = &mut buffer[..piece.length() as usize];
            devices.data.read_at(self.old_at(piece.from), bytes)?;
            let digests = digests(devices.header, area, (hash, block), window, piece)?;
            for (at, (bytes, kept)) in piece.pieces(block).zip(
                bytes
                    .chunks(block as usize)
                    .zip(digests.chunks(hash.digest_bytes())),
            ) {
                let old = *hash.digest(&[bytes]) == kept;
                match parts.last_mut() {
                    Some((same, part)) if *same == old => part.to = at.to,
                    _ => parts.push((old, at)),
                }
            }
        }
        Ok(parts)
    }
}

/// Makes new data of the old at `position`.
fn convert((from, to): &(Side, Side), position: u64, bytes: &mut [u8]) {
    from.decrypt(position, bytes);
    to.cipher.encrypt(to.iv_at(position), bytes);
}

/// The digests of a piece of a window, out of the area.
fn digests(
    header: &dyn BlockDevice,
    area: ByteRange,
    (hash, block): (Hash, u64),
    window: Window,
    piece: Window,
) -> Result<zeroize::Zeroizing<Vec<u8>>, VolumeError> {
    let size = hash.digest_bytes() as u64;
    let first = (piece.from - window.from) / block * size;
    let length = piece.length().div_ceil(block) * size;
    unaligned::read(header, ByteRange::new(area.offset + first, length))
}

impl Header {
    /// The segments that are the volume's now, in their order.
    pub(in crate::luks2) fn regular_segments(
        &self,
    ) -> impl Iterator<Item = &crate::luks2::metadata::Segment> {
        let segments = self.metadata.segments.values();
        segments.filter(|segment| !segment.is_backup())
    }
}
