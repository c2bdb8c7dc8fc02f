//! SM4 as in GB/T 32907-2016: F, T, L and τ as the standard names them.

use super::ReferenceCipher;
use crate::block::sm4::sbox::SBOX;

/// Section 7.3.
const FK: [u32; 4] = [0xa3b1_bac6, 0x56aa_3350, 0x677d_9197, 0xb270_22dc];

/// SM4 with a key of 128 bits.
pub struct Sm4 {
    rk: Vec<u32>,
}

impl ReferenceCipher for Sm4 {
    /// Section 7.3.
    fn new(key: &[u8]) -> Self {
        let mut k: Vec<u32> = key
            .chunks(4)
            .zip(FK)
            .map(|(mk, fk)| u32::from_be_bytes(mk.try_into().expect("four bytes")) ^ fk)
            .collect();
        for i in 0..32 {
            let ck = u32::from_be_bytes([0, 1, 2, 3].map(|j| ((4 * i + j) * 7) as u8));
            let b = tau(k[i + 1] ^ k[i + 2] ^ k[i + 3] ^ ck);
            k.push(k[i] ^ b ^ b.rotate_left(13) ^ b.rotate_left(23));
        }
        Self { rk: k.split_off(4) }
    }

    /// Section 7.1.
    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16] {
        crypt(plain, self.rk.iter())
    }

    /// Section 7.2.
    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16] {
        crypt(cipher, self.rk.iter().rev())
    }
}

fn crypt<'a>(block: [u8; 16], rk: impl Iterator<Item = &'a u32>) -> [u8; 16] {
    let number = u128::from_be_bytes(block);
    let mut x: [u32; 4] = std::array::from_fn(|i| (number >> (96 - 32 * i)) as u32);
    for rk in rk {
        let b = tau(x[1] ^ x[2] ^ x[3] ^ rk);
        let l = [2, 10, 18, 24]
            .map(|n| b.rotate_left(n))
            .iter()
            .fold(b, |l, b| l ^ b);
        x = [x[1], x[2], x[3], x[0] ^ l];
    }
    x.reverse();
    std::array::from_fn(|i| x[i / 4].to_be_bytes()[i % 4])
}

fn tau(a: u32) -> u32 {
    u32::from_be_bytes(a.to_be_bytes().map(|byte| SBOX[usize::from(byte)]))
}
