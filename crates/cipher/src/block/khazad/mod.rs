//! Khazad (Barreto, Rijmen 2000; the tweaked version of NESSIE), with γ and θ
//! merged into eight tables of 256 double words.
//!
//! **Not constant-time.** Which table line is loaded depends on key and data,
//! so another process on the same core can learn about both from the cache.
//!
//! Its 64-bit blocks repeat after 2³² of them: it is here to read old data, not
//! to protect new.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;

use zeroize::Zeroize;

use super::involution::{SBOX, field_mul};
use super::{BlockCipher, scan};

/// Round keys, one more than there are rounds.
const KEYS: usize = 9;

/// Blocks worked on together, so that one waits for its loads while another
/// computes.
const LANES: usize = 4;

type Block = [u8; 8];

/// Khazad with a key of 128 bits.
pub(crate) struct Khazad {
    encryption: [u64; KEYS],
    decryption: [u64; KEYS],
}

impl Khazad {
    /// The cipher under a key of 16 bytes: "The key schedule" of the paper.
    pub(crate) fn new(key: &[u8]) -> Self {
        let halves = key.as_chunks().0;
        let mut last = [0, 1].map(|i| u64::from_be_bytes(halves[i]));
        let mut encryption = [0; KEYS];
        for (round_key, constant) in encryption.iter_mut().zip(SBOX.as_chunks().0) {
            let substituted = last[1].to_be_bytes().map(|byte| scan::look_up(&SBOX, byte));
            *round_key = last[0] ^ diffuse(substituted) ^ u64::from_be_bytes(*constant);
            last = [last[1], *round_key];
        }
        last.zeroize();
        let mut decryption = encryption;
        decryption.reverse();
        for key in &mut decryption[1..KEYS - 1] {
            *key = diffuse(key.to_be_bytes());
        }
        Self {
            encryption,
            decryption,
        }
    }

    fn crypt(keys: &[u64; KEYS], blocks: &mut [Block]) {
        let (groups, rest) = blocks.as_chunks_mut::<LANES>();
        for group in groups {
            crypt_lanes(keys, group);
        }
        for block in rest {
            crypt_lanes(keys, std::array::from_mut(block));
        }
    }
}

impl BlockCipher<8> for Khazad {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        Self::crypt(&self.encryption, blocks);
    }

    /// The inverse cipher differs in its round keys only.
    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        Self::crypt(&self.decryption, blocks);
    }
}

impl Drop for Khazad {
    fn drop(&mut self) {
        self.encryption.zeroize();
        self.decryption.zeroize();
    }
}

/// "The complete cipher" of the paper.
#[inline(always)]
fn crypt_lanes<const N: usize>(keys: &[u64; KEYS], blocks: &mut [Block; N]) {
    let [first, inner @ .., last] = keys;
    let mut lanes = blocks.map(|block| u64::from_be_bytes(block) ^ first);
    for key in inner {
        for lane in &mut lanes {
            *lane = round(*lane) ^ key;
        }
    }
    *blocks = lanes.map(|lane| (substitute(lane) ^ last).to_be_bytes());
}

/// θ after γ.
#[inline(always)]
fn round(x: u64) -> u64 {
    let [a, b, c, d, e, f, g, h] = x.to_be_bytes().map(usize::from);
    let [ta, tb, tc, td, te, tf, tg, th] = &TABLES;
    ta[a] ^ tb[b] ^ tc[c] ^ td[d] ^ te[e] ^ tf[f] ^ tg[g] ^ th[h]
}

/// θ, in constant time.
fn diffuse(bytes: [u8; 8]) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|j| {
        (0..8).fold(0, |sum, i| sum ^ field_mul(bytes[i], H[i ^ j]))
    }))
}

/// γ.
#[inline(always)]
fn substitute(x: u64) -> u64 {
    u64::from_be_bytes(x.to_be_bytes().map(|byte| SBOX[usize::from(byte)]))
}

/// The first row of θ's matrix, whose entry (i, j) is the (i ⊕ j)th of it.
const H: [u8; 8] = [0x01, 0x03, 0x04, 0x05, 0x06, 0x08, 0x0b, 0x07];

/// Per byte: what γ and θ make of it.
static TABLES: [[u64; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut x = 0;
    while x < 256 {
        let mut products = [0; 8];
        let mut i = 0;
        while i < 8 {
            products[i] = field_mul(SBOX[x], H[i]) as u64;
            i += 1;
        }
        let mut i = 0;
        while i < 8 {
            let mut j = 0;
            while j < 8 {
                tables[i][x] = tables[i][x] << 8 | products[i ^ j];
                j += 1;
            }
            i += 1;
        }
        x += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::Khazad;
    use crate::block::tests;
    use crate::reference;

    #[test]
    fn known_answers() {
        tests::known_answers::<reference::Khazad, _, 8>("khazad", Khazad::new);
    }

    #[test]
    fn equals_the_reference() {
        tests::equals_reference::<reference::Khazad, _, 8>(&[16], Khazad::new);
    }
}
