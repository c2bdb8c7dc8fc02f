//! Armv8's AES and PMULL instructions.
//!
//! AESE and AESD add their key first and not last. A round here gives them
//! zeros and adds its key afterwards, as [`Engine`] has it. The compiler makes
//! that sum the next instruction's key if it unrolls the rounds. In a loop over
//! rounds the sum stays an instruction of its own, and no AESMC follows its AESE,
//! so that processors cannot fuse the two.

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use super::super::{Engine, Lines};
use super::{WHOLE_REGISTER, line, line_mut};
use crate::arch::Neon;
use crate::arch::instructions::{binary, enter};
use crate::block::Block;
use crate::work::Work;

/// Proof that this CPU has NEON, AES and PMULL.
#[derive(Clone, Copy)]
pub(crate) struct AesCe(Neon);

impl AesCe {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let neon = Neon::detect()?;
        let has = is_aarch64_feature_detected!("aes") && is_aarch64_feature_detected!("pmull");
        has.then_some(Self(neon))
    }
}

impl Engine for AesCe {
    const LANES: usize = 1;
    // A loop over the 13 rounds of AES-256 is not unrolled, and takes four instructions a round in
    // place of two.
    const ROUNDS_IN_A_LOOP: usize = 7;
    type Vector = uint8x16_t;

    enter!("neon,aes");

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> uint8x16_t {
        self.splat(blocks.first().expect(WHOLE_REGISTER))
    }

    #[inline(always)]
    fn store(self, x: uint8x16_t, blocks: &mut [Block]) {
        let block: &mut Block = blocks.first_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves NEON, and the block is borrowed.
        unsafe { vst1q_u8(block.as_mut_ptr(), x) }
    }

    #[inline(always)]
    fn store_one(self, x: uint8x16_t, block: &mut Block) {
        self.store(x, std::slice::from_mut(block));
    }

    #[inline(always)]
    fn splat(self, block: &Block) -> uint8x16_t {
        // SAFETY: `self` proves NEON, and the block is borrowed.
        unsafe { vld1q_u8(block.as_ptr()) }
    }

    binary! { add: veorq_u8 }

    #[inline(always)]
    fn round(self, x: uint8x16_t, key: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves the features.
        unsafe { veorq_u8(mix(substitute(x)), key) }
    }

    #[inline(always)]
    fn last_round(self, x: uint8x16_t, key: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves the features.
        unsafe { veorq_u8(substitute(x), key) }
    }

    #[inline(always)]
    fn inverse_round(self, x: uint8x16_t, key: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves the features.
        unsafe { veorq_u8(unmix(undo_substitute(x)), key) }
    }

    #[inline(always)]
    fn last_inverse_round(self, x: uint8x16_t, key: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves the features.
        unsafe { veorq_u8(undo_substitute(x), key) }
    }

    #[inline(always)]
    fn spread(self, tweak: &Block) -> uint8x16_t {
        self.splat(tweak)
    }

    #[inline(always)]
    fn times_x_lanes(self, tweaks: uint8x16_t) -> uint8x16_t {
        self.0.times_x(tweaks)
    }

    #[inline(always)]
    fn times_x8(self, tweaks: uint8x16_t) -> uint8x16_t {
        self.0.times_x8(tweaks)
    }

    #[inline(always)]
    fn next_tweaks(self, tweaks: uint8x16_t, _: uint8x16_t) -> uint8x16_t {
        self.times_x8(tweaks)
    }

    #[inline(always)]
    fn sum_words(self, x: uint8x16_t, y: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves NEON.
        unsafe {
            let sum = vaddq_u32(vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(y));
            vreinterpretq_u8_u32(sum)
        }
    }

    #[inline(always)]
    fn choose_above(
        self,
        x: uint8x16_t,
        y: uint8x16_t,
        nth: uint8x16_t,
        limit: uint8x16_t,
    ) -> uint8x16_t {
        // SAFETY: `self` proves NEON.
        unsafe {
            let above = vcgtq_s32(vreinterpretq_s32_u8(nth), vreinterpretq_s32_u8(limit));
            vbslq_u8(vreinterpretq_u8_u32(above), y, x)
        }
    }

    #[inline(always)]
    fn shift_in(self, previous: uint8x16_t, current: uint8x16_t) -> uint8x16_t {
        let _ = current;
        previous
    }

    #[inline(always)]
    fn load_lines(self, data: &[u8], lines: &Lines) -> [uint8x16_t; 4] {
        let [a, b, c, d] = line(data, lines[0]);
        [self.splat(a), self.splat(b), self.splat(c), self.splat(d)]
    }

    #[inline(always)]
    fn store_lines(self, x: [uint8x16_t; 4], data: &mut [u8], lines: &Lines, count: usize) {
        if count > 0 {
            let blocks = line_mut(data, lines[0]);
            for (j, x) in x.into_iter().enumerate() {
                self.store(x, &mut blocks[j..]);
            }
        }
    }

    #[inline(always)]
    fn unmix(self, block: &mut Block) {
        // SAFETY: `self` proves the features, and the block is borrowed.
        unsafe { vst1q_u8(block.as_mut_ptr(), unmix(vld1q_u8(block.as_ptr()))) }
    }
}

/// ShiftRows and SubBytes.
#[inline]
#[target_feature(enable = "neon,aes")]
fn substitute(x: uint8x16_t) -> uint8x16_t {
    vaeseq_u8(x, vdupq_n_u8(0))
}

/// MixColumns.
#[inline]
#[target_feature(enable = "neon,aes")]
fn mix(x: uint8x16_t) -> uint8x16_t {
    vaesmcq_u8(x)
}

/// InvShiftRows and InvSubBytes.
#[inline]
#[target_feature(enable = "neon,aes")]
fn undo_substitute(x: uint8x16_t) -> uint8x16_t {
    vaesdq_u8(x, vdupq_n_u8(0))
}

/// InvMixColumns.
#[inline]
#[target_feature(enable = "neon,aes")]
fn unmix(x: uint8x16_t) -> uint8x16_t {
    vaesimcq_u8(x)
}
