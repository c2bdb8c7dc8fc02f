//! `tcw`: the CBC of TrueCrypt before 4.1, with a secret IV and a whitened
//! ciphertext.
//!
//! ```text
//! IV   = IV seed ⊕ (n, n)        n 64 bits, little endian
//! w    = whitening seed ⊕ (n, n) = w₀ w₁ w₂ w₃, four words of 4 bytes
//! mask = (crc(w₀) ⊕ crc(w₃), crc(w₁) ⊕ crc(w₂)), over every 8 bytes
//! ```
//!
//! The CRC-32 is the reflected one of Ethernet, from 0 and not inverted.

use zeroize::Zeroize;

use super::{Ivs, numbered};
use crate::{IvSector, SectorLayout};

/// Length of the whitening seed.
pub(crate) const WHITENING_BYTES: usize = 16;

/// IVs and whitening of TrueCrypt's CBC.
pub(crate) struct Tcw<const N: usize> {
    iv_seed: [u8; N],
    whitening_seed: [u8; WHITENING_BYTES],
    layout: SectorLayout,
}

impl<const N: usize> Tcw<N> {
    /// `seeds` are the IV's, of `N` bytes, and the whitening's.
    pub(crate) fn new(seeds: &[u8], layout: SectorLayout) -> Self {
        let mut this = Self {
            iv_seed: [0; N],
            whitening_seed: [0; WHITENING_BYTES],
            layout,
        };
        let (iv_seed, whitening_seed) = seeds.split_at(N);
        this.iv_seed.copy_from_slice(iv_seed);
        this.whitening_seed.copy_from_slice(whitening_seed);
        this
    }

    fn whiten(&self, first: IvSector, data: &mut [u8]) {
        for (n, sector) in numbered(first, self.layout, data) {
            let mut crcs = [0; 4];
            let numbers = [n as u32, (n >> 32) as u32].into_iter().cycle();
            let words = self.whitening_seed.as_chunks().0.iter();
            for ((crc, word), number) in crcs.iter_mut().zip(words).zip(numbers) {
                *crc = crc32(u32::from_le_bytes(*word) ^ number);
            }
            let mask = u64::from(crcs[0] ^ crcs[3]) | u64::from(crcs[1] ^ crcs[2]) << 32;
            for bytes in sector.as_chunks_mut().0 {
                *bytes = (u64::from_le_bytes(*bytes) ^ mask).to_le_bytes();
            }
        }
    }
}

impl<const N: usize> Ivs<N> for Tcw<N> {
    fn fill(&self, first: IvSector, ivs: &mut [[u8; N]]) {
        let mut sector = first;
        for iv in ivs {
            *iv = self.iv_seed;
            for (i, byte) in iv.iter_mut().enumerate() {
                *byte ^= sector.get().to_le_bytes()[i % 8];
            }
            sector = sector.advance(1, self.layout);
        }
    }

    fn after_encryption(&self, first: IvSector, data: &mut [u8]) {
        self.whiten(first, data);
    }

    fn before_decryption(&self, first: IvSector, data: &mut [u8], ivs: &mut [[u8; N]]) {
        self.whiten(first, data);
        self.fill(first, ivs);
    }
}

impl<const N: usize> Drop for Tcw<N> {
    fn drop(&mut self) {
        self.iv_seed.zeroize();
        self.whitening_seed.zeroize();
    }
}

/// The CRC-32 of a word's four bytes, by bits: a table would be indexed by a
/// secret.
const fn crc32(word: u32) -> u32 {
    let mut crc = word;
    let mut bit = 0;
    while bit < 32 {
        crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        bit += 1;
    }
    crc
}
