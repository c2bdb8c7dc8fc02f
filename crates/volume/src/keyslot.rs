//! The key material of LUKS keyslots: a key, split into stripes, encrypted with
//! a key that a passphrase gives.

use crate::mapping::key_for;
use crate::{Hash, VolumeError, af, unaligned};
use block::{BlockDevice, ByteRange};
use cipher::{Algorithm, CipherError, CipherSpec, IvSector, Key, SectorCipher, SectorLayout};
use zeroize::Zeroizing;

/// The sector of key material, bytes. Sectors count from offset 0 of the material.
pub(crate) const SECTOR: u64 = 512;

/// The areas of LUKS2's key material begin and end at multiples of this, as cryptsetup's do.
pub(crate) const AREA_UNIT: u64 = 4096;

/// The free ranges from `start` to `end`, between areas that are `used`.
pub(crate) fn gaps((start, end): (u64, u64), mut used: Vec<ByteRange>) -> Vec<ByteRange> {
    used.sort_by_key(|area| area.offset);
    used.push(ByteRange::new(end, 0));
    let mut gaps = Vec::new();
    let mut offset = start;
    for area in used {
        if area.offset > offset {
            gaps.push(ByteRange::new(offset, area.offset - offset));
        }
        // Areas lie within the space: nothing overflows.
        offset = offset.max(area.offset + area.length);
    }
    gaps
}

/// Where and how a keyslot keeps its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyMaterial {
    /// How the material is encrypted: sectors of 512 bytes, IVs from 0.
    pub(crate) spec: CipherSpec,
    /// First byte of the material on the header's device.
    pub(crate) offset: u64,
    /// Length of the key that is kept.
    pub(crate) key_bytes: usize,
    /// Stripes that it is split into.
    pub(crate) stripes: usize,
    /// The splitter's hash.
    pub(crate) hash: Hash,
}

impl KeyMaterial {
    /// The bytes that the material takes, whole sectors.
    pub(crate) const fn range(&self) -> ByteRange {
        let length = self.key_bytes as u64 * self.stripes as u64;
        ByteRange {
            offset: self.offset,
            length: length.next_multiple_of(SECTOR),
        }
    }

    /// Whether keys of `bytes` bytes can encrypt it.
    pub(crate) fn check_key(&self, bytes: usize) -> Result<(), VolumeError> {
        match self.spec.algorithms() {
            [Algorithm::Null] => Ok(()),
            _ if self.spec.key_sizes().contains(&bytes) => Ok(()),
            _ => Err(VolumeError::Cipher(CipherError::KeySize {
                spec: self.spec,
                got_bits: bytes * 8,
                possible_bits: self.spec.key_sizes().iter().map(|size| size * 8).collect(),
            })),
        }
    }

    /// Decrypts and merges the key; under a wrong `slot_key` it is noise.
    pub(crate) fn open(
        &self,
        device: &(impl BlockDevice + ?Sized),
        slot_key: &Key,
    ) -> Result<Key, VolumeError> {
        let slot_key = key_for(&self.spec, slot_key);
        let cipher = self.spec.cipher(&slot_key, SectorLayout::default(), None)?;
        let mut material = unaligned::read(device, self.range())?;
        cipher.decrypt(IvSector::new(0), &mut material);
        let stripes = &material[..self.key_bytes * self.stripes];
        Ok(af::merge(self.hash, stripes, self.key_bytes))
    }

    /// Splits, encrypts and writes `key`, which is on the device when this returns.
    pub(crate) fn store(
        &self,
        device: &(impl BlockDevice + ?Sized),
        slot_key: &Key,
        key: &Key,
    ) -> Result<(), VolumeError> {
        let slot_key = key_for(&self.spec, slot_key);
        let cipher = self.spec.cipher(&slot_key, SectorLayout::default(), None)?;
        let split = af::split(self.hash, key, self.stripes)?;
        let mut material = Zeroizing::new(vec![0; self.range().length as usize]);
        material[..split.len()].copy_from_slice(split.as_bytes());
        cipher.encrypt(IvSector::new(0), &mut material);
        unaligned::write(device, self.offset, &material)?;
        Ok(device.flush()?)
    }
}

/// Overwrites an area with noise, so that nothing of a key is left in it.
pub(crate) fn wipe(
    device: &(impl BlockDevice + ?Sized),
    area: ByteRange,
) -> Result<(), VolumeError> {
    let mut noise = vec![0; area.length as usize];
    getrandom::fill(&mut noise).map_err(CipherError::from)?;
    unaligned::write(device, area.offset, &noise)?;
    Ok(device.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is free is wiped, so not a byte may be left out, wherever areas begin and end.
    #[test]
    fn areas_and_gaps_are_the_whole() {
        let (start, end) = (8, 40);
        let mut tried = 0;
        for gap in 0..16 {
            for length in 0..16 {
                let used = [
                    ByteRange::new(start + gap, length),
                    ByteRange::new(start + gap + length + 1, 2),
                ];
                if used[1].end() > Some(end) {
                    continue;
                }
                let free = gaps((start, end), vec![used[1], used[0]]);
                for byte in start..end {
                    let holds = |range: &&ByteRange| {
                        (range.offset..range.offset + range.length).contains(&byte)
                    };
                    let all = used.iter().chain(&free);
                    assert_eq!(all.filter(holds).count(), 1, "{used:?} {free:?}");
                }
                tried += 1;
            }
        }
        assert!(tried > 100, "{tried}");
    }
}
