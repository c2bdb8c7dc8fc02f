//! SM4 (GB/T 32907-2016), with τ and L merged into four tables of 256 words.
//!
//! **Not constant-time.** Which table line is loaded depends on key and data,
//! so another process on the same core can learn about both from the cache.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;
pub(crate) mod sbox;

use zeroize::Zeroize;

use super::{Block, BlockCipher, scan};

const ROUNDS: usize = 32;

/// Blocks worked on together, so that one waits for its loads while another
/// computes.
const LANES: usize = 8;

/// SM4 with a key of 128 bits.
pub(crate) struct Sm4 {
    round_keys: [u32; ROUNDS],
}

impl Sm4 {
    /// The cipher under a key of 16 bytes.
    pub(crate) fn new(key: &[u8]) -> Self {
        Self {
            round_keys: round_keys(key),
        }
    }

    #[inline(always)]
    fn crypt_lanes<const ENCRYPT: bool, const N: usize>(&self, blocks: &mut [Block; N]) {
        let mut lanes = blocks.map(|block| {
            let words = block.as_chunks().0;
            [0, 1, 2, 3].map(|i| u32::from_be_bytes(words[i]))
        });
        let quads = self.round_keys.as_chunks::<4>().0;
        for nth in 0..quads.len() {
            let keys = if ENCRYPT {
                quads[nth]
            } else {
                let [a, b, c, d] = quads[quads.len() - 1 - nth];
                [d, c, b, a]
            };
            for [a, b, c, d] in &mut lanes {
                *a ^= t(*b ^ *c ^ *d ^ keys[0]);
            }
            for [a, b, c, d] in &mut lanes {
                *b ^= t(*c ^ *d ^ *a ^ keys[1]);
            }
            for [a, b, c, d] in &mut lanes {
                *c ^= t(*d ^ *a ^ *b ^ keys[2]);
            }
            for [a, b, c, d] in &mut lanes {
                *d ^= t(*a ^ *b ^ *c ^ keys[3]);
            }
        }
        for (block, [a, b, c, d]) in blocks.iter_mut().zip(lanes) {
            for (bytes, word) in block.as_chunks_mut().0.iter_mut().zip([d, c, b, a]) {
                *bytes = word.to_be_bytes();
            }
        }
    }
}

impl BlockCipher<16> for Sm4 {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        let (groups, rest) = blocks.as_chunks_mut::<LANES>();
        for group in groups {
            self.crypt_lanes::<true, LANES>(group);
        }
        for block in rest {
            self.crypt_lanes::<true, 1>(std::array::from_mut(block));
        }
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        let (groups, rest) = blocks.as_chunks_mut::<LANES>();
        for group in groups {
            self.crypt_lanes::<false, LANES>(group);
        }
        for block in rest {
            self.crypt_lanes::<false, 1>(std::array::from_mut(block));
        }
    }
}

impl Drop for Sm4 {
    fn drop(&mut self) {
        self.round_keys.zeroize();
    }
}

/// Section 7.3, for a key of 16 bytes.
fn round_keys(key: &[u8]) -> [u32; ROUNDS] {
    const FK: [u32; 4] = [0xa3b1_bac6, 0x56aa_3350, 0x677d_9197, 0xb270_22dc];
    let words = key.as_chunks().0;
    let mut k: [u32; 4] = std::array::from_fn(|i| u32::from_be_bytes(words[i]) ^ FK[i]);
    let mut round_keys = [0; ROUNDS];
    for (i, round_key) in round_keys.iter_mut().enumerate() {
        let constant = u32::from_be_bytes([0, 1, 2, 3].map(|j| (7 * (4 * i + j)) as u8));
        let sum = k[1] ^ k[2] ^ k[3] ^ constant;
        let b = u32::from_be_bytes(sum.to_be_bytes().map(|a| scan::look_up(&sbox::SBOX, a)));
        *round_key = k[0] ^ b ^ b.rotate_left(13) ^ b.rotate_left(23);
        k = [k[1], k[2], k[3], *round_key];
    }
    k.zeroize();
    round_keys
}

/// T of section 6.2.
#[inline(always)]
fn t(x: u32) -> u32 {
    let [a, b, c, d] = x.to_be_bytes().map(usize::from);
    let [ta, tb, tc, td] = &TABLES;
    ta[a] ^ tb[b] ^ tc[c] ^ td[d]
}

/// Per byte of T's input, first to last: L of what the S-box makes of it.
static TABLES: [[u32; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut x = 0;
    while x < 256 {
        let b = (sbox::SBOX[x] as u32) << 24;
        let l = b ^ b.rotate_left(2) ^ b.rotate_left(10) ^ b.rotate_left(18) ^ b.rotate_left(24);
        let mut byte = 0;
        while byte < 4 {
            tables[byte][x] = l.rotate_right(8 * byte as u32);
            byte += 1;
        }
        x += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::Sm4;
    use crate::block::tests;
    use crate::reference;

    #[test]
    fn known_answers() {
        tests::known_answers::<reference::Sm4, _, 16>("sm4", Sm4::new);
    }

    #[test]
    fn equals_the_reference() {
        tests::equals_reference::<reference::Sm4, _, 16>(&[16], Sm4::new);
    }

    #[test]
    fn agrees_with_rustcrypto() {
        tests::agrees_with::<sm4::Sm4, _, 16>(&[16], Sm4::new);
    }
}
