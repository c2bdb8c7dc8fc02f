//! The journal of a reencryption: what is about to be written over the data,
//! so that it can be written again.
//!
//! ```text
//! two halves, each    head 4096 │ new ciphertext …
//! head                magic 8   sequence 8   position 8   length 8
//!                     SHA-256 of the ciphertext 32   SHA-256 of all this 32
//! ```
//!
//! Records take turns in the halves. One is written after the data of the one
//! before is on the device, so that the newest record that is whole says all:
//! the data before it is new, its own is in it, and the data behind it is old.
//!
//! Source: our own; cryptsetup refuses the volume meanwhile, because the header
//! requires what it does not know.

use crate::fields::Fields;
use crate::{Hash, VolumeError, unaligned};
use block::{BlockDevice, ByteRange};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"CMREENC1";
const HEAD_BYTES: usize = 4096;
const DIGEST_AT: usize = 32;
const SEAL_AT: usize = 64;

/// Bytes of a record that are read at a time.
const PIECE: usize = 1 << 20;

/// The least that a journal is worth having with.
const LEAST_HALF: u64 = HEAD_BYTES as u64 + (64 << 10);

/// The journal in an area of the header's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Journal {
    area: ByteRange,
}

/// A record that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    sequence: u64,
    /// First byte of the data it speaks of, from the start of the segment.
    pub(super) position: u64,
    /// Bytes of data.
    pub(super) length: u64,
    /// Where the data is kept, on the header's device.
    pub(super) kept_at: u64,
}

impl Record {
    /// The first byte behind its data.
    pub(super) const fn end(&self) -> u64 {
        self.position + self.length
    }

    /// Where its data is kept, in pieces that memory is there for.
    pub(super) fn pieces(&self) -> impl Iterator<Item = ByteRange> + use<> {
        let (kept_at, length) = (self.kept_at, self.length);
        (0..length)
            .step_by(PIECE)
            .map(move |done| ByteRange::new(kept_at + done, (length - done).min(PIECE as u64)))
    }

    /// Whether its data are whole sectors of `unit` bytes.
    pub(super) const fn is_made_of(&self, unit: u64) -> bool {
        self.position.is_multiple_of(unit) && self.length.is_multiple_of(unit)
    }
}

impl Journal {
    /// The journal in `area`, if that is large enough.
    pub(super) fn new(area: ByteRange) -> Option<Self> {
        (area.length / 2 >= LEAST_HALF).then_some(Self { area })
    }

    /// Bytes of data that a record can hold, a multiple of 4096.
    pub(super) const fn capacity(&self) -> u64 {
        self.half() - HEAD_BYTES as u64
    }

    const fn half(&self) -> u64 {
        self.area.length / 2 / 4096 * 4096
    }

    const fn offset(&self, sequence: u64) -> u64 {
        self.area.offset + (sequence % 2) * self.half()
    }

    /// Makes it empty.
    pub(super) fn clear(&self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        for sequence in 0..2 {
            unaligned::write(device, self.offset(sequence), &[0; HEAD_BYTES])?;
        }
        Ok(device.flush()?)
    }

    /// The newest record that is whole.
    pub(super) fn newest(&self, device: &dyn BlockDevice) -> Result<Option<Record>, VolumeError> {
        let mut newest = None;
        for sequence in 0..2 {
            let record = self.read(device, self.offset(sequence))?;
            let of = |record: &Option<Record>| record.map(|record| record.sequence);
            if of(&record) > of(&newest) {
                newest = record;
            }
        }
        Ok(newest)
    }

    fn read(&self, device: &dyn BlockDevice, at: u64) -> Result<Option<Record>, VolumeError> {
        let head = unaligned::read(device, ByteRange::new(at, HEAD_BYTES as u64))?;
        let seal = Hash::Sha256.digest(&[&head[..SEAL_AT]]);
        if !head.starts_with(MAGIC) || head[SEAL_AT..][..seal.len()] != **seal {
            return Ok(None);
        }
        let fields = Fields(&head);
        let record = Record {
            sequence: fields.be64(8),
            position: fields.be64(16),
            length: fields.be64(24),
            kept_at: at + HEAD_BYTES as u64,
        };
        if record.length > self.capacity()
            || record.position.checked_add(record.length).is_none()
            || record.sequence == u64::MAX
        {
            return Ok(None);
        }
        let mut digest = Sha256::new();
        for piece in record.pieces() {
            digest.update(&*unaligned::read(device, piece)?);
        }
        let digest = digest.finalize();
        Ok((head[DIGEST_AT..][..digest.len()] == *digest).then_some(record))
    }

