//! Serpent's S-boxes two gates of three inputs deep, for a lone group of blocks:
//! a round of it waits for its S-box and not for the ports.
//!
//! The circuits are the project's own: of those that deep with the fewest gates
//! that a search met, the first.

use super::vectors::splat;
use super::words::{Word, add};
use super::{RoundKeys, Words};
use crate::block::gates::Gate;
use crate::block::registers::{Register, Registers};

/// All rounds of a group.
#[inline(always)]
pub(super) fn encrypt<R: Registers>(
    cpu: R,
    keys: &RoundKeys,
    x: [Register<R>; 4],
) -> [Register<R>; 4] {
    let mut x = add(x, splat(cpu, keys[0]));
    for octet in 0..3 {
        let keys = &keys[8 * octet + 1..][..8];
        x = mix(cpu, forward::<0, _>(x), keys[0]);
        x = mix(cpu, forward::<1, _>(x), keys[1]);
        x = mix(cpu, forward::<2, _>(x), keys[2]);
        x = mix(cpu, forward::<3, _>(x), keys[3]);
        x = mix(cpu, forward::<4, _>(x), keys[4]);
        x = mix(cpu, forward::<5, _>(x), keys[5]);
        x = mix(cpu, forward::<6, _>(x), keys[6]);
        x = mix(cpu, forward::<7, _>(x), keys[7]);
    }
    x = mix(cpu, forward::<0, _>(x), keys[25]);
    x = mix(cpu, forward::<1, _>(x), keys[26]);
    x = mix(cpu, forward::<2, _>(x), keys[27]);
    x = mix(cpu, forward::<3, _>(x), keys[28]);
    x = mix(cpu, forward::<4, _>(x), keys[29]);
    x = mix(cpu, forward::<5, _>(x), keys[30]);
    x = mix(cpu, forward::<6, _>(x), keys[31]);
    add(forward::<7, _>(x), splat(cpu, keys[32]))
}

/// The linear transformation, section 3.2, and the key of the next round.
///
/// A rotation takes two cycles, so the two that end the transformation are made
/// of what they would rotate, each part on its own, and the key joins the part
/// that is there first. A shift takes one: the last of them is made of two.
#[inline(always)]
fn mix<R: Registers>(cpu: R, [a, b, c, d]: [Register<R>; 4], key: Words) -> [Register<R>; 4] {
    let key = splat(cpu, key);
    let c3 = c.rotate::<3>();
    let b1 = sum(b, a.rotate::<13>(), c3);
    let d1 = masked(d ^ c3, a.rotate::<16>(), Register::splat_word(cpu, !0 << 3));
    let a2 = sum(
        a.rotate::<18>() ^ key[0],
        b1.rotate::<6>(),
        d1.rotate::<12>(),
    );
    let down = d1.with(cpu.shift_right::<3>(d1.x));
    let c2 = sum(c.rotate::<25>() ^ key[2], d1.shift::<29>(), down);
    let c2 = masked(
        c2,
        b1.rotate::<30>(),
        Register::splat_word(cpu, (!0u32 << 7).rotate_left(22)),
    );
    [a2, b1.rotate::<1>() ^ key[1], c2, d1.rotate::<7>() ^ key[3]]
}

/// The sum of three words.
#[inline(always)]
fn sum<R: Registers>(x: Register<R>, y: Register<R>, z: Register<R>) -> Register<R> {
    Register::gate::<0x96>(x, y, z)
}

/// `x` + `y` where `mask` has ones.
#[inline(always)]
fn masked<R: Registers>(x: Register<R>, y: Register<R>, mask: Register<R>) -> Register<R> {
    Register::gate::<0x78>(x, y, mask)
}

