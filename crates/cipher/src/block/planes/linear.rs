//! Linear maps of bytes, and the field of AES, where the S-boxes of most
//! ciphers are an inversion between two of them.

/// A linear map of bytes over GF(2): what becomes of bit 0, of bit 1, ….
pub(crate) type Linear = [u8; 8];

/// A table of nibbles.
pub(crate) type Nibbles = [u8; 16];

/// Every byte as it is.
pub(crate) const IDENTITY: Linear = [1, 2, 4, 8, 16, 32, 64, 128];

/// `map` of `x`, without a branch.
pub(crate) const fn apply(map: &Linear, x: u8) -> u8 {
    let mut sum = 0;
    let mut bit = 0;
    while bit < 8 {
        sum ^= map[bit] & (x >> bit & 1).wrapping_neg();
        bit += 1;
    }
    sum
}

/// The values that the lower nibble and the upper one add to `map` of a byte.
pub(crate) fn of_nibbles(map: &Linear) -> [Nibbles; 2] {
    let mut tables = [[0; 16]; 2];
    for x in 0..16 {
        tables[0][usize::from(x)] = apply(map, x);
        tables[1][usize::from(x)] = apply(map, x << 4);
    }
    tables
}

/// `second` after `first`.
pub(crate) const fn compose(second: &Linear, first: &Linear) -> Linear {
    let mut map = [0; 8];
    let mut bit = 0;
    while bit < 8 {
        map[bit] = apply(second, first[bit]);
        bit += 1;
    }
    map
}

/// The inverse of `map`, which must be invertible.
pub(crate) const fn inverse(map: &Linear) -> Linear {
    let mut inverse = [0; 8];
    let mut x = 0;
    while x < 256 {
        let y = apply(map, x as u8);
        if y.is_power_of_two() {
            inverse[y.trailing_zeros() as usize] = x as u8;
        }
        x += 1;
    }
    inverse
}

/// The product in GF(2⁸) modulo `modulus`, given with its x⁸ term, without a
/// branch or a load that depends on the factors.
pub(crate) const fn multiply(a: u8, b: u8, modulus: u16) -> u8 {
    let mut product = 0_u16;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        product <<= 1;
        product ^= modulus & (product >> 8 & 1).wrapping_neg();
        product ^= a as u16 & (b as u16 >> bit & 1).wrapping_neg();
    }
    product as u8
}

/// The product with `factor`, as a map.
pub(crate) const fn times(factor: u8, modulus: u16) -> Linear {
    let mut map = IDENTITY;
    let mut bit = 0;
    while bit < 8 {
        map[bit] = multiply(map[bit], factor, modulus);
        bit += 1;
    }
    map
}

/// x⁸ + x⁴ + x³ + x + 1, of AES and of GFNI.
pub(crate) const AES_FIELD: u16 = 0x11b;

/// GF(2⁸) modulo `modulus`, which is irreducible, to that of AES with all sums
/// and products.
pub(crate) const fn to_aes_field(modulus: u16) -> Linear {
    // 1, r, r² … for a root r of `modulus`.
    let mut root = 2;
    loop {
        let mut powers = [1; 8];
        let mut i = 1;
        while i < 8 {
            powers[i] = multiply(powers[i - 1], root, AES_FIELD);
            i += 1;
        }
        let eighth = multiply(powers[7], root, AES_FIELD);
        if eighth == apply(&powers, modulus as u8) {
            return powers;
        }
        root += 1;
    }
}

/// Of an S-box that is an affine map of 1/(`into`·(x + `zero`)) in the field of
/// AES: the map of the inverse, and what is added to it.
pub(crate) const fn after_inversion(sbox: &[u8; 256], into: &Linear, zero: u8) -> (Linear, u8) {
    let back = inverse(into);
    let constant = sbox[zero as usize];
    let mut map = [0; 8];
    let mut bit = 0;
    while bit < 8 {
        let mut x = 1;
        while multiply(x, 1 << bit, AES_FIELD) != 1 {
            x += 1;
        }
        map[bit] = sbox[(apply(&back, x) ^ zero) as usize] ^ constant;
        bit += 1;
    }
    (map, constant)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Twofish's MDS and RS, Camellia, Kuznyechik, SM4, SEED and Anubis.
    const FIELDS: [u16; 7] = [0x169, 0x14d, 0x169, 0x1c3, 0x1f5, 0x163, 0x11d];

    #[test]
    fn the_way_to_the_field_of_aes_keeps_products() {
        for modulus in FIELDS {
            let way = to_aes_field(modulus);
            for a in 0..=255 {
                for b in 0..=255 {
                    let there = multiply(apply(&way, a), apply(&way, b), AES_FIELD);
                    assert_eq!(there, apply(&way, multiply(a, b, modulus)), "{modulus:#x}");
                }
            }
        }
    }

    #[test]
    fn maps_compose_and_are_undone() {
        for factor in 1..=255 {
            let (map, way) = (times(factor, AES_FIELD), to_aes_field(0x169));
            let both = compose(&way, &map);
            for x in 0..=255 {
                assert_eq!(apply(&map, x), multiply(x, factor, AES_FIELD));
                assert_eq!(apply(&both, x), apply(&way, apply(&map, x)));
                assert_eq!(apply(&inverse(&both), apply(&both, x)), x);
            }
        }
    }
}
