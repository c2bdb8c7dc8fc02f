//! LRW (Liskov, Rivest, Wagner 2002) as in the drafts of IEEE P1619 up to D5
//! and the Linux kernel: one whole multiplication a block. TrueCrypt 4 has it for
//! blocks of 8 bytes, too.

use super::ReferenceCipher;

/// Encrypts one data unit in place. `key` is cipher key then tweak key, which has
/// a block's size; `iv` is the index of the first block, big endian.
pub fn encrypt_lrw<C: ReferenceCipher<N>, const N: usize>(
    key: &[u8],
    iv: [u8; N],
    unit: &mut [u8],
) {
    crypt::<C, N>(key, iv, unit, C::encrypt);
}

/// Decrypts one data unit in place, as [`encrypt_lrw`] encrypted it.
pub fn decrypt_lrw<C: ReferenceCipher<N>, const N: usize>(
    key: &[u8],
    iv: [u8; N],
    unit: &mut [u8],
) {
    crypt::<C, N>(key, iv, unit, C::decrypt);
}

fn crypt<C: ReferenceCipher<N>, const N: usize>(
    key: &[u8],
    iv: [u8; N],
    unit: &mut [u8],
    block_cipher: fn(&C, [u8; N]) -> [u8; N],
) {
    let (key, key2) = key.split_at(key.len() - N);
    let cipher = C::new(key);
    let key2 = key2.try_into().expect("a block");
    let mut index = iv;
    for block in unit.as_chunks_mut::<N>().0 {
        let tweak = multiply(key2, index);
        *block = sum(block_cipher(&cipher, sum(*block, tweak)), tweak);
        for byte in index.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }
}

fn sum<const N: usize>(a: [u8; N], b: [u8; N]) -> [u8; N] {
    std::array::from_fn(|i| a[i] ^ b[i])
}

/// The product modulo x¹²⁸ + x⁷ + x² + x + 1 or x⁶⁴ + x⁴ + x³ + x + 1; the last
/// bit of the last byte is the coefficient of x⁰.
fn multiply<const N: usize>(a: [u8; N], b: [u8; N]) -> [u8; N] {
    let remainder = match N {
        16 => 0x87,
        8 => 0x1b,
        _ => unreachable!("no field of {N} bytes is known"),
    };
    let mut product = [0; N];
    for byte in b {
        for bit in (0..8).rev() {
            let overflows = product[0] >> 7 == 1;
            let next = |i: usize| product.get(i + 1).map_or(0, |next| next >> 7);
            product = std::array::from_fn(|i| product[i] << 1 | next(i));
            if overflows {
                product[N - 1] ^= remainder;
            }
            if byte >> bit & 1 == 1 {
                product = sum(product, a);
            }
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::multiply;

    /// By hand: x · x⁶³ = x⁶⁴ = x⁴ + x³ + x + 1, and (x + 1)² = x² + 1.
    #[test]
    fn products_of_eight_bytes() {
        let element = |number: u64| number.to_be_bytes();
        for (a, b, product) in [
            (2, 1 << 63, 0x1b),
            (3, 3, 5),
            (1, 0x0123_4567_89ab_cdef, 0x0123_4567_89ab_cdef),
            (1 << 63, 4, 0x36),
        ] {
            assert_eq!(multiply(element(a), element(b)), element(product));
            assert_eq!(multiply(element(b), element(a)), element(product));
        }
    }
}
