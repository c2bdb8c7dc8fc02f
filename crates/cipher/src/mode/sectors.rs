//! Runs of sectors: a mode, an IV generator, and groups of sectors between them.

use super::{BlockMode, GROUP, MOST_SECTORS};
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
        let most = self.mode.most_sectors();
        // Clearing room for more IVs would take a small run longer than its
        // own.
        match data.len() / sector_bytes {
            1 => work(first, data, &mut [[0; N]]),
            ..=GROUP => self.groups_in(first, data, &mut [[0; N]; GROUP], work),
            _ if most == GROUP => self.groups_in(first, data, &mut [[0; N]; GROUP], work),
            _ => {
                let mut ivs = [[0; N]; MOST_SECTORS];
                self.groups_in(first, data, &mut ivs[..most], work);
            }
        }
    }

    /// Groups of as many sectors as there is room for `ivs`.
    fn groups_in(
        &self,
        mut first: IvSector,
        data: &mut [u8],
        ivs: &mut [[u8; N]],
        work: impl Fn(IvSector, &mut [u8], &mut [[u8; N]]),
    ) {
        let sector_bytes = self.layout.size.bytes();
        for group in data.chunks_mut(ivs.len() * sector_bytes) {
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
