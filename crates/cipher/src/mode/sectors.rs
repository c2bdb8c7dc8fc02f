//! Runs of sectors: a mode, an IV generator, and groups of sectors between them.

use super::{BlockMode, GROUP};
use crate::iv::Ivs;
use crate::{IvSector, SectorCipher, SectorLayout};

/// A mode over sectors whose IVs a generator makes.
pub(crate) struct Sectors<M, const N: usize> {
    pub(crate) mode: M,
    pub(crate) ivs: Box<dyn Ivs<N>>,
    pub(crate) layout: SectorLayout,
}

impl<M: BlockMode<N>, const N: usize> Sectors<M, N> {
    /// Calls `work` for every group of `data` with its first sector and room
    /// for its IVs.
    fn groups(
        &self,
        first: IvSector,
        data: &mut [u8],
        work: impl Fn(IvSector, &mut [u8], &mut [[u8; N]]),
    ) {
        assert_whole(data, self.layout);
        let sector_bytes = self.layout.size.bytes();
        if data.len() == sector_bytes {
            return work(first, data, &mut [[0; N]]);
        }
        let mut first = first;
        let mut ivs = [[0; N]; GROUP];
        for group in data.chunks_mut(GROUP * sector_bytes) {
            let sectors = group.len() / sector_bytes;
            work(first, group, &mut ivs[..sectors]);
            first = first.advance(sectors as u64, self.layout);
        }
    }

    fn through_mode(&self, ivs: &mut [[u8; N]]) {
        if self.ivs.through_mode() {
            self.mode.encrypt_zeros(ivs);
        }
    }
}

impl<M: BlockMode<N>, const N: usize> SectorCipher for Sectors<M, N> {
    fn layout(&self) -> SectorLayout {
        self.layout
    }

    fn encrypt(&self, first: IvSector, data: &mut [u8]) {
        self.groups(first, data, |first, group, ivs| {
            self.ivs.before_encryption(first, group, ivs);
            self.through_mode(ivs);
            self.mode.encrypt(ivs, group);
            self.ivs.after_encryption(first, group);
        });
    }

    fn decrypt(&self, first: IvSector, data: &mut [u8]) {
        self.groups(first, data, |first, group, ivs| {
            self.ivs.before_decryption(first, group, ivs);
            self.through_mode(ivs);
            self.mode.decrypt(ivs, group);
            self.ivs.after_decryption(first, group);
        });
    }
}

/// Panics where the caller of a [`SectorCipher`] breaks its contract.
pub(crate) fn assert_whole(data: &[u8], layout: SectorLayout) {
    let sector_bytes = layout.size.bytes();
    assert!(
        data.len().is_multiple_of(sector_bytes),
        "{} bytes are not a whole number of {sector_bytes}-byte sectors",
        data.len()
    );
}
