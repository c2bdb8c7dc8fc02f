//! CAST-256, also called CAST6 (RFC 2612).
//!
//! **Not constant-time**, except in `planes`, which needs AVX-512 with VBMI.
//! Elsewhere, which table line is loaded depends on key and data, so another
//! process on the same core can learn about both from the cache.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;

use zeroize::Zeroize;

use super::cast::{RoundKey, f, half_round};
use super::{Block, BlockCipher, scan};

/// Quad-rounds: half of them forward, half reverse.
const QUADS: usize = 12;

/// Blocks worked on together, so that one waits for its loads while another
/// computes.
const LANES: usize = 6;

/// CAST-256 with a key of 128, 160, 192, 224 or 256 bits.
pub(crate) struct Cast6 {
    round_keys: [[RoundKey; 4]; QUADS],
}

impl Cast6 {
    /// The cipher under a key of 16, 20, 24, 28 or 32 bytes, section 2.4.
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut kappa = [0_u32; 8];
        for (word, bytes) in kappa.iter_mut().zip(key.as_chunks().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        let (mut mask, mut rotation) = (0x5a82_7999_u32, 19_u32);
        let mut next = || {
            let constants = [mask, rotation];
            mask = mask.wrapping_add(0x6ed9_eba1);
            rotation = (rotation + 17) % 32;
            constants
        };
        let mut round_keys = [[[0; 2]; 4]; QUADS];
        for quad in &mut round_keys {
            for _ in 0..2 {
                let [a, b, c, d, e, f_, g, h] = &mut kappa;
                *g ^= f::<1>(*h, next(), scan::word);
                *f_ ^= f::<2>(*g, next(), scan::word);
                *e ^= f::<3>(*f_, next(), scan::word);
                *d ^= f::<1>(*e, next(), scan::word);
                *c ^= f::<2>(*d, next(), scan::word);
                *b ^= f::<3>(*c, next(), scan::word);
                *a ^= f::<1>(*b, next(), scan::word);
                *h ^= f::<2>(*a, next(), scan::word);
            }
            let [a, b, c, d, e, f, g, h] = kappa;
            *quad = [[h, a % 32], [f, c % 32], [d, e % 32], [b, g % 32]];
        }
        kappa.zeroize();
        Self { round_keys }
    }

    #[inline(always)]
    fn encrypt_lanes<const N: usize>(&self, blocks: &mut [Block; N]) {
        let mut words = load(blocks);
        for keys in &self.round_keys[..QUADS / 2] {
            forward(&mut words, keys);
        }
        for keys in &self.round_keys[QUADS / 2..] {
            reverse(&mut words, keys);
        }
        store(&words, blocks);
    }

    #[inline(always)]
    fn decrypt_lanes<const N: usize>(&self, blocks: &mut [Block; N]) {
        let mut words = load(blocks);
        for keys in self.round_keys[QUADS / 2..].iter().rev() {
            forward(&mut words, keys);
        }
        for keys in self.round_keys[..QUADS / 2].iter().rev() {
            reverse(&mut words, keys);
        }
        store(&words, blocks);
    }
}

impl BlockCipher<16> for Cast6 {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        let (groups, rest) = blocks.as_chunks_mut::<LANES>();
        for group in groups {
            self.encrypt_lanes(group);
        }
        for block in rest {
            self.encrypt_lanes(std::array::from_mut(block));
        }
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        let (groups, rest) = blocks.as_chunks_mut::<LANES>();
        for group in groups {
            self.decrypt_lanes(group);
        }
        for block in rest {
            self.decrypt_lanes(std::array::from_mut(block));
        }
    }
}

impl Drop for Cast6 {
    fn drop(&mut self) {
        self.round_keys
            .as_flattened_mut()
            .as_flattened_mut()
            .zeroize();
    }
}

/// The four words of every lane.
type Words<const N: usize> = [[u32; N]; 4];

/// Q of section 2.
#[inline(always)]
fn forward<const N: usize>([a, b, c, d]: &mut Words<N>, keys: &[RoundKey; 4]) {
    half_round::<1, N>(c, d, keys[0]);
    half_round::<2, N>(b, c, keys[1]);
    half_round::<3, N>(a, b, keys[2]);
    half_round::<1, N>(d, a, keys[3]);
}

/// QBAR of section 2.
#[inline(always)]
fn reverse<const N: usize>([a, b, c, d]: &mut Words<N>, keys: &[RoundKey; 4]) {
    half_round::<1, N>(d, a, keys[3]);
    half_round::<3, N>(a, b, keys[2]);
    half_round::<2, N>(b, c, keys[1]);
    half_round::<1, N>(c, d, keys[0]);
}

#[inline(always)]
fn load<const N: usize>(blocks: &[Block; N]) -> Words<N> {
    std::array::from_fn(|word| {
        std::array::from_fn(|lane| u32::from_be_bytes(blocks[lane].as_chunks().0[word]))
    })
}

#[inline(always)]
fn store<const N: usize>(words: &Words<N>, blocks: &mut [Block; N]) {
    for (lane, block) in blocks.iter_mut().enumerate() {
        for (word, bytes) in block.as_chunks_mut().0.iter_mut().enumerate() {
            *bytes = words[word][lane].to_be_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cast6;
    use crate::block::tests;
    use crate::reference;

    const KEY_LENGTHS: [usize; 5] = [16, 20, 24, 28, 32];

    #[test]
    fn known_answers() {
        tests::known_answers::<reference::Cast6, _, 16>("cast6", Cast6::new);
    }

    #[test]
    fn equals_the_reference() {
        tests::equals_reference::<reference::Cast6, _, 16>(&KEY_LENGTHS, Cast6::new);
    }

    #[test]
    fn agrees_with_rustcrypto() {
        tests::agrees_with::<cast6::Cast6, _, 16>(&KEY_LENGTHS, Cast6::new);
    }
}
