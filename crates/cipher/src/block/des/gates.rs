//! The S-boxes of DES as circuits of gates with three inputs, for CPUs that
//! have every such gate in one instruction.
//!
//! The circuits are the project's own: the smallest that a search met on. It
//! grows a circuit output by output, looks for the wanted function among the
//! gates that are there, then among all of one or two gates over them, and
//! otherwise splits the function by one of the inputs.

use crate::block::gates::Gate;

/// S-box `S`, from 0, of FIPS 46-3, appendix 1: the first word in and out is
/// the bit that the standard writes first.
#[inline(always)]
pub(crate) fn substitute<const S: usize, G: Gate>(x: [G; 6]) -> [G; 4] {
    match S {
        0 => s1(x),
        1 => s2(x),
        2 => s3(x),
        3 => s4(x),
        4 => s5(x),
        5 => s6(x),
        6 => s7(x),
        _ => s8(x),
    }
}

/// S-box 1: 28 gates.
#[inline(always)]
fn s1<G: Gate>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = G::gate::<0xa4>(d, a, c);
    let t1 = G::gate::<0xd6>(t0, e, f);
    let t2 = G::gate::<0x3a>(t0, f, a);
    let t3 = G::gate::<0x5e>(t2, e, t1);
    let t4 = G::gate::<0xd8>(t1, t3, d);
    let t5 = G::gate::<0x9b>(t3, c, a);
    let t6 = G::gate::<0x2e>(t5, e, c);
    let t7 = G::gate::<0x78>(t5, t6, d);
    let t8 = G::gate::<0xb4>(t4, t7, b);
    let t9 = G::gate::<0x69>(b, t2, t0);
    let t10 = G::gate::<0x46>(b, t5, t3);
    let t11 = G::gate::<0x1e>(t10, t9, d);
    let t12 = G::gate::<0x78>(t9, t11, e);
    let t13 = G::gate::<0x63>(d, t12, t4);
    let t14 = G::gate::<0x3a>(f, d, t8);
    let t15 = G::gate::<0x97>(t14, t13, t3);
    let t16 = G::gate::<0xe4>(t13, t15, a);
    let t17 = G::gate::<0xe4>(t12, t16, c);
    let t18 = G::gate::<0x86>(e, t10, t15);
    let t19 = G::gate::<0x96>(t18, t9, d);
    let t20 = G::gate::<0x26>(a, b, t14);
    let t21 = G::gate::<0xcb>(t20, t12, t6);
    let t22 = G::gate::<0x78>(t19, t21, f);
    let t23 = G::gate::<0xe6>(e, t17, t22);
    let t24 = G::gate::<0x69>(t23, t8, b);
    let t25 = G::gate::<0xa4>(c, t20, b);
    let t26 = G::gate::<0x58>(t25, e, t15);
    let t27 = G::gate::<0x78>(t24, t26, f);
    [t8, t22, t17, t27]
}

/// S-box 2: 26 gates.
#[inline(always)]
fn s2<G: Gate>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = G::gate::<0x69>(a, e, d);
    let t1 = G::gate::<0x87>(b, e, d);
    let t2 = G::gate::<0xb4>(t0, t1, c);
    let t3 = G::gate::<0x16>(c, e, a);
    let t4 = G::gate::<0xd2>(t3, t0, t1);
    let t5 = G::gate::<0xd8>(t0, t4, b);
    let t6 = G::gate::<0xe4>(t2, t5, f);
    let t7 = G::gate::<0xe6>(t4, c, f);
    let t8 = G::gate::<0x4b>(t7, a, t6);
    let t9 = G::gate::<0x57>(t0, f, e);
    let t10 = G::gate::<0x78>(t8, t9, d);
    let t11 = G::gate::<0x9e>(t8, c, d);
    let t12 = G::gate::<0x87>(t11, t0, t4);
    let t13 = G::gate::<0xa4>(t12, t9, f);
    let t14 = G::gate::<0xe4>(t10, t13, b);
    let t15 = G::gate::<0x76>(t1, t9, t0);
    let t16 = G::gate::<0x96>(t15, t4, b);
    let t17 = G::gate::<0x86>(t1, t8, e);
    let t18 = G::gate::<0x97>(t17, b, a);
    let t19 = G::gate::<0xb4>(t16, t18, f);
    let t20 = G::gate::<0x5e>(d, t3, t1);
    let t21 = G::gate::<0x78>(t1, t0, a);
    let t22 = G::gate::<0xe4>(t20, t21, f);
    let t23 = G::gate::<0x74>(e, d, t6);
    let t24 = G::gate::<0xf4>(t23, t3, t11);
    let t25 = G::gate::<0xb4>(t22, t24, c);
    [t19, t6, t25, t14]
}

