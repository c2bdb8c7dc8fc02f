//! Kuznyechik (GOST R 34.12-2015, RFC 7801), with S and L merged into sixteen
//! tables of 256 blocks.
//!
//! **Not constant-time.** Which table line is loaded depends on key and data,
//! so another process on the same core can learn about both from the cache.

pub(crate) mod pi;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;

use std::hint::black_box;

use zeroize::Zeroize;

use super::{Block, BlockCipher, scan};

/// Blocks worked on together, so that one waits for its loads while another
/// computes.
const LANES: usize = 6;

/// Round keys, one more than there are rounds.
const KEYS: usize = 10;

/// Kuznyechik with a key of 256 bits.
pub(crate) struct Kuznyechik {
    round_keys: [u128; KEYS],
    /// For decryption: L⁻¹ of all but the first.
    inverse_keys: [u128; KEYS],
}

impl Kuznyechik {
    /// The cipher under a key of 32 bytes: RFC 7801, section 4.
    pub(crate) fn new(key: &[u8]) -> Self {
        let round_keys = round_keys(key);
        let mut inverse_keys = round_keys;
        for key in &mut inverse_keys[1..] {
            *key = look_up(&BACKWARD, substitute(*key, &pi::PI));
        }
        Self {
            round_keys,
            inverse_keys,
        }
    }

    #[inline(always)]
    fn encrypt_lanes<const N: usize>(&self, blocks: &mut [Block; N]) {
        let mut lanes = blocks.map(u128::from_le_bytes);
        for key in &self.round_keys[..KEYS - 1] {
            for lane in &mut lanes {
                *lane = look_up(&FORWARD, *lane ^ key);
            }
        }
        *blocks = lanes.map(|lane| (lane ^ self.round_keys[KEYS - 1]).to_le_bytes());
    }

    /// L⁻¹ and S⁻¹ stand in the wrong order for a table, so L⁻¹ changes places
    /// with the addition of the key that it has been applied to; the first one
    /// comes out of its table by going through S before.
    #[inline(always)]
    fn decrypt_lanes<const N: usize>(&self, blocks: &mut [Block; N]) {
        let [first, second, others @ ..] = &self.inverse_keys;
        let mut lanes = [0; N];
        for (lane, block) in lanes.iter_mut().zip(&*blocks) {
            let block = u128::from_le_bytes(*block);
            *lane = look_up(&BACKWARD, substitute(block, &pi::PI));
        }
        for key in others.iter().rev() {
            for lane in &mut lanes {
                *lane = look_up(&BACKWARD, *lane ^ key);
            }
        }
        for (lane, block) in lanes.iter().zip(blocks) {
            *block = (substitute(lane ^ second, &PI_INVERSE) ^ first).to_le_bytes();
        }
    }
}

impl BlockCipher<16> for Kuznyechik {
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

impl Drop for Kuznyechik {
    fn drop(&mut self) {
        self.round_keys.zeroize();
        self.inverse_keys.zeroize();
    }
}

/// RFC 7801, section 4, for a key of 32 bytes.
fn round_keys(key: &[u8]) -> [u128; KEYS] {
    let mut round_keys = [0; KEYS];
    let [first, second] = [0, 1].map(|half| key.as_chunks::<16>().0[half]);
    let (mut a1, mut a0) = (u128::from_le_bytes(first), u128::from_le_bytes(second));
    for (i, pair) in round_keys.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        if i > 0 {
            for constant in 8 * i - 7..=8 * i {
                let constant = linear((constant as u128) << 120);
                (a1, a0) = (a0 ^ slow_round(a1 ^ constant), a1);
            }
        }
        *pair = [a1, a0];
    }
    a1.zeroize();
    a0.zeroize();
    round_keys
}

/// L of what S makes of `x`, in constant time.
fn slow_round(x: u128) -> u128 {
    /// L of every single bit.
    static IMAGES: [u128; 128] = {
        let mut images = [0; 128];
        let mut bit = 0;
        while bit < 128 {
            images[bit] = linear(1 << bit);
            bit += 1;
        }
        images
    };
    let bytes = x.to_le_bytes().map(|byte| scan::look_up(&pi::PI, byte));
    let substituted = u128::from_le_bytes(bytes);
    IMAGES.iter().enumerate().fold(0, |sum, (bit, image)| {
        // Opaque, or the compiler branches around the load.
        let mask = black_box((substituted >> bit & 1).wrapping_neg());
        sum ^ image & mask
    })
}