    /// What a record says of its data.
    pub(super) fn digest(data: &[u8]) -> Zeroizing<Vec<u8>> {
        Hash::Sha256.digest(&[data])
    }

    /// Keeps `data` of this `digest`, which are going to be written at
    /// `position`, in the record that follows `last`.
    pub(super) fn keep(
        &self,
        device: &dyn BlockDevice,
        last: Option<Record>,
        position: u64,
        data: &[u8],
        digest: &[u8],
    ) -> Result<Record, VolumeError> {
        let sequence = last.map_or(1, |record| record.sequence + 1);
        let length = data.len() as u64;
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(MAGIC);
        head[8..16].copy_from_slice(&sequence.to_be_bytes());
        head[16..24].copy_from_slice(&position.to_be_bytes());
        head[24..32].copy_from_slice(&length.to_be_bytes());
        head[DIGEST_AT..SEAL_AT].copy_from_slice(digest);
        let (sealed, seal) = head.split_at_mut(SEAL_AT);
        Hash::Sha256.digest_into(&[sealed], &mut seal[..32]);
        let at = self.offset(sequence);
        unaligned::write(device, at + HEAD_BYTES as u64, data)?;
        unaligned::write(device, at, &head)?;
        device.flush()?;
        Ok(Record {
            sequence,
            position,
            length,
            kept_at: at + HEAD_BYTES as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::RamDevice;

    const AREA: ByteRange = ByteRange {
        offset: 4096,
        length: 1 << 20,
    };

    fn keep(
        journal: &Journal,
        device: &RamDevice,
        last: Option<Record>,
        position: u64,
        data: &[u8],
    ) -> Result<Record, VolumeError> {
        journal.keep(device, last, position, data, &Journal::digest(data))
    }

    #[test]
    fn the_newest_record_counts() {
        let device = RamDevice::new(2 << 20);
        let journal = Journal::new(AREA).unwrap();
        journal.clear(&device).unwrap();
        assert_eq!(journal.newest(&device).unwrap(), None);
        let mut last = None;
        for step in 0..5_u64 {
            let data = vec![step as u8; 8192];
            let record = keep(&journal, &device, last, step * 8192, &data).unwrap();
            assert_eq!(journal.newest(&device).unwrap(), Some(record));
            last = Some(record);
        }
    }

    #[test]
    fn a_torn_record_leaves_the_one_before() {
        let device = RamDevice::new(2 << 20);
        let journal = Journal::new(AREA).unwrap();
        journal.clear(&device).unwrap();
        let first = keep(&journal, &device, None, 0, &[1; 4096]).unwrap();
        let second = keep(&journal, &device, Some(first), 4096, &[2; 4096]).unwrap();
        for offset in [second.kept_at - HEAD_BYTES as u64, second.kept_at + 512] {
            let mut sector = [0; 512];
            device.read_at(offset, &mut sector).unwrap();
            device.write_at(offset, &[0x77; 512]).unwrap();
            assert_eq!(journal.newest(&device).unwrap(), Some(first));
            device.write_at(offset, &sector).unwrap();
        }
        assert_eq!(journal.newest(&device).unwrap(), Some(second));
    }

    #[test]
    fn a_record_is_read_in_pieces() {
        let device = RamDevice::new(16 << 20);
        let journal = Journal::new(ByteRange::new(4096, 8 << 20)).unwrap();
        journal.clear(&device).unwrap();
        let first = keep(&journal, &device, None, 0, &[1; 4096]).unwrap();
        let data: Vec<u8> = (0..2 * PIECE + 4096).map(|i| (i / 512) as u8).collect();
        let record = keep(&journal, &device, Some(first), 4096, &data).unwrap();
        assert_eq!(journal.newest(&device).unwrap(), Some(record));
        let pieces: Vec<_> = record.pieces().map(|piece| piece.length).collect();
        assert_eq!(pieces, [PIECE as u64, PIECE as u64, 4096]);
        for piece in record.pieces() {
            let mut sector = [0; 512];
            device.read_at(piece.offset, &mut sector).unwrap();
            device.write_at(piece.offset, &[0x77; 512]).unwrap();
            assert_eq!(journal.newest(&device).unwrap(), Some(first));
            device.write_at(piece.offset, &sector).unwrap();
        }
    }

    #[test]
    fn a_small_area_is_refused() {
        assert_eq!(Journal::new(ByteRange::new(0, 100 << 10)), None);
    }
}