/// S-box 3: 26 gates.
#[inline(always)]
fn s3<G: Gate>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = G::gate::<0x5a>(c, d, f);
    let t1 = G::gate::<0x92>(t0, b, e);
    let t2 = G::gate::<0x36>(f, e, d);
    let t3 = G::gate::<0x6b>(t2, t0, b);
    let t4 = G::gate::<0xc4>(t1, t3, d);
    let t5 = G::gate::<0x12>(d, e, c);
    let t6 = G::gate::<0x96>(t5, b, t0);
    let t7 = G::gate::<0xe4>(t4, t6, a);
    let t8 = G::gate::<0x69>(t6, t0, f);
    let t9 = G::gate::<0x7b>(t6, f, e);
    let t10 = G::gate::<0x78>(t8, t9, d);
    let t11 = G::gate::<0xac>(e, b, d);
    let t12 = G::gate::<0xdf>(t11, c, t7);
    let t13 = G::gate::<0x94>(t10, t12, a);
    let t14 = G::gate::<0x69>(f, e, d);
    let t15 = G::gate::<0xec>(e, b, t6);
    let t16 = G::gate::<0x78>(t14, t15, c);
    let t17 = G::gate::<0x6c>(t2, t8, t3);
    let t18 = G::gate::<0xc5>(t17, t4, t16);
    let t19 = G::gate::<0xe4>(t16, t18, a);
    let t20 = G::gate::<0x5e>(t3, t0, d);
    let t21 = G::gate::<0x83>(t20, t16, t15);
    let t22 = G::gate::<0x07>(t6, t1, f);
    let t23 = G::gate::<0x86>(t17, t10, t4);
    let t24 = G::gate::<0x78>(t22, t23, b);
    let t25 = G::gate::<0xb4>(t21, t24, a);
    [t19, t13, t25, t7]
}

/// S-box 4: 20 gates.
#[inline(always)]
fn s4<G: Gate>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = G::gate::<0x87>(e, d, b);
    let t1 = G::gate::<0x59>(e, d, b);
    let t2 = G::gate::<0xd8>(t0, t1, c);
    let t3 = G::gate::<0x92>(b, c, t2);
    let t4 = G::gate::<0xa7>(t3, d, t1);
    let t5 = G::gate::<0xb4>(t2, t4, a);
    let t6 = G::gate::<0x2a>(a, t3, t5);
    let t7 = G::gate::<0x86>(t6, t1, d);
    let t8 = G::gate::<0x2d>(e, b, a);
    let t9 = G::gate::<0x78>(t7, t8, c);
    let t10 = G::gate::<0x78>(t5, t9, f);
    let t11 = G::gate::<0x6d>(t4, d, t9);
    let t12 = G::gate::<0x28>(d, b, a);
    let t13 = G::gate::<0x38>(t11, t12, a);
    let t14 = G::gate::<0x49>(t2, t9, t7);
    let t15 = G::gate::<0x69>(t8, t6, t1);
    let t16 = G::gate::<0xb4>(t14, t15, d);
    let t17 = G::gate::<0x78>(t13, t16, f);
    let t18 = G::gate::<0x36>(t9, t5, f);
    let t19 = G::gate::<0xc9>(t16, t13, f);
    [t10, t18, t17, t19]
}

