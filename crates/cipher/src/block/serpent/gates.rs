//! Serpent's S-boxes as circuits of gates with three inputs, for CPUs that have
//! every such gate in one instruction: bit `i` of the four words is the input of
//! one S-box.
//!
//! Every step adds to one word a function of the others, so that no word is
//! copied. The circuits are the project's own: of all with the fewest gates that
//! a search from the identity and from the S-box met on, those that a round
//! waits for the least.

use crate::block::gates::Gate;

/// S-box `I` modulo 8.
#[inline(always)]
pub(crate) fn forward<const I: usize, G: Gate>(x: [G; 4]) -> [G; 4] {
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
pub(crate) fn inverse<const I: usize, G: Gate>(x: [G; 4]) -> [G; 4] {
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

/// S-box 0: 7 gates.
#[inline(always)]
fn s0<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    b = G::gate::<0x78>(b, d, a);
    a = G::gate::<0xd2>(a, b, c);
    d = G::gate::<0x1e>(d, b, c);
    c = G::gate::<0x96>(c, d, a);
    b = G::gate::<0xe1>(b, c, d);
    a = G::gate::<0x2d>(a, d, b);
    d = G::gate::<0xb4>(d, b, c);
    [b, d, a, c]
}

/// The inverse of [`s0`]: 7 gates.
#[inline(always)]
fn inverse_s0<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    a = G::gate::<0x78>(a, d, b);
    c = G::gate::<0xd2>(c, a, b);
    b = G::gate::<0xb4>(b, d, a);
    d = G::gate::<0x69>(d, c, a);
    a = G::gate::<0x1e>(a, d, b);
    c = G::gate::<0xd2>(c, b, d);
    b = G::gate::<0x87>(b, a, c);
    [a, b, d, c]
}

/// S-box 1: 7 gates.
#[inline(always)]
fn s1<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    a = G::gate::<0x1e>(a, d, b);
    c = G::gate::<0xb4>(c, a, b);
    b = G::gate::<0xd2>(b, d, a);
    d = G::gate::<0x69>(d, c, a);
    a = G::gate::<0x87>(a, d, b);
    c = G::gate::<0x4b>(c, b, d);
    b = G::gate::<0x2d>(b, a, c);
    [b, c, d, a]
}

/// The inverse of [`s1`]: 7 gates.
#[inline(always)]
fn inverse_s1<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    a = G::gate::<0xb4>(a, d, b);
    d = G::gate::<0x96>(d, a, b);
    b = G::gate::<0x78>(b, c, d);
    c = G::gate::<0x3c>(c, a, a);
    d = G::gate::<0x87>(d, b, c);
    a = G::gate::<0x2d>(a, d, b);
    b = G::gate::<0x78>(b, c, d);
    [d, b, a, c]
}

/// S-box 2: 7 gates.
#[inline(always)]
fn s2<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    b = G::gate::<0x1e>(b, d, a);
    c = G::gate::<0xb4>(c, d, a);
    d = G::gate::<0xb4>(d, c, a);
    a = G::gate::<0x96>(a, d, b);
    d = G::gate::<0x1e>(d, b, c);
    c = G::gate::<0x78>(c, b, d);
    b = G::gate::<0x69>(b, c, d);
    [a, c, d, b]
}

/// The inverse of [`s2`]: 7 gates.
#[inline(always)]
fn inverse_s2<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    a = G::gate::<0xb4>(a, b, c);
    c = G::gate::<0xd2>(c, b, d);
    b = G::gate::<0x78>(b, c, d);
    d = G::gate::<0x96>(d, c, a);
    c = G::gate::<0x4b>(c, a, b);
    a = G::gate::<0xe1>(a, b, c);
    b = G::gate::<0x87>(b, c, d);
    [d, a, c, b]
}

/// S-box 3: 8 gates.
#[inline(always)]
fn s3<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    b = G::gate::<0x78>(b, d, a);
    d = G::gate::<0xb4>(d, a, b);
    a = G::gate::<0x96>(a, b, c);
    b = G::gate::<0x1e>(b, c, d);
    let t = G::gate::<0x67>(a, b, d);
    c = G::gate::<0xc3>(c, t, t);
    d = G::gate::<0xd2>(d, c, a);
    a = G::gate::<0xb4>(a, c, d);
    [d, a, c, b]
}

/// The inverse of [`s3`]: 8 gates.
#[inline(always)]
fn inverse_s3<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    a = G::gate::<0xb4>(a, b, c);
    b = G::gate::<0x3c>(b, c, c);
    let t = G::gate::<0x5b>(a, b, d);
    c = G::gate::<0xc3>(c, t, t);
    b = G::gate::<0x1e>(b, d, a);
    d = G::gate::<0xb4>(d, c, a);
    a = G::gate::<0x1e>(a, d, b);
    d = G::gate::<0x1e>(d, a, b);
    [b, a, c, d]
}

