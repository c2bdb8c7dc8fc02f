//! ARIA (RFC 5794), by words.
//!
//! The diffusion layer A is, over the four words of a block,
//!
//! ```text
//! A = words · bytes · words · within
//! ```
//!
//! where `within` replaces each byte of a word by the sum of the other three,
//! `words` adds whole words, and `bytes` permutes the bytes of three of them.
//! `within` merges with the S-boxes into tables of 256 words, one a place and a
//! kind of round.
//!
//! **Not constant-time.** Which table line is loaded depends on key and data,
//! so another process on the same core can learn about both from the cache.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;
pub(crate) mod sbox;

use zeroize::Zeroize;

use super::{Block, BlockCipher, scan};

/// Blocks worked on together, so that one waits for its loads while another
/// computes.
const LANES: usize = 4;

/// Round keys of the longest key.
const MOST_KEYS: usize = 17;

/// A block, or a round key, as words.
type Words = [u32; 4];

/// ARIA with a key of 128, 192 or 256 bits.
pub(crate) struct Aria {
    encryption: [Words; MOST_KEYS],
    decryption: [Words; MOST_KEYS],
    keys: usize,
}

impl Aria {
    /// The cipher under a key of 16, 24 or 32 bytes, section 2.2.
    pub(crate) fn new(key: &[u8]) -> Self {
        const CONSTANTS: [u128; 3] = [
            0x517c_c1b7_2722_0a94_fe13_abe8_fa9a_6ee0,
            0x6db1_4acc_9e21_c820_ff28_b1d5_ef5d_e2b0,
            0xdb92_371d_2126_e970_0324_9775_04e8_c90e,
        ];
        let mut padded = [0; 32];
        padded[..key.len()].copy_from_slice(key);
        let [left, right] = [0, 1].map(|i| u128::from_be_bytes(padded.as_chunks().0[i]));
        let longer = (key.len() - 16) / 8;
        let constant = |i: usize| split(CONSTANTS[(longer + i) % 3]);
        let mut w = [left, 0, 0, 0];
        let odd = [&sbox::SB1, &sbox::SB2, &SB3, &SB4];
        let even = [&SB3, &SB4, &sbox::SB1, &sbox::SB2];
        w[1] = join(slow_round(odd, split(w[0]), constant(0))) ^ right;
        w[2] = join(slow_round(even, split(w[1]), constant(1))) ^ w[0];
        w[3] = join(slow_round(odd, split(w[2]), constant(2))) ^ w[1];

        let keys = 13 + 2 * longer;
        let rotations = [19, 31, 128 - 61, 128 - 31, 128 - 19];
        let encryption: [Words; MOST_KEYS] = std::array::from_fn(|i| {
            let next = w[(i + 1) % 4];
            split(if i % 4 == 3 {
                w[3] ^ next.rotate_right(rotations[i / 4])
            } else {
                w[i % 4] ^ next.rotate_right(rotations[i / 4])
            })
        });
        let mut decryption = encryption;
        decryption[..keys].reverse();
        for key in &mut decryption[1..keys - 1] {
            *key = diffuse(*key);
        }
        padded.zeroize();
        w.zeroize();
        Self {
            encryption,
            decryption,
            keys,
        }
    }

    #[inline(always)]
    fn crypt(keys: &[Words], blocks: &mut [Block]) {
        let (groups, rest) = blocks.as_chunks_mut::<LANES>();
        for group in groups {
            crypt_lanes(keys, group);
        }
        for block in rest {
            crypt_lanes(keys, std::array::from_mut(block));
        }
    }
}

impl BlockCipher<16> for Aria {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        Self::crypt(&self.encryption[..self.keys], blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        Self::crypt(&self.decryption[..self.keys], blocks);
    }
}

impl Drop for Aria {
    fn drop(&mut self) {
        self.encryption.as_flattened_mut().zeroize();
        self.decryption.as_flattened_mut().zeroize();
    }
}

/// Section 2.3: an even number of rounds, the last without diffusion, and a key.
#[inline(always)]
fn crypt_lanes<const N: usize>(keys: &[Words], blocks: &mut [Block; N]) {
    let mut lanes = blocks.map(|block| split(u128::from_be_bytes(block)));
    let (pairs, last) = keys.as_chunks::<2>();
    let (final_pair, pairs) = pairs.split_last().expect("12 rounds at least");
    for pair in pairs {
        for lane in &mut lanes {
            *lane = odd_round(*lane, pair[0]);
        }
        for lane in &mut lanes {
            *lane = even_round(*lane, pair[1]);
        }
    }
    for (lane, block) in lanes.iter().zip(blocks) {
        let lane = odd_round(*lane, final_pair[0]);
        let words = add(substitute_even(add(lane, final_pair[1])), last[0]);
        *block = join(words).to_be_bytes();
    }
}