#[inline(always)]
fn look_up(tables: &[[u128; 256]; 16], x: u128) -> u128 {
    let bytes = x.to_le_bytes();
    let mut sum = 0;
    for i in 0..16 {
        sum ^= tables[i][usize::from(bytes[i])];
    }
    sum
}

#[inline(always)]
fn substitute(x: u128, sbox: &[u8; 256]) -> u128 {
    let halves = [x as u64, (x >> 64) as u64].map(|half| {
        let mut y = 0;
        for shift in (0..64).step_by(8) {
            y |= u64::from(sbox[(half >> shift) as usize & 255]) << shift;
        }
        y
    });
    u128::from(halves[1]) << 64 | u128::from(halves[0])
}

/// L of what S makes of byte i.
static FORWARD: [[u128; 256]; 16] = tables(&pi::PI, false);

/// L⁻¹ of what S⁻¹ makes of byte i.
static BACKWARD: [[u128; 256]; 16] = tables(&PI_INVERSE, true);

const PI_INVERSE: [u8; 256] = {
    let mut inverse = [0; 256];
    let mut x = 0;
    while x < 256 {
        inverse[pi::PI[x] as usize] = x as u8;
        x += 1;
    }
    inverse
};

const fn tables(sbox: &[u8; 256], inverse: bool) -> [[u128; 256]; 16] {
    let mut tables = [[0; 256]; 16];
    let mut byte = 0;
    while byte < 16 {
        // By the images of single bits, because L is linear.
        let mut images = [0; 256];
        let mut y = 1;
        while y < 256 {
            let rest = y & (y - 1);
            images[y] = if rest != 0 {
                images[rest] ^ images[y ^ rest]
            } else if inverse {
                linear_inverse((y as u128) << (8 * byte))
            } else {
                linear((y as u128) << (8 * byte))
            };
            y += 1;
        }
        let mut x = 0;
        while x < 256 {
            tables[byte][x] = images[sbox[x] as usize];
            x += 1;
        }
        byte += 1;
    }
    tables
}

/// L of RFC 7801, section 4: R sixteen times.
const fn linear(mut a: u128) -> u128 {
    let mut i = 0;
    while i < 16 {
        a = a << 8 | feedback(a) as u128;
        i += 1;
    }
    a
}

const fn linear_inverse(mut a: u128) -> u128 {
    let mut i = 0;
    while i < 16 {
        let rotated = a.rotate_right(8);
        a = rotated << 8 >> 8 | (feedback(rotated) as u128) << 120;
        i += 1;
    }
    a
}

/// ℓ of RFC 7801, section 4; a₁₅ is the lowest byte.
const fn feedback(a: u128) -> u8 {
    const FACTORS: [u8; 16] = [
        148, 32, 133, 16, 194, 192, 1, 251, 1, 192, 194, 16, 133, 32, 148, 1,
    ];
    let mut sum = 0;
    let mut i = 0;
    while i < 16 {
        sum ^= field_mul((a >> (8 * i)) as u8, FACTORS[i]);
        i += 1;
    }
    sum
}

/// The product in GF(2⁸) modulo x⁸ + x⁷ + x⁶ + x + 1.
const fn field_mul(a: u8, b: u8) -> u8 {
    let mut product = 0_u8;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        product = product << 1 ^ 0xc3 & (product >> 7).wrapping_neg();
        product ^= a & (b >> bit & 1).wrapping_neg();
    }
    product
}

#[cfg(test)]
mod tests {
    use super::Kuznyechik;
    use crate::block::tests;
    use crate::reference;

    #[test]
    fn known_answers() {
        let keyed = Kuznyechik::new;
        tests::known_answers::<reference::Kuznyechik, _, 16>("kuznyechik", keyed);
    }

    #[test]
    fn equals_the_reference() {
        tests::equals_reference::<reference::Kuznyechik, _, 16>(&[32], Kuznyechik::new);
    }

    #[test]
    fn agrees_with_rustcrypto() {
        tests::agrees_with::<kuznyechik::Kuznyechik, _, 16>(&[32], Kuznyechik::new);
    }
}
