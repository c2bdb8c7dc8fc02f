//! CAST-128, also called CAST5 (RFC 2144).
//!
//! **Not constant-time**, except in `planes`, which needs AVX-512 with VBMI.
//! Elsewhere, which table line is loaded depends on key and data, so another
//! process on the same core can learn about both from the cache.
//!
//! Its 64-bit blocks repeat after 2³² of them: it is here to read old data, not
//! to protect new.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;

use zeroize::Zeroize;

use super::cast::{RoundKey, half_round, sbox};
use super::{BlockCipher, scan};

/// Rounds with a key of more than 80 bits; up to there, it is 12.
const ROUNDS: usize = 16;

/// Blocks worked on together, so that one waits for its loads while another
/// computes.
const LANES: usize = 8;

type Block = [u8; 8];

/// CAST-128 with a key of 40 to 128 bits.
pub(crate) struct Cast5 {
    round_keys: [RoundKey; ROUNDS],
    short_key: bool,
}

impl Cast5 {
    /// The cipher under a key of 5 to 16 bytes: sections 2.4 and 2.5.
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut x = [0; 16];
        x[..key.len()].copy_from_slice(key);
        let mut subkeys = [0; 2 * ROUNDS];
        for half in subkeys.as_chunks_mut::<16>().0 {
            let [first, second, third, fourth] = half.as_chunks_mut().0 else {
                unreachable!("16 is four times four");
            };
            let z = next_bytes(&x, 8, [0, 2, 3, 1]);
            *first = subkeys_of(&z, &[0x89762, 0xab546, 0xcd329, 0xef10c]);
            x = next_bytes(&z, 0, [2, 0, 1, 3]);
            *second = subkeys_of(&x, &[0x32cd8, 0x10efd, 0x76893, 0x54ab7]);
            let mut z = next_bytes(&x, 8, [0, 2, 3, 1]);
            *third = subkeys_of(&z, &[0x32cd9, 0x10efc, 0x76892, 0x54ab6]);
            x = next_bytes(&z, 0, [2, 0, 1, 3]);
            *fourth = subkeys_of(&x, &[0x89763, 0xab547, 0xcd328, 0xef10d]);
            z.zeroize();
        }
        let this = Self {
            round_keys: std::array::from_fn(|i| [subkeys[i], subkeys[ROUNDS + i] % 32]),
            short_key: key.len() <= 10,
        };
        x.zeroize();
        subkeys.zeroize();
        this
    }

    #[inline(always)]
    fn encrypt_lanes<const N: usize>(&self, blocks: &mut [Block; N]) {
        let [mut l, mut r] = load(blocks);
        let (l, r) = (&mut l, &mut r);
        let k = &self.round_keys;
        for k in k[..12].as_chunks::<6>().0 {
            half_round::<1, N>(l, r, k[0]);
            half_round::<2, N>(r, l, k[1]);
            half_round::<3, N>(l, r, k[2]);
            half_round::<1, N>(r, l, k[3]);
            half_round::<2, N>(l, r, k[4]);
            half_round::<3, N>(r, l, k[5]);
        }
        if !self.short_key {
            half_round::<1, N>(l, r, k[12]);
            half_round::<2, N>(r, l, k[13]);
            half_round::<3, N>(l, r, k[14]);
            half_round::<1, N>(r, l, k[15]);
        }
        store([r, l], blocks);
    }

    #[inline(always)]
    fn decrypt_lanes<const N: usize>(&self, blocks: &mut [Block; N]) {
        let [mut r, mut l] = load(blocks);
        let (l, r) = (&mut l, &mut r);
        let k = &self.round_keys;
        if !self.short_key {
            half_round::<1, N>(r, l, k[15]);
            half_round::<3, N>(l, r, k[14]);
            half_round::<2, N>(r, l, k[13]);
            half_round::<1, N>(l, r, k[12]);
        }
        for k in k[..12].as_chunks::<6>().0.iter().rev() {
            half_round::<3, N>(r, l, k[5]);
            half_round::<2, N>(l, r, k[4]);
            half_round::<1, N>(r, l, k[3]);
            half_round::<3, N>(l, r, k[2]);
            half_round::<2, N>(r, l, k[1]);
            half_round::<1, N>(l, r, k[0]);
        }
        store([l, r], blocks);
    }
}

