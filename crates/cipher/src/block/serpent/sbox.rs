//! Serpent's S-boxes as circuits over words: bit `i` of the four words is the
//! input of one S-box.
//!
//! Every step changes one word by a function of the others, so the steps in
//! reverse order are the inverse S-box. The circuits are the project's own: the
//! cheapest of that kind that a search from the identity and from the S-box
//! met on, 12 to 14 gates of two inputs (AND with a complemented input is one).
//!
//! A circuit gives some words complemented. Undoing that costs a gate each, so
//! [`forward`] leaves it to the round key that follows: see [`COMPLEMENTS`].

use crate::block::gates::Gates;

/// The four words of a block.
pub(crate) type Words = [u32; 4];

/// The values that `forward::<I>` adds to the true output of S-box I.
pub(super) const COMPLEMENTS: [Words; 8] = [
    [!0, !0, 0, 0],
    [!0, !0, !0, !0],
    [0, 0, 0, !0],
    [0, 0, 0, 0],
    [!0, 0, 0, 0],
    [!0, !0, !0, !0],
    [!0, !0, !0, 0],
    [!0, 0, 0, 0],
];

/// S-box `I` modulo 8, with its output complemented as in [`COMPLEMENTS`].
#[inline(always)]
pub(crate) fn forward<const I: usize, G: Gates>(x: [G; 4]) -> [G; 4] {
    match I % 8 {
        0 => s0(x),
        1 => s1(x),
        2 => s2(x),
        3 => s3(x),
        4 => s4(x),
        5 => s5(x),
        6 => s6(x),
        _ => s7(x),
    }
}

/// The inverse of [`forward`].
#[inline(always)]
pub(crate) fn inverse<const I: usize, G: Gates>(x: [G; 4]) -> [G; 4] {
    match I % 8 {
        0 => inverse_s0(x),
        1 => inverse_s1(x),
        2 => inverse_s2(x),
        3 => inverse_s3(x),
        4 => inverse_s4(x),
        5 => inverse_s5(x),
        6 => inverse_s6(x),
        _ => inverse_s7(x),
    }
}

/// S-box 0.
#[inline(always)]
fn s0<G: Gates>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    d ^= a;
    a ^= b & d;
    b ^= a & !c;
    c ^= d;
    d ^= b;
    a ^= c;
    b ^= a & c;
    c ^= a & b;
    a ^= c;
    [a, c, d, b]
}

/// The inverse of [`s0`].
#[inline(always)]
fn inverse_s0<G: Gates>([mut a, mut c, mut d, mut b]: [G; 4]) -> [G; 4] {
    a ^= c;
    c ^= a & b;
    b ^= a & c;
    a ^= c;
    d ^= b;
    c ^= d;
    b ^= a & !c;
    a ^= b & d;
    d ^= a;
    [a, b, c, d]
}

/// S-box 1.
#[inline(always)]
fn s1<G: Gates>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    b ^= a;
    a ^= b | d;
    d ^= a | b;
    c ^= d;
    b ^= c;
    b ^= a;
    d ^= a & !b;
    a ^= c | d;
    c ^= a;
    [d, a, b, c]
}

/// The inverse of [`s1`].
#[inline(always)]
fn inverse_s1<G: Gates>([mut d, mut a, mut b, mut c]: [G; 4]) -> [G; 4] {
    c ^= a;
    a ^= c | d;
    d ^= a & !b;
    b ^= a;
    b ^= c;
    c ^= d;
    d ^= a | b;
    a ^= b | d;
    b ^= a;
    [a, b, c, d]
}

/// S-box 2.
#[inline(always)]
fn s2<G: Gates>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    d ^= a & c;
    a ^= !b & d;
    b ^= c;
    c ^= a & d;
    b ^= d;
    a ^= b;
    d ^= a | c;
    c ^= d;
    [b, d, c, a]
}

/// The inverse of [`s2`].
#[inline(always)]
fn inverse_s2<G: Gates>([mut b, mut d, mut c, mut a]: [G; 4]) -> [G; 4] {
    c ^= d;
    d ^= a | c;
    a ^= b;
    b ^= d;
    c ^= a & d;
    b ^= c;
    a ^= !b & d;
    d ^= a & c;
    [a, b, c, d]
}

/// S-box 3.
#[inline(always)]
fn s3<G: Gates>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    c ^= b & !d;
    b ^= a;
    d ^= (a & c) | b;
    a ^= b | d;
    d ^= c;
    b ^= a & !c;
    let both = b & d;
    a ^= both;
    c ^= both;
    [b, a, d, c]
}

