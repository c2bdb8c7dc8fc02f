//! AEGIS-128, the cipher with authentication that dm-crypt calls `aegis128`.
//!
//! ```text
//! state:  S₀ … S₄     update with m:  Sᵢ ← round(Sᵢ₋₁) ⊕ Sᵢ, and m into S₀
//! ciphertext:  data ⊕ S₁ ⊕ S₄ ⊕ (S₂ ∧ S₃), then an update with the data
//! ```
//!
//! Source: Wu and Preneel, *AEGIS: a fast authenticated encryption algorithm*,
//! version 1.1. `round` is a round of AES without its key, in constant time.

use aes::hazmat::cipher_round;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// Length of keys, IVs and blocks.
pub(super) const BLOCK: usize = 16;

/// Fibonacci numbers modulo 256.
const CONSTANTS: [Block; 2] = [
    0x000101020305080d1522375990e97962_u128.to_be_bytes(),
    0xdb3d18556dc22ff12011314273b528dd_u128.to_be_bytes(),
];

type Block = [u8; BLOCK];

/// AEGIS-128 under a key.
pub(super) struct Aegis128 {
    key: Zeroizing<Block>,
}

impl Aegis128 {
    /// Under `key`, if that has 16 bytes.
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        let key = Zeroizing::new(key.try_into().ok()?);
        Some(Self { key })
    }

    /// Encrypts `data`, whole blocks, in place; its tag.
    pub(super) fn encrypt(&self, iv: &Block, associated: &[u8], data: &mut [u8]) -> Block {
        let mut state = self.begin(iv, associated);
        for block in data.as_chunks_mut::<BLOCK>().0 {
            let stream = state.stream();
            state.update(block);
            *block = add(block, &stream);
        }
        state.tag(associated.len(), data.len())
    }

    /// Decrypts `data`, whole blocks, in place. Returns whether `tag` fits; if it does not, `data`
    /// must not be used.
    pub(super) fn decrypt(
        &self,
        iv: &Block,
        associated: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> bool {
        let mut state = self.begin(iv, associated);
        for block in data.as_chunks_mut::<BLOCK>().0 {
            *block = add(block, &state.stream());
            state.update(block);
        }
        state.tag(associated.len(), data.len()).ct_eq(tag).into()
    }

    /// The state after key, IV and associated data.
    fn begin(&self, iv: &Block, associated: &[u8]) -> State {
        let [first, second] = &CONSTANTS;
        let mixed = Zeroizing::new(add(&self.key, iv));
        let mut state = State([
            *mixed,
            *second,
            *first,
            add(&self.key, first),
            add(&self.key, second),
        ]);
        for _ in 0..5 {
            state.update(&self.key);
            state.update(&mixed);
        }
        for part in associated.chunks(BLOCK) {
            let mut block = [0; BLOCK];
            block[..part.len()].copy_from_slice(part);
            state.update(&block);
        }
        state
    }
}

struct State([Block; 5]);

impl State {
    fn update(&mut self, message: &Block) {
        let old = Zeroizing::new(self.0);
        for (index, block) in self.0.iter_mut().enumerate() {
            let mut before = aes::Block::from(old[(index + 4) % 5]);
            cipher_round(&mut before, &aes::Block::from(old[index]));
            *block = before.into();
        }
        self.0[0] = add(&self.0[0], message);
    }

    /// The key stream block: the next block of data is XORed with it.
    fn stream(&self) -> Block {
        let [_, s1, s2, s3, s4] = &self.0;
        std::array::from_fn(|at| s1[at] ^ s4[at] ^ (s2[at] & s3[at]))
    }

    fn tag(mut self, associated_bytes: usize, data_bytes: usize) -> Block {
        let bits = |bytes: usize| u128::from(bytes as u64 * 8);
        let lengths = (bits(data_bytes) << 64 | bits(associated_bytes)).to_le_bytes();
        let last = add(&self.0[3], &lengths);
        for _ in 0..7 {
            self.update(&last);
        }
        let sum = |sum: Block, block: &Block| add(&sum, block);
        self.0.iter().fold([0; BLOCK], sum)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

fn add(one: &Block, other: &Block) -> Block {
    std::array::from_fn(|at| one[at] ^ other[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u128) -> Block {
        number.to_be_bytes()
    }

    /// The vectors of the specification under a key and an IV of zeros, for a
    /// block of zeros: associated data, ciphertext, tag.
    #[test]
    fn vectors_of_the_specification() {
        let zero = block(0);
        let cases: [(&[u8], u128, u128); 2] = [
            (
                &[],
                0x951b050fa72b1a2fc16d2e1f01b07d7e,
                0xa7d2a99773249542f422217ee888d5f1,
            ),
            (
                &zero,
                0x10b0dee65a97d751205c128a992473a1,
                0x46dcb9ee93c46cf13731d41b9646c131,
            ),
        ];
        let aegis = Aegis128::new(&zero).unwrap();
        for (associated, cipher, tag) in cases {
            let mut data = zero;
            let made = aegis.encrypt(&zero, associated, &mut data);
            assert_eq!((data, made), (block(cipher), block(tag)));
            assert!(aegis.decrypt(&zero, associated, &mut data, &made));
            assert_eq!(data, zero);
        }
    }

    #[test]
    fn a_changed_bit_is_found() {
        let aegis = Aegis128::new(&[7; 16]).unwrap();
        let iv = [3; 16];
        let mut data = [5; 64];
        let tag = aegis.encrypt(&iv, &[1; 24], &mut data);
        for at in 0..64 {
            let mut changed = data;
            changed[at] ^= 1;
            assert!(!aegis.decrypt(&iv, &[1; 24], &mut changed, &tag));
        }
        assert!(!aegis.decrypt(&iv, &[2; 24], &mut data.clone(), &tag));
        assert!(!aegis.decrypt(&[4; 16], &[1; 24], &mut data.clone(), &tag));
        assert!(aegis.decrypt(&iv, &[1; 24], &mut data.clone(), &tag));
    }

    #[test]
    fn keys_have_sixteen_bytes() {
        for length in [0, 15, 17, 32] {
            assert!(Aegis128::new(&vec![0; length]).is_none(), "{length}");
        }
    }
}
