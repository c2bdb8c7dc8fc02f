//! Ciphers with several keys, one for each 512-byte unit in turn: dm-crypt's
//! `cipher:COUNT`.

use crate::mode::assert_whole;
use crate::{IvSector, KeyedCipher, SectorCipher, SectorLayout};

/// The same cipher under a power of two of keys.
pub(crate) struct MultiKey {
    pub(crate) ciphers: Vec<KeyedCipher>,
}

impl MultiKey {
    /// Calls `work` for every stretch of sectors that have one key.
    fn stretches(
        &self,
        first: IvSector,
        data: &mut [u8],
        work: impl Fn(&KeyedCipher, IvSector, &mut [u8]),
    ) {
        let layout = self.layout();
        assert_whole(data, layout);
        let sector_bytes = layout.size.bytes();
        // Large IVs do not change how keys are counted: in 512-byte units.
        let units = sector_bytes as u64 / 512 / layout.iv_step();
        let mut rest = data;
        let mut first = first;
        while !rest.is_empty() {
            let key_of = |nth: u64| {
                let unit = first.advance(nth, layout).get().wrapping_mul(units);
                unit as usize & (self.ciphers.len() - 1)
            };
            let key = key_of(0);
            let left = (rest.len() / sector_bytes) as u64;
            let sectors = (1..left).find(|&nth| key_of(nth) != key).unwrap_or(left);
            let (stretch, after) = rest.split_at_mut(sectors as usize * sector_bytes);
            work(&self.ciphers[key], first, stretch);
            first = first.advance(sectors, layout);
            rest = after;
        }
    }
}

impl SectorCipher for MultiKey {
    fn layout(&self) -> SectorLayout {
        self.ciphers[0].layout()
    }

    fn encrypt(&self, first: IvSector, data: &mut [u8]) {
        self.stretches(first, data, |cipher, first, data| {
            cipher.encrypt(first, data);
        });
    }

    fn decrypt(&self, first: IvSector, data: &mut [u8]) {
        self.stretches(first, data, |cipher, first, data| {
            cipher.decrypt(first, data);
        });
    }
}