impl BlockCipher<8> for Cast5 {
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

impl Drop for Cast5 {
    fn drop(&mut self) {
        self.round_keys.as_flattened_mut().zeroize();
    }
}

/// The equations of section 2.4 that make z of x, with `from` 8, or x of z,
/// with `from` 0: they differ in the `order` of the words and in which half of
/// the bytes goes through the S-boxes.
fn next_bytes(old: &[u8; 16], from: usize, order: [usize; 4]) -> [u8; 16] {
    let s = |sbox: usize, byte: u8| scan::word(&sbox::SCHEDULE[sbox - 5], byte);
    let words = order.map(|word| u32::from_be_bytes(old.as_chunks().0[word]));
    let old: [u8; 8] = std::array::from_fn(|i| old[from + i]);
    let mut new = [0; 16];

    let sum = s(5, old[5]) ^ s(6, old[7]) ^ s(7, old[4]) ^ s(8, old[6]);
    let word = words[0] ^ sum ^ s(7, old[0]);
    new[..4].copy_from_slice(&word.to_be_bytes());
    let sum = s(5, new[0]) ^ s(6, new[2]) ^ s(7, new[1]) ^ s(8, new[3]);
    let word = words[1] ^ sum ^ s(8, old[2]);
    new[4..8].copy_from_slice(&word.to_be_bytes());
    let sum = s(5, new[7]) ^ s(6, new[6]) ^ s(7, new[5]) ^ s(8, new[4]);
    let word = words[2] ^ sum ^ s(5, old[1]);
    new[8..12].copy_from_slice(&word.to_be_bytes());
    let sum = s(5, new[10]) ^ s(6, new[9]) ^ s(7, new[11]) ^ s(8, new[8]);
    let word = words[3] ^ sum ^ s(6, old[3]);
    new[12..].copy_from_slice(&word.to_be_bytes());
    new
}

/// Four subkeys of section 2.4: the digits of `places` say which bytes go
/// through S5, S6, S7 and S8, and then through the subkey's own one of them.
fn subkeys_of(bytes: &[u8; 16], places: &[u32; 4]) -> [u32; 4] {
    std::array::from_fn(|i| {
        (0..5).fold(0, |sum, nth| {
            let place = places[i] >> (16 - 4 * nth) & 15;
            let sbox = if nth < 4 { nth } else { i };
            sum ^ scan::word(&sbox::SCHEDULE[sbox], bytes[place as usize])
        })
    })
}

#[inline(always)]
fn load<const N: usize>(blocks: &[Block; N]) -> [[u32; N]; 2] {
    std::array::from_fn(|half| {
        std::array::from_fn(|lane| u32::from_be_bytes(blocks[lane].as_chunks().0[half]))
    })
}

#[inline(always)]
fn store<const N: usize>(halves: [&[u32; N]; 2], blocks: &mut [Block; N]) {
    for (lane, block) in blocks.iter_mut().enumerate() {
        for (half, bytes) in block.as_chunks_mut().0.iter_mut().enumerate() {
            *bytes = halves[half][lane].to_be_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cast5;
    use crate::block::tests;
    use crate::reference;

    #[test]
    fn known_answers() {
        tests::known_answers::<reference::Cast5, _, 8>("cast5", Cast5::new);
    }

    #[test]
    fn equals_the_reference() {
        tests::equals_reference::<reference::Cast5, _, 8>(&[5, 10, 11, 16], Cast5::new);
    }

    #[test]
    fn agrees_with_rustcrypto() {
        tests::agrees_with::<cast5::Cast5, _, 8>(&[5, 10, 11, 16], Cast5::new);
    }
}
