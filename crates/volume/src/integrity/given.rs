//! [`GivenIv`]: XTS under IVs that are given, not made of a sector's number.
//!
//! ```text
//! tweaks:  E₂(IV), and from block to block times x     ciphertext:  E₁(data ⊕ tweaks) ⊕ tweaks
//! ```
//!
//! Both encryptions are the engine's ECB, over all sectors of a request at once.

use crate::VolumeError;
use cipher::{
    Algorithm, CipherError, CipherSpec, IvSector, Key, KeyedCipher, SectorCipher, SectorLayout,
    SectorSize,
};
use zeroize::Zeroizing;

const BLOCK: usize = 16;

/// What ECB takes at least.
const RUN: usize = 512;

/// A cipher in XTS mode.
pub(super) struct GivenIv {
    data: KeyedCipher,
    tweak: KeyedCipher,
    sector_bytes: usize,
}

impl GivenIv {
    /// The cipher `name` in XTS mode, its key being that of the data and then
    /// that of the tweaks.
    ///
    /// # Errors
    /// [`VolumeError::Cipher`].
    pub(super) fn new(name: &str, key: &[u8], sector: SectorSize) -> Result<Self, VolumeError> {
        // Says better what is wrong with name and key than ECB does.
        let xts: CipherSpec = format!("{name}-xts-plain64").parse()?;
        let layout = SectorLayout::default();
        xts.cipher(&Key::from_slice(key), layout, None)?;
        debug_assert!(
            xts.algorithms()
                .iter()
                .all(|one| one.block_bytes() == BLOCK)
        );
        debug_assert!(!xts.algorithms().contains(&Algorithm::Null));
        let ecb: CipherSpec = format!("{name}-ecb").parse()?;
        let keyed = |half: &[u8]| -> Result<KeyedCipher, CipherError> {
            ecb.cipher(&Key::from_slice(half), layout, None)
        };
        let (first, second) = key.split_at(key.len() / 2);
        Ok(Self {
            data: keyed(first)?,
            tweak: keyed(second)?,
            sector_bytes: sector.bytes(),
        })
    }

    /// Encrypts whole sectors in place, each under its IV of 16 bytes.
    pub(super) fn encrypt<'a>(&self, data: &mut [u8], ivs: impl Iterator<Item = &'a [u8]>) {
        let tweaks = self.tweaks(ivs);
        self.mask(data, &tweaks);
        self.data.encrypt(IvSector::new(0), data);
        self.mask(data, &tweaks);
    }

    /// Decrypts whole sectors in place, each under its IV of 16 bytes.
    pub(super) fn decrypt<'a>(&self, data: &mut [u8], ivs: impl Iterator<Item = &'a [u8]>) {
        let tweaks = self.tweaks(ivs);
        self.mask(data, &tweaks);
        self.data.decrypt(IvSector::new(0), data);
        self.mask(data, &tweaks);
    }

    /// The first tweak of every sector.
    fn tweaks<'a>(&self, ivs: impl Iterator<Item = &'a [u8]>) -> Zeroizing<Vec<u8>> {
        let mut tweaks = Zeroizing::new(ivs.flatten().copied().collect::<Vec<u8>>());
        let whole = tweaks.len().next_multiple_of(RUN);
        tweaks.resize(whole, 0);
        self.tweak.encrypt(IvSector::new(0), &mut tweaks);
        tweaks
    }

    fn mask(&self, data: &mut [u8], tweaks: &[u8]) {
        let (tweaks, _) = tweaks.as_chunks::<BLOCK>();
        for (sector, tweak) in data.chunks_mut(self.sector_bytes).zip(tweaks) {
            let mut tweak = u128::from_le_bytes(*tweak);
            for block in sector.as_chunks_mut::<BLOCK>().0 {
                *block = (u128::from_le_bytes(*block) ^ tweak).to_le_bytes();
                tweak = (tweak << 1) ^ (0x87 * (tweak >> 127));
            }
        }
    }
}
