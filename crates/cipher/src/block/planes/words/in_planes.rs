//! Words in planes of AVX-512.

use zeroize::Zeroize;

use super::{Form, Groups, Rows, WordTable, Words};
use crate::arch::Avx512Bytes;
use crate::block::planes::{Planes, four};

/// Each byte of a word in every byte of another.
#[derive(Clone, Copy)]
pub(super) struct Constant([u32; 4]);

impl Constant {
    pub(super) fn new(word: u32) -> Self {
        Self(word.to_le_bytes().map(four))
    }
}

impl Zeroize for Constant {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// A rotation to the left.
#[derive(Clone, Copy)]
pub(super) struct Rotation {
    /// All ones if planes come from two planes below.
    two_planes: u32,
    /// All ones if they come from one plane below, after that.
    one_plane: u32,
    /// By how much bytes are rotated left, after that,
    bits: u32,
    /// and by how much those of the plane below,
    bits_below: u32,
    /// of which these bits are taken.
    from_below: u32,
}

impl Rotation {
    /// By a number from 0 to 31.
    pub(super) fn new(by: u32) -> Self {
        let bits = by % 8;
        Self {
            two_planes: (by >> 4 & 1).wrapping_neg(),
            one_plane: (by >> 3 & 1).wrapping_neg(),
            bits,
            bits_below: 24 + bits,
            from_below: four(((1 << bits) - 1) as u8),
        }
    }
}

impl Zeroize for Rotation {
    fn zeroize(&mut self) {
        self.two_planes.zeroize();
        self.one_plane.zeroize();
        self.bits.zeroize();
        self.bits_below.zeroize();
        self.from_below.zeroize();
    }
}

/// Words of `G` groups in four planes each, the least significant first.
#[derive(Clone, Copy)]
pub(crate) struct InFourPlanes<const BY_ROWS: bool, const G: usize>(
    pub(crate) Avx512Bytes<BY_ROWS>,
);

type Vector = <Avx512Bytes as Planes>::Vector;

impl<const BY_ROWS: bool, const G: usize> Form for InFourPlanes<BY_ROWS, G> {
    type Word = [[Vector; 4]; G];
    const ROWS: Rows = <Avx512Bytes<BY_ROWS> as Words>::ROWS;

    #[inline(always)]
    fn constant(self, word: &super::Constant) -> Self::Word {
        let Constant([a, b, c, d]) = word.in_planes;
        let Self(planes) = self;
        let word = [
            planes.splat(a),
            planes.splat(b),
            planes.splat(c),
            planes.splat(d),
        ];
        [word; G]
    }

    #[inline(always)]
    fn xor(self, mut x: Self::Word, y: Self::Word) -> Self::Word {
        for g in 0..G {
            for i in 0..4 {
                x[g][i] = self.0.xor(x[g][i], y[g][i]);
            }
        }
        x
    }

    #[inline(always)]
    fn add(self, x: Self::Word, y: Self::Word) -> Self::Word {
        let Self(planes) = self;
        let mut sum = x;
        for g in 0..G {
            let (x, y, sum) = (&x[g], &y[g], &mut sum[g]);
            for i in 0..4 {
                sum[i] = planes.add_bytes(x[i], y[i]);
                if i > 0 {
                    let carries = planes.carries(x[i - 1], y[i - 1], sum[i - 1]);
                    sum[i] = planes.add_bytes(sum[i], carries);
                }
            }
        }
        sum
    }

    #[inline(always)]
    fn subtract(self, x: Self::Word, y: Self::Word) -> Self::Word {
        let Self(planes) = self;
        let mut difference = x;
        for g in 0..G {
            let (x, y, difference) = (&x[g], &y[g], &mut difference[g]);
            for i in 0..4 {
                difference[i] = planes.subtract_bytes(x[i], y[i]);
                if i > 0 {
                    let borrows = planes.borrows(x[i - 1], y[i - 1], difference[i - 1]);
                    difference[i] = planes.subtract_bytes(difference[i], borrows);
                }
            }
        }
        difference
    }

    #[inline(always)]
    fn rotate(self, mut x: Self::Word, by: &super::Rotation) -> Self::Word {
        for x in &mut x {
            *x = self.rotate_group(*x, &by.in_planes);
        }
        x
    }

    #[inline(always)]
    fn look_up(self, table: &WordTable, x: Self::Word, byte: usize) -> Self::Word {
        let mut bytes = [x[0][byte]; G];
        for g in 0..G {
            bytes[g] = x[g][byte];
        }
        self.0.look_up_planes(table, bytes)
    }
}

impl<const BY_ROWS: bool, const G: usize> Groups<Avx512Bytes<BY_ROWS>, G>
    for InFourPlanes<BY_ROWS, G>
{
    #[inline(always)]
    fn arrange(self, planes: [Vector; 4]) -> [Vector; 4] {
        planes
    }

    #[inline(always)]
    fn restore(self, words: [Vector; 4]) -> [Vector; 4] {
        words
    }
}

impl<const BY_ROWS: bool, const G: usize> InFourPlanes<BY_ROWS, G> {
    #[inline(always)]
    fn rotate_group(self, [a, b, c, d]: [Vector; 4], by: &Rotation) -> [Vector; 4] {
        let Self(planes) = self;
        let mask = planes.splat(by.two_planes);
        let [a, b, c, d] = [
            planes.select(mask, a, c),
            planes.select(mask, b, d),
            planes.select(mask, c, a),
            planes.select(mask, d, b),
        ];
        let mask = planes.splat(by.one_plane);
        let whole = [
            planes.select(mask, a, d),
            planes.select(mask, b, a),
            planes.select(mask, c, b),
            planes.select(mask, d, c),
        ];
        // Rotated words of a plane have the wrong neighbour's bits where
        // `from_below` has ones. Rotated by `bits_below`, bytes are shifted
        // right by what is left of eight bits, which puts the right ones there.
        let mask = planes.splat(by.from_below);
        let mut rotated = whole;
        for i in 0..4 {
            let here = planes.rotate_words(whole[i], by.bits);
            let below = planes.rotate_words(whole[(i + 3) % 4], by.bits_below);
            rotated[i] = planes.select(mask, here, below);
        }
        rotated
    }
}
