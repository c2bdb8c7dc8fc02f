//! What the modes see of a block cipher, so that several in a row are one.

use super::{GROUP, MOST_SECTORS, cbc};
use crate::block::BlockCipher;

/// A keyed cipher over many independent blocks at once, whatever does the work.
pub(crate) trait Blocks<const N: usize>: Send + Sync {
    /// Sectors that fill the lanes in CBC encryption, as
    /// [`BlockCipher::SIDE_BY_SIDE`].
    fn side_by_side(&self) -> usize;

    /// Encrypts every block in place.
    fn encrypt_blocks(&self, blocks: &mut [[u8; N]]);

    /// Decrypts every block in place.
    fn decrypt_blocks(&self, blocks: &mut [[u8; N]]);

    /// Encrypts whole sectors in place in CBC mode; `ivs` has one for each.
    fn encrypt_cbc(&self, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        cbc::encrypt(ivs, sector_bytes, data, |blocks| {
            self.encrypt_blocks(blocks)
        });
    }

    /// Decrypts whole sectors in place in CBC mode; `ivs` has one for each.
    fn decrypt_cbc(&self, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        cbc::decrypt(ivs, sector_bytes, data, |blocks| {
            self.decrypt_blocks(blocks)
        });
    }
}

impl<C: BlockCipher<N>, const N: usize> Blocks<N> for C {
    fn side_by_side(&self) -> usize {
        const { assert!(GROUP <= C::SIDE_BY_SIDE && C::SIDE_BY_SIDE <= MOST_SECTORS) }
        C::SIDE_BY_SIDE
    }

    fn encrypt_blocks(&self, blocks: &mut [[u8; N]]) {
        BlockCipher::encrypt_blocks(self, blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [[u8; N]]) {
        BlockCipher::decrypt_blocks(self, blocks);
    }

    fn encrypt_cbc(&self, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        BlockCipher::encrypt_cbc(self, ivs, sector_bytes, data);
    }

    fn decrypt_cbc(&self, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        BlockCipher::decrypt_cbc(self, ivs, sector_bytes, data);
    }
}

/// Several ciphers over each block, in the order of encryption.
pub(crate) struct Chain<const N: usize> {
    pub(crate) ciphers: Vec<Box<dyn Blocks<N>>>,
}

impl<const N: usize> Blocks<N> for Chain<N> {
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
