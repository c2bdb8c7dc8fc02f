//! Registers of one lane in an integer, for CPUs of which nothing is known.

use super::{Registers, WHOLE_REGISTER};
use crate::work::Work;

/// Registers that every CPU has.
#[derive(Clone, Copy)]
pub(crate) struct Integers;

impl Registers for Integers {
    const LANES: usize = 1;
    type Vector = u128;
    type Narrow = Self;

    fn narrow(self) -> Self {
        self
    }

    #[inline(never)]
    fn enter<W: Work<Self>>(self, work: W) {
        work.run(self);
    }

    #[inline(always)]
    fn load(self, bytes: &[u8]) -> u128 {
        u128::from_le_bytes(*bytes.first_chunk().expect(WHOLE_REGISTER))
    }

    #[inline(always)]
    fn store(self, x: u128, bytes: &mut [u8]) {
        *bytes.first_chunk_mut().expect(WHOLE_REGISTER) = x.to_le_bytes();
    }

    #[inline(always)]
    fn splat(self, lane: [u32; 4]) -> u128 {
        join(lane)
    }

    #[inline(always)]
    fn splat_word(self, word: u32) -> u128 {
        join([word; 4])
    }

    #[inline(always)]
    fn splat_pair(self, pair: u64) -> u128 {
        pairs([pair; 2])
    }

    #[inline(always)]
    fn xor(self, x: u128, y: u128) -> u128 {
        x ^ y
    }

    #[inline(always)]
    fn and(self, x: u128, y: u128) -> u128 {
        x & y
    }

    #[inline(always)]
    fn or(self, x: u128, y: u128) -> u128 {
        x | y
    }

    #[inline(always)]
    fn add_words(self, x: u128, y: u128) -> u128 {
        let ([a, b, c, d], [e, f, g, h]) = (split(x), split(y));
        join([
            a.wrapping_add(e),
            b.wrapping_add(f),
            c.wrapping_add(g),
            d.wrapping_add(h),
        ])
    }

    #[inline(always)]
    fn add_pairs(self, x: u128, y: u128) -> u128 {
        pairs([
            (x as u64).wrapping_add(y as u64),
            ((x >> 64) as u64).wrapping_add((y >> 64) as u64),
        ])
    }

    #[inline(always)]
    fn multiply_pairs(self, x: u128) -> u128 {
        let [a, b, c, d] = split(x);
        pairs([u64::from(a) * u64::from(b), u64::from(c) * u64::from(d)])
    }

    #[inline(always)]
    fn swap_middle(self, x: u128) -> u128 {
        let [a, b, c, d] = split(x);
        join([a, c, b, d])
    }

    #[inline(always)]
    fn shift_left<const BY: u32>(self, x: u128) -> u128 {
        x << BY & join([u32::MAX << BY; 4])
    }

    #[inline(always)]
    fn shift_right<const BY: u32>(self, x: u128) -> u128 {
        x >> BY & join([u32::MAX >> BY; 4])
    }

    #[inline(always)]
    fn shift_pairs_left<const BY: u32>(self, x: u128) -> u128 {
        x << BY & pairs([u64::MAX << BY; 2])
    }

    #[inline(always)]
    fn shift_pairs_right<const BY: u32>(self, x: u128) -> u128 {
        x >> BY & pairs([u64::MAX >> BY; 2])
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self, x: u128) -> u128 {
        join(split(x).map(|word| word.rotate_left(BY as u32)))
    }

    #[inline(always)]
    fn turn<const BY: i32>(self, x: u128) -> u128 {
        x.rotate_right(32 * BY as u32)
    }

    #[inline(always)]
    fn transpose(self, [a, b, c, d]: [u128; 4]) -> [u128; 4] {
        let (a, b, c, d) = (split(a), split(b), split(c), split(d));
        [0, 1, 2, 3].map(|i: usize| join([a[i], b[i], c[i], d[i]]))
    }

    #[inline(always)]
    fn columns(self, x: [u128; 4]) -> [u128; 4] {
        x
    }

    #[inline(always)]
    fn rows(self, x: [u128; 4]) -> [u128; 4] {
        x
    }
}

#[inline(always)]
const fn pairs([low, high]: [u64; 2]) -> u128 {
    (high as u128) << 64 | low as u128
}

#[inline(always)]
const fn join([a, b, c, d]: [u32; 4]) -> u128 {
    (d as u128) << 96 | (c as u128) << 64 | (b as u128) << 32 | a as u128
}

#[inline(always)]
const fn split(x: u128) -> [u32; 4] {
    [
        x as u32,
        (x >> 32) as u32,
        (x >> 64) as u32,
        (x >> 96) as u32,
    ]
}
