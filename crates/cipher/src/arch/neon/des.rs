//! Bit-sliced DES and Triple DES in registers of NEON: a bit of 128 blocks in
//! each.

use std::arch::aarch64::*;
use std::ops::{BitAnd, BitOr, BitXor, BitXorAssign, Not};

use super::Neon;
use crate::block::des::planes::{Plane, Planes, lower, pass, passes};
use crate::block::des::{Block, Cpu, Rounds, sbox};

const WHOLE_REGISTER: &str = "a register of blocks";

impl Cpu for Neon {
    fn crypt(self, rounds: Rounds<'_>, blocks: &mut [Block]) {
        passes(64 * Plane128::WORDS, blocks, |blocks| {
            // SAFETY: `self` proves NEON.
            unsafe { pass_neon(self, rounds, blocks) }
        });
    }
}

#[target_feature(enable = "neon")]
fn pass_neon(cpu: Neon, rounds: Rounds<'_>, blocks: &mut [Block]) {
    pass(cpu, rounds, blocks);
}

/// A register of NEON, with the proof that there is one.
#[derive(Clone, Copy)]
pub(crate) struct Plane128 {
    x: uint64x2_t,
    cpu: Neon,
}

impl Planes for Neon {
    type Plane = Plane128;

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> Plane128 {
        let blocks: &[Block; 2] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves NEON, and the blocks are borrowed.
        let x = unsafe { vreinterpretq_u64_u8(vld1q_u8(blocks.as_ptr().cast())) };
        Plane128 { x, cpu: self }
    }

    #[inline(always)]
    fn store(self, x: Plane128, blocks: &mut [Block]) {
        let blocks: &mut [Block; 2] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves NEON, and the blocks are borrowed.
        unsafe { vst1q_u8(blocks.as_mut_ptr().cast(), vreinterpretq_u8_u64(x.x)) }
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Plane128 {
        // SAFETY: `self` proves NEON.
        let x = unsafe { vdupq_n_u64(word) };
        Plane128 { x, cpu: self }
    }
}

impl Plane for Plane128 {
    const WORDS: usize = 2;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn substitute<const S: usize>(x: [Self; 6]) -> [Self; 4] {
        sbox::substitute::<S, Self>(x)
    }

    #[inline(always)]
    fn exchange<const WIDTH: u32>(x: Self, y: Self) -> [Self; 2] {
        let width = i64::from(WIDTH);
        let lower = x.cpu.splat(lower(WIDTH));
        // A negative shift to the left goes to the right.
        // SAFETY: the register proves NEON.
        let down = unsafe { vshlq_u64(x.x, vdupq_n_s64(-width)) };
        let difference = (Self { x: down, ..x } ^ y) & lower;
        // SAFETY: the register proves NEON.
        let up = unsafe { vshlq_u64(difference.x, vdupq_n_s64(width)) };
        [x ^ Self { x: up, ..x }, y ^ difference]
    }
}

impl BitXor for Plane128 {
    type Output = Self;

    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        // SAFETY: the register proves NEON.
        let x = unsafe { veorq_u64(self.x, other.x) };
        Self { x, ..self }
    }
}

impl BitXorAssign for Plane128 {
    #[inline(always)]
    fn bitxor_assign(&mut self, other: Self) {
        *self = *self ^ other;
    }
}

impl BitAnd for Plane128 {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        // SAFETY: the register proves NEON.
        let x = unsafe { vandq_u64(self.x, other.x) };
        Self { x, ..self }
    }
}

impl BitOr for Plane128 {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        // SAFETY: the register proves NEON.
        let x = unsafe { vorrq_u64(self.x, other.x) };
        Self { x, ..self }
    }
}

impl Not for Plane128 {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        self ^ self.cpu.splat(u64::MAX)
    }
}
