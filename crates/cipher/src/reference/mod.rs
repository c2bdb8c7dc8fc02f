//! Slow implementations shaped like the standards: what every backend must
//! equal. For tests only; they leak through timing and wipe nothing.

mod adiantum;
mod aes;
mod anubis;
mod aria;
mod blowfish;
mod camellia;
mod cast;
mod cbc;
mod chacha;
mod ctr;
pub(crate) mod des;
mod elephant;
mod hctr2;
mod khazad;
mod kuznyechik;
mod lrw;
mod md5;
mod null;
pub(crate) mod sectors;
mod seed;
pub(crate) mod serpent;
mod sm4;
mod tcw;
mod twofish;
mod xts;

pub use self::adiantum::{decrypt_adiantum, encrypt_adiantum};
pub use self::aes::Aes;
#[cfg(test)]
pub(crate) use self::aes::sub_byte;
pub use self::anubis::Anubis;
pub use self::aria::Aria;
pub use self::blowfish::{Blowfish, BlowfishLittleEndian};
pub use self::camellia::Camellia;
pub use self::cast::{Cast5, Cast6};
pub use self::cbc::{decrypt_cbc, encrypt_cbc};
pub use self::chacha::{add_chacha, add_xchacha};
pub use self::ctr::crypt_ctr;
pub use self::des::{Des, TripleDes};
pub use self::hctr2::{decrypt_hctr2, encrypt_hctr2};
pub use self::khazad::Khazad;
pub use self::kuznyechik::Kuznyechik;
pub use self::lrw::{decrypt_lrw, encrypt_lrw};
pub use self::null::Null;
pub use self::sectors::{Direction, ReferenceMode, crypt_sectors};
pub use self::seed::Seed;
pub use self::serpent::Serpent;
pub use self::sm4::Sm4;
pub use self::twofish::Twofish;
pub use self::xts::{decrypt_xts, encrypt_xts};

/// A keyed cipher of blocks of `N` bytes, one block at a time.
pub trait ReferenceCipher<const N: usize = 16> {
    /// The cipher under a key of one of its lengths.
    fn new(key: &[u8]) -> Self;

    /// The ciphertext of `plain`.
    fn encrypt(&self, plain: [u8; N]) -> [u8; N];

    /// The plaintext of `cipher`.
    fn decrypt(&self, cipher: [u8; N]) -> [u8; N];
}

/// The product of `a` and `b` in GF(2⁸) modulo the polynomial `modulus`, given
/// with its x⁸ term.
fn gf256_mul(a: u8, b: u8, modulus: u16) -> u8 {
    let mut product = 0_u16;
    for bit in (0..8).rev() {
        product <<= 1;
        if product & 0x100 != 0 {
            product ^= modulus;
        }
        if b >> bit & 1 != 0 {
            product ^= u16::from(a);
        }
    }
    product as u8
}
