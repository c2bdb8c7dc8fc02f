//! `elephant`: BitLocker's CBC, which mixes the whole sector before it is
//! encrypted.
//!
//! ```text
//! sector key = E[K](s) E[K](s′)     s the byte offset, 64 bits, little endian,
//!                                   s′ the same with 128 as its last byte
//! data       = B(A(plaintext ⊕ sector key, repeated))
//! ```
//!
//! Undone, diffuser A is `dᵢ += dᵢ₋₂ ⊕ (dᵢ₋₅ <<< Aᵢ)` for every word in turn,
//! five times over, and B is `dᵢ += dᵢ₊₂ ⊕ (dᵢ₊₅ <<< Bᵢ)`, three times; indices
//! modulo the number of words, rotations modulo 4.
//!
//! Source: Ferguson, AES-CBC + Elephant diffuser, 2006, section 4.

use super::{Counted, Ivs, numbered};
use crate::block::{Aes, BlockCipher};
use crate::{IvSector, SectorLayout};

const A_ROTATIONS: [u32; 4] = [9, 0, 13, 0];
const A_CYCLES: usize = 5;
const B_ROTATIONS: [u32; 4] = [0, 10, 0, 25];
const B_CYCLES: usize = 3;

/// Words of the largest sector.
const MOST_WORDS: usize = 4096 / 4;

/// IVs of `eboiv`, with the Elephant diffuser.
pub(crate) struct Elephant {
    offsets: Counted,
    sector_key: Aes,
    layout: SectorLayout,
}

impl Elephant {
    /// `key` is the diffuser's, an AES key.
    pub(crate) fn new(key: &[u8], layout: SectorLayout) -> Self {
        Self {
            offsets: Counted::eboiv(layout),
            sector_key: Aes::new(key),
            layout,
        }
    }

    fn add_sector_key(&self, n: u64, sector: &mut [u8]) {
        let mut key = [[0; 16]; 2];
        let offset = n.wrapping_mul(sector.len() as u64).to_le_bytes();
        key[0][..8].copy_from_slice(&offset);
        key[1][..8].copy_from_slice(&offset);
        key[1][15] = 0x80;
        self.sector_key.encrypt_blocks(&mut key);
        for (byte, key) in sector.iter_mut().zip(key.as_flattened().iter().cycle()) {
            *byte ^= key;
        }
    }
}

impl<const N: usize> Ivs<N> for Elephant {
    fn fill(&self, first: IvSector, ivs: &mut [[u8; N]]) {
        self.offsets.fill(first, ivs);
    }

    fn through_mode(&self) -> bool {
        true
    }

    fn before_encryption(&self, first: IvSector, data: &mut [u8], ivs: &mut [[u8; N]]) {
        for (n, sector) in numbered(first, self.layout, data) {
            self.add_sector_key(n, sector);
            over_words(sector, |words| {
                mix::<A_CYCLES>(words, -2, -5, A_ROTATIONS);
                mix::<B_CYCLES>(words, 2, 5, B_ROTATIONS);
            });
        }
        Ivs::<N>::fill(self, first, ivs);
    }

    fn after_decryption(&self, first: IvSector, data: &mut [u8]) {
        for (n, sector) in numbered(first, self.layout, data) {
            over_words(sector, |words| {
                unmix::<B_CYCLES>(words, 2, 5, B_ROTATIONS);
                unmix::<A_CYCLES>(words, -2, -5, A_ROTATIONS);
            });
            self.add_sector_key(n, sector);
        }
    }
}

/// Lets `change` work on the little-endian words of `sector`.
fn over_words(sector: &mut [u8], change: impl Fn(&mut [u32])) {
    let mut words = [0; MOST_WORDS];
    let bytes = sector.as_chunks_mut().0;
    let words = &mut words[..bytes.len()];
    for (word, bytes) in words.iter_mut().zip(&*bytes) {
        *word = u32::from_le_bytes(*bytes);
    }
    change(words);
    for (bytes, word) in bytes.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
}

fn unmix<const CYCLES: usize>(d: &mut [u32], near: isize, far: isize, rotations: [u32; 4]) {
    for _ in 0..CYCLES {
        for i in 0..d.len() {
            d[i] = d[i].wrapping_add(neighbours(d, i, near, far, rotations));
        }
    }
}

fn mix<const CYCLES: usize>(d: &mut [u32], near: isize, far: isize, rotations: [u32; 4]) {
    for _ in 0..CYCLES {
        for i in (0..d.len()).rev() {
            d[i] = d[i].wrapping_sub(neighbours(d, i, near, far, rotations));
        }
    }
}

fn neighbours(d: &[u32], i: usize, near: isize, far: isize, rotations: [u32; 4]) -> u32 {
    // A sector's number of words is a power of two, so a mask is the modulus.
    let at = |distance: isize| d[i.wrapping_add_signed(distance) & (d.len() - 1)];
    at(near) ^ at(far).rotate_left(rotations[i % 4])
}
