//! Slow implementations shaped like the standards: what every backend must
//! equal. For tests only; they leak through timing and wipe nothing.

mod aes;
mod hctr2;
pub(crate) mod serpent;
mod twofish;
mod xts;

pub use self::aes::Aes;
#[cfg(test)]
pub(crate) use self::aes::sub_byte;
pub use self::hctr2::{decrypt_hctr2, encrypt_hctr2};
pub use self::serpent::Serpent;
pub use self::twofish::Twofish;
pub use self::xts::{decrypt_xts, encrypt_xts};

/// A keyed cipher of 16-byte blocks, one block at a time.
pub trait ReferenceCipher {
    /// The cipher under a key of 16, 24 or 32 bytes.
    fn new(key: &[u8]) -> Self;

    /// The ciphertext of `plain`.
    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16];

    /// The plaintext of `cipher`.
    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16];
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
