//! ECB (NIST SP 800-38A, section 6.1): every block by itself, no IV.

use super::{BATCH_BYTES, BlockMode, blocks};
use crate::block::Keyed;

/// A block cipher in ECB mode.
pub(crate) struct Ecb<const N: usize> {
    pub(crate) cipher: Keyed<N>,
}

impl<const N: usize> BlockMode<N> for Ecb<N> {
    fn encrypt(&self, _ivs: &mut [[u8; N]], data: &mut [u8]) {
        for batch in blocks(data).chunks_mut(BATCH_BYTES / N) {
            self.cipher.encrypt_blocks(batch);
        }
    }

    fn decrypt(&self, _ivs: &mut [[u8; N]], data: &mut [u8]) {
        for batch in blocks(data).chunks_mut(BATCH_BYTES / N) {
            self.cipher.decrypt_blocks(batch);
        }
    }

    fn encrypt_zeros(&self, ivs: &mut [[u8; N]]) {
        ivs.fill([0; N]);
        self.cipher.encrypt_blocks(ivs);
    }
}
