//! Registers of 128-bit lanes, each of four 32-bit words: what bit-sliced ciphers,
//! Serpent, ChaCha and NH are written over, once for every CPU.
//!
//! [`Registers`] is what a CPU can do, one file a width; [`Register`] is a value with the
//! operators.

#[cfg(any(test, not(target_arch = "x86_64")))]
pub(crate) mod integers;
#[cfg(test)]
mod tests;

use std::ops::{BitAnd, BitOr, BitXor, BitXorAssign, Not};

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use self::integers::Integers as AnyCpu;
use super::gates::Gate;
#[cfg(target_arch = "x86_64")]
pub(crate) use crate::arch::Sse2 as AnyCpu;
use crate::block::Block;
use crate::mode::xts::{STRETCH, fill};
use crate::work::Work;

/// Most lanes in a register.
pub(crate) const MOST_LANES: usize = 4;

/// The panic message for a load or store of fewer bytes than a register has.
pub(crate) const WHOLE_REGISTER: &str = "a register of bytes";

/// The registers of one width: a proof that the CPU has them.
///
/// Every method is inlined into a function that [`enter`](Self::enter) calls,
/// where the operation is an instruction or few. Words, pairs of them and lanes count from
/// the least significant, as they lie in memory.
pub(crate) trait Registers: Copy + Send + Sync + 'static {
    /// Lanes in a register: 1, 2 or 4.
    const LANES: usize;

    /// Whether every function of three bits is one instruction, and a rotation is one.
    const TERNARY: bool = false;

    /// Whether what is in flight may take more than 16 registers.
    const MANY: bool = false;

    /// A register.
    type Vector: Copy;

    /// Registers that few blocks take less time in.
    type Narrow: Registers;

    /// The registers for few blocks.
    fn narrow(self) -> Self::Narrow;

    /// Does `work` in a function compiled for this CPU, apart from its caller.
    fn enter<W: Work<Self>>(self, work: W);

    /// The first of `bytes`, 16 a lane.
    fn load(self, bytes: &[u8]) -> Self::Vector;

    /// Writes the first of `bytes`.
    fn store(self, x: Self::Vector, bytes: &mut [u8]);

    /// `lane` in every lane.
    fn splat(self, lane: [u32; 4]) -> Self::Vector;

    /// `word` in every word.
    fn splat_word(self, word: u32) -> Self::Vector;

    /// `pair` in every pair of words.
    fn splat_pair(self, pair: u64) -> Self::Vector;

    /// The bitwise sum.
    fn xor(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// The bitwise product.
    fn and(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// Ones where either has one.
    fn or(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// Bit 4·x + 2·y + z of `TABLE` for every bit of x, y and z: here as the polynomial that
    /// the table is.
    #[inline(always)]
    fn gate<const TABLE: i32>(
        self,
        x: Self::Vector,
        y: Self::Vector,
        z: Self::Vector,
    ) -> Self::Vector {
        let polynomial = const { polynomial(TABLE) };
        let products = [
            self.splat_word(!0),
            z,
            y,
            self.and(y, z),
            x,
            self.and(x, z),
            self.and(x, y),
            self.and(self.and(x, y), z),
        ];
        let mut sum = self.splat_word(0);
        for (nth, product) in products.into_iter().enumerate() {
            if polynomial >> nth & 1 == 1 {
                sum = self.xor(sum, product);
            }
        }
        sum
    }

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

    /// Pairs of words shifted left.
    fn shift_pairs_left<const BY: u32>(self, x: Self::Vector) -> Self::Vector;

    /// Pairs of words shifted right.
    fn shift_pairs_right<const BY: u32>(self, x: Self::Vector) -> Self::Vector;

    /// Words rotated left.
    fn rotate<const BY: i32>(self, x: Self::Vector) -> Self::Vector;

    /// Word i + `BY` of each lane to word i, for 1, 2 or 3.
    fn turn<const BY: i32>(self, x: Self::Vector) -> Self::Vector;

    /// Exchanges word i of register j with word j of register i, in each lane.
    fn transpose(self, x: [Self::Vector; 4]) -> [Self::Vector; 4];

    /// The lanes 0 of the four registers, then the lanes 1, and so on.
    fn columns(self, x: [Self::Vector; 4]) -> [Self::Vector; 4];

    /// Undoes [`columns`](Self::columns).
    fn rows(self, x: [Self::Vector; 4]) -> [Self::Vector; 4];

    /// Writes `tweak` and its successors in XTS, and returns the one after them.
    #[inline(always)]
    fn tweaks(self, stretch: &mut [Block; STRETCH], tweak: u128) -> u128 {
        fill(stretch, tweak)
    }
}

/// Bit i says whether the product of what is in i's bits (4 for x, 2 for y, 1 for z) is part
/// of the sum that gives `table`.
const fn polynomial(table: i32) -> i32 {
    let by_z = table ^ (table & 0x55) << 1;
    let by_y = by_z ^ (by_z & 0x33) << 2;
    by_y ^ (by_y & 0x0f) << 4
}

/// A register, with the proof that the CPU has it, so that its holder may compute with it.
#[derive(Clone, Copy)]
pub(crate) struct Register<R: Registers> {
    pub(crate) x: R::Vector,
    pub(crate) cpu: R,
}

impl<R: Registers> Register<R> {
    /// As many of the first `blocks` as a register holds.
    #[inline(always)]
    pub(crate) fn load<const N: usize>(cpu: R, blocks: &[[u8; N]]) -> Self {
        let x = cpu.load(blocks.as_flattened());
        Self { x, cpu }
    }

    /// Writes as many of the first `blocks`.
    #[inline(always)]
    pub(crate) fn store<const N: usize>(self, blocks: &mut [[u8; N]]) {
        self.cpu.store(self.x, blocks.as_flattened_mut());
    }

    /// [`Registers::splat_word`].
    #[inline(always)]
    pub(crate) fn splat_word(cpu: R, word: u32) -> Self {
        let x = cpu.splat_word(word);
        Self { x, cpu }
    }

    /// [`Registers::splat_pair`].
    #[inline(always)]
    pub(crate) fn splat_pair(cpu: R, pair: u64) -> Self {
        let x = cpu.splat_pair(pair);
        Self { x, cpu }
    }

    /// The same proof.
    #[inline(always)]
    pub(crate) fn with(self, x: R::Vector) -> Self {
        Self { x, ..self }
    }
}

impl<R: Registers> BitXor for Register<R> {
    type Output = Self;

    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        self.with(self.cpu.xor(self.x, other.x))
    }
}

impl<R: Registers> BitXorAssign for Register<R> {
    #[inline(always)]
    fn bitxor_assign(&mut self, other: Self) {
        *self = *self ^ other;
    }
}

impl<R: Registers> BitAnd for Register<R> {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        self.with(self.cpu.and(self.x, other.x))
    }
}

impl<R: Registers> BitOr for Register<R> {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        self.with(self.cpu.or(self.x, other.x))
    }
}

impl<R: Registers> Not for Register<R> {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        self ^ Self::splat_word(self.cpu, !0)
    }
}

impl<R: Registers> Gate for Register<R> {
    #[inline(always)]
    fn gate<const TABLE: i32>(x: Self, y: Self, z: Self) -> Self {
        x.with(x.cpu.gate::<TABLE>(x.x, y.x, z.x))
    }
}
