//! Adiantum (Crowley and Biggers 2018) over whole sectors, as dm-crypt's
//! `xchacha12,aes-adiantum-plain64`: a sector is one block of a wide cipher.
//!
//! ```text
//! P = P_L ‖ P_R, P_R 16 bytes      H the hash of tweak and left part
//! P_M = P_R + H(P_L)      C_M = E(P_M)
//! C_L = P_L ⊕ XChaCha(C_M)      C_R = C_M − H(C_L)
//! ```

use zeroize::Zeroize;

use super::StreamCipher;
use super::nh_poly1305::{HashKey, KEY_BYTES};
use super::wide::{HashEncryptHash, TWEAK_BYTES};
use crate::block::chacha::{self, Units};
use crate::block::registers::Registers;
use crate::block::{Block, BlockCipher, Keyed, Keying};
use crate::work::Work;

/// Adiantum with either ChaCha.
pub(crate) struct Adiantum<R> {
    cpu: R,
    block: Keyed<16>,
    stream: chacha::Key,
    hash: HashKey,
}

impl<R: Registers> Adiantum<R> {
    /// Derives all keys from `key`; `block` makes the block cipher from 32
    /// bytes.
    pub(crate) fn new(key: &[u8; 32], stream: StreamCipher, cpu: R, block: &Keying<16>) -> Self {
        const CUT: &str = "the sum of both lengths";
        let rounds = match stream {
            StreamCipher::XChaCha12 => 12,
            StreamCipher::XChaCha20 => 20,
        };
        let stream = chacha::Key::new(key, rounds);
        let mut derived = [0; 32 + KEY_BYTES];
        cpu.enter(Derive {
            key: &stream,
            derived: &mut derived,
        });
        let (block_key, hash_key) = derived.split_at(32);
        let made = Self {
            cpu,
            block: block(block_key),
            stream,
            hash: HashKey::new(hash_key.first_chunk().expect(CUT)),
        };
        derived.zeroize();
        made
    }
}

impl<R: Registers> HashEncryptHash for Adiantum<R> {
    fn cipher(&self) -> &dyn BlockCipher<16> {
        &*self.block
    }

    fn header(&self, tweak: &[u8; TWEAK_BYTES], rest_bytes: usize) -> u128 {
        self.hash.header(tweak, rest_bytes)
    }

    fn add_hashes(&self, headers: &[u128], unit_bytes: usize, data: &[u8], sums: &mut [Block]) {
        self.cpu.enter(AddHashes {
            hash: &self.hash,
            headers,
            unit_bytes,
            data,
            sums,
        });
    }

    fn finish(
        &self,
        headers: &[u128],
        unit_bytes: usize,
        data: &mut [u8],
        [_, ciphertext]: [&[Block]; 2],
        sums: &[Block],
    ) {
        self.cpu.enter(Finish {
            stream: &self.stream,
            hash: &self.hash,
            headers,
            unit_bytes,
            data,
            ciphertext,
            sums,
        });
    }
}

const SHORT: &str = "16 bytes at least";

/// The stream that the keys of block cipher and hash are.
struct Derive<'a> {
    key: &'a chacha::Key,
    derived: &'a mut [u8],
}

impl<R: Registers> Work<R> for Derive<'_> {
    #[inline(always)]
    fn run(self, cpu: R) {
        let bytes = self.derived.len();
        chacha::add_xchacha(
            cpu,
            self.key,
            &[1_u128.to_le_bytes()],
            [0, 0],
            Units {
                stride: bytes,
                bytes,
            },
            self.derived,
        );
    }
}

/// Right parts plus the hash of left parts.
struct AddHashes<'a> {
    hash: &'a HashKey,
    headers: &'a [u128],
    unit_bytes: usize,
    data: &'a [u8],
    sums: &'a mut [Block],
}

impl<R: Registers> Work<R> for AddHashes<'_> {
    #[inline(always)]
    fn run(self, cpu: R) {
        for (nth, sum) in self.sums.iter_mut().enumerate() {
            let unit = &self.data[nth * self.unit_bytes..][..self.unit_bytes];
            let (left, right) = unit.split_last_chunk().expect(SHORT);
            let hash = self.hash.message(cpu, left);
            let hash = hash.wrapping_add(self.headers[nth]);
            *sum = u128::from_le_bytes(*right).wrapping_add(hash).to_le_bytes();
        }
    }
}

/// Left parts through the streams of `ciphertext`, and `sums` minus the hash of
/// the new left parts as right parts.
struct Finish<'a> {
    stream: &'a chacha::Key,
    hash: &'a HashKey,
    headers: &'a [u128],
    unit_bytes: usize,
    data: &'a mut [u8],
    ciphertext: &'a [Block],
    sums: &'a [Block],
}

impl<R: Registers> Work<R> for Finish<'_> {
    #[inline(always)]
    fn run(self, cpu: R) {
        let units = Units {
            stride: self.unit_bytes,
            bytes: self.unit_bytes - 16,
        };
        chacha::add_xchacha(cpu, self.stream, self.ciphertext, [1, 0], units, self.data);
        for (nth, sum) in self.sums.iter().enumerate() {
            let unit = &mut self.data[nth * self.unit_bytes..][..self.unit_bytes];
            let (left, right) = unit.split_last_chunk_mut().expect(SHORT);
            let hash = self.hash.message(cpu, left);
            let hash = hash.wrapping_add(self.headers[nth]);
            *right = u128::from_le_bytes(*sum).wrapping_sub(hash).to_le_bytes();
        }
    }
}
