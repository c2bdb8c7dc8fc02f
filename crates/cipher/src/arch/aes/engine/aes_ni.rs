//! AES-NI.

use std::arch::x86_64::*;

use super::super::{Engine, Lines};
use super::{POLYNOMIAL, WHOLE_REGISTER, line, line_mut};
use crate::arch::instructions::{binary, enter};
use crate::block::Block;
use crate::work::Work;

/// Proof that this CPU has AES-NI and PCLMULQDQ.
#[derive(Clone, Copy)]
pub(crate) struct AesNi(());

impl AesNi {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
        has.then_some(Self(()))
    }
}

impl Engine for AesNi {
    const LANES: usize = 1;
    type Vector = __m128i;

    enter!("aes,pclmulqdq,sse4.1");

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> __m128i {
        let blocks: &[Block; Self::LANES] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm_loadu_si128(blocks.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, x: __m128i, blocks: &mut [Block]) {
        let blocks: &mut [Block; Self::LANES] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm_storeu_si128(blocks.as_mut_ptr().cast(), x) }
    }

    #[inline(always)]
    fn store_one(self, x: __m128i, block: &mut Block) {
        self.store(x, std::slice::from_mut(block));
    }

    #[inline(always)]
    fn splat(self, block: &Block) -> __m128i {
        // SAFETY: `self` proves the feature, and the block is borrowed.
        unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
    }

    binary! {
        add: _mm_xor_si128, sum_words: _mm_add_epi32,
        round: _mm_aesenc_si128, last_round: _mm_aesenclast_si128,
        inverse_round: _mm_aesdec_si128, last_inverse_round: _mm_aesdeclast_si128
    }

    #[inline(always)]
    fn spread(self, tweak: &Block) -> __m128i {
        self.splat(tweak)
    }

    #[inline(always)]
    fn times_x_lanes(self, tweaks: __m128i) -> __m128i {
        // The top bits of the halves go to the words that they are carried to.
        const TO: i32 = 0b00_01_00_11;
        // SAFETY: `self` proves the features.
        unsafe {
            let signs = _mm_srai_epi32::<31>(_mm_shuffle_epi32::<TO>(tweaks));
            let carries = _mm_and_si128(signs, _mm_set_epi64x(1, POLYNOMIAL));
            _mm_xor_si128(_mm_add_epi64(tweaks, tweaks), carries)
        }
    }

    #[inline(always)]
    fn times_x8(self, tweaks: __m128i) -> __m128i {
        // SAFETY: `self` proves the features.
        unsafe {
            let over = _mm_srli_si128::<15>(tweaks);
            let polynomial = _mm_set1_epi64x(POLYNOMIAL);
            let reduced = _mm_clmulepi64_si128::<0>(over, polynomial);
            _mm_xor_si128(_mm_slli_si128::<1>(tweaks), reduced)
        }
    }

    /// Carry-less products take the time of rounds, what this is made of does not.
    #[inline(always)]
    fn next_tweaks(self, _: __m128i, before: __m128i) -> __m128i {
        self.times_x_lanes(before)
    }

    #[inline(always)]
    fn choose_above(self, x: __m128i, y: __m128i, nth: __m128i, limit: __m128i) -> __m128i {
        // The sign of a word chooses.
        // SAFETY: `self` proves the feature.
        unsafe {
            let left = _mm_castsi128_ps(_mm_sub_epi32(limit, nth));
            let (x, y) = (_mm_castsi128_ps(x), _mm_castsi128_ps(y));
            _mm_castps_si128(_mm_blendv_ps(x, y, left))
        }
    }

    #[inline(always)]
    fn shift_in(self, previous: __m128i, current: __m128i) -> __m128i {
        let _ = current;
        previous
    }

    #[inline(always)]
    fn load_lines(self, data: &[u8], lines: &Lines) -> [__m128i; 4] {
        let blocks = line(data, lines[0]);
        let (a, b) = (self.load(blocks), self.load(&blocks[1..]));
        let (c, d) = (self.load(&blocks[2..]), self.load(&blocks[3..]));
        [a, b, c, d]
    }

    #[inline(always)]
    fn store_lines(self, x: [__m128i; 4], data: &mut [u8], lines: &Lines, count: usize) {
        if count > 0 {
            let blocks = line_mut(data, lines[0]);
            for (j, x) in x.into_iter().enumerate() {
                self.store(x, &mut blocks[j..]);
            }
        }
    }

    #[inline(always)]
    fn unmix(self, block: &mut Block) {
        // SAFETY: `self` proves AES-NI, and the block is borrowed.
        unsafe {
            let unmixed = _mm_aesimc_si128(_mm_loadu_si128(block.as_ptr().cast()));
            _mm_storeu_si128(block.as_mut_ptr().cast(), unmixed);
        }
    }
}
