//! Finding, checking and decrypting blocks of metadata.
//!
//! ```text
//! physical volume's header               a block of 8192 bytes
//! 0    4  CRC-32C of bytes 8 and on      0    4  CRC-32C of what follows 8
//! 4    4  all ones                       4    4  all ones
//! 10   2  kind: 0x10                     10   2  kind
//! 64   8  its size                       16   8  number of the transaction
//! 88   2  "CS"                           64      what it holds
//! 96   4  size of a block                disk label, of kind 0x11: 220  4  where it tells of
//! 104 32  where disk labels are          the encrypted metadata: 8  8  their blocks of 8192
//! 176 16  key of the metadata                                   32  8  where they are
//! 304 16  its identifier
//! ```

use super::{damaged, unsupported};
use crate::crc::crc32c;
use crate::fields::Fields;
use crate::integrity::GivenIv;
use crate::{Damage, Format, VolumeError, unaligned};
use block::BlockDevice;
use uuid::Uuid;

/// Lengths of a block of metadata and of its head, bytes.
pub(super) const BLOCK_BYTES: usize = 8192;
pub(super) const HEAD_BYTES: usize = 64;

const HEADER_BYTES: u64 = 512;

/// Limit on the blocks that are read. A volume has 32 MiB of them, most of them empty.
const MOST_BLOCKS: u64 = 16_384;

/// The parsed header of a physical volume.
#[derive(Clone, Copy)]
pub(super) struct Physical {
    pub(super) identifier: Uuid,
    pub(super) block_bytes: u64,
    labels: [u64; 4],
    key: [u8; 16],
}

/// Whether `start` is the start of a Core Storage volume.
pub(crate) fn has_signature(start: &[u8]) -> bool {
    start.len() >= HEADER_BYTES as usize && start[88..90] == *b"CS" && start[8..12] == [1, 0, 16, 0]
}

/// Whether the checksum at the start of `bytes` is right.
fn is_whole(bytes: &[u8]) -> bool {
    let fields = Fields(bytes);
    fields.le32(4) == u32::MAX && fields.le32(0) == crc32c(&bytes[8..])
}

impl Physical {
    /// Reads the header at the start of `device`.
    pub(super) fn read(device: &dyn BlockDevice) -> Result<Self, VolumeError> {
        let start = unaligned::read_up_to(device, 0, HEADER_BYTES)?;
        if !has_signature(&start) {
            return Err(VolumeError::NotThis {
                format: Format::Fvault2,
            });
        }
        if !is_whole(&start) {
            return Err(damaged(Damage::checksum("the physical volume's header")));
        }
        let fields = Fields(&start);
        let block_bytes = u64::from(fields.le32(96));
        if !block_bytes.is_power_of_two() || !(512..=1 << 20).contains(&block_bytes) {
            let rule = "must be a power of two from 512 to 1 MiB";
            return Err(damaged(Damage::number("block size", block_bytes, rule)));
        }
        let (key_bytes, method) = (fields.le32(168), fields.le32(172));
        if (key_bytes, method) != (16, 2) {
            let what = format!("encryption method {method} with {key_bytes} bytes of key");
            return Err(unsupported(what));
        }
        Ok(Self {
            identifier: Uuid::from_bytes(fields.array(304)),
            block_bytes,
            labels: [104, 112, 120, 128].map(|at| fields.le64(at)),
            key: fields.array(176),
        })
    }

    /// Calls `each` with the kind, transaction number and bytes of every metadata block. Blocks
    /// with a wrong checksum are skipped. A block of zeros ends the list.
    pub(super) fn blocks(
        &self,
        device: &dyn BlockDevice,
        mut each: impl FnMut(u16, u64, &[u8]) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        let (start, count) = self.encrypted(device)?;
        let cipher = metadata_cipher(self.key, self.identifier.as_bytes())?;
        for number in 0..count.min(MOST_BLOCKS) {
            let at = start.saturating_add(number * BLOCK_BYTES as u64);
            let mut block = unaligned::read_up_to(device, at, BLOCK_BYTES as u64)?;
            if block.len() < BLOCK_BYTES || block.iter().all(|&byte| byte == 0) {
                break;
            }
            cipher.decrypt(&mut block, &u128::from(number).to_le_bytes());
            if is_whole(&block) {
                let fields = Fields(&block);
                each(fields.le16(10), fields.le64(16), &block)?;
            }
        }
        Ok(())
    }

    /// Offset and number of the encrypted metadata blocks, from the newest disk label.
    fn encrypted(&self, device: &dyn BlockDevice) -> Result<(u64, u64), VolumeError> {
        const PLACE_AT: usize = 220;
        let mut newest = None;
        for label in self.labels {
            let at = label.saturating_mul(self.block_bytes);
            let block = match unaligned::read_up_to(device, at, BLOCK_BYTES as u64) {
                Err(error) if error.is_of_place() => continue,
                block => block?,
            };
            if block.len() < BLOCK_BYTES || !is_whole(&block) {
                continue;
            }
            let fields = Fields(&block);
            let found = (
                fields.le64(16),
                at.saturating_add(fields.le32(PLACE_AT).into()),
            );
            if fields.le16(10) == 0x11 && newest.is_none_or(|(number, _)| number < found.0) {
                newest = Some(found);
            }
        }
        let Some((_, place)) = newest else {
            return Err(damaged(Damage::checksum("every disk label")));
        };
        let told = unaligned::read_up_to(device, place, 40)?;
        if told.len() < 40 {
            return Err(damaged(Damage::missing("volume groups descriptor")));
        }
        let fields = Fields(&told);
        let start = fields.le64(32).saturating_mul(self.block_bytes);
        Ok((start, fields.le64(8)))
    }
}

/// AES-XTS over 8192 bytes, where sectors of disk ciphers have 4096 at most.
fn metadata_cipher(data: [u8; 16], tweak: &[u8; 16]) -> Result<GivenIv, VolumeError> {
    let key = [&data[..], tweak].concat();
    Ok(GivenIv::xts("aes", &key, BLOCK_BYTES)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cipher::{CipherSpec, IvSector, Key, SectorCipher, SectorLayout, SectorSize};

    #[test]
    fn metadata_are_encrypted_as_sectors_are() {
        let (data, tweak) = ([3; 16], [5; 16]);
        let mut block: Vec<u8> = (0..4096).map(|i| (i * 7) as u8).collect();
        let plain = block.clone();
        let layout = SectorLayout {
            size: SectorSize::B4096,
            large_iv: true,
        };
        let spec: CipherSpec = "aes-xts-plain64".parse().unwrap();
        let key = Key::from_slice(&[data, tweak].concat());
        let cipher = spec.cipher(&key, layout, None).unwrap();
        cipher.encrypt(IvSector::new(9), &mut block);
        let metadata = metadata_cipher(data, &tweak).unwrap();
        metadata.decrypt(&mut block, &9_u128.to_le_bytes());
        assert_eq!(block, plain);
    }
}
