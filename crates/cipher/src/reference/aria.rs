//! ARIA as in RFC 5794: substitution by bytes, diffusion by sums of bytes.

use super::ReferenceCipher;
use crate::block::aria::sbox::{SB1, SB2};

/// Section 2.2.
const C: [u128; 3] = [
    0x517c_c1b7_2722_0a94_fe13_abe8_fa9a_6ee0,
    0x6db1_4acc_9e21_c820_ff28_b1d5_ef5d_e2b0,
    0xdb92_371d_2126_e970_0324_9775_04e8_c90e,
];

/// Section 2.4.3: which bytes of the input make each byte of the output.
const DIFFUSION: [[usize; 7]; 16] = [
    [3, 4, 6, 8, 9, 13, 14],
    [2, 5, 7, 8, 9, 12, 15],
    [1, 4, 6, 10, 11, 12, 15],
    [0, 5, 7, 10, 11, 13, 14],
    [0, 2, 5, 8, 11, 14, 15],
    [1, 3, 4, 9, 10, 14, 15],
    [0, 2, 7, 9, 10, 12, 13],
    [1, 3, 6, 8, 11, 12, 13],
    [0, 1, 4, 7, 10, 13, 15],
    [0, 1, 5, 6, 11, 12, 14],
    [2, 3, 5, 6, 8, 13, 15],
    [2, 3, 4, 7, 9, 12, 14],
    [1, 2, 6, 7, 9, 11, 12],
    [0, 3, 6, 7, 8, 10, 13],
    [0, 3, 4, 5, 9, 11, 14],
    [1, 2, 4, 5, 8, 10, 15],
];

/// ARIA with a key of 128, 192 or 256 bits.
pub struct Aria {
    /// ek1 and so on.
    ek: Vec<u128>,
}

impl ReferenceCipher for Aria {
    /// Section 2.2.
    fn new(key: &[u8]) -> Self {
        let mut padded = [0; 32];
        padded[..key.len()].copy_from_slice(key);
        let [kl, kr] =
            [0, 16].map(|at| u128::from_be_bytes(std::array::from_fn(|i| padded[at + i])));
        let first = (key.len() - 16) / 8;
        let ck = |i: usize| C[(first + i) % 3];
        let w0 = kl;
        let w1 = fo(w0, ck(0)) ^ kr;
        let w2 = fe(w1, ck(1)) ^ w0;
        let w3 = fo(w2, ck(2)) ^ w1;
        let mut ek = Vec::new();
        for right in [19, 31, 128 - 61, 128 - 31] {
            ek.push(w0 ^ w1.rotate_right(right));
            ek.push(w1 ^ w2.rotate_right(right));
            ek.push(w2 ^ w3.rotate_right(right));
            ek.push(w0.rotate_right(right) ^ w3);
        }
        ek.push(w0 ^ w1.rotate_left(19));
        ek.truncate(13 + 2 * first);
        Self { ek }
    }

    /// Section 2.3.
    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16] {
        crypt(plain, &self.ek)
    }

    /// Section 2.2, the keys of decryption.
    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16] {
        let mut dk: Vec<u128> = self.ek.iter().rev().copied().collect();
        let inner = 1..dk.len() - 1;
        for key in &mut dk[inner] {
            *key = diffuse(*key);
        }
        crypt(cipher, &dk)
    }
}

fn crypt(block: [u8; 16], keys: &[u128]) -> [u8; 16] {
    let (inner, last) = keys.split_at(keys.len() - 2);
    let mut p = u128::from_be_bytes(block);
    for (i, &key) in inner.iter().enumerate() {
        p = if i % 2 == 0 { fo(p, key) } else { fe(p, key) };
    }
    (sl2(p ^ last[0]) ^ last[1]).to_be_bytes()
}

/// Section 2.4.1.
fn fo(d: u128, rk: u128) -> u128 {
    diffuse(sl1(d ^ rk))
}

/// Section 2.4.1.
fn fe(d: u128, rk: u128) -> u128 {
    diffuse(sl2(d ^ rk))
}

/// Section 2.4.2.
fn sl1(x: u128) -> u128 {
    substitute(x, [sb1, sb2, sb3, sb4])
}

/// Section 2.4.2.
fn sl2(x: u128) -> u128 {
    substitute(x, [sb3, sb4, sb1, sb2])
}

fn substitute(x: u128, sboxes: [fn(u8) -> u8; 4]) -> u128 {
    let x = x.to_be_bytes();
    u128::from_be_bytes(std::array::from_fn(|i| sboxes[i % 4](x[i])))
}

/// Section 2.4.3.
fn diffuse(x: u128) -> u128 {
    let x = x.to_be_bytes();
    u128::from_be_bytes(DIFFUSION.map(|row| row.iter().fold(0, |sum, &i| sum ^ x[i])))
}

fn sb1(x: u8) -> u8 {
    SB1[usize::from(x)]
}

fn sb2(x: u8) -> u8 {
    SB2[usize::from(x)]
}

fn sb3(y: u8) -> u8 {
    let x = SB1.iter().position(|&image| image == y);
    x.expect("an S-box is a permutation") as u8
}

fn sb4(y: u8) -> u8 {
    let x = SB2.iter().position(|&image| image == y);
    x.expect("an S-box is a permutation") as u8
}
