//! What the modes see of a block cipher, so that several in a row are one.

use crate::block::BlockCipher;

/// A keyed cipher over many independent blocks at once, whatever does the work.
pub(crate) trait Blocks<const N: usize>: Send + Sync {
    /// Encrypts every block in place.
    fn encrypt_blocks(&self, blocks: &mut [[u8; N]]);

    /// Decrypts every block in place.
    fn decrypt_blocks(&self, blocks: &mut [[u8; N]]);
}

impl<C: BlockCipher<N>, const N: usize> Blocks<N> for C {
    fn encrypt_blocks(&self, blocks: &mut [[u8; N]]) {
        BlockCipher::encrypt_blocks(self, blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [[u8; N]]) {
        BlockCipher::decrypt_blocks(self, blocks);
    }
}

/// Several ciphers over each block, in the order of encryption.
pub(crate) struct Chain<const N: usize> {
    pub(crate) ciphers: Vec<Box<dyn Blocks<N>>>,
}

impl<const N: usize> Blocks<N> for Chain<N> {
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