/// S-box 5: 27 gates.
#[inline(always)]
fn s5<G: Gate>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = G::gate::<0xa3>(e, c, a);
    let t1 = G::gate::<0x36>(a, e, c);
    let t2 = G::gate::<0xe4>(t0, t1, f);
    let t3 = G::gate::<0x68>(f, c, a);
    let t4 = G::gate::<0xb4>(t2, t3, b);
    let t5 = G::gate::<0xd6>(a, e, c);
    let t6 = G::gate::<0x69>(t5, b, f);
    let t7 = G::gate::<0xd8>(t4, t6, d);
    let t8 = G::gate::<0xca>(t4, f, d);
    let t9 = G::gate::<0x96>(t8, c, t6);
    let t10 = G::gate::<0xda>(t8, t6, c);
    let t11 = G::gate::<0xb4>(t9, t10, e);
    let t12 = G::gate::<0x93>(t4, t1, e);
    let t13 = G::gate::<0xd1>(c, t9, t4);
    let t14 = G::gate::<0xd8>(t12, t13, d);
    let t15 = G::gate::<0xb4>(t11, t14, a);
    let t16 = G::gate::<0x94>(e, c, b);
    let t17 = G::gate::<0xf8>(f, b, t7);
    let t18 = G::gate::<0xb4>(t16, t17, d);
    let t19 = G::gate::<0x3a>(t18, t6, t13);
    let t20 = G::gate::<0x27>(t19, t3, e);
    let t21 = G::gate::<0xb4>(t18, t20, a);
    let t22 = G::gate::<0x62>(t9, t15, t21);
    let t23 = G::gate::<0x69>(t22, t7, b);
    let t24 = G::gate::<0x60>(t20, t16, d);
    let t25 = G::gate::<0x94>(t24, t12, t22);
    let t26 = G::gate::<0x78>(t23, t25, c);
    [t15, t7, t21, t26]
}

/// S-box 6: 26 gates.
#[inline(always)]
fn s6<G: Gate>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = G::gate::<0x69>(a, e, d);
    let t1 = G::gate::<0xe1>(b, t0, e);
    let t2 = G::gate::<0xb4>(t0, t1, c);
    let t3 = G::gate::<0x48>(a, t0, b);
    let t4 = G::gate::<0x49>(t3, c, t1);
    let t5 = G::gate::<0x4b>(t0, b, t4);
    let t6 = G::gate::<0xd8>(t4, t5, e);
    let t7 = G::gate::<0xd8>(t2, t6, f);
    let t8 = G::gate::<0x1a>(c, t6, d);
    let t9 = G::gate::<0xa5>(t8, t5, t0);
    let t10 = G::gate::<0x7f>(t6, t1, d);
    let t11 = G::gate::<0x78>(t9, t10, f);
    let t12 = G::gate::<0x74>(t5, t6, f);
    let t13 = G::gate::<0x79>(t12, d, t1);
    let t14 = G::gate::<0xb4>(t11, t13, b);
    let t15 = G::gate::<0x59>(f, c, t1);
    let t16 = G::gate::<0x6a>(t13, t11, t7);
    let t17 = G::gate::<0xb4>(t15, t16, a);
    let t18 = G::gate::<0x0e>(t12, t0, t13);
    let t19 = G::gate::<0x96>(t18, t17, c);
    let t20 = G::gate::<0x78>(t17, t19, e);
    let t21 = G::gate::<0x5e>(t18, e, t19);
    let t22 = G::gate::<0x94>(t21, t15, t12);
    let t23 = G::gate::<0xe8>(t2, d, t9);
    let t24 = G::gate::<0x69>(t23, t12, t14);
    let t25 = G::gate::<0xd8>(t22, t24, a);
    [t7, t14, t20, t25]
}