/// The inverse of [`s3`].
#[inline(always)]
fn inverse_s3<G: Gates>([mut b, mut a, mut d, mut c]: [G; 4]) -> [G; 4] {
    let both = b & d;
    a ^= both;
    c ^= both;
    b ^= a & !c;
    d ^= c;
    a ^= b | d;
    d ^= (a & c) | b;
    b ^= a;
    c ^= b & !d;
    [a, b, c, d]
}

/// S-box 4.
#[inline(always)]
fn s4<G: Gates>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    c ^= !a & d;
    a ^= b | c;
    d ^= a;
    b ^= (a | c) & !d;
    a ^= b;
    a ^= c;
    c ^= b & d;
    b ^= a | c;
    [c, a, b, d]
}

/// The inverse of [`s4`].
#[inline(always)]
fn inverse_s4<G: Gates>([mut c, mut a, mut b, mut d]: [G; 4]) -> [G; 4] {
    b ^= a | c;
    c ^= b & d;
    a ^= c;
    a ^= b;
    b ^= (a | c) & !d;
    d ^= a;
    a ^= b | c;
    c ^= !a & d;
    [a, b, c, d]
}

/// S-box 5.
#[inline(always)]
fn s5<G: Gates>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    c ^= !a & b;
    b ^= c | d;
    d ^= !(b & !c) & a;
    a ^= b;
    b ^= d;
    d ^= c;
    c ^= a & !b;
    b ^= c | d;
    [c, a, b, d]
}

/// The inverse of [`s5`].
#[inline(always)]
fn inverse_s5<G: Gates>([mut c, mut a, mut b, mut d]: [G; 4]) -> [G; 4] {
    b ^= c | d;
    c ^= a & !b;
    d ^= c;
    b ^= d;
    a ^= b;
    d ^= !(b & !c) & a;
    b ^= c | d;
    c ^= !a & b;
    [a, b, c, d]
}

/// S-box 6.
#[inline(always)]
fn s6<G: Gates>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    c ^= a & d;
    b ^= c;
    d ^= a;
    a ^= b | d;
    d ^= a & c;
    d ^= b;
    c ^= d;
    a ^= d;
    d ^= a & c;
    [c, b, a, d]
}

/// The inverse of [`s6`].
#[inline(always)]
fn inverse_s6<G: Gates>([mut c, mut b, mut a, mut d]: [G; 4]) -> [G; 4] {
    d ^= a & c;
    a ^= d;
    c ^= d;
    d ^= b;
    d ^= a & c;
    a ^= b | d;
    d ^= a;
    b ^= c;
    c ^= a & d;
    [a, b, c, d]
}

/// S-box 7.
#[inline(always)]
fn s7<G: Gates>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    let both = b & d;
    a ^= both;
    c ^= both;
    d ^= a & c;
    b ^= a;
    c ^= b & !d;
    b ^= (a | c) & !d;
    d ^= c;
    a ^= b | d;
    [b, a, d, c]
}

/// The inverse of [`s7`].
#[inline(always)]
fn inverse_s7<G: Gates>([mut b, mut a, mut d, mut c]: [G; 4]) -> [G; 4] {
    a ^= b | d;
    d ^= c;
    b ^= (a | c) & !d;
    c ^= b & !d;
    b ^= a;
    d ^= a & c;
    let both = b & d;
    a ^= both;
    c ^= both;
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::serpent::SBOXES;

    /// All 16 inputs side by side: bit j of input i is bit i of word j.
    const INPUTS: Words = [0xaaaa, 0xcccc, 0xf0f0, 0xff00];

    fn outputs(sbox: usize) -> Words {
        std::array::from_fn(|j| {
            let bits = SBOXES[sbox].iter().enumerate();
            let word = bits.fold(0, |word, (i, &y)| word | (u32::from(y) >> j & 1) << i);
            word ^ COMPLEMENTS[sbox][j] & 0xffff
        })
    }

    fn check<const I: usize>() {
        let low = |words: Words| words.map(|word| word & 0xffff);
        assert_eq!(low(forward::<I, u32>(INPUTS)), outputs(I), "S-box {I}");
        assert_eq!(
            low(inverse::<I, u32>(outputs(I))),
            INPUTS,
            "inverse S-box {I}"
        );
    }

    #[test]
    fn circuits_are_the_papers_tables() {
        check::<0>();
        check::<1>();
        check::<2>();
        check::<3>();
        check::<4>();
        check::<5>();
        check::<6>();
        check::<7>();
    }
}
