//! The parts that Anubis and Khazad (Barreto, Rijmen 2000; the tweaked versions of NESSIE) share:
//! the S-box and the field.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;

const P: [u8; 16] = [3, 15, 14, 0, 5, 4, 11, 12, 13, 10, 9, 6, 7, 8, 2, 1];
const Q: [u8; 16] = [9, 14, 5, 6, 10, 2, 3, 12, 15, 0, 4, 13, 7, 11, 1, 8];

/// The upper halves of two nibbles, then their lower ones.
const fn exchange(a: u8, b: u8) -> (usize, usize) {
    ((a & 12 | b >> 2) as usize, (a << 2 & 12 | b & 3) as usize)
}

/// The S-box, which is its own inverse: appendix B of both papers, made of the
/// permutations of nibbles P and Q.
pub(crate) const SBOX: [u8; 256] = {
    let mut sbox = [0; 256];
    let mut x = 0;
    while x < 256 {
        let (a, b) = exchange(P[x >> 4], Q[x & 15]);
        let (a, b) = exchange(Q[a], P[b]);
        sbox[x] = P[a] << 4 | Q[b];
        x += 1;
    }
    sbox
};

/// The product in GF(2⁸) modulo x⁸ + x⁴ + x³ + x² + 1. No branch and no load
/// depends on the factors: one of them can be key.
pub(super) const fn field_mul(a: u8, b: u8) -> u8 {
    let mut product = 0_u8;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        product = product << 1 ^ 0x1d & (product >> 7).wrapping_neg();
        product ^= a & (b >> bit & 1).wrapping_neg();
    }
    product
}
