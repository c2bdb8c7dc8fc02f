//! SEED (RFC 4269, section 2), with the S-boxes and the sums of G merged into four tables
//! of 256 words.
//!
//! **Not constant-time.** Which table line is loaded depends on key and data,
//! so another process on the same core can learn about both from the cache.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;

use zeroize::Zeroize;

use super::{Block, BlockCipher, scan};

const ROUNDS: usize = 16;

/// Blocks worked on together, so that one waits for its loads while another
/// computes.
const LANES: usize = 8;

/// SEED with a key of 128 bits.
pub(crate) struct Seed {
    round_keys: [[u32; 2]; ROUNDS],
}

impl Seed {
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
        let pairs = self.round_keys.as_chunks::<2>().0;
        for nth in 0..pairs.len() {
            let keys = if ENCRYPT {
                pairs[nth]
            } else {
                let [first, second] = pairs[pairs.len() - 1 - nth];
                [second, first]
            };
            for [a, b, c, d] in &mut lanes {
                let sum = f([*c, *d], keys[0]);
                *a ^= sum[0];
                *b ^= sum[1];
            }
            for [a, b, c, d] in &mut lanes {
                let sum = f([*a, *b], keys[1]);
                *c ^= sum[0];
                *d ^= sum[1];
            }
        }
        for (block, [a, b, c, d]) in blocks.iter_mut().zip(lanes) {
            // The last round does not swap.
            for (bytes, word) in block.as_chunks_mut().0.iter_mut().zip([c, d, a, b]) {
                *bytes = word.to_be_bytes();
            }
        }
    }
}

impl BlockCipher<16> for Seed {
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

impl Drop for Seed {
    fn drop(&mut self) {
        self.round_keys.as_flattened_mut().zeroize();
    }
}

/// RFC 4269, section 2.3, for a key of 16 bytes.
fn round_keys(key: &[u8]) -> [[u32; 2]; ROUNDS] {
    let mut halves = [0, 1].map(|i| u64::from_be_bytes(key.as_chunks().0[i]));
    let mut round_keys = [[0; 2]; ROUNDS];
    let mut constant = 0x9e37_79b9_u32;
    for (i, round_key) in round_keys.iter_mut().enumerate() {
        let [[a, b], [c, d]] = halves.map(|half| [(half >> 32) as u32, half as u32]);
        *round_key = [
            slow_g(a.wrapping_add(c).wrapping_sub(constant)),
            slow_g(b.wrapping_sub(d).wrapping_add(constant)),
        ];
        constant = constant.rotate_left(1);
        if i % 2 == 0 {
            halves[0] = halves[0].rotate_right(8);
        } else {
            halves[1] = halves[1].rotate_left(8);
        }
    }
    halves.zeroize();
    round_keys
}

/// The function G in constant time.
fn slow_g(x: u32) -> u32 {
    let mut sum = 0;
    for (i, x) in x.to_le_bytes().into_iter().enumerate() {
        let y = scan::look_up(&SBOXES[i % 2], x);
        sum ^= u32::from_ne_bytes([y; 4]) & MASKS.rotate_right(8 * i as u32);
    }
    sum
}

/// m₀ … m₃ of G, m₀ the lowest byte.
const MASKS: u32 = 0x3fcf_f3fc;

/// The round function F.
#[inline(always)]
fn f([c, d]: [u32; 2], key: [u32; 2]) -> [u32; 2] {
    let c = c ^ key[0];
    let x = g(c ^ d ^ key[1]);
    let y = g(x.wrapping_add(c));
    let z = g(x.wrapping_add(y));
    [y.wrapping_add(z), z]
}

/// The function G.
#[inline(always)]
fn g(x: u32) -> u32 {
    let [a, b, c, d] = x.to_le_bytes().map(usize::from);
    TABLES[0][a] ^ TABLES[1][b] ^ TABLES[2][c] ^ TABLES[3][d]
}

/// SS₀ … SS₃: per byte of G's input, the lowest first.
static TABLES: [[u32; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 4 {
        let mut x = 0;
        while x < 256 {
            let s = SBOXES[byte % 2][x];
            let masks = MASKS.rotate_right(8 * byte as u32);
            tables[byte][x] = u32::from_ne_bytes([s; 4]) & masks;
            x += 1;
        }
        byte += 1;
    }
    tables
};

/// S₁ and S₂: affine maps of x²⁴⁷ and x²⁵¹.
static SBOXES: [[u8; 256]; 2] = {
    /// The columns of A⁽¹⁾ and A⁽²⁾, that of the lowest bit first.
    const COLUMNS: [[u8; 8]; 2] = [
        [0x2c, 0xd0, 0x69, 0xc2, 0x41, 0x44, 0x58, 0xe2],
        [0xd0, 0x2a, 0xe1, 0x2c, 0x21, 0x30, 0xa2, 0x6c],
    ];
    let mut sboxes = [[0; 256]; 2];
    let mut x = 0;
    while x < 256 {
        sboxes[0][x] = 169 ^ product(COLUMNS[0], power(x as u8, 247));
        sboxes[1][x] = 56 ^ product(COLUMNS[1], power(x as u8, 251));
        x += 1;
    }
    sboxes
};

const fn product(columns: [u8; 8], x: u8) -> u8 {
    let mut sum = 0;
    let mut bit = 0;
    while bit < 8 {
        sum ^= columns[bit] & (x >> bit & 1).wrapping_neg();
        bit += 1;
    }
    sum
}

const fn power(x: u8, exponent: u8) -> u8 {
    let mut power = 1;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        power = field_mul(power, power);
        if exponent >> bit & 1 == 1 {
            power = field_mul(power, x);
        }
    }
    power
}

/// The product in GF(2⁸) modulo x⁸ + x⁶ + x⁵ + x + 1.
const fn field_mul(a: u8, b: u8) -> u8 {
    let mut product = 0_u8;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        product = product << 1 ^ 0x63 & (product >> 7).wrapping_neg();
        product ^= a & (b >> bit & 1).wrapping_neg();
    }
    product
}

#[cfg(test)]
mod tests {
    use super::{SBOXES, Seed};
    use crate::block::tests;
    use crate::reference;

    /// The ends of S₁ and S₂ as RFC 4269, appendix A, prints them.
    #[test]
    fn sboxes_are_the_standards_tables() {
        assert_eq!(SBOXES[0][..8], [169, 133, 214, 211, 84, 29, 172, 37]);
        assert_eq!(SBOXES[1][..8], [56, 232, 45, 166, 207, 222, 179, 184]);
        assert_eq!((SBOXES[0][255], SBOXES[1][255]), (154, 183));
    }

    #[test]
    fn known_answers() {
        tests::known_answers::<reference::Seed, _, 16>("seed", Seed::new);
    }

    #[test]
    fn equals_the_reference() {
        tests::equals_reference::<reference::Seed, _, 16>(&[16], Seed::new);
    }
}
