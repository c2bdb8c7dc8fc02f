//! CTR (NIST SP 800-38A, section 6.5): Cⱼ = Pⱼ ⊕ E(IV + j), the IV a
//! big-endian number of a whole block that wraps, as the kernel counts.

use super::{BATCH_BYTES, BlockMode, SMALL, add_all, blocks};
use crate::block::Keyed;

/// A block cipher in CTR mode.
pub(crate) struct Ctr<const N: usize> {
    pub(crate) cipher: Keyed<N>,
}

impl<const N: usize> BlockMode<N> for Ctr<N> {
    fn encrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]) {
        self.cipher.crypt_ctr(ivs, data.len() / ivs.len(), data);
    }

    fn decrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]) {
        self.cipher.crypt_ctr(ivs, data.len() / ivs.len(), data);
    }

    fn encrypt_zeros(&self, ivs: &mut [[u8; N]]) {
        self.cipher.encrypt_blocks(ivs);
    }
}

/// Encrypts or decrypts sectors by a cipher of blocks, `encrypt`.
pub(crate) fn run<const N: usize>(
    ivs: &[[u8; N]],
    sector_bytes: usize,
    data: &mut [u8],
    encrypt: &dyn Fn(&mut [[u8; N]]),
) {
    match data.len() {
        ..=SMALL => run_in(ivs, sector_bytes, data, &mut [0; SMALL], encrypt),
        _ => run_in(ivs, sector_bytes, data, &mut [0; BATCH_BYTES], encrypt),
    }
}

/// As many bytes at a time as there is room for the key `stream`.
fn run_in<const N: usize>(
    ivs: &[[u8; N]],
    sector_bytes: usize,
    data: &mut [u8],
    stream: &mut [u8],
    encrypt: &dyn Fn(&mut [[u8; N]]),
) {
    let mut ivs = ivs.iter();
    let (mut counter, mut left) = (0, 0);
    let stream = blocks(stream);
    for batch in blocks(data).chunks_mut(stream.len()) {
        let stream = &mut stream[..batch.len()];
        for block in &mut *stream {
            if left == 0 {
                let iv = ivs.next().expect("an IV for every sector");
                (counter, left) = (number(iv), sector_bytes / N);
            }
            block.copy_from_slice(&counter.to_be_bytes()[16 - N..]);
            counter = counter.wrapping_add(1);
            left -= 1;
        }
        encrypt(stream);
        add_all(batch, stream);
    }
}

/// The IV as a number; of blocks with less than 16 bytes only the last bytes
/// of a counter count.
fn number<const N: usize>(iv: &[u8; N]) -> u128 {
    let mut bytes = [0; 16];
    bytes[16 - N..].copy_from_slice(iv);
    u128::from_be_bytes(bytes)
}
