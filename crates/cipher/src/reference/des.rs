//! DES and Triple DES as in FIPS 46-3: every table of the standard, applied
//! bit by bit.

use super::ReferenceCipher;

/// Appendix 1: S₁ … S₈, by row and column.
pub(crate) const SBOXES: [[[u8; 16]; 4]; 8] = [
    [
        [14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7],
        [0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11, 9, 5, 3, 8],
        [4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0],
        [15, 12, 8, 2, 4, 9, 1, 7, 5, 11, 3, 14, 10, 0, 6, 13],
    ],
    [
        [15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10],
        [3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1, 10, 6, 9, 11, 5],
        [0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15],
        [13, 8, 10, 1, 3, 15, 4, 2, 11, 6, 7, 12, 0, 5, 14, 9],
    ],
    [
        [10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8],
        [13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5, 14, 12, 11, 15, 1],
        [13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7],
        [1, 10, 13, 0, 6, 9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12],
    ],
    [
        [7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15],
        [13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2, 12, 1, 10, 14, 9],
        [10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4],
        [3, 15, 0, 6, 10, 1, 13, 8, 9, 4, 5, 11, 12, 7, 2, 14],
    ],
    [
        [2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9],
        [14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15, 10, 3, 9, 8, 6],
        [4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14],
        [11, 8, 12, 7, 1, 14, 2, 13, 6, 15, 0, 9, 10, 4, 5, 3],
    ],
    [
        [12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11],
        [10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13, 14, 0, 11, 3, 8],
        [9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6],
        [4, 3, 2, 12, 9, 5, 15, 10, 11, 14, 1, 7, 6, 0, 8, 13],
    ],
    [
        [4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1],
        [13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5, 12, 2, 15, 8, 6],
        [1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2],
        [6, 11, 13, 8, 1, 4, 10, 7, 9, 5, 0, 15, 14, 2, 3, 12],
    ],
    [
        [13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7],
        [1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6, 11, 0, 14, 9, 2],
        [7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8],
        [2, 1, 14, 7, 4, 10, 8, 13, 15, 12, 9, 0, 3, 5, 6, 11],
    ],
];

#[rustfmt::skip]
const IP: [usize; 64] = [
    58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4,
    62, 54, 46, 38, 30, 22, 14, 6, 64, 56, 48, 40, 32, 24, 16, 8,
    57, 49, 41, 33, 25, 17, 9, 1, 59, 51, 43, 35, 27, 19, 11, 3,
    61, 53, 45, 37, 29, 21, 13, 5, 63, 55, 47, 39, 31, 23, 15, 7,
];

#[rustfmt::skip]
const IP_INVERSE: [usize; 64] = [
    40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31,
    38, 6, 46, 14, 54, 22, 62, 30, 37, 5, 45, 13, 53, 21, 61, 29,
    36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27,
    34, 2, 42, 10, 50, 18, 58, 26, 33, 1, 41, 9, 49, 17, 57, 25,
];

#[rustfmt::skip]
const E: [usize; 48] = [
    32, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8, 9,
    8, 9, 10, 11, 12, 13, 12, 13, 14, 15, 16, 17,
    16, 17, 18, 19, 20, 21, 20, 21, 22, 23, 24, 25,
    24, 25, 26, 27, 28, 29, 28, 29, 30, 31, 32, 1,
];

#[rustfmt::skip]
const P: [usize; 32] = [
    16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10,
    2, 8, 24, 14, 32, 27, 3, 9, 19, 13, 30, 6, 22, 11, 4, 25,
];

#[rustfmt::skip]
const PC1: [usize; 56] = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18,
    10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
    63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22,
    14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4,
];

#[rustfmt::skip]
const PC2: [usize; 48] = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10,
    23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2,
    41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48,
    44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
];

/// Left shifts before each round's key.
const SHIFTS: [usize; 16] = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];

/// DES with a key of 64 bits, parity bits included and ignored.
pub struct Des {
    /// K₁ … K₁₆, a bit an element.
    round_keys: Vec<Vec<bool>>,
}

impl ReferenceCipher<8> for Des {
    fn new(key: &[u8]) -> Self {
        let chosen = choose(&bits(key), &PC1);
        let (mut c, mut d) = (chosen[..28].to_vec(), chosen[28..].to_vec());
        let round_keys = SHIFTS.iter().map(|&shift| {
            c.rotate_left(shift);
            d.rotate_left(shift);
            choose(&[&c[..], &d[..]].concat(), &PC2)
        });
        Self {
            round_keys: round_keys.collect(),
        }
    }

    fn encrypt(&self, plain: [u8; 8]) -> [u8; 8] {
        crypt(plain, self.round_keys.iter())
    }

    fn decrypt(&self, cipher: [u8; 8]) -> [u8; 8] {
        crypt(cipher, self.round_keys.iter().rev())
    }
}

/// Triple DES with two or three keys.
pub struct TripleDes([Des; 3]);

impl ReferenceCipher<8> for TripleDes {
    /// Keying options 1 and 2.
    fn new(key: &[u8]) -> Self {
        let third = if key.len() == 16 { 0 } else { 16 };
        Self([0, 8, third].map(|first| Des::new(&key[first..first + 8])))
    }

    fn encrypt(&self, plain: [u8; 8]) -> [u8; 8] {
        let [first, second, third] = &self.0;
        third.encrypt(second.decrypt(first.encrypt(plain)))
    }

    fn decrypt(&self, cipher: [u8; 8]) -> [u8; 8] {
        let [first, second, third] = &self.0;
        first.decrypt(second.encrypt(third.decrypt(cipher)))
    }
}

fn crypt<'a>(block: [u8; 8], keys: impl Iterator<Item = &'a Vec<bool>>) -> [u8; 8] {
    let permuted = choose(&bits(&block), &IP);
    let (mut l, mut r) = (permuted[..32].to_vec(), permuted[32..].to_vec());
    for key in keys {
        let next = add(&l, &f(&r, key));
        (l, r) = (r, next);
    }
    bytes(&choose(&[r, l].concat(), &IP_INVERSE))
}

fn f(r: &[bool], key: &[bool]) -> Vec<bool> {
    let sum = add(&choose(r, &E), key);
    let outputs = sum.chunks(6).zip(&SBOXES).flat_map(|(b, sbox)| {
        let row = number(&[b[0], b[5]]);
        let column = number(&b[1..5]);
        let output = sbox[row][column];
        (0..4).rev().map(move |i| output >> i & 1 == 1)
    });
    choose(&outputs.collect::<Vec<_>>(), &P)
}

fn choose(bits: &[bool], table: &[usize]) -> Vec<bool> {
    table.iter().map(|&place| bits[place - 1]).collect()
}

fn add(x: &[bool], y: &[bool]) -> Vec<bool> {
    x.iter().zip(y).map(|(x, y)| x ^ y).collect()
}

fn number(bits: &[bool]) -> usize {
    bits.iter().fold(0, |n, &bit| n << 1 | usize::from(bit))
}

fn bits(bytes: &[u8]) -> Vec<bool> {
    let places = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1 == 1));
    places.collect()
}

fn bytes(bits: &[bool]) -> [u8; 8] {
    std::array::from_fn(|i| number(&bits[8 * i..8 * i + 8]) as u8)
}
