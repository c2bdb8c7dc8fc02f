//! AES as in FIPS 197: a state of bytes, and an S-box computed from inversion
//! in GF(2⁸) and the affine map.

use std::sync::LazyLock;

use super::{ReferenceCipher, gf256_mul};

/// x⁸ + x⁴ + x³ + x + 1, section 4.2.
const MODULUS: u16 = 0x11b;

/// Byte `r` of column `c` is `state[4 * c + r]`, section 3.4.
type State = [u8; 16];

/// AES-128, AES-192 or AES-256.
pub struct Aes {
    round_keys: Vec<State>,
}

static SBOX: LazyLock<[u8; 256]> = LazyLock::new(|| std::array::from_fn(|x| sub_byte(x as u8)));

static INVERSE_SBOX: LazyLock<[u8; 256]> = LazyLock::new(|| {
    let mut inverse = [0; 256];
    for (x, &y) in SBOX.iter().enumerate() {
        inverse[usize::from(y)] = x as u8;
    }
    inverse
});

impl ReferenceCipher for Aes {
    fn new(key: &[u8]) -> Self {
        Self {
            round_keys: expand(key),
        }
    }

    /// Section 5.1.
    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16] {
        let rounds = self.round_keys.len() - 1;
        let mut state = add(plain, self.round_keys[0]);
        for round in 1..=rounds {
            state = state.map(|byte| SBOX[usize::from(byte)]);
            state = shift_rows(state, 1);
            if round != rounds {
                state = mix_columns(state, [2, 3, 1, 1]);
            }
            state = add(state, self.round_keys[round]);
        }
        state
    }

    /// Section 5.3.
    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16] {
        let rounds = self.round_keys.len() - 1;
        let mut state = add(cipher, self.round_keys[rounds]);
        for round in (0..rounds).rev() {
            state = shift_rows(state, 3);
            state = state.map(|byte| INVERSE_SBOX[usize::from(byte)]);
            state = add(state, self.round_keys[round]);
            if round != 0 {
                state = mix_columns(state, [14, 11, 13, 9]);
            }
        }
        state
    }
}

/// Section 5.1.1: the inverse in GF(2⁸), zero for zero, then the affine map.
pub(crate) fn sub_byte(x: u8) -> u8 {
    let inverse = (0..=255)
        .find(|&y| gf256_mul(x, y, MODULUS) == 1)
        .unwrap_or(0);
    (0..5).fold(0x63, |sum, n| sum ^ inverse.rotate_left(n))
}

/// Section 5.2.
fn expand(key: &[u8]) -> Vec<State> {
    let nk = key.len() / 4;
    let mut words: Vec<[u8; 4]> = key
        .chunks_exact(4)
        .map(|word| std::array::from_fn(|i| word[i]))
        .collect();
    let mut rcon = 1;
    for i in nk..4 * (nk + 7) {
        let mut word = words[i - 1];
        if i % nk == 0 {
            word.rotate_left(1);
            word = word.map(|byte| SBOX[usize::from(byte)]);
            word[0] ^= rcon;
            rcon = gf256_mul(rcon, 2, MODULUS);
        } else if nk > 6 && i % nk == 4 {
            word = word.map(|byte| SBOX[usize::from(byte)]);
        }
        words.push(std::array::from_fn(|j| words[i - nk][j] ^ word[j]));
    }
    words
        .chunks_exact(4)
        .map(|column| std::array::from_fn(|i| column[i / 4][i % 4]))
        .collect()
}

/// Sections 5.1.2 and 5.3.1: row r moves left by `step`·r.
fn shift_rows(state: State, step: usize) -> State {
    std::array::from_fn(|i| state[(i + 4 * step * (i % 4)) % 16])
}

/// Sections 5.1.3 and 5.3.3: `matrix` is the first row of a circulant.
fn mix_columns(state: State, matrix: [u8; 4]) -> State {
    std::array::from_fn(|i| {
        let (column, row) = (i / 4, i % 4);
        (0..4).fold(0, |sum, j| {
            sum ^ gf256_mul(state[4 * column + j], matrix[(4 + j - row) % 4], MODULUS)
        })
    })
}

fn add(state: State, key: State) -> State {
    std::array::from_fn(|i| state[i] ^ key[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix C.
    #[test]
    fn appendix_c() {
        let key: [u8; 32] = std::array::from_fn(|i| i as u8);
        let plain: [u8; 16] = std::array::from_fn(|i| 0x11 * i as u8);
        for (bytes, cipher) in [
            (16, 0x69c4e0d86a7b0430d8cdb78070b4c55a_u128),
            (24, 0xdda97ca4864cdfe06eaf70a0ec0d7191),
            (32, 0x8ea2b7ca516745bfeafc49904b496089),
        ] {
            let aes = Aes::new(&key[..bytes]);
            assert_eq!(aes.encrypt(plain), cipher.to_be_bytes());
            assert_eq!(aes.decrypt(cipher.to_be_bytes()), plain);
        }
    }
}
