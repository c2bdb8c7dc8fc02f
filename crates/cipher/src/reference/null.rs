//! The kernel's `cipher_null`.

use super::ReferenceCipher;

/// No cipher at all.
pub struct Null;

impl ReferenceCipher for Null {
    fn new(_: &[u8]) -> Self {
        Self
    }

    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16] {
        plain
    }

    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16] {
        cipher
    }
}
