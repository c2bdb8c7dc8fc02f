//! Several ciphers in a row, which are one.

use super::GROUP;
use crate::block::{BlockCipher, Keyed};

/// Several ciphers over each block, in the order of encryption.
pub(crate) struct Chain<const N: usize> {
    pub(crate) ciphers: Vec<Keyed<N>>,
}

impl<const N: usize> BlockCipher<N> for Chain<N> {
    fn side_by_side(&self) -> usize {
        let each = self.ciphers.iter().map(|cipher| cipher.side_by_side());
        each.max().unwrap_or(GROUP)
    }

    fn encrypt_blocks(&self, blocks: &mut [[u8; N]]) {
        for cipher in &self.ciphers {
            cipher.encrypt_blocks(blocks);
        }
    }

    fn decrypt_blocks(&self, blocks: &mut [[u8; N]]) {
        for cipher in self.ciphers.iter().rev() {
            cipher.decrypt_blocks(blocks);
        }
    }
}
