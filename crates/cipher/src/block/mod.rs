//! Block ciphers, one a file: constants, key schedule, rounds.

mod aes;
pub(crate) mod serpent;
mod twofish;

pub(crate) use self::aes::Aes;
pub(crate) use self::twofish::Twofish;

use crate::Backend;

/// One block of a 128-bit block cipher.
pub(crate) type Block = [u8; 16];

/// A keyed cipher with `N`-byte blocks, over many independent blocks at once.
pub(crate) trait BlockCipher<const N: usize>: Send + Sync + Sized + 'static {
    /// What does the work.
    const BACKEND: Backend;

    /// Whether no load or branch depends on the key or the data.
    const CONSTANT_TIME: bool;

    /// Encrypts every block in place.
    fn encrypt_blocks(&self, blocks: &mut [[u8; N]]);

    /// Decrypts every block in place.
    fn decrypt_blocks(&self, blocks: &mut [[u8; N]]);
}
