//! [`CryptDevice`]: a mapping executed over a device.
//!
//! ```text
//! write:  request ─▶ encrypt in the request's own buffer ─▶ inner.submit
//! read:   inner.reap ─▶ decrypt in the same buffer ─▶ completion
//! ```
//!
//! One [`SectorCipher`] call serves the whole run of sectors of a request or of a part of one. A
//! large request is split into parts if too few are in flight to keep the device and the cipher
//! busy at the same time.
//!
//! If discards are allowed and the device below answers them with zeros, 512 bytes of zeros below
//! mean a discarded range. They are zeros here too. Decrypted, they would be noise, which no file
//! system expects of discarded blocks. Data encrypt to 512 zeros only once in 2^4096 times.
//!
//! The unit is 512 bytes and not a sector, because a power cut may leave a larger sector discarded
//! in part, or overwritten in part. The rest of such a sector is then right in modes that do not
//! chain across the sector.

mod queue;

use crate::{Mapping, VolumeError};
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Geometry, OperationKind, Queue, QueueOptions,
};
use cipher::{IvSector, KeyedCipher, SectorCipher};
use queue::CryptQueue;

/// Bytes that [`BlockDevice::write_at`] encrypts at a time in a buffer of its own.
const STAGING: usize = 1 << 20;

/// The unit in which a disk discards or writes, bytes.
const HOLE: usize = 512;

/// The plaintext view of an encrypted device.
pub struct CryptDevice<D, C = KeyedCipher> {
    device: D,
    cipher: C,
    data: ByteRange,
    first: IvSector,
    allow_discards: bool,
    /// Whether zeros below are zeros here.
    holes: bool,
}

impl<D: BlockDevice> CryptDevice<D> {
    /// Opens `mapping` over `device`.
    ///
    /// # Errors
    /// [`VolumeError::Cipher`] if the cipher refuses key, layout, backend or
    /// sharing; [`VolumeError::DataArea`] and [`VolumeError::DataAlignment`]
    /// if the data area does not fit the device.
    pub fn new(device: D, mapping: Mapping) -> Result<Self, VolumeError> {
        let mut cipher = mapping
            .spec
            .cipher(&mapping.key, mapping.layout, mapping.backend)?;
        if let Some(sharing) = mapping.sharing {
            cipher = cipher.shared(sharing)?;
        }
        Self::with_cipher(
            device,
            cipher,
            mapping.data,
            mapping.first,
            mapping.allow_discards,
        )
        .map(|device| Self {
            holes: mapping.holes,
            ..device
        })
    }
}

impl<D: BlockDevice, C: SectorCipher> CryptDevice<D, C> {
    /// Opens `data` of `device` under a cipher that is already keyed; its
    /// first sector has IV number `first`.
    ///
    /// # Errors
    /// [`VolumeError::DataArea`] and [`VolumeError::DataAlignment`].
    pub fn with_cipher(
        device: D,
        cipher: C,
        data: ByteRange,
        first: IvSector,
        allow_discards: bool,
    ) -> Result<Self, VolumeError> {
        let (offset, length) = (data.offset, data.length);
        let geometry = device.geometry();
        if offset
            .checked_add(length)
            .is_none_or(|end| end > geometry.size)
        {
            return Err(VolumeError::DataArea {
                offset,
                length,
                device: geometry.size,
            });
        }
        let unit = geometry
            .logical_block
            .max(cipher.layout().size.bytes() as u32);
        if !offset.is_multiple_of(u64::from(unit)) || !length.is_multiple_of(u64::from(unit)) {
            return Err(VolumeError::DataAlignment {
                offset,
                length,
                unit,
            });
        }
        Ok(Self {
            device,
            cipher,
            data,
            first,
            allow_discards,
            holes: false,
        })
    }

    /// The cipher that executes the mapping.
    pub fn cipher(&self) -> &C {
        &self.cipher
    }

    /// The backing device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Decrypts the sectors from byte `offset`, if there may be holes.
    fn decrypt(&self, offset: u64, sectors: &mut [u8]) {
        decrypt_around(self.holes, sectors, |sectors| {
            self.cipher.decrypt(self.iv_at(offset), sectors);
        });
    }

    /// IV number of the sector at byte `offset` of the plaintext view.
    fn iv_at(&self, offset: u64) -> IvSector {
        let layout = self.cipher.layout();
        self.first
            .advance(offset / layout.size.bytes() as u64, layout)
    }
}

impl<D: BlockDevice, C: SectorCipher> BlockDevice for CryptDevice<D, C> {
    fn geometry(&self) -> Geometry {
        let below = self.device.geometry();
        let sector = self.cipher.layout().size.bytes() as u32;
        Geometry {
            size: self.data.length,
            logical_block: below.logical_block.max(sector),
            physical_block: below.physical_block.max(sector),
            discard_granularity: below.discard_granularity.filter(|_| self.allow_discards),
            discard_zeroes: self.holes && self.allow_discards && below.discard_zeroes,
        }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.geometry().check(offset, into.len() as u64)?;
        self.device.read_at(self.data.offset + offset, into)?;
        self.decrypt(offset, into);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.geometry().check(offset, data.len() as u64)?;
        let mut staging = AlignedBuffer::new(data.len().min(STAGING));
        let mut at = offset;
        for chunk in data.chunks(STAGING) {
            let own = &mut staging[..chunk.len()];
            own.copy_from_slice(chunk);
            self.cipher.encrypt(self.iv_at(at), own);
            self.device.write_at(self.data.offset + at, own)?;
            at += chunk.len() as u64;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.device.flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.geometry().check(range.offset, range.length)?;
        if !self.allow_discards {
            return Err(BlockError::Unsupported {
                operation: OperationKind::Discard,
            });
        }
        self.device.discard(ByteRange {
            offset: self.data.offset + range.offset,
            length: range.length,
        })
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(CryptQueue::open(self, options)?))
    }
}

/// Decrypts sectors as `decrypt` does, but for the parts that are zeros, if `holes` says that these
/// stay zeros.
pub(crate) fn decrypt_around(holes: bool, sectors: &mut [u8], decrypt: impl FnOnce(&mut [u8])) {
    let holes: Vec<usize> = match holes {
        true => holes_in(sectors).collect(),
        false => Vec::new(),
    };
    if !holes.is_empty() && holes.len() * HOLE == sectors.len() {
        return;
    }
    decrypt(sectors);
    for hole in holes {
        sectors[hole..hole + HOLE].fill(0);
    }
}

/// Where the parts of sectors begin that hold nothing but zeros.
fn holes_in(sectors: &[u8]) -> impl Iterator<Item = usize> {
    let zeros = |part: &[u8]| part.iter().all(|&byte| byte == 0);
    sectors
        .chunks_exact(HOLE)
        .enumerate()
        // One word tells nearly always.
        .filter(move |(_, part)| zeros(&part[..8]) && zeros(part))
        .map(|(index, _)| index * HOLE)
}
