//! NEON registers: one 128-bit lane.

use std::arch::aarch64::*;

use super::Neon;
use crate::arch::instructions::{binary, enter};
use crate::block::Block;
use crate::block::registers::{Registers, WHOLE_REGISTER};
use crate::work::Work;

impl Registers for Neon {
    const LANES: usize = 1;
    type Vector = uint32x4_t;
    type Narrow = Self;

    fn narrow(self) -> Self {
        self
    }

    enter!("neon");

    #[inline(always)]
    fn load(self, bytes: &[u8]) -> uint32x4_t {
        let bytes: &[u8; 16] = bytes.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves NEON, and the bytes are borrowed.
        unsafe { vreinterpretq_u32_u8(vld1q_u8(bytes.as_ptr())) }
    }

    #[inline(always)]
    fn store(self, x: uint32x4_t, bytes: &mut [u8]) {
        let bytes: &mut [u8; 16] = bytes.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves NEON, and the bytes are borrowed.
        unsafe { vst1q_u8(bytes.as_mut_ptr(), vreinterpretq_u8_u32(x)) }
    }

    binary! { xor: veorq_u32, and: vandq_u32, or: vorrq_u32, add_words: vaddq_u32 }

    #[inline(always)]
    fn splat(self, lane: [u32; 4]) -> uint32x4_t {
        // SAFETY: `self` proves NEON, and the lane is borrowed.
        unsafe { vld1q_u32(lane.as_ptr()) }
    }

    #[inline(always)]
    fn splat_word(self, word: u32) -> uint32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vdupq_n_u32(word) }
    }

    #[inline(always)]
    fn splat_pair(self, pair: u64) -> uint32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vreinterpretq_u32_u64(vdupq_n_u64(pair)) }
    }

    #[inline(always)]
    fn add_pairs(self, x: uint32x4_t, y: uint32x4_t) -> uint32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe {
            let sums = vaddq_u64(vreinterpretq_u64_u32(x), vreinterpretq_u64_u32(y));
            vreinterpretq_u32_u64(sums)
        }
    }

    #[inline(always)]
    fn multiply_pairs(self, x: uint32x4_t) -> uint32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe {
            let x = vreinterpretq_u64_u32(x);
            let products = vmull_u32(vmovn_u64(x), vshrn_n_u64::<32>(x));
            vreinterpretq_u32_u64(products)
        }
    }

    #[inline(always)]
    fn swap_middle(self, x: uint32x4_t) -> uint32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vzip1q_u32(x, vextq_u32::<2>(x, x)) }
    }

    #[inline(always)]
    fn shift_left<const BY: u32>(self, x: uint32x4_t) -> uint32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vshlq_u32(x, vdupq_n_s32(BY as i32)) }
    }

    #[inline(always)]
    fn shift_right<const BY: u32>(self, x: uint32x4_t) -> uint32x4_t {
        // A negative shift to the left goes to the right.
        // SAFETY: `self` proves NEON.
        unsafe { vshlq_u32(x, vdupq_n_s32(-(BY as i32))) }
    }

    #[inline(always)]
    fn shift_pairs_left<const BY: u32>(self, x: uint32x4_t) -> uint32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe {
            let x = vreinterpretq_u64_u32(x);
            vreinterpretq_u32_u64(vshlq_u64(x, vdupq_n_s64(i64::from(BY))))
        }
    }

    #[inline(always)]
    fn shift_pairs_right<const BY: u32>(self, x: uint32x4_t) -> uint32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe {
            let x = vreinterpretq_u64_u32(x);
            vreinterpretq_u32_u64(vshlq_u64(x, vdupq_n_s64(-i64::from(BY))))
        }
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self, x: uint32x4_t) -> uint32x4_t {
        const BYTES: Block = [3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14];
        // SAFETY: `self` proves NEON, and the bytes are borrowed.
        unsafe {
            match BY {
                16 => vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(x))),
                8 => vreinterpretq_u32_u8(vqtbl1q_u8(
                    vreinterpretq_u8_u32(x),
                    vld1q_u8(BYTES.as_ptr()),
                )),
                // A negative shift to the left goes to the right.
                _ => vorrq_u32(
                    vshlq_u32(x, vdupq_n_s32(BY)),
                    vshlq_u32(x, vdupq_n_s32(BY - 32)),
                ),
            }
        }
    }

    #[inline(always)]
    fn turn<const BY: i32>(self, x: uint32x4_t) -> uint32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vextq_u32::<BY>(x, x) }
    }

    #[inline(always)]
    fn transpose(self, [a, b, c, d]: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
        // SAFETY: `self` proves NEON.
        unsafe {
            let (ac01, ac23) = (vzip1q_u32(a, c), vzip2q_u32(a, c));
            let (bd01, bd23) = (vzip1q_u32(b, d), vzip2q_u32(b, d));
            [
                vzip1q_u32(ac01, bd01),
                vzip2q_u32(ac01, bd01),
                vzip1q_u32(ac23, bd23),
                vzip2q_u32(ac23, bd23),
            ]
        }
    }

    #[inline(always)]
    fn columns(self, x: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
        x
    }

    #[inline(always)]
    fn rows(self, x: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
        x
    }
}
