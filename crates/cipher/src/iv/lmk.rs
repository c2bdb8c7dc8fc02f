//! `lmk`: loop-AES, whose IV depends on the sector's plaintext.
//!
//! ```text
//! IV = state of MD5 after: seed (64 bytes, version 3 only), plaintext from
//!      its 17th byte on, n mod 2³², n/2³² mod 2²⁴ + 2³¹, 4024, 0
//! ```
//!
//! The state itself, without padding: the length is in the hashed words. On
//! decryption the IV is known last, so CBC runs with zeros and the IV is added
//! to the first block of the result.

use std::slice;

use md5::block_api::compress;
use zeroize::Zeroize;

use super::{Ivs, numbered};
use crate::{IvSector, SectorLayout};

/// The bytes that MD5 takes at once.
const MD5_BLOCK: usize = 64;

/// The bytes of the seed's key that count.
pub(crate) const SEED_BYTES: usize = 16;

/// Where the hashed part of a 512-byte sector begins.
const HASHED_FROM: usize = 16;

/// The IVs of loop-AES version 2, or with a seed 3.
pub(crate) struct Lmk {
    /// After the seed.
    state: [u32; 4],
    layout: SectorLayout,
}

impl Lmk {
    /// `seed` is version 3's 65th key, of at least [`SEED_BYTES`].
    pub(crate) fn new(seed: Option<&[u8]>, layout: SectorLayout) -> Self {
        // RFC 1321, section 3.3.
        let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
        if let Some(seed) = seed {
            let mut block = [0; MD5_BLOCK];
            block[..SEED_BYTES].copy_from_slice(&seed[..SEED_BYTES]);
            compress(&mut state, slice::from_ref(&block));
            block.zeroize();
        }
        Self { state, layout }
    }

    fn iv(&self, n: u64, sector: &[u8]) -> [u8; 16] {
        let mut hashed = [0; 512];
        let (plain, numbers) = hashed.split_at_mut(512 - HASHED_FROM);
        plain.copy_from_slice(&sector[HASHED_FROM..]);
        let words = [
            n as u32,
            (n >> 32) as u32 & 0x00ff_ffff | 0x8000_0000,
            4024,
            0,
        ];
        for (bytes, word) in numbers.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = u32::to_le_bytes(word);
        }
        let mut state = self.state;
        compress(&mut state, hashed.as_chunks::<MD5_BLOCK>().0);
        hashed.zeroize();
        let mut iv = [0; 16];
        for (bytes, word) in iv.as_chunks_mut().0.iter_mut().zip(state) {
            *bytes = word.to_le_bytes();
        }
        iv
    }
}

impl<const N: usize> Ivs<N> for Lmk {
    fn fill(&self, _first: IvSector, ivs: &mut [[u8; N]]) {
        ivs.fill([0; N]);
    }

    fn before_encryption(&self, first: IvSector, data: &mut [u8], ivs: &mut [[u8; N]]) {
        for ((n, sector), iv) in numbered(first, self.layout, data).zip(ivs) {
            iv.copy_from_slice(&self.iv(n, sector)[..N]);
        }
    }

    fn after_decryption(&self, first: IvSector, data: &mut [u8]) {
        for (n, sector) in numbered(first, self.layout, data) {
            let iv = self.iv(n, sector);
            for (byte, iv) in sector.iter_mut().zip(&iv[..N]) {
                *byte ^= iv;
            }
        }
    }
}

impl Drop for Lmk {
    fn drop(&mut self) {
        self.state.zeroize();
    }
}
