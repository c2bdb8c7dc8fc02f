//! AES's S-box as a circuit over words: bit `i` of the eight words is the
//! input of one S-box, the least significant bit's word first.
//!
//! The circuit is that of J. Boyar and R. Peralta, "A new combinational logic minimization
//! technique with applications to cryptology", SEA 2010, of 32 ANDs and 81 XORs, without its four
//! complements: the affine map's constant 63₁₆ is part of the round keys, see [`CONSTANT`]. It
//! inverts in GF((2⁴)²), and its layers are those of that field.

use crate::block::gates::Gates;

/// The constant that the S-box adds after its linear map. [`forward`] leaves it out.
pub(crate) const CONSTANT: u8 = 0x63;

/// The S-box without [`CONSTANT`].
#[inline(always)]
pub(crate) fn forward<G: Gates>([x7, x6, x5, x4, x3, x2, x1, x0]: [G; 8]) -> [G; 8] {
    // Into the tower field: 21 sums of input bits.
    let y14 = x3 ^ x5;
    let y13 = x0 ^ x6;
    let y9 = x0 ^ x3;
    let y8 = x0 ^ x5;
    let x12 = x1 ^ x2;
    let y1 = x12 ^ x7;
    let y4 = y1 ^ x3;
    let y12 = y13 ^ y14;
    let y2 = y1 ^ x0;
    let y5 = y1 ^ x6;
    let y3 = y5 ^ y8;
    let x4y12 = x4 ^ y12;
    let y15 = x4y12 ^ x5;
    let y20 = x4y12 ^ x1;
    let y6 = y15 ^ x7;
    let y10 = y15 ^ x12;
    let y11 = y20 ^ y9;
    let y7 = x7 ^ y11;
    let y17 = y10 ^ y11;
    let y19 = y10 ^ y8;
    let y16 = x12 ^ y11;
    let y21 = y13 ^ y16;
    let y18 = x0 ^ y16;

    // The norm, four bits of GF(2⁴).
    let a = y12 & y15;
    let b = (y3 & y6) ^ a;
    let c = (y4 & x7) ^ a;
    let d = y13 & y16;
    let e = (y5 & y1) ^ d;
    let f = (y2 & y7) ^ d;
    let g = y9 & y11;
    let h = (y14 & y17) ^ g;
    let i = (y8 & y10) ^ g;
    let n0 = (b ^ h) ^ y20;
    let n1 = (c ^ i) ^ y19;
    let n2 = (e ^ h) ^ y21;
    let n3 = (f ^ i) ^ y18;

    // Its inverse in GF(2⁴).
    let n01 = n0 ^ n1;
    let n02 = n0 & n2;
    let p = n3 ^ n02;
    let m1 = (n01 & p) ^ n1;
    let m3 = ((n1 ^ n02) & (n2 ^ n3)) ^ n3;
    let q = n3 & (p ^ m3);
    let m2 = q ^ (n2 ^ m3);
    let m0 = n01 ^ (m1 & (p ^ q));

    // The inverse of the input: 18 products.
    let m02 = m0 ^ m2;
    let m13 = m1 ^ m3;
    let m01 = m1 ^ m0;
    let m23 = m3 ^ m2;
    let m0123 = m13 ^ m02;
    let z0 = m23 & y15;
    let z1 = m2 & y6;
    let z2 = m3 & x7;
    let z3 = m01 & y16;
    let z4 = m0 & y1;
    let z5 = m1 & y7;
    let z6 = m13 & y11;
    let z7 = m0123 & y17;
    let z8 = m02 & y10;
    let z9 = m23 & y12;
    let z10 = m2 & y3;
    let z11 = m3 & y4;
    let z12 = m01 & y13;
    let z13 = m0 & y5;
    let z14 = m1 & y2;
    let z15 = m13 & y9;
    let z16 = m0123 & y14;
    let z17 = m02 & y8;

    // Out of the tower field and through the affine map's matrix.
    let a = z15 ^ z16;
    let b = z5 ^ z13;
    let c = z0 ^ z3;
    let d = (z2 ^ z12) ^ c;
    let e = z4 ^ a;
    let f = z3 ^ (z6 ^ z7);
    let g = (z7 ^ z8) ^ e;
    let h = (z9 ^ z10) ^ e;
    let i = z4 ^ f;
    let j = (z14 ^ d) ^ g;
    let k = z1 ^ h;
    let s3 = c ^ k;
    [
        b ^ (a ^ d),
        (z12 ^ b) ^ g,
        (z10 ^ z11) ^ j,
        (z2 ^ z5) ^ k,
        s3,
        (z16 ^ z17) ^ (i ^ j),
        i ^ s3,
        f ^ h,
    ]
}

/// The inverse of [`forward`]: with M the affine map's matrix and I the field's
/// inversion, forward is MI, so the inverse, IM⁻¹, is M⁻¹(MI)M⁻¹.
#[inline(always)]
pub(crate) fn inverse<G: Gates>(x: [G; 8]) -> [G; 8] {
    inverse_matrix(forward(inverse_matrix(x)))
}

/// M⁻¹: bit i is the sum of bits i + 2, i + 5 and i + 7 modulo 8.
#[inline(always)]
fn inverse_matrix<G: Gates>([a, b, c, d, e, f, g, h]: [G; 8]) -> [G; 8] {
    [
        c ^ f ^ h,
        a ^ d ^ g,
        b ^ e ^ h,
        a ^ c ^ f,
        b ^ d ^ g,
        c ^ e ^ h,
        a ^ d ^ f,
        b ^ e ^ g,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::sub_byte;

    /// Half of all bytes, as bit planes.
    fn planes(upper: bool, bytes: impl Fn(u8) -> u8) -> [u128; 8] {
        std::array::from_fn(|bit| {
            (0..128_u8).fold(0, |plane, x| {
                let set = bytes(x | u8::from(upper) << 7) >> bit & 1;
                plane | u128::from(set) << x
            })
        })
    }

    #[test]
    fn every_byte() {
        for upper in [false, true] {
            let aes = planes(upper, |x| sub_byte(x) ^ CONSTANT);
            assert_eq!(forward(planes(upper, |x| x)), aes);
            assert_eq!(inverse(aes), planes(upper, |x| x));
        }
    }
}
