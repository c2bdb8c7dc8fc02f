//! AES by the RustCrypto project's crate `aes`, which uses VAES or AES-NI
//! where the CPU has them and a bit-sliced, constant-time form elsewhere.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};

use crate::Backend;
use crate::block::{Block, BlockCipher};

/// AES (FIPS 197) with a key of 128, 192 or 256 bits.
pub(crate) enum RustCryptoAes {
    Bits128(Aes128),
    Bits192(Aes192),
    Bits256(Aes256),
}

impl RustCryptoAes {
    /// The cipher under a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Self {
        const CHECKED: &str = "CipherSpec lets through 16, 24 and 32 bytes only";
        match key.len() {
            16 => Self::Bits128(Aes128::new_from_slice(key).expect(CHECKED)),
            24 => Self::Bits192(Aes192::new_from_slice(key).expect(CHECKED)),
            _ => Self::Bits256(Aes256::new_from_slice(key).expect(CHECKED)),
        }
    }
}

impl BlockCipher<16> for RustCryptoAes {
    const BACKEND: Backend = Backend::RustCrypto;
    const CONSTANT_TIME: bool = true;

    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        let blocks = Array::cast_slice_from_core_mut(blocks);
        match self {
            Self::Bits128(aes) => aes.encrypt_blocks(blocks),
            Self::Bits192(aes) => aes.encrypt_blocks(blocks),
            Self::Bits256(aes) => aes.encrypt_blocks(blocks),
        }
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        let blocks = Array::cast_slice_from_core_mut(blocks);
        match self {
            Self::Bits128(aes) => aes.decrypt_blocks(blocks),
            Self::Bits192(aes) => aes.decrypt_blocks(blocks),
            Self::Bits256(aes) => aes.decrypt_blocks(blocks),
        }
    }
}
