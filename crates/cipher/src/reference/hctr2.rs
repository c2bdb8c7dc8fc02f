//! HCTR2 as in Crowley, Huckleberry, Biggers, "Length-preserving encryption
//! with HCTR2", 2021, section 2, with POLYVAL of RFC 8452 bit by bit.

use super::ReferenceCipher;

/// Encrypts one unit of 16 bytes or more in place.
pub fn encrypt_hctr2<C: ReferenceCipher>(key: &[u8], tweak: &[u8], unit: &mut [u8]) {
    let cipher = C::new(key);
    let (m, n) = unit.split_first_chunk_mut().expect("16 bytes at least");
    let mm = add(*m, hash(&cipher, tweak, n));
    let uu = cipher.encrypt(mm);
    xctr(&cipher, add(mm, uu), n);
    *m = add(uu, hash(&cipher, tweak, n));
}

/// Decrypts one unit in place, as [`encrypt_hctr2`] encrypted it.
pub fn decrypt_hctr2<C: ReferenceCipher>(key: &[u8], tweak: &[u8], unit: &mut [u8]) {
    let cipher = C::new(key);
    let (u, v) = unit.split_first_chunk_mut().expect("16 bytes at least");
    let uu = add(*u, hash(&cipher, tweak, v));
    let mm = cipher.decrypt(uu);
    xctr(&cipher, add(mm, uu), v);
    *u = add(mm, hash(&cipher, tweak, v));
}

/// XCTR from the sum of MM, UU and L.
fn xctr<C: ReferenceCipher>(cipher: &C, mm_uu: [u8; 16], text: &mut [u8]) {
    let l = cipher.encrypt(1_u128.to_le_bytes());
    let s = add(mm_uu, l);
    for (i, block) in text.chunks_mut(16).enumerate() {
        let stream = cipher.encrypt(add(s, (i as u128 + 1).to_le_bytes()));
        for (byte, stream) in block.iter_mut().zip(stream) {
            *byte ^= stream;
        }
    }
}

/// The length of the tweak in bits, doubled, plus 2 or 3; the tweak; the text,
/// with a one after it where it is not whole blocks.
fn hash<C: ReferenceCipher>(cipher: &C, tweak: &[u8], text: &[u8]) -> [u8; 16] {
    let whole = text.len().is_multiple_of(16);
    let length = 2 * 8 * tweak.len() as u128 + if whole { 2 } else { 3 };
    let mut input = length.to_le_bytes().to_vec();
    input.extend(tweak);
    input.resize(input.len().next_multiple_of(16), 0);
    input.extend(text);
    if !whole {
        input.push(1);
    }
    input.resize(input.len().next_multiple_of(16), 0);

    let h = u128::from_le_bytes(cipher.encrypt([0; 16]));
    let mut sum = 0;
    for block in input.as_chunks().0 {
        sum = dot(sum ^ u128::from_le_bytes(*block), h);
    }
    sum.to_le_bytes()
}

/// a·b·x⁻¹²⁸ modulo x¹²⁸ + x¹²⁷ + x¹²⁶ + x¹²¹ + 1.
fn dot(a: u128, b: u128) -> u128 {
    /// The modulus divided by x, without the remainder.
    const OVER_X: u128 = 1 << 127 | 1 << 126 | 1 << 125 | 1 << 120;
    let mut product = 0;
    for bit in 0..128 {
        if a >> bit & 1 != 0 {
            product ^= b;
        }
        let odd = product & 1 != 0;
        product >>= 1;
        if odd {
            product ^= OVER_X;
        }
    }
    product
}

fn add(x: [u8; 16], y: [u8; 16]) -> [u8; 16] {
    std::array::from_fn(|i| x[i] ^ y[i])
}