/// S-box 4: 7 gates.
#[inline(always)]
fn s4<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    c = G::gate::<0xb4>(c, d, a);
    a = G::gate::<0xb4>(a, b, c);
    d = G::gate::<0x96>(d, c, a);
    c = G::gate::<0x87>(c, b, d);
    let t = G::gate::<0x5e>(a, c, d);
    b = G::gate::<0xc3>(b, t, t);
    a = G::gate::<0xe1>(a, b, c);
    [c, b, a, d]
}

/// The inverse of [`s4`]: 7 gates.
#[inline(always)]
fn inverse_s4<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    c = G::gate::<0x1e>(c, a, b);
    let t = G::gate::<0x26>(a, c, d);
    b = G::gate::<0x3c>(b, t, t);
    a = G::gate::<0x78>(a, d, b);
    d = G::gate::<0x96>(d, c, a);
    c = G::gate::<0x87>(c, a, b);
    a = G::gate::<0x2d>(a, c, d);
    [c, b, a, d]
}

/// S-box 5: 7 gates.
#[inline(always)]
fn s5<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    c = G::gate::<0xd2>(c, a, b);
    b = G::gate::<0xd2>(b, c, d);
    a = G::gate::<0x69>(a, b, c);
    c = G::gate::<0x4b>(c, d, a);
    let t = G::gate::<0x43>(a, b, c);
    d = G::gate::<0xc3>(d, t, t);
    b = G::gate::<0x2d>(b, c, d);
    [c, a, b, d]
}

/// The inverse of [`s5`]: 7 gates.
#[inline(always)]
fn inverse_s5<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    c = G::gate::<0xb4>(c, d, a);
    let t = G::gate::<0x26>(a, b, c);
    d = G::gate::<0xc3>(d, t, t);
    a = G::gate::<0x4b>(a, d, b);
    b = G::gate::<0x96>(b, a, c);
    c = G::gate::<0x4b>(c, d, a);
    a = G::gate::<0xd2>(a, b, c);
    [b, c, a, d]
}

/// S-box 6: 7 gates.
#[inline(always)]
fn s6<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    a = G::gate::<0x1e>(a, d, b);
    c = G::gate::<0x1e>(c, d, a);
    d = G::gate::<0xd2>(d, b, c);
    b = G::gate::<0x69>(b, a, c);
    c = G::gate::<0x78>(c, d, a);
    a = G::gate::<0x4b>(a, d, b);
    d = G::gate::<0x87>(d, c, a);
    [a, b, d, c]
}

/// The inverse of [`s6`]: 7 gates.
#[inline(always)]
fn inverse_s6<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    d = G::gate::<0xb4>(d, c, a);
    a = G::gate::<0x96>(a, c, d);
    c = G::gate::<0xd2>(c, d, a);
    a = G::gate::<0x87>(a, b, c);
    c = G::gate::<0x96>(c, a, b);
    b = G::gate::<0xc3>(b, d, d);
    d = G::gate::<0x78>(d, c, a);
    [a, b, d, c]
}

/// S-box 7: 8 gates.
#[inline(always)]
fn s7<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    b = G::gate::<0xd2>(b, c, d);
    d = G::gate::<0xb4>(d, a, b);
    let t = G::gate::<0x46>(b, c, d);
    a = G::gate::<0xc3>(a, t, t);
    c = G::gate::<0x78>(c, a, b);
    b = G::gate::<0x2d>(b, d, a);
    d = G::gate::<0x78>(d, b, c);
    c = G::gate::<0xb4>(c, b, d);
    [a, c, d, b]
}

/// The inverse of [`s7`]: 8 gates.
#[inline(always)]
fn inverse_s7<G: Gate>([mut a, mut b, mut c, mut d]: [G; 4]) -> [G; 4] {
    b = G::gate::<0xb4>(b, a, c);
    let t = G::gate::<0x23>(b, c, d);
    a = G::gate::<0xc3>(a, t, t);
    c = G::gate::<0xb4>(c, d, a);
    d = G::gate::<0x69>(d, a, b);
    a = G::gate::<0xd2>(a, b, c);
    b = G::gate::<0x87>(b, c, d);
    c = G::gate::<0xd2>(c, d, a);
    [b, d, a, c]
}

#[cfg(test)]
mod tests {
    use super::{forward, inverse};
    use crate::block::registers::{Register, integers::Integers};
    use crate::reference::serpent::SBOXES;

    /// All 16 inputs side by side: bit j of input i is bit i of word j.
    const INPUTS: [u64; 4] = [0xaaaa, 0xcccc, 0xf0f0, 0xff00];

    fn outputs(sbox: usize) -> [u64; 4] {
        std::array::from_fn(|j| {
            let bits = SBOXES[sbox].iter().enumerate();
            bits.fold(0, |word, (i, &y)| word | (u64::from(y) >> j & 1) << i)
        })
    }

    fn check<const I: usize>() {
        let of = |words: [u64; 4]| words.map(|word| Register::splat_pair(Integers, word));
        let low = |words: [Register<Integers>; 4]| words.map(|word| word.x as u64 & 0xffff);
        let outputs = outputs(I);
        assert_eq!(low(forward::<I, _>(of(INPUTS))), outputs, "S-box {I}");
        assert_eq!(
            low(inverse::<I, _>(of(outputs))),
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
