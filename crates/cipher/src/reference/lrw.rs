//! LRW (Liskov, Rivest, Wagner 2002) as in the drafts of IEEE P1619 up to D5
//! and the Linux kernel: one whole multiplication a block.

use super::ReferenceCipher;

/// Encrypts one data unit in place. `key` is cipher key then 16-byte tweak key;
/// `iv` is the index of the first block, big endian.
pub fn encrypt_lrw<C: ReferenceCipher>(key: &[u8], iv: [u8; 16], unit: &mut [u8]) {
    crypt::<C>(key, iv, unit, C::encrypt);
}

/// Decrypts one data unit in place, as [`encrypt_lrw`] encrypted it.
pub fn decrypt_lrw<C: ReferenceCipher>(key: &[u8], iv: [u8; 16], unit: &mut [u8]) {
    crypt::<C>(key, iv, unit, C::decrypt);
}

fn crypt<C: ReferenceCipher>(
    key: &[u8],
    iv: [u8; 16],
    unit: &mut [u8],
    block_cipher: fn(&C, [u8; 16]) -> [u8; 16],
) {
    let (key, key2) = key.split_at(key.len() - 16);
    let cipher = C::new(key);
    let key2 = u128::from_be_bytes(key2.try_into().expect("16 bytes"));
    let mut index = u128::from_be_bytes(iv);
    for block in unit.as_chunks_mut::<16>().0 {
        let tweak = multiply(key2, index);
        let sum = u128::from_be_bytes(*block) ^ tweak;
        let sum = u128::from_be_bytes(block_cipher(&cipher, sum.to_be_bytes())) ^ tweak;
        *block = sum.to_be_bytes();
        index = index.wrapping_add(1);
    }
}

/// The product modulo x¹²⁸ + x⁷ + x² + x + 1; bit i is the coefficient of xⁱ.
fn multiply(a: u128, b: u128) -> u128 {
    let mut product = 0;
    for i in (0..128).rev() {
        let overflows = product >> 127 == 1;
        product <<= 1;
        if overflows {
            product ^= 0x87;
        }
        if b >> i & 1 == 1 {
            product ^= a;
        }
    }
    product
}
