//! Block ciphers, one a file: constants, key schedule, rounds.

pub(crate) mod aes;
mod cbc;
pub(crate) mod chacha;
pub(crate) mod lanes;
pub(crate) mod serpent;
mod twofish;

pub(crate) use self::twofish::Twofish;

use crate::Backend;
use crate::mode::xts;

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

    /// Encrypts a run of sectors in place in XTS mode; `starts` has the first
    /// tweak of each.
    fn encrypt_xts(&self, starts: &[Block], sector_bytes: usize, data: &mut [u8])
    where
        Self: BlockCipher<16>,
    {
        xts::run(starts, sector_bytes, data, |blocks| {
            BlockCipher::<16>::encrypt_blocks(self, blocks);
        });
    }

    /// Decrypts a run of sectors in place in XTS mode; `starts` has the first
    /// tweak of each.
    fn decrypt_xts(&self, starts: &[Block], sector_bytes: usize, data: &mut [u8])
    where
        Self: BlockCipher<16>,
    {
        xts::run(starts, sector_bytes, data, |blocks| {
            BlockCipher::<16>::decrypt_blocks(self, blocks);
        });
    }

    /// Encrypts a run of sectors in place in CBC mode; `ivs` has one for each.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the mode `cbc`"))]
    fn encrypt_cbc(&self, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        cbc::encrypt(self, ivs, sector_bytes, data);
    }

    /// Decrypts a run of sectors in place in CBC mode; `ivs` has one for each.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the mode `cbc`"))]
    fn decrypt_cbc(&self, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        cbc::decrypt(self, ivs, sector_bytes, data);
    }
}
