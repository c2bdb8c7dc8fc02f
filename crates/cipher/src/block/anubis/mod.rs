//! Anubis (Barreto, Rijmen 2000; the tweaked version of NESSIE), with γ and θ
//! merged into four tables of 256 words.
//!
//! **Not constant-time.** Which table line is loaded depends on key and data,
//! so another process on the same core can learn about both from the cache.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;

use zeroize::Zeroize;

use super::involution::{SBOX, field_mul};
use super::{Block, BlockCipher, scan};

/// Blocks worked on together, so that one waits for its loads while another
/// computes.
const LANES: usize = 2;

/// Words of the longest key.
const MOST_WORDS: usize = 10;

/// Round keys of the longest key.
const MOST_KEYS: usize = 8 + MOST_WORDS + 1;

/// The four rows of a block or of a round key.
type Rows = [u32; 4];

/// Anubis with a key of 128 to 320 bits.
pub(crate) struct Anubis {
    encryption: [Rows; MOST_KEYS],
    decryption: [Rows; MOST_KEYS],
    keys: usize,
}

impl Anubis {
    /// The cipher under a key of 16, 20, … or 40 bytes: "The key schedule" of the paper.
    pub(crate) fn new(key: &[u8]) -> Self {
        let n = key.len() / 4;
        let keys = 8 + n + 1;
        let mut kappa = [[0; 4]; MOST_WORDS];
        let kappa = &mut kappa[..n];
        kappa.as_flattened_mut().copy_from_slice(key);
        let mut encryption = [[0; 4]; MOST_KEYS];
        for (r, round_key) in encryption[..keys].iter_mut().enumerate() {
            if r > 0 {
                evolve(kappa, r);
            }
            *round_key = select(kappa);
        }
        kappa.as_flattened_mut().zeroize();
        let mut decryption = encryption;
        decryption[..keys].reverse();
        for key in &mut decryption[1..keys - 1] {
            *key = key.map(|row| diffuse(row.to_be_bytes()));
        }
        Self {
            encryption,
            decryption,
            keys,
        }
    }

    fn crypt(keys: &[Rows], blocks: &mut [Block]) {
        let (groups, rest) = blocks.as_chunks_mut::<LANES>();
        for group in groups {
            crypt_lanes(keys, group);
        }
        for block in rest {
            crypt_lanes(keys, std::array::from_mut(block));
        }
    }
}

impl BlockCipher<16> for Anubis {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        Self::crypt(&self.encryption[..self.keys], blocks);
    }

    /// The inverse cipher differs in its round keys only.
    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        Self::crypt(&self.decryption[..self.keys], blocks);
    }
}

impl Drop for Anubis {
    fn drop(&mut self) {
        self.encryption.as_flattened_mut().zeroize();
        self.decryption.as_flattened_mut().zeroize();
    }
}

/// "The complete cipher" of the paper.
#[inline(always)]
fn crypt_lanes<const N: usize>(keys: &[Rows], blocks: &mut [Block; N]) {
    let [first, inner @ .., last] = keys else {
        unreachable!("13 round keys at least");
    };
    let mut lanes = blocks.map(|block| {
        let rows = block.as_chunks().0;
        std::array::from_fn(|i| u32::from_be_bytes(rows[i]) ^ first[i])
    });
    for key in inner {
        for lane in &mut lanes {
            let rows = *lane;
            for i in 0..4 {
                lane[i] = key[i] ^ substitute_and_diffuse(column(rows, i));
            }
        }
    }
    for (lane, block) in lanes.into_iter().zip(blocks) {
        for (i, bytes) in block.as_chunks_mut().0.iter_mut().enumerate() {
            let row = column(lane, i).map(|byte| SBOX[usize::from(byte)]);
            *bytes = (u32::from_be_bytes(row) ^ last[i]).to_be_bytes();
        }
    }
}

/// τ: byte `i` of every row, as row `i` of the next.
#[inline(always)]
fn column(rows: Rows, i: usize) -> [u8; 4] {
    rows.map(|row| (row >> (24 - 8 * i)) as u8)
}

/// θ after γ, on one row.
#[inline(always)]
fn substitute_and_diffuse(row: [u8; 4]) -> u32 {
    let [a, b, c, d] = row.map(usize::from);
    TABLES[0][a] ^ TABLES[1][b] ^ TABLES[2][c] ^ TABLES[3][d]
}

/// θ, on one row, in constant time.
fn diffuse(row: [u8; 4]) -> u32 {
    row.iter().zip(H).fold(0, |sum, (&byte, factors)| {
        sum ^ u32::from_be_bytes(factors.map(|factor| field_mul(byte, factor)))
    })
}

/// ψ: round `r` of the key evolution.
fn evolve(kappa: &mut [[u8; 4]], r: usize) {
    let n = kappa.len();
    let mut next = [[0; 4]; MOST_WORDS];
    for (i, row) in next[..n].iter_mut().enumerate() {
        let turned = std::array::from_fn(|j| kappa[(i + n - j) % n][j]);
        let substituted = turned.map(|byte| scan::look_up(&SBOX, byte));
        *row = diffuse(substituted).to_be_bytes();
    }
    for (byte, constant) in next[0].iter_mut().zip(&SBOX[4 * (r - 1)..]) {
        *byte ^= constant;
    }
    kappa.copy_from_slice(&next[..n]);
    next.as_flattened_mut().zeroize();
}

/// φ: the round key of one state of the key evolution.
fn select(kappa: &[[u8; 4]]) -> Rows {
    const VANDERMONDE: [u8; 4] = [0x01, 0x02, 0x06, 0x08];
    std::array::from_fn(|column| {
        u32::from_be_bytes(VANDERMONDE.map(|v| {
            kappa.iter().rev().fold(0, |sum, row| {
                field_mul(sum, v) ^ scan::look_up(&SBOX, row[column])
            })
        }))
    })
}

/// The matrix of θ.
const H: [[u8; 4]; 4] = [
    [0x01, 0x02, 0x04, 0x06],
    [0x02, 0x01, 0x06, 0x04],
    [0x04, 0x06, 0x01, 0x02],
    [0x06, 0x04, 0x02, 0x01],
];

/// Per byte of a row: what γ and θ make of it.
static TABLES: [[u32; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut i = 0;
    while i < 4 {
        let mut x = 0;
        while x < 256 {
            let s = SBOX[x];
            tables[i][x] = u32::from_be_bytes([
                field_mul(s, H[i][0]),
                field_mul(s, H[i][1]),
                field_mul(s, H[i][2]),
                field_mul(s, H[i][3]),
            ]);
            x += 1;
        }
        i += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::Anubis;
    use crate::block::tests;
    use crate::reference;

    #[test]
    fn known_answers() {
        tests::known_answers::<reference::Anubis, _, 16>("anubis", Anubis::new);
    }

    #[test]
    fn equals_the_reference() {
        let key_lengths = [16, 20, 24, 28, 32, 36, 40];
        tests::equals_reference::<reference::Anubis, _, 16>(&key_lengths, Anubis::new);
    }
}