/// FO or FE of section 2.4.1, in constant time.
fn slow_round(sboxes: [&[u8; 256]; 4], x: Words, key: Words) -> Words {
    diffuse(add(x, key).map(|word| {
        let mut bytes = word.to_be_bytes();
        for (byte, sbox) in bytes.iter_mut().zip(sboxes) {
            *byte = scan::look_up(sbox, *byte);
        }
        u32::from_be_bytes(bytes)
    }))
}

/// FO of section 2.4.1.
#[inline(always)]
fn odd_round(x: Words, key: Words) -> Words {
    substitute_and_spread(&ODD, add(x, key))
}

/// FE of section 2.4.1.
#[inline(always)]
fn even_round(x: Words, key: Words) -> Words {
    substitute_and_spread(&EVEN, add(x, key))
}

/// SL2 of section 2.4.2.
#[inline(always)]
fn substitute_even(x: Words) -> Words {
    x.map(|word| {
        let [a, b, c, d] = word.to_be_bytes().map(usize::from);
        u32::from_be_bytes([SB3[a], SB4[b], sbox::SB1[c], sbox::SB2[d]])
    })
}

/// A of section 2.4.3.
fn diffuse(x: Words) -> Words {
    spread(x.map(|word| {
        let sum = word ^ word.rotate_left(8) ^ word.rotate_left(16) ^ word.rotate_left(24);
        word ^ sum
    }))
}

/// A without `within`.
#[inline(always)]
fn spread(x: Words) -> Words {
    let [a, b, c, d] = add_words(x);
    let b = (b << 8 & 0xff00_ff00) | (b >> 8 & 0x00ff_00ff);
    add_words([a, b, c.rotate_right(16), d.swap_bytes()])
}

/// Each word becomes the sum of three: all but d, b, c and a, in this order.
#[inline(always)]
fn add_words([a, b, c, d]: Words) -> Words {
    let (ab, cd) = (a ^ b, c ^ d);
    [ab ^ c, a ^ cd, ab ^ d, b ^ cd]
}

/// A after the S-boxes. Word by word: left to itself, the compiler gathers the
/// bytes in vectors, which takes longer.
#[inline(always)]
fn substitute_and_spread(tables: &[[u32; 256]; 4], [a, b, c, d]: Words) -> Words {
    spread([
        look_up(tables, a),
        look_up(tables, b),
        look_up(tables, c),
        look_up(tables, d),
    ])
}

#[inline(always)]
fn look_up(tables: &[[u32; 256]; 4], word: u32) -> u32 {
    let byte = |shift: u32| (word >> shift) as usize & 255;
    tables[0][byte(24)] ^ tables[1][byte(16)] ^ tables[2][byte(8)] ^ tables[3][byte(0)]
}

#[inline(always)]
fn add(x: Words, y: Words) -> Words {
    [x[0] ^ y[0], x[1] ^ y[1], x[2] ^ y[2], x[3] ^ y[3]]
}

#[inline(always)]
fn split(x: u128) -> Words {
    [
        (x >> 96) as u32,
        (x >> 64) as u32,
        (x >> 32) as u32,
        x as u32,
    ]
}

#[inline(always)]
fn join(x: Words) -> u128 {
    x.iter()
        .fold(0, |number, &word| number << 32 | u128::from(word))
}

const SB3: [u8; 256] = inverse(&sbox::SB1);
const SB4: [u8; 256] = inverse(&sbox::SB2);

/// `within` of SL1, per byte of a word.
static ODD: [[u32; 256]; 4] = tables([&sbox::SB1, &sbox::SB2, &SB3, &SB4]);

/// `within` of SL2, per byte of a word.
static EVEN: [[u32; 256]; 4] = tables([&SB3, &SB4, &sbox::SB1, &sbox::SB2]);

const fn tables(sboxes: [&[u8; 256]; 4]) -> [[u32; 256]; 4] {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 4 {
        let mut x = 0;
        while x < 256 {
            let mut others = [sboxes[byte][x]; 4];
            others[byte] = 0;
            tables[byte][x] = u32::from_be_bytes(others);
            x += 1;
        }
        byte += 1;
    }
    tables
}

const fn inverse(sbox: &[u8; 256]) -> [u8; 256] {
    let mut inverse = [0; 256];
    let mut x = 0;
    while x < 256 {
        inverse[sbox[x] as usize] = x as u8;
        x += 1;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::Aria;
    use crate::block::tests;
    use crate::reference;

    #[test]
    fn known_answers() {
        tests::known_answers::<reference::Aria, _, 16>("aria", Aria::new);
    }

    #[test]
    fn equals_the_reference() {
        tests::equals_reference::<reference::Aria, _, 16>(&[16, 24, 32], Aria::new);
    }

    #[test]
    fn agrees_with_rustcrypto() {
        tests::agrees_with::<aria::Aria128, _, 16>(&[16], Aria::new);
        tests::agrees_with::<aria::Aria192, _, 16>(&[24], Aria::new);
        tests::agrees_with::<aria::Aria256, _, 16>(&[32], Aria::new);
    }
}
