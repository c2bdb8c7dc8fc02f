//! HCTR2 (Crowley, Huckleberry, Biggers 2021) over whole sectors: a sector is
//! one block of a wide cipher, as in fscrypt's AES-256-HCTR2.
//!
//! ```text
//! P = M ‖ N, M 16 bytes     h = E(0), L = E(1)     H the hash of tweak and text
//! MM = M ⊕ H(N)     UU = E(MM)     S = MM ⊕ UU ⊕ L
//! V = N ⊕ XCTR(S)     U = UU ⊕ H(V)     C = U ‖ V
//! ```
//!
//! Block i of XCTR, from 1, is E(S ⊕ i).

use zeroize::Zeroize;

use super::polyval::{Polyval, Powers};
use super::wide::{HashEncryptHash, TWEAK_BYTES};
use crate::block::{Block, BlockCipher, Keyed};

/// Blocks of the stream made in one call.
const BATCH: usize = 64;

/// Blocks of the stream on whole cache lines.
#[repr(align(64))]
struct Lines([Block; BATCH]);

const SHORT: &str = "16 bytes at least";

/// A block cipher in HCTR2 mode. Has no padding, because a move copies what
/// the stack held there: the powers' whole lines are apart, and `l` is bytes.
pub(crate) struct Hctr2<P> {
    cipher: Keyed<16>,
    polyval: P,
    powers: Box<Powers>,
    l: Block,
}

impl<P: Polyval> Hctr2<P> {
    /// The mode over `cipher`, which has its key.
    pub(crate) fn new(cipher: Keyed<16>, polyval: P) -> Self {
        let mut derived = [0, 1_u128].map(u128::to_le_bytes);
        cipher.encrypt_blocks(&mut derived);
        let made = Self {
            cipher,
            polyval,
            powers: Box::new(Powers::new(derived[0])),
            l: derived[1],
        };
        derived.zeroize();
        made
    }

    /// The hash of `text` after the header's.
    fn hash(&self, header: u128, text: &[u8]) -> u128 {
        let (blocks, rest) = text.as_chunks();
        let sum = self.polyval.update(&self.powers, header, blocks);
        if rest.is_empty() {
            return sum;
        }
        let mut padded = [0; 16];
        padded[..rest.len()].copy_from_slice(rest);
        padded[rest.len()] = 1;
        self.polyval.update(&self.powers, sum, &[padded])
    }

    /// XCTR from `start`.
    fn add_stream(&self, start: u128, text: &mut [u8]) {
        let mut counter = 0;
        for batch in text.chunks_mut(16 * BATCH) {
            let mut stream = Lines([[0; 16]; BATCH]);
            // Kernels take four blocks in the time of three.
            let stream = &mut stream.0[..batch.len().div_ceil(16).next_multiple_of(4)];
            for block in &mut *stream {
                counter += 1;
                *block = (start ^ counter).to_le_bytes();
            }
            self.cipher.encrypt_blocks(stream);
            for (byte, stream) in batch.iter_mut().zip(stream.as_flattened()) {
                *byte ^= stream;
            }
        }
    }
}

impl<P: Polyval> HashEncryptHash for Hctr2<P> {
    fn cipher(&self) -> &dyn BlockCipher<16> {
        &*self.cipher
    }

    fn header(&self, tweak: &[u8; TWEAK_BYTES], rest_bytes: usize) -> u128 {
        let whole = if rest_bytes.is_multiple_of(16) { 2 } else { 3 };
        let mut blocks = [[0; 16]; 1 + TWEAK_BYTES / 16];
        blocks[0] = (2 * 8 * TWEAK_BYTES as u128 + whole).to_le_bytes();
        blocks[1..].as_flattened_mut().copy_from_slice(tweak);
        self.polyval.update(&self.powers, 0, &blocks)
    }

    fn add_hashes(&self, headers: &[u128], unit_bytes: usize, data: &[u8], sums: &mut [Block]) {
        let units = data.chunks_exact(unit_bytes);
        for ((unit, header), sum) in units.zip(headers).zip(sums) {
            let (first, rest) = unit.split_first_chunk().expect(SHORT);
            *sum = (u128::from_le_bytes(*first) ^ self.hash(*header, rest)).to_le_bytes();
        }
    }

    fn finish(
        &self,
        headers: &[u128],
        unit_bytes: usize,
        data: &mut [u8],
        middle: [&[Block]; 2],
        sums: &[Block],
    ) {
        for (nth, unit) in data.chunks_exact_mut(unit_bytes).enumerate() {
            let (first, rest) = unit.split_first_chunk_mut().expect(SHORT);
            let [plain, encrypted] = middle.map(|blocks| u128::from_le_bytes(blocks[nth]));
            self.add_stream(plain ^ encrypted ^ u128::from_le_bytes(self.l), rest);
            let hash = self.hash(headers[nth], rest);
            *first = (u128::from_le_bytes(sums[nth]) ^ hash).to_le_bytes();
        }
    }
}

impl<P> Drop for Hctr2<P> {
    fn drop(&mut self) {
        self.l.zeroize();
    }
}
