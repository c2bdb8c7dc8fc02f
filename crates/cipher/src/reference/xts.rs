//! XTS as in IEEE Std 1619-2018, section 5.3 and 5.4, for data units that are
//! a multiple of 16 bytes.

use super::ReferenceCipher;

/// Encrypts one data unit in place. `key` is data key then tweak key; `iv` is
/// the tweak before its encryption.
pub fn encrypt_xts<C: ReferenceCipher>(key: &[u8], iv: [u8; 16], unit: &mut [u8]) {
    crypt::<C>(key, iv, unit, C::encrypt);
}

/// Decrypts one data unit in place, as [`encrypt_xts`] encrypted it.
pub fn decrypt_xts<C: ReferenceCipher>(key: &[u8], iv: [u8; 16], unit: &mut [u8]) {
    crypt::<C>(key, iv, unit, C::decrypt);
}

fn crypt<C: ReferenceCipher>(
    key: &[u8],
    iv: [u8; 16],
    unit: &mut [u8],
    block_cipher: fn(&C, [u8; 16]) -> [u8; 16],
) {
    let (key1, key2) = key.split_at(key.len() / 2);
    let data = C::new(key1);
    let mut tweak = C::new(key2).encrypt(iv);
    for block in unit.chunks_exact_mut(16) {
        let mut state = [0; 16];
        for (i, byte) in state.iter_mut().enumerate() {
            *byte = block[i] ^ tweak[i];
        }
        let state = block_cipher(&data, state);
        for (i, byte) in block.iter_mut().enumerate() {
            *byte = state[i] ^ tweak[i];
        }
        tweak = times_alpha(tweak);
    }
}

/// Section 5.2: byte by byte, the first byte the least significant.
fn times_alpha(tweak: [u8; 16]) -> [u8; 16] {
    let mut product = [0; 16];
    let mut carry = 0;
    for (byte, result) in tweak.iter().zip(&mut product) {
        *result = byte << 1 | carry;
        carry = byte >> 7;
    }
    if carry != 0 {
        product[0] ^= 135;
    }
    product
}
