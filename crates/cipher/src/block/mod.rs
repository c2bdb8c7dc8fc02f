//! Block ciphers, one a file: constants, key schedule, rounds.

pub(crate) mod aes;
pub(crate) mod anubis;
pub(crate) mod aria;
pub(crate) mod blowfish;
pub(crate) mod camellia;
pub(crate) mod cast;
pub(crate) mod cast5;
pub(crate) mod cast6;
pub(crate) mod chacha;
pub(crate) mod des;
pub(crate) mod gates;
pub(crate) mod involution;
pub(crate) mod khazad;
pub(crate) mod kuznyechik;
mod null;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;
pub(crate) mod registers;
pub(crate) mod scan;
pub(crate) mod seed;
pub(crate) mod serpent;
pub(crate) mod sm4;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod toy;
pub(crate) mod twofish;

pub(crate) use self::anubis::Anubis;
pub(crate) use self::aria::Aria;
pub(crate) use self::blowfish::Blowfish;
pub(crate) use self::camellia::Camellia;
pub(crate) use self::cast5::Cast5;
pub(crate) use self::cast6::Cast6;
pub(crate) use self::khazad::Khazad;
pub(crate) use self::kuznyechik::Kuznyechik;
pub(crate) use self::null::Null;
pub(crate) use self::seed::Seed;
pub(crate) use self::sm4::Sm4;
pub(crate) use self::twofish::Twofish;

use crate::mode::{GROUP, cbc, ctr, xts};

/// One block of a 128-bit block cipher.
pub(crate) type Block = [u8; 16];

/// A keyed cipher with blocks of `N` bytes, 16 or 8, over many independent
/// blocks at once: what every mode works with, whatever does the work.
///
/// The number of blocks decides how they are processed. A kernel with many lanes takes as long for
/// one block as for all its lanes, so few blocks are faster one by one. CBC encryption asks for as
/// many as there are sectors.
///
/// The modes are written over a cipher of blocks; a kernel that does a mode
/// faster takes the place of the method.
pub(crate) trait BlockCipher<const N: usize>: Send + Sync {
    /// Sectors that fill the lanes in CBC encryption, from [`GROUP`] to
    /// [`MOST_SECTORS`](crate::mode::MOST_SECTORS): no more are given at once.
    fn side_by_side(&self) -> usize {
        GROUP
    }

    /// Encrypts every block in place.
    fn encrypt_blocks(&self, blocks: &mut [[u8; N]]);

    /// Decrypts every block in place.
    fn decrypt_blocks(&self, blocks: &mut [[u8; N]]);

    /// Encrypts whole sectors in place in XTS mode, which is for blocks of 16
    /// bytes; `starts` has the first tweak of each.
    fn encrypt_xts(&self, starts: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        xts::run(starts, sector_bytes, data, &|blocks| {
            self.encrypt_blocks(blocks);
        });
    }

    /// Decrypts whole sectors in place in XTS mode, as
    /// [`encrypt_xts`](Self::encrypt_xts).
    fn decrypt_xts(&self, starts: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        xts::run(starts, sector_bytes, data, &|blocks| {
            self.decrypt_blocks(blocks);
        });
    }

    /// Encrypts whole sectors in place in CBC mode; `ivs` has one for each.
    fn encrypt_cbc(&self, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        cbc::encrypt(ivs, sector_bytes, data, &|blocks| {
            self.encrypt_blocks(blocks);
        });
    }

    /// Decrypts whole sectors in place in CBC mode; `ivs` has one for each.
    fn decrypt_cbc(&self, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        cbc::decrypt(ivs, sector_bytes, data, &|blocks| {
            self.decrypt_blocks(blocks);
        });
    }

    /// Encrypts or decrypts whole sectors in place in CTR mode; `ivs` has one
    /// for each.
    fn crypt_ctr(&self, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        ctr::run(ivs, sector_bytes, data, &|blocks| {
            self.encrypt_blocks(blocks);
        });
    }
}

/// A cipher under its key, whatever does the work.
pub(crate) type Keyed<const N: usize> = Box<dyn BlockCipher<N>>;

/// A function that makes a cipher from a key of any of its lengths.
pub(crate) type Keying<const N: usize> = Box<dyn Fn(&[u8]) -> Keyed<N>>;

/// A function that makes a cipher of either block size.
pub(crate) enum AnyKeying {
    Wide(Keying<16>),
    Narrow(Keying<8>),
}
