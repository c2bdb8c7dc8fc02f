//! CTR as in NIST SP 800-38A, section 6.5, with the standard incrementing
//! function of its appendix B.1 over the whole block.

use super::ReferenceCipher;

/// Encrypts or decrypts one data unit in place; `iv` is the first counter.
pub fn crypt_ctr<C: ReferenceCipher<N>, const N: usize>(key: &[u8], iv: [u8; N], unit: &mut [u8]) {
    let cipher = C::new(key);
    let mut counter = iv;
    for block in unit.as_chunks_mut::<N>().0 {
        let stream = cipher.encrypt(counter);
        for i in 0..N {
            block[i] ^= stream[i];
        }
        for byte in counter.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }
}
