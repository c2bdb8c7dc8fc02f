//! AES (FIPS 197): the key schedule that all kernels share, the S-box's
//! circuit, and the cipher for CPUs without AES instructions.

pub(crate) mod bitsliced;
pub(crate) mod sbox;

use zeroize::Zeroize;

use super::Block;

/// Round keys of the longest key.
const MOST_KEYS: usize = 15;

/// K₀ … K₁₀, K₁₂ or K₁₄, made without a load or branch that depends on the
/// key, and wiped when dropped.
pub(crate) struct Schedule {
    keys: [Block; MOST_KEYS],
    count: usize,
}

impl Schedule {
    /// The round keys of a key of 16, 24 or 32 bytes, FIPS 197 section 5.2.
    pub(crate) fn new(key: &[u8]) -> Self {
        let key_words = key.len() / 4;
        let count = key_words + 7;
        let mut keys = [[0; 16]; MOST_KEYS];
        let words: &mut [[u8; 4]] = keys.as_flattened_mut().as_chunks_mut().0;
        words[..key_words].copy_from_slice(key.as_chunks().0);
        let mut round = 1_u8;
        for i in key_words..4 * count {
            let mut word = words[i - 1];
            if i % key_words == 0 {
                word.rotate_left(1);
                word = substitute(word);
                word[0] ^= round;
                round = (round << 1) ^ ((round >> 7) * 0x1b);
            } else if key_words > 6 && i % key_words == 4 {
                word = substitute(word);
            }
            for j in 0..4 {
                words[i][j] = words[i - key_words][j] ^ word[j];
            }
            word.zeroize();
        }
        Self { keys, count }
    }

    /// The round keys in the order of encryption.
    pub(crate) fn keys(&self) -> &[Block] {
        &self.keys[..self.count]
    }

    /// These keys for the equivalent inverse cipher, FIPS 197 section 5.3.5:
    /// in the order of decryption, all but the outer two through `unmix`, the
    /// inverse of MixColumns.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(crate) fn inverse(&self, mut unmix: impl FnMut(&mut Block)) -> Self {
        let mut keys = self.keys;
        keys[..self.count].reverse();
        keys[1..self.count - 1].iter_mut().for_each(&mut unmix);
        Self {
            keys,
            count: self.count,
        }
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

/// SubWord by the circuit.
fn substitute(word: [u8; 4]) -> [u8; 4] {
    let mut planes = [0_u8; 8];
    for (i, byte) in word.iter().enumerate() {
        for (bit, plane) in planes.iter_mut().enumerate() {
            *plane |= (byte >> bit & 1) << i;
        }
    }
    let mut planes = sbox::forward(planes);
    let mut substituted = [sbox::CONSTANT; 4];
    for (i, byte) in substituted.iter_mut().enumerate() {
        for (bit, plane) in planes.iter().enumerate() {
            *byte ^= (plane >> i & 1) << bit;
        }
    }
    planes.zeroize();
    substituted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last round keys of FIPS 197, appendix A.
    #[test]
    fn appendix_a() {
        for (key, last) in [
            (
                "2b7e151628aed2a6abf7158809cf4f3c",
                0xd014f9a8c9ee2589e13f0cc8b6630ca6_u128,
            ),
            (
                "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
                0xe98ba06f448c773c8ecc720401002202,
            ),
            (
                "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
                0xfe4890d1e6188d0b046df344706c631e,
            ),
        ] {
            let key: Vec<u8> = (0..key.len() / 2)
                .map(|i| u8::from_str_radix(&key[2 * i..][..2], 16).unwrap())
                .collect();
            let schedule = Schedule::new(&key);
            assert_eq!(schedule.keys().len(), key.len() / 4 + 7);
            assert_eq!(schedule.keys().last(), Some(&last.to_be_bytes()));
        }
    }
}