/// S-box `I` modulo 8.
#[inline(always)]
fn forward<const I: usize, G: Gate>(x: [G; 4]) -> [G; 4] {
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

/// S-box 0: 9 gates.
#[inline(always)]
fn s0<G: Gate>([a, b, c, d]: [G; 4]) -> [G; 4] {
    let p = G::gate::<0x10>(b, c, d);
    let q = G::gate::<0x3c>(b, c, c);
    let r = G::gate::<0x68>(a, b, c);
    let s = G::gate::<0x2e>(a, b, d);
    let t = G::gate::<0x92>(a, c, d);
    [
        G::gate::<0x65>(q, s, t),
        G::gate::<0x59>(q, s, t),
        G::gate::<0x16>(d, p, r),
        G::gate::<0x56>(a, d, q),
    ]
}

/// S-box 1: 9 gates.
#[inline(always)]
fn s1<G: Gate>([a, b, c, d]: [G; 4]) -> [G; 4] {
    let p = G::gate::<0x04>(b, c, d);
    let q = G::gate::<0x18>(a, b, d);
    let r = G::gate::<0x1c>(a, c, d);
    let s = G::gate::<0x1a>(a, b, c);
    let t = G::gate::<0x96>(b, c, d);
    [
        G::gate::<0x29>(b, p, r),
        G::gate::<0xe1>(d, q, s),
        G::gate::<0x95>(a, b, t),
        G::gate::<0x59>(q, s, t),
    ]
}

/// S-box 2: 9 gates.
#[inline(always)]
fn s2<G: Gate>([a, b, c, d]: [G; 4]) -> [G; 4] {
    let p = G::gate::<0x42>(b, c, d);
    let q = G::gate::<0x06>(a, c, d);
    let r = G::gate::<0x36>(b, c, d);
    let s = G::gate::<0x70>(a, b, c);
    let t = G::gate::<0xb6>(a, b, c);
    [
        G::gate::<0x96>(d, s, t),
        G::gate::<0x56>(a, p, r),
        G::gate::<0xd2>(d, q, t),
        G::gate::<0x69>(d, r, s),
    ]
}

/// S-box 3: 8 gates.
#[inline(always)]
fn s3<G: Gate>([a, b, c, d]: [G; 4]) -> [G; 4] {
    let p = G::gate::<0x62>(a, c, d);
    let q = G::gate::<0x1c>(a, b, d);
    let r = G::gate::<0x1a>(a, b, c);
    let s = G::gate::<0xb0>(b, c, d);
    [
        G::gate::<0x56>(a, p, s),
        G::gate::<0x96>(d, p, q),
        G::gate::<0x9a>(d, q, r),
        G::gate::<0x16>(b, p, r),
    ]
}

/// S-box 4: 8 gates.
#[inline(always)]
fn s4<G: Gate>([a, b, c, d]: [G; 4]) -> [G; 4] {
    let p = G::gate::<0x34>(a, c, d);
    let q = G::gate::<0x24>(a, b, d);
    let r = G::gate::<0x5c>(b, c, d);
    let s = G::gate::<0x86>(b, c, d);
    [
        G::gate::<0x69>(c, d, q),
        G::gate::<0x56>(a, p, s),
        G::gate::<0x1e>(b, p, q),
        G::gate::<0x9a>(a, q, r),
    ]
}

/// S-box 5: 8 gates.
#[inline(always)]
fn s5<G: Gate>([a, b, c, d]: [G; 4]) -> [G; 4] {
    let p = G::gate::<0x16>(a, c, d);
    let q = G::gate::<0x16>(a, b, c);
    let r = G::gate::<0x92>(a, b, d);
    let s = G::gate::<0x9c>(a, c, d);
    [
        G::gate::<0xa9>(b, r, s),
        G::gate::<0x65>(c, d, r),
        G::gate::<0xc9>(p, q, r),
        G::gate::<0x69>(p, q, s),
    ]
}

/// S-box 6: 9 gates.
#[inline(always)]
fn s6<G: Gate>([a, b, c, d]: [G; 4]) -> [G; 4] {
    let p = G::gate::<0x04>(b, c, d);
    let q = G::gate::<0x76>(a, c, d);
    let r = G::gate::<0x96>(a, b, c);
    let s = G::gate::<0xa4>(a, b, c);
    let t = G::gate::<0xe8>(a, b, d);
    [
        G::gate::<0x8b>(b, q, t),
        G::gate::<0x65>(a, d, r),
        G::gate::<0x35>(q, r, t),
        G::gate::<0x16>(d, p, s),
    ]
}

/// S-box 7: 10 gates.
#[inline(always)]
fn s7<G: Gate>([a, b, c, d]: [G; 4]) -> [G; 4] {
    let p = G::gate::<0x14>(a, c, d);
    let q = G::gate::<0x16>(b, c, d);
    let r = G::gate::<0x64>(a, c, d);
    let s = G::gate::<0x16>(a, b, c);
    let t = G::gate::<0x74>(a, b, c);
    let u = G::gate::<0xd2>(a, c, d);
    [
        G::gate::<0x93>(b, r, u),
        G::gate::<0x1e>(a, p, q),
        G::gate::<0x9c>(d, s, t),
        G::gate::<0x6a>(a, r, s),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::gates;
    use super::forward;
    use crate::block::registers::{Register, integers::Integers};

    /// All 16 inputs side by side: bit j of input i is bit i of word j.
    const INPUTS: [u64; 4] = [0xaaaa, 0xcccc, 0xf0f0, 0xff00];

    fn check<const I: usize>() {
        let inputs = INPUTS.map(|word| Register::splat_pair(Integers, word));
        let low = |words: [Register<Integers>; 4]| words.map(|word| word.x & 0xffff);
        let deep = gates::forward::<I, _>(inputs);
        assert_eq!(low(forward::<I, _>(inputs)), low(deep), "S-box {I}");
    }

    #[test]
    fn circuits_are_those_of_fewer_gates() {
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
