//! SEED as in RFC 4269, section 2: S-boxes from powers and a matrix of bits, G by bytes.

use super::{ReferenceCipher, gf256_mul};

/// A⁽¹⁾ and A⁽²⁾ with the constants that are added, by rows, the
/// highest bit and column first.
const AFFINE: [([u8; 8], u8); 2] = [
    (
        [
            0b1000_1010,
            0b1111_1110,
            0b1000_0101,
            0b0100_0010,
            0b0100_0101,
            0b0010_0001,
            0b1000_1000,
            0b0001_0100,
        ],
        169,
    ),
    (
        [
            0b0100_0101,
            0b1000_0101,
            0b1111_1110,
            0b0010_0001,
            0b1000_1010,
            0b1000_1000,
            0b0100_0010,
            0b0001_0100,
        ],
        56,
    ),
];

/// SEED with a key of 128 bits.
pub struct Seed {
    keys: Vec<(u32, u32)>,
}

impl ReferenceCipher for Seed {
    /// The key schedule.
    fn new(key: &[u8]) -> Self {
        let word = |i: usize| u32::from_be_bytes(std::array::from_fn(|j| key[4 * i + j]));
        let [mut a, mut b, mut c, mut d] = [0, 1, 2, 3].map(word);
        let mut keys = Vec::new();
        for i in 1..=16 {
            let constant = 0x9e37_79b9_u32.rotate_left(i - 1);
            keys.push((
                g(a.wrapping_add(c).wrapping_sub(constant)),
                g(b.wrapping_sub(d).wrapping_add(constant)),
            ));
            if i % 2 == 1 {
                (a, b) = (a >> 8 | b << 24, b >> 8 | a << 24);
            } else {
                (c, d) = (c << 8 | d >> 24, d << 8 | c >> 24);
            }
        }
        Self { keys }
    }

    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16] {
        crypt(plain, self.keys.iter())
    }

    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16] {
        crypt(cipher, self.keys.iter().rev())
    }
}

fn crypt<'a>(block: [u8; 16], keys: impl Iterator<Item = &'a (u32, u32)>) -> [u8; 16] {
    let number = u128::from_be_bytes(block);
    let (mut l, mut r) = ((number >> 64) as u64, number as u64);
    for &key in keys {
        (l, r) = (r, l ^ f(r, key));
    }
    (u128::from(r) << 64 | u128::from(l)).to_be_bytes()
}

/// The round function F.
fn f(half: u64, (k0, k1): (u32, u32)) -> u64 {
    let (c, d) = ((half >> 32) as u32 ^ k0, half as u32 ^ k1);
    let inner = g(c ^ d);
    let middle = g(inner.wrapping_add(c));
    let d = g(middle.wrapping_add(inner));
    let c = middle.wrapping_add(d);
    u64::from(c) << 32 | u64::from(d)
}

/// The function G.
fn g(x: u32) -> u32 {
    const M: [u8; 4] = [0xfc, 0xf3, 0xcf, 0x3f];
    let [x0, x1, x2, x3] = x.to_le_bytes();
    let y = [s(0, x0), s(1, x1), s(0, x2), s(1, x3)];
    let z = [0, 1, 2, 3].map(|i| (0..4).fold(0, |z, j| z ^ y[j] & M[(i + j) % 4]));
    u32::from_le_bytes(z)
}

/// S₁ and S₂.
fn s(which: usize, x: u8) -> u8 {
    let exponent = [247, 251][which];
    let power = (0..exponent).fold(1, |power, _| gf256_mul(power, x, 0x163));
    let (rows, constant) = AFFINE[which];
    let bits = rows.iter().fold(0, |bits, row| {
        bits << 1 | (row & power).count_ones() as u8 & 1
    });
    bits ^ constant
}
