//! Camellia as in RFC 3713: F from S-boxes and a sum of bytes, and the subkeys
//! as rotations of KL, KR, KA and KB.

use super::ReferenceCipher;
use crate::block::camellia::sbox::SBOX1;

/// Section 2.2: Sigma1 … Sigma6.
const SIGMA: [u64; 6] = [
    0xa09e_667f_3bcc_908b,
    0xb67a_e858_4caa_73b2,
    0xc6ef_372f_e94f_82be,
    0x54ff_53a5_f1d3_6f1c,
    0x10e5_27fa_de68_2d1d,
    0xb056_88c2_b3e6_c1fd,
];

/// Camellia with a key of 128, 192 or 256 bits.
pub struct Camellia {
    kw: [u64; 4],
    k: Vec<u64>,
    ke: Vec<u64>,
}

impl ReferenceCipher for Camellia {
    /// Section 2.2.
    fn new(key: &[u8]) -> Self {
        let long = key.len() > 16;
        let kl = number(&key[..16]);
        let kr = match key.len() {
            16 => 0,
            24 => {
                let half = number(&key[16..]);
                half << 64 | u128::from(!(half as u64))
            }
            _ => number(&key[16..]),
        };
        let (d1, d2) = two_rounds(kl ^ kr, SIGMA[0], SIGMA[1]);
        let ka = {
            let (d1, d2) = two_rounds(join(d1, d2) ^ kl, SIGMA[2], SIGMA[3]);
            join(d1, d2)
        };
        let (d1, d2) = two_rounds(ka ^ kr, SIGMA[4], SIGMA[5]);
        let kb = join(d1, d2);

        let halves = |rotated: &[(u128, u32)]| -> Vec<u64> {
            rotated
                .iter()
                .flat_map(|&(key, bits)| {
                    let key = key.rotate_left(bits);
                    [(key >> 64) as u64, key as u64]
                })
                .collect()
        };
        let (kw, mut k, ke) = if long {
            (
                halves(&[(kl, 0), (kb, 111)]),
                halves(&[
                    (kb, 0),
                    (kr, 15),
                    (ka, 15),
                    (kb, 30),
                    (kl, 45),
                    (ka, 45),
                    (kr, 60),
                    (kb, 60),
                    (kl, 77),
                    (kr, 94),
                    (ka, 94),
                    (kl, 111),
                ]),
                halves(&[(kr, 30), (kl, 60), (ka, 77)]),
            )
        } else {
            (
                halves(&[(kl, 0), (ka, 111)]),
                halves(&[
                    (ka, 0),
                    (kl, 15),
                    (ka, 15),
                    (kl, 45),
                    (ka, 45),
                    (ka, 60),
                    (kl, 94),
                    (ka, 94),
                    (kl, 111),
                ]),
                halves(&[(ka, 30), (kl, 77)]),
            )
        };
        if !long {
            // k9 and k10 come from different keys.
            k[9] = kl.rotate_left(60) as u64;
        }
        Self {
            kw: [kw[0], kw[1], kw[2], kw[3]],
            k,
            ke,
        }
    }

    /// Section 2.3.
    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16] {
        crypt(plain, self.kw, &self.k, &self.ke)
    }

    /// Section 2.3.3: the subkeys in reverse order.
    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16] {
        let [kw1, kw2, kw3, kw4] = self.kw;
        let k: Vec<u64> = self.k.iter().rev().copied().collect();
        let ke: Vec<u64> = self.ke.iter().rev().copied().collect();
        crypt(cipher, [kw3, kw4, kw1, kw2], &k, &ke)
    }
}

/// Sections 2.3.1 and 2.3.2.
fn crypt(block: [u8; 16], kw: [u64; 4], k: &[u64], ke: &[u64]) -> [u8; 16] {
    let m = u128::from_be_bytes(block);
    let mut d1 = (m >> 64) as u64 ^ kw[0];
    let mut d2 = m as u64 ^ kw[1];
    for (round, &key) in k.iter().enumerate() {
        if round > 0 && round % 6 == 0 {
            let pair = round / 6 * 2 - 2;
            d1 = fl(d1, ke[pair]);
            d2 = fl_inverse(d2, ke[pair + 1]);
        }
        if round % 2 == 0 {
            d2 ^= f(d1, key);
        } else {
            d1 ^= f(d2, key);
        }
    }
    join(d2 ^ kw[2], d1 ^ kw[3]).to_be_bytes()
}

fn two_rounds(d: u128, first: u64, second: u64) -> (u64, u64) {
    let (mut d1, mut d2) = ((d >> 64) as u64, d as u64);
    d2 ^= f(d1, first);
    d1 ^= f(d2, second);
    (d1, d2)
}

/// Section 2.4.1.
fn f(input: u64, key: u64) -> u64 {
    let x = (input ^ key).to_be_bytes();
    let t1 = sbox1(x[0]);
    let t2 = sbox1(x[1]).rotate_left(1);
    let t3 = sbox1(x[2]).rotate_left(7);
    let t4 = sbox1(x[3].rotate_left(1));
    let t5 = sbox1(x[4]).rotate_left(1);
    let t6 = sbox1(x[5]).rotate_left(7);
    let t7 = sbox1(x[6].rotate_left(1));
    let t8 = sbox1(x[7]);
    u64::from_be_bytes([
        t1 ^ t3 ^ t4 ^ t6 ^ t7 ^ t8,
        t1 ^ t2 ^ t4 ^ t5 ^ t7 ^ t8,
        t1 ^ t2 ^ t3 ^ t5 ^ t6 ^ t8,
        t2 ^ t3 ^ t4 ^ t5 ^ t6 ^ t7,
        t1 ^ t2 ^ t6 ^ t7 ^ t8,
        t2 ^ t3 ^ t5 ^ t7 ^ t8,
        t3 ^ t4 ^ t5 ^ t6 ^ t8,
        t1 ^ t4 ^ t5 ^ t6 ^ t7,
    ])
}

fn sbox1(x: u8) -> u8 {
    SBOX1[usize::from(x)]
}

/// Section 2.4.2.
fn fl(input: u64, key: u64) -> u64 {
    let (mut x1, mut x2) = ((input >> 32) as u32, input as u32);
    let (k1, k2) = ((key >> 32) as u32, key as u32);
    x2 ^= (x1 & k1).rotate_left(1);
    x1 ^= x2 | k2;
    u64::from(x1) << 32 | u64::from(x2)
}

/// Section 2.4.3.
fn fl_inverse(input: u64, key: u64) -> u64 {
    let (mut y1, mut y2) = ((input >> 32) as u32, input as u32);
    let (k1, k2) = ((key >> 32) as u32, key as u32);
    y1 ^= y2 | k2;
    y2 ^= (y1 & k1).rotate_left(1);
    u64::from(y1) << 32 | u64::from(y2)
}

fn number(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |number, &byte| number << 8 | u128::from(byte))
}

fn join(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}
