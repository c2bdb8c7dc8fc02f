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
//! modulo the number of words, rotations modulo 4. Every word waits for the one
//! before, so several sectors are mixed side by side.
//!
//! Source: Ferguson, AES-CBC + Elephant diffuser, 2006, section 4.

use super::{Counted, Ivs, numbered};
use crate::block::BlockCipher;
use crate::block::aes::bitsliced::Bitsliced;
use crate::block::registers::AnyCpu;
use crate::{IvSector, SectorLayout};

const A_ROTATIONS: [u32; 4] = [9, 0, 13, 0];
const A_CYCLES: usize = 5;
const B_ROTATIONS: [u32; 4] = [0, 10, 0, 25];
const B_CYCLES: usize = 3;

/// Words of the largest sector.
const MOST_WORDS: usize = 4096 / 4;

/// Sectors mixed side by side: their words fill half of an L1 cache.
const LANES: usize = 8;

/// The same word of every sector.
type Word = [u32; LANES];

/// IVs of `eboiv`, with the Elephant diffuser.
pub(crate) struct Elephant {
    offsets: Counted,
    sector_key: Bitsliced<AnyCpu>,
    layout: SectorLayout,
}

impl Elephant {
    /// `key` is the diffuser's, an AES key.
    pub(crate) fn new(key: &[u8], layout: SectorLayout) -> Self {
        Self {
            offsets: Counted::eboiv(layout),
            sector_key: Bitsliced::new(key, AnyCpu),
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
        }
        over_words(data, self.layout, |words| {
            mix::<A_CYCLES>(words, -2, -5, A_ROTATIONS);
            mix::<B_CYCLES>(words, 2, 5, B_ROTATIONS);
        });
        Ivs::<N>::fill(self, first, ivs);
    }

    fn after_decryption(&self, first: IvSector, data: &mut [u8]) {
        over_words(data, self.layout, |words| {
            unmix::<B_CYCLES>(words, 2, 5, B_ROTATIONS);
            unmix::<A_CYCLES>(words, -2, -5, A_ROTATIONS);
        });
        for (n, sector) in numbered(first, self.layout, data) {
            self.add_sector_key(n, sector);
        }
    }
}

/// Lets `change` work on the little-endian words of the sectors of `data`,
/// [`LANES`] at a time, the last ones beside zeros.
fn over_words(data: &mut [u8], layout: SectorLayout, change: impl Fn(&mut [Word])) {
    let sector_bytes = layout.size.bytes();
    for sectors in data.chunks_mut(LANES * sector_bytes) {
        let mut words = [[0; LANES]; MOST_WORDS];
        let words = &mut words[..sector_bytes / 4];
        for (lane, sector) in sectors.chunks_exact(sector_bytes).enumerate() {
            for (word, bytes) in words.iter_mut().zip(sector.as_chunks().0) {
                word[lane] = u32::from_le_bytes(*bytes);
            }
        }
        change(words);
        for (lane, sector) in sectors.chunks_exact_mut(sector_bytes).enumerate() {
            for (word, bytes) in words.iter().zip(sector.as_chunks_mut().0) {
                *bytes = word[lane].to_le_bytes();
            }
        }
    }
}

fn unmix<const CYCLES: usize>(d: &mut [Word], near: isize, far: isize, rotations: [u32; 4]) {
    for _ in 0..CYCLES {
        for i in 0..d.len() {
            let sums = neighbours(d, i, near, far, rotations);
            for (word, sum) in d[i].iter_mut().zip(sums) {
                *word = word.wrapping_add(sum);
            }
        }
    }
}

fn mix<const CYCLES: usize>(d: &mut [Word], near: isize, far: isize, rotations: [u32; 4]) {
    for _ in 0..CYCLES {
        for i in (0..d.len()).rev() {
            let sums = neighbours(d, i, near, far, rotations);
            for (word, sum) in d[i].iter_mut().zip(sums) {
                *word = word.wrapping_sub(sum);
            }
        }
    }
}

#[inline(always)]
fn neighbours(d: &[Word], i: usize, near: isize, far: isize, rotations: [u32; 4]) -> Word {
    // A sector's number of words is a power of two, so a mask is the modulus.
    let at = |distance: isize| d[i.wrapping_add_signed(distance) & (d.len() - 1)];
    let (near, far, rotation) = (at(near), at(far), rotations[i % 4]);
    std::array::from_fn(|lane| near[lane] ^ far[lane].rotate_left(rotation))
}