/// S-box 7: 26 gates.
#[inline(always)]
fn s7<G: Gate>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = G::gate::<0x69>(a, e, d);
    let t1 = G::gate::<0x63>(d, b, e);
    let t2 = G::gate::<0xb4>(t0, t1, c);
    let t3 = G::gate::<0x87>(t2, t1, b);
    let t4 = G::gate::<0x06>(t1, c, t2);
    let t5 = G::gate::<0x78>(t3, t4, a);
    let t6 = G::gate::<0xd8>(t2, t5, f);
    let t7 = G::gate::<0x36>(a, t0, c);
    let t8 = G::gate::<0xe4>(t7, t5, f);
    let t9 = G::gate::<0x9b>(t7, f, d);
    let t10 = G::gate::<0xa2>(t8, t1, f);
    let t11 = G::gate::<0xb4>(t10, e, c);
    let t12 = G::gate::<0xd8>(t9, t11, a);
    let t13 = G::gate::<0xb4>(t8, t12, b);
    let t14 = G::gate::<0x47>(e, a, t6);
    let t15 = G::gate::<0x8d>(t7, t4, f);
    let t16 = G::gate::<0xd8>(t14, t15, b);
    let t17 = G::gate::<0x4f>(a, t6, t4);
    let t18 = G::gate::<0x1c>(t3, t13, t12);
    let t19 = G::gate::<0x78>(t17, t18, f);
    let t20 = G::gate::<0x78>(t16, t19, d);
    let t21 = G::gate::<0xac>(d, t0, t3);
    let t22 = G::gate::<0x96>(t21, t20, t13);
    let t23 = G::gate::<0x90>(a, t22, e);
    let t24 = G::gate::<0xc5>(t23, t16, t2);
    let t25 = G::gate::<0x78>(t22, t24, f);
    [t13, t20, t25, t6]
}

/// S-box 8: 26 gates.
#[inline(always)]
fn s8<G: Gate>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = G::gate::<0xd6>(b, a, e);
    let t1 = G::gate::<0x27>(b, t0, e);
    let t2 = G::gate::<0xe4>(t0, t1, c);
    let t3 = G::gate::<0x6b>(e, a, t1);
    let t4 = G::gate::<0x78>(t2, t3, d);
    let t5 = G::gate::<0xed>(t0, b, t4);
    let t6 = G::gate::<0x72>(t2, t3, t0);
    let t7 = G::gate::<0x34>(t6, t4, e);
    let t8 = G::gate::<0xe4>(t5, t7, d);
    let t9 = G::gate::<0x78>(t4, t8, f);
    let t10 = G::gate::<0xe1>(d, t7, t1);
    let t11 = G::gate::<0x1d>(c, a, t4);
    let t12 = G::gate::<0xb4>(t10, t11, b);
    let t13 = G::gate::<0x65>(t10, t7, t3);
    let t14 = G::gate::<0xe1>(a, t13, t9);
    let t15 = G::gate::<0xd8>(t13, t14, e);
    let t16 = G::gate::<0x78>(t12, t15, f);
    let t17 = G::gate::<0xe4>(t5, t8, t13);
    let t18 = G::gate::<0x36>(t17, t4, f);
    let t19 = G::gate::<0x9c>(t17, t12, t6);
    let t20 = G::gate::<0x72>(t19, t4, f);
    let t21 = G::gate::<0xd8>(t18, t20, a);
    let t22 = G::gate::<0x69>(t10, f, e);
    let t23 = G::gate::<0x5e>(t16, t1, t11);
    let t24 = G::gate::<0xf8>(t23, f, t9);
    let t25 = G::gate::<0x78>(t22, t24, a);
    [t21, t25, t16, t9]
}

#[cfg(test)]
mod tests {
    use super::substitute;
    use crate::block::des::sbox;
    use crate::block::registers::{Register, integers::Integers};

    /// Bit i of word j is bit j of input i.
    const INPUTS: [u64; 6] = [
        0xffff_ffff_0000_0000,
        0xffff_0000_ffff_0000,
        0xff00_ff00_ff00_ff00,
        0xf0f0_f0f0_f0f0_f0f0,
        0xcccc_cccc_cccc_cccc,
        0xaaaa_aaaa_aaaa_aaaa,
    ];

    fn check<const S: usize>() {
        let outputs = substitute::<S, _>(INPUTS.map(|word| Register::splat_pair(Integers, word)));
        assert_eq!(
            outputs.map(|word| word.x as u64),
            sbox::substitute::<S, u64>(INPUTS)
        );
    }

    #[test]
    fn equal_the_circuits_of_gates_with_two_inputs() {
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
