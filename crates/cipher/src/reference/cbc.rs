//! CBC as in NIST SP 800-38A, section 6.2.

use super::ReferenceCipher;

/// Encrypts one data unit in place.
pub fn encrypt_cbc<C: ReferenceCipher<N>, const N: usize>(
    key: &[u8],
    iv: [u8; N],
    unit: &mut [u8],
) {
    let cipher = C::new(key);
    let mut previous = iv;
    for block in unit.as_chunks_mut::<N>().0 {
        previous = cipher.encrypt(xor(*block, previous));
        *block = previous;
    }
}

/// Decrypts one data unit in place.
pub fn decrypt_cbc<C: ReferenceCipher<N>, const N: usize>(
    key: &[u8],
    iv: [u8; N],
    unit: &mut [u8],
) {
    let cipher = C::new(key);
    let mut previous = iv;
    for block in unit.as_chunks_mut::<N>().0 {
        let ciphertext = *block;
        *block = xor(cipher.decrypt(ciphertext), previous);
        previous = ciphertext;
    }
}

fn xor<const N: usize>(a: [u8; N], b: [u8; N]) -> [u8; N] {
    std::array::from_fn(|i| a[i] ^ b[i])
}
