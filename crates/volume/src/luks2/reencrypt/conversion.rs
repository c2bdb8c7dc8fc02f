//! [`Conversion`]: the data piece by piece under the new key.

use super::Direction;
use crate::luks2::journal::Journal;
use crate::luks2::metadata::{Segment, SegmentKind};
use crate::mapping::key_for;
use crate::{Format, VolumeError};
use block::{AlignedBuffer, BlockDevice};
use cipher::{CipherSpec, IvSector, Key, KeyedCipher, SectorCipher, SectorLayout};
use std::sync::mpsc::{Receiver, SyncSender};
use zeroize::Zeroizing;

/// A piece of the data, under the new key.
pub(super) struct Piece {
    pub(super) position: u64,
    pub(super) length: usize,
    pub(super) buffer: AlignedBuffer,
    pub(super) digest: Zeroizing<Vec<u8>>,
}

/// What makes pieces.
pub(super) struct Conversion<'a> {
    pub(super) data: &'a dyn BlockDevice,
    pub(super) from: Side,
    pub(super) to: Side,
    pub(super) length: u64,
    pub(super) piece: u64,
    pub(super) direction: Direction,
}

impl Conversion<'_> {
    /// Makes all pieces behind the first `done` bytes, until there are none or
    /// nobody wants them.
    pub(super) fn run(
        &self,
        mut done: u64,
        buffers: &Receiver<AlignedBuffer>,
        ready: &SyncSender<Result<Piece, VolumeError>>,
    ) {
        while done < self.length {
            let Ok(buffer) = buffers.recv() else { return };
            let length = self.piece.min(self.length - done);
            let position = match self.direction {
                Direction::Forward => done,
                Direction::Backward => self.length - done - length,
            };
            done += length;
            let made = self.make(position, length as usize, buffer);
            let failed = made.is_err();
            if ready.send(made).is_err() || failed {
                return;
            }
        }
    }

    fn make(
        &self,
        position: u64,
        length: usize,
        mut buffer: AlignedBuffer,
    ) -> Result<Piece, VolumeError> {
        let (from, to) = (&self.from, &self.to);
        let bytes = &mut buffer[..length];
        self.data.read_at(from.offset + position, bytes)?;
        from.cipher.decrypt(from.iv_at(position), bytes);
        to.cipher.encrypt(to.iv_at(position), bytes);
        Ok(Piece {
            position,
            length,
            digest: Journal::digest(bytes),
            buffer,
        })
    }
}

/// One of the two ways in which data is encrypted.
pub(super) struct Side {
    pub(super) cipher: KeyedCipher,
    pub(super) layout: SectorLayout,
    pub(super) offset: u64,
    pub(super) first: IvSector,
}

impl Side {
    pub(super) fn new(segment: &Segment, key: &Key) -> Result<Self, VolumeError> {
        let (spec, layout) = crypt_parts(segment)?;
        let iv_tweak = match segment.kind {
            SegmentKind::Crypt { iv_tweak, .. } => iv_tweak,
            SegmentKind::Linear => 0,
        };
        Ok(Self {
            cipher: spec.cipher(&key_for(&spec, key), layout, None)?,
            layout,
            offset: segment.offset,
            first: IvSector::new(iv_tweak),
        })
    }

    pub(super) fn iv_at(&self, position: u64) -> IvSector {
        let sectors = position / self.layout.size.bytes() as u64;
        self.first.advance(sectors, self.layout)
    }
}

/// Cipher and sectors of a segment; no cipher is a cipher here.
pub(super) fn crypt_parts(segment: &Segment) -> Result<(CipherSpec, SectorLayout), VolumeError> {
    match &segment.kind {
        SegmentKind::Linear => Ok(("cipher_null-ecb".parse()?, SectorLayout::default())),
        SegmentKind::Crypt {
            integrity: Some(_), ..
        } => Err(VolumeError::Unsupported {
            format: Format::Luks2,
            feature: "integrity tags, which cannot be reencrypted".into(),
        }),
        SegmentKind::Crypt {
            encryption,
            sector_size,
            ..
        } => Ok((
            encryption.parse()?,
            SectorLayout {
                size: *sector_size,
                large_iv: false,
            },
        )),
    }
}
