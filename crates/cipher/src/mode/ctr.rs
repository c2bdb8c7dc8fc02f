//! CTR (NIST SP 800-38A, section 6.5): Cⱼ = Pⱼ ⊕ E(IV + j), the IV a
//! big-endian number of a whole block that wraps, as the kernel counts.

use super::{BATCH_BYTES, BlockMode, Blocks, SMALL, add_all, blocks};

/// A block cipher in CTR mode.
pub(crate) struct Ctr<C> {
    pub(crate) cipher: C,
}

impl<C> Ctr<C> {
    fn add_key_stream<const N: usize>(&self, ivs: &[[u8; N]], data: &mut [u8])
    where
        C: Blocks<N>,
    {
        match data.len() {
            ..=SMALL => self.add_in(ivs, data, &mut [0; SMALL]),
            _ => self.add_in(ivs, data, &mut [0; BATCH_BYTES]),
        }
    }

    /// As many bytes at a time as there is room for the key `stream`.
    fn add_in<const N: usize>(&self, ivs: &[[u8; N]], data: &mut [u8], stream: &mut [u8])
    where
        C: Blocks<N>,
    {
        let sector_blocks = data.len() / N / ivs.len();
        let mut ivs = ivs.iter();
        let (mut counter, mut left) = (0, 0);
        let stream = blocks(stream);
        for batch in blocks(data).chunks_mut(stream.len()) {
            let stream = &mut stream[..batch.len()];
            for block in &mut *stream {
                if left == 0 {
                    let iv = ivs.next().expect("an IV for every sector");
                    (counter, left) = (number(iv), sector_blocks);
                }
                block.copy_from_slice(&counter.to_be_bytes()[16 - N..]);
                counter = counter.wrapping_add(1);
                left -= 1;
            }
            self.cipher.encrypt_blocks(stream);
            add_all(batch, stream);
        }
    }
}

impl<C: Blocks<N>, const N: usize> BlockMode<N> for Ctr<C> {
    fn encrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]) {
        self.add_key_stream(ivs, data);
    }

    fn decrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]) {
        self.add_key_stream(ivs, data);
    }

    fn encrypt_zeros(&self, ivs: &mut [[u8; N]]) {
        self.cipher.encrypt_blocks(ivs);
    }
}

/// The IV as a number; of blocks with less than 16 bytes only the last bytes
/// of a counter count.
fn number<const N: usize>(iv: &[u8; N]) -> u128 {
    let mut bytes = [0; 16];
    bytes[16 - N..].copy_from_slice(iv);
    u128::from_be_bytes(bytes)
}
