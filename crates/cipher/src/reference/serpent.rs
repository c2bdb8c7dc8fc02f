//! Serpent as in Anderson, Biham and Knudsen, "Serpent: A Proposal for the
//! Advanced Encryption Standard" (1998): the conventional description, with
//! IP and FP as bit permutations and S-boxes as tables.

use super::ReferenceCipher;

/// Appendix A.5.
pub(crate) const SBOXES: [[u8; 16]; 8] = [
    [3, 8, 15, 1, 10, 6, 5, 11, 14, 13, 4, 2, 7, 0, 9, 12],
    [15, 12, 2, 7, 9, 0, 5, 10, 1, 11, 14, 8, 6, 13, 3, 4],
    [8, 6, 7, 9, 3, 12, 10, 15, 13, 1, 14, 4, 0, 11, 5, 2],
    [0, 15, 11, 8, 12, 9, 6, 3, 13, 1, 2, 4, 10, 7, 5, 14],
    [1, 15, 8, 3, 12, 0, 11, 6, 2, 5, 4, 10, 9, 14, 7, 13],
    [15, 5, 2, 11, 4, 10, 9, 12, 0, 3, 14, 8, 13, 6, 7, 1],
    [7, 2, 12, 5, 8, 4, 6, 11, 14, 9, 1, 15, 13, 3, 10, 0],
    [1, 13, 15, 0, 14, 8, 2, 11, 7, 4, 12, 10, 9, 3, 5, 6],
];

const ROUNDS: usize = 32;

/// Serpent with a key of 128, 192 or 256 bits.
///
/// A block is a number of 128 bits, its first byte the least significant; four
/// adjacent bits are the input of one S-box.
pub struct Serpent {
    /// K̂₀ … K̂₃₂, after IP.
    round_keys: [u128; ROUNDS + 1],
}

impl ReferenceCipher for Serpent {
    /// Section 4.
    fn new(key: &[u8]) -> Self {
        let mut padded = [0; 32];
        padded[..key.len()].copy_from_slice(key);
        if key.len() < 32 {
            padded[key.len()] = 1;
        }
        // w₋₈ … w₋₁ come first.
        let mut w: Vec<u32> = padded
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(std::array::from_fn(|i| word[i])))
            .collect();
        for i in 0..4 * (ROUNDS as u32 + 1) {
            let at = w.len();
            let sum = w[at - 8] ^ w[at - 5] ^ w[at - 3] ^ w[at - 1] ^ 0x9e37_79b9 ^ i;
            w.push(sum.rotate_left(11));
        }
        Self {
            round_keys: std::array::from_fn(|i| {
                let words = &w[8 + 4 * i..][..4];
                let k = (0..4).fold(0, |k, j| k | u128::from(words[j]) << (32 * j));
                substitute(initial_permutation(k), &SBOXES[(35 - i) % 8])
            }),
        }
    }

    /// Section 3.
    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16] {
        let mut b = initial_permutation(u128::from_le_bytes(plain));
        for round in 0..ROUNDS {
            b = substitute(b ^ self.round_keys[round], &SBOXES[round % 8]);
            b = if round == ROUNDS - 1 {
                b ^ self.round_keys[ROUNDS]
            } else {
                linear(b, mix)
            };
        }
        final_permutation(b).to_le_bytes()
    }

    /// Section 3.3: everything backwards.
    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16] {
        let mut b = initial_permutation(u128::from_le_bytes(cipher));
        for round in (0..ROUNDS).rev() {
            b = if round == ROUNDS - 1 {
                b ^ self.round_keys[ROUNDS]
            } else {
                linear(b, unmix)
            };
            b = substitute(b, &inverse(&SBOXES[round % 8])) ^ self.round_keys[round];
        }
        final_permutation(b).to_le_bytes()
    }
}

/// Appendix A.2: bit i of the result is bit 32·i mod 127 of the input.
fn initial_permutation(x: u128) -> u128 {
    permute(x, 32)
}

/// Appendix A.3: bit i of the result is bit 4·i mod 127 of the input.
fn final_permutation(x: u128) -> u128 {
    permute(x, 4)
}

fn permute(x: u128, factor: u32) -> u128 {
    (0..127).fold(x & 1 << 127, |y, i| y | (x >> (factor * i % 127) & 1) << i)
}

fn substitute(x: u128, sbox: &[u8; 16]) -> u128 {
    (0..32).fold(0, |y, nibble| {
        let input = (x >> (4 * nibble) & 15) as usize;
        y | u128::from(sbox[input]) << (4 * nibble)
    })
}

fn inverse(sbox: &[u8; 16]) -> [u8; 16] {
    std::array::from_fn(|y| {
        let x = sbox.iter().position(|&s| usize::from(s) == y);
        x.expect("an S-box is a permutation") as u8
    })
}

/// Applies a map of four 32-bit words in the bit order of section 3.2, which
/// is that before IP.
fn linear(x: u128, map: fn([u32; 4]) -> [u32; 4]) -> u128 {
    let x = final_permutation(x);
    let words = map(std::array::from_fn(|j| (x >> (32 * j)) as u32));
    let y = (0..4).fold(0, |y, j| y | u128::from(words[j]) << (32 * j));
    initial_permutation(y)
}

fn mix([mut x0, mut x1, mut x2, mut x3]: [u32; 4]) -> [u32; 4] {
    x0 = x0.rotate_left(13);
    x2 = x2.rotate_left(3);
    x1 ^= x0 ^ x2;
    x3 ^= x2 ^ (x0 << 3);
    x1 = x1.rotate_left(1);
    x3 = x3.rotate_left(7);
    x0 ^= x1 ^ x3;
    x2 ^= x3 ^ (x1 << 7);
    x0 = x0.rotate_left(5);
    x2 = x2.rotate_left(22);
    [x0, x1, x2, x3]
}

fn unmix([mut x0, mut x1, mut x2, mut x3]: [u32; 4]) -> [u32; 4] {
    x2 = x2.rotate_right(22);
    x0 = x0.rotate_right(5);
    x2 ^= x3 ^ (x1 << 7);
    x0 ^= x1 ^ x3;
    x3 = x3.rotate_right(7);
    x1 = x1.rotate_right(1);
    x3 ^= x2 ^ (x0 << 3);
    x1 ^= x0 ^ x2;
    x2 = x2.rotate_right(3);
    x0 = x0.rotate_right(13);
    [x0, x1, x2, x3]
}
