//! Twofish as in Schneier and others, "Twofish: A 128-Bit Block Cipher"
//! (1998), section 4: h from permutations and a matrix product for every
//! word, no tables beyond those of the paper.

use super::{ReferenceCipher, gf256_mul};

/// Section 4.3.5: t₀ … t₃ of q₀, then of q₁.
const T: [[[u8; 16]; 4]; 2] = [
    [
        [8, 1, 7, 13, 6, 15, 3, 2, 0, 11, 5, 9, 14, 12, 10, 4],
        [14, 12, 11, 8, 1, 2, 3, 5, 15, 4, 10, 6, 7, 0, 9, 13],
        [11, 10, 5, 14, 6, 13, 9, 0, 12, 8, 15, 3, 2, 4, 7, 1],
        [13, 7, 15, 4, 1, 2, 6, 14, 9, 11, 3, 0, 8, 5, 12, 10],
    ],
    [
        [2, 8, 11, 13, 15, 7, 6, 14, 3, 1, 9, 4, 0, 10, 12, 5],
        [1, 14, 2, 11, 4, 12, 3, 7, 6, 13, 10, 5, 15, 9, 0, 8],
        [4, 12, 7, 5, 1, 6, 9, 10, 0, 14, 13, 8, 2, 11, 3, 15],
        [11, 9, 5, 1, 12, 3, 13, 14, 6, 4, 7, 15, 2, 0, 8, 10],
    ],
];

/// Section 4.3.2, and its modulus x⁸ + x⁶ + x⁵ + x³ + 1.
const MDS: [[u8; 4]; 4] = [
    [0x01, 0xef, 0x5b, 0x5b],
    [0x5b, 0xef, 0xef, 0x01],
    [0xef, 0x5b, 0x01, 0xef],
    [0xef, 0x01, 0xef, 0x5b],
];
const MDS_MODULUS: u16 = 0x169;

/// Section 4.3, and its modulus x⁸ + x⁶ + x³ + x² + 1.
const RS: [[u8; 8]; 4] = [
    [0x01, 0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e],
    [0xa4, 0x56, 0x82, 0xf3, 0x1e, 0xc6, 0x68, 0xe5],
    [0x02, 0xa1, 0xfc, 0xc1, 0x47, 0xae, 0x3d, 0x19],
    [0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e, 0x03],
];
const RS_MODULUS: u16 = 0x14d;

/// Figure 4: which q a byte of X passes before key word 3, 2, 1, 0 of L is
/// added, and after the last.
const Q_ORDER: [[usize; 4]; 5] = [
    [1, 0, 0, 1],
    [1, 1, 0, 0],
    [0, 1, 0, 1],
    [0, 0, 1, 1],
    [1, 0, 1, 0],
];

/// Twofish with a key of 128, 192 or 256 bits.
pub struct Twofish {
    /// K₀ … K₃₉: whitening, then two words a round.
    k: [u32; 40],
    s: Vec<[u8; 4]>,
}

impl ReferenceCipher for Twofish {
    /// Section 4.3.
    fn new(key: &[u8]) -> Self {
        let words: Vec<[u8; 4]> = key
            .chunks_exact(4)
            .map(|word| std::array::from_fn(|i| word[i]))
            .collect();
        let even: Vec<_> = words.iter().copied().step_by(2).collect();
        let odd: Vec<_> = words.iter().copied().skip(1).step_by(2).collect();
        let mut s: Vec<[u8; 4]> = key
            .chunks_exact(8)
            .map(|m| RS.map(|row| product(&row, m, RS_MODULUS)))
            .collect();
        s.reverse();
        let mut k = [0; 40];
        for i in 0..20 {
            let a = h(2 * i * 0x0101_0101, &even);
            let b = h((2 * i + 1) * 0x0101_0101, &odd).rotate_left(8);
            let at = 2 * i as usize;
            k[at] = a.wrapping_add(b);
            k[at + 1] = a.wrapping_add(b).wrapping_add(b).rotate_left(9);
        }
        Self { k, s }
    }

    /// Section 4.
    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16] {
        let p = words(plain);
        let mut r: [u32; 4] = std::array::from_fn(|i| p[i] ^ self.k[i]);
        for round in 0..16 {
            let (f0, f1) = self.f(r[0], r[1], round);
            r = [
                (r[2] ^ f0).rotate_right(1),
                r[3].rotate_left(1) ^ f1,
                r[0],
                r[1],
            ];
        }
        bytes(std::array::from_fn(|i| r[(i + 2) % 4] ^ self.k[i + 4]))
    }

    /// Section 4: the rounds backwards.
    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16] {
        let c = words(cipher);
        let mut r: [u32; 4] = std::array::from_fn(|i| c[(i + 2) % 4] ^ self.k[(i + 2) % 4 + 4]);
        for round in (0..16).rev() {
            let (f0, f1) = self.f(r[2], r[3], round);
            r = [
                r[2],
                r[3],
                r[0].rotate_left(1) ^ f0,
                (r[1] ^ f1).rotate_right(1),
            ];
        }
        bytes(std::array::from_fn(|i| r[i] ^ self.k[i]))
    }
}

impl Twofish {
    /// Section 4.1.
    fn f(&self, r0: u32, r1: u32, round: usize) -> (u32, u32) {
        let t0 = h(r0, &self.s);
        let t1 = h(r1.rotate_left(8), &self.s);
        let sum = t0.wrapping_add(t1);
        (
            sum.wrapping_add(self.k[2 * round + 8]),
            sum.wrapping_add(t1).wrapping_add(self.k[2 * round + 9]),
        )
    }
}

/// Section 4.3.2: `l` is L₀ … Lₖ₋₁.
fn h(x: u32, l: &[[u8; 4]]) -> u32 {
    let mut y = x.to_le_bytes();
    for stage in (0..l.len()).rev() {
        let order = Q_ORDER[3 - stage];
        y = std::array::from_fn(|i| q(order[i], y[i]) ^ l[stage][i]);
    }
    y = std::array::from_fn(|i| q(Q_ORDER[4][i], y[i]));
    u32::from_le_bytes(MDS.map(|row| product(&row, &y, MDS_MODULUS)))
}

/// Section 4.3.5.
fn q(which: usize, x: u8) -> u8 {
    let t = &T[which];
    let (a0, b0) = (x >> 4, x & 15);
    let (a1, b1) = half(a0, b0);
    let (a2, b2) = (t[0][usize::from(a1)], t[1][usize::from(b1)]);
    let (a3, b3) = half(a2, b2);
    let (a4, b4) = (t[2][usize::from(a3)], t[3][usize::from(b3)]);
    b4 << 4 | a4
}

fn half(a: u8, b: u8) -> (u8, u8) {
    let rotated = b >> 1 | b << 3 & 15;
    (a ^ b, a ^ rotated ^ a << 3 & 15)
}

fn product(row: &[u8], column: &[u8], modulus: u16) -> u8 {
    row.iter()
        .zip(column)
        .fold(0, |sum, (&a, &b)| sum ^ gf256_mul(a, b, modulus))
}

fn words(bytes: [u8; 16]) -> [u32; 4] {
    std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|j| bytes[4 * i + j])))
}

fn bytes(words: [u32; 4]) -> [u8; 16] {
    std::array::from_fn(|i| words[i / 4].to_le_bytes()[i % 4])
}
