//! Registers of 128-bit lanes, each of four 32-bit words: what bit-sliced AES,
//! ChaCha and NH are written over, once for every CPU.

use crate::block::Block;
use crate::work::Work;

/// Most lanes in a register.
pub(crate) const MOST_WIDE: usize = 4;

/// The operations of one register width: a proof that the CPU has them.
///
/// Every method is inlined into a function that [`enter`](Self::enter) calls,
/// where the operation is an instruction or two. Words and lanes count from
/// the least significant, as they lie in memory.
pub(crate) trait Lanes: Copy + Send + Sync + 'static {
    /// Lanes in a register: 1, 2 or 4.
    const WIDE: usize;

    /// A register.
    type Vector: Copy;

    /// Does `work` in a function compiled for this CPU.
    fn enter<W: Work<Self>>(self, work: W);

    /// The first [`WIDE`](Self::WIDE) of `blocks`.
    fn load(self, blocks: &[Block]) -> Self::Vector;

    /// Writes the first [`WIDE`](Self::WIDE) of `blocks`.
    fn store(self, x: Self::Vector, blocks: &mut [Block]);

    /// `lane` in every lane.
    fn splat(self, lane: [u32; 4]) -> Self::Vector;

    /// The bitwise sum.
    fn xor(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// The bitwise product.
    fn and(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// Sums of words modulo 2³².
    fn add_words(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// Sums of pairs of words modulo 2⁶⁴.
    fn add_pairs(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// Word 0 times word 1 and word 2 times word 3, as pairs.
    fn multiply_pairs(self, x: Self::Vector) -> Self::Vector;

    /// Words 1 and 2 of each lane exchanged.
    fn swap_middle(self, x: Self::Vector) -> Self::Vector;

    /// Words shifted left.
    fn shift_left<const BY: u32>(self, x: Self::Vector) -> Self::Vector;

    /// Words shifted right.
    fn shift_right<const BY: u32>(self, x: Self::Vector) -> Self::Vector;

    /// Words rotated left.
    fn rotate<const BY: i32>(self, x: Self::Vector) -> Self::Vector;

    /// Word i + `BY` of each lane to word i, for 1, 2 or 3.
    fn turn<const BY: i32>(self, x: Self::Vector) -> Self::Vector;

    /// The lanes 0 of the four registers, then the lanes 1, and so on.
    fn columns(self, x: [Self::Vector; 4]) -> [Self::Vector; 4];
}

/// Any CPU that the build is for.
#[derive(Clone, Copy)]
pub(crate) struct AnyCpu;

impl Lanes for AnyCpu {
    const WIDE: usize = 1;
    type Vector = u128;

    fn enter<W: Work<Self>>(self, work: W) {
        work.run(self);
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> u128 {
        u128::from_le_bytes(blocks[0])
    }

    #[inline(always)]
    fn store(self, x: u128, blocks: &mut [Block]) {
        blocks[0] = x.to_le_bytes();
    }

    #[inline(always)]
    fn splat(self, lane: [u32; 4]) -> u128 {
        join(lane)
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
        let low = (x as u64).wrapping_add(y as u64);
        let high = ((x >> 64) as u64).wrapping_add((y >> 64) as u64);
        u128::from(high) << 64 | u128::from(low)
    }

    #[inline(always)]
    fn multiply_pairs(self, x: u128) -> u128 {
        let [a, b, c, d] = split(x);
        let (low, high) = (u64::from(a) * u64::from(b), u64::from(c) * u64::from(d));
        u128::from(high) << 64 | u128::from(low)
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
    fn rotate<const BY: i32>(self, x: u128) -> u128 {
        join(split(x).map(|word| word.rotate_left(BY as u32)))
    }

    #[inline(always)]
    fn turn<const BY: i32>(self, x: u128) -> u128 {
        x.rotate_right(32 * BY as u32)
    }

    #[inline(always)]
    fn columns(self, x: [u128; 4]) -> [u128; 4] {
        x
    }
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
