//! Inversion in the field of AES by look-ups of nibbles, for CPUs that have no
//! instruction for it.
//!
//! With u in the field such that u + ū = 1, where ū = u¹⁶, every element is
//! i·u + j·ū with i and j in GF(2⁴), and its inverse is (j·u + i·ū) / N with
//! N = i·j + k²·n, k = i + j, n = u·ū. Here it has i and k for its nibbles:
//!
//! ```text
//! s = 1/i + a/k     p = 1/s + j = a·N / (k + a·i)      a = 1/n
//! t = 1/j + a/k     q = 1/t + i = a·N / (k + a·j)
//! i/N = 1/p + (1/p + 1/q)/a
//! j/N = 1/q + (1/p + 1/q)/a
//! ```
//!
//! The inverse is a linear function of 1/p plus one of 1/q, so two look-ups
//! give any linear map of it. A division by zero gives [`INFINITE`], which
//! stays so in sums, and look-ups give zero there: what a sum with infinity
//! comes to in these formulas. Where both i and k are zero the two infinities
//! of s make zero, so that 1/s is infinite once more, and so is p.

use super::Planes;
use super::linear::{AES_FIELD, Linear, Nibbles, apply, inverse, multiply};

/// No nibble: look-ups give zero for every byte with this bit.
const INFINITE: u8 = 0x80;

/// The field of AES to pairs of nibbles, i in the upper and k in the lower.
pub(crate) const FROM_AES: Linear = inverse(&TO_AES);

/// 1/x.
const INVERSE: Nibbles = quotients(1);

/// a/x.
const A_OVER: Nibbles = quotients(A);

/// By p and by q: what adds up to `map` of the inverse, in the field of AES.
pub(crate) fn after_inversion(map: &Linear) -> [Nibbles; 2] {
    let mut tables = [[0; 16]; 2];
    for x in 1..16 {
        let part = INVERSE[x];
        let shared = small_multiply(part, SMALL_INVERSES[A as usize]);
        // 1/p adds to i/N, 1/q to j/N, and both add to both.
        let (alone, both) = (part ^ shared, shared);
        tables[0][x] = apply(map, element(both, alone));
        tables[1][x] = apply(map, element(alone, both));
    }
    tables
}

/// [`Planes::invert`] on CPUs whose [`look_up_nibble`](Planes::look_up_nibble)
/// gives zero for every byte with the top bit; `by_p` and `by_q` are from
/// [`after_inversion`].
#[inline(always)]
pub(crate) fn invert<P: Planes>(planes: P, [by_p, by_q]: &[Nibbles; 2], x: P::Vector) -> P::Vector {
    let look_up = P::look_up_nibble;
    let (i, k) = (planes.upper_nibble(x), planes.lower_nibble(x));
    let j = planes.xor(i, k);
    let shared = look_up(planes, &A_OVER, k);
    let s = planes.xor(look_up(planes, &INVERSE, i), shared);
    let t = planes.xor(look_up(planes, &INVERSE, j), shared);
    let p = planes.xor(look_up(planes, &INVERSE, s), j);
    let q = planes.xor(look_up(planes, &INVERSE, t), i);
    planes.xor(look_up(planes, by_p, p), look_up(planes, by_q, q))
}

/// g⁰ … g³ for a g in GF(2⁴) with g⁴ = g + 1, in the field of AES.
const SMALL_BASIS: [u8; 4] = {
    let mut g = 2;
    loop {
        let square = multiply(g, g, AES_FIELD);
        if multiply(square, square, AES_FIELD) == g ^ 1 {
            break [1, g, square, multiply(square, g, AES_FIELD)];
        }
        g += 1;
    }
};

const U: u8 = {
    let mut u = 2;
    while u ^ conjugate(u) != 1 {
        u += 1;
    }
    u
};

/// a = 1/(u·ū).
const A: u8 = {
    let n = multiply(U, conjugate(U), AES_FIELD);
    let mut small = 1;
    while widen(small) != n {
        small += 1;
    }
    SMALL_INVERSES[small as usize]
};

const TO_AES: Linear = {
    let mut map = [0; 8];
    let mut bit = 0;
    while bit < 4 {
        let nibble = 1 << bit;
        // i = 0, k = j; then k = 0, i = j.
        map[bit] = element(0, nibble);
        map[4 + bit] = element(nibble, nibble);
        bit += 1;
    }
    map
};

const SMALL_INVERSES: Nibbles = {
    let mut inverses = [0; 16];
    let mut x = 1;
    while x < 16 {
        let mut y = 1;
        while small_multiply(x, y) != 1 {
            y += 1;
        }
        inverses[x as usize] = y;
        x += 1;
    }
    inverses
};

/// x¹⁶.
const fn conjugate(mut x: u8) -> u8 {
    let mut squarings = 0;
    while squarings < 4 {
        x = multiply(x, x, AES_FIELD);
        squarings += 1;
    }
    x
}

/// A nibble's element of the field of AES.
const fn widen(nibble: u8) -> u8 {
    let [a, b, c, d] = SMALL_BASIS;
    apply(&[a, b, c, d, 0, 0, 0, 0], nibble)
}

/// i·u + j·ū.
const fn element(i: u8, j: u8) -> u8 {
    multiply(widen(i), U, AES_FIELD) ^ multiply(widen(j), conjugate(U), AES_FIELD)
}

/// The product of two nibbles modulo x⁴ + x + 1.
const fn small_multiply(a: u8, b: u8) -> u8 {
    let mut product = 0_u8;
    let mut bit = 4;
    while bit > 0 {
        bit -= 1;
        product <<= 1;
        product ^= 0x13 & (product >> 4 & 1).wrapping_neg();
        product ^= a & (b >> bit & 1).wrapping_neg();
    }
    product
}

const fn quotients(dividend: u8) -> Nibbles {
    let mut table = [INFINITE; 16];
    let mut x = 1;
    while x < 16 {
        table[x] = small_multiply(dividend, SMALL_INVERSES[x]);
        x += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::planes::linear::IDENTITY;

    fn look_up(table: &Nibbles, x: u8) -> u8 {
        if x < 16 { table[usize::from(x)] } else { 0 }
    }

    #[test]
    fn the_formulas_invert_every_element() {
        let [by_p, by_q] = after_inversion(&IDENTITY);
        for x in 0..=255 {
            let nibbles = apply(&FROM_AES, x);
            let (i, k) = (nibbles >> 4, nibbles & 15);
            let j = i ^ k;
            let (s, t) = (
                look_up(&INVERSE, i) ^ look_up(&A_OVER, k),
                look_up(&INVERSE, j) ^ look_up(&A_OVER, k),
            );
            let (p, q) = (look_up(&INVERSE, s) ^ j, look_up(&INVERSE, t) ^ i);
            let found = look_up(&by_p, p) ^ look_up(&by_q, q);
            let expected = (0..=255).find(|&y| multiply(x, y, AES_FIELD) == 1);
            assert_eq!(found, expected.unwrap_or(0), "{x}");
        }
    }
}
