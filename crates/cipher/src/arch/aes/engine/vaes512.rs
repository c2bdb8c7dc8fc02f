//! VAES on 512-bit registers.

use std::arch::x86_64::*;

use super::super::{Engine, Lines};
use super::{POLYNOMIAL, WHOLE_REGISTER, line, line_mut};
use crate::arch::instructions::{binary, enter};
use crate::arch::registers::columns;
use crate::block::Block;
use crate::work::Work;

/// Proof that this CPU has VAES and VPCLMULQDQ on 512-bit registers.
#[derive(Clone, Copy)]
pub(crate) struct Vaes512(());

impl Vaes512 {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("vpclmulqdq");
        has.then_some(Self(()))
    }
}

impl Engine for Vaes512 {
    const LANES: usize = 4;
    type Vector = __m512i;

    enter!("avx512f,avx512bw,vaes,vpclmulqdq");

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> __m512i {
        let blocks: &[Block; Self::LANES] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, x: __m512i, blocks: &mut [Block]) {
        let blocks: &mut [Block; Self::LANES] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), x) }
    }

    #[inline(always)]
    fn store_one(self, x: __m512i, block: &mut Block) {
        // SAFETY: `self` proves the feature, and the block is borrowed.
        unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), _mm512_castsi512_si128(x)) }
    }

    #[inline(always)]
    fn splat(self, block: &Block) -> __m512i {
        // SAFETY: `self` proves the feature, and the block is borrowed.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(block.as_ptr().cast())) }
    }

    binary! {
        add: _mm512_xor_si512, sum_words: _mm512_add_epi32,
        round: _mm512_aesenc_epi128, last_round: _mm512_aesenclast_epi128,
        inverse_round: _mm512_aesdec_epi128, last_inverse_round: _mm512_aesdeclast_epi128
    }

    #[inline(always)]
    fn spread(self, tweak: &Block) -> __m512i {
        // SAFETY: `self` proves the features, and the tweak is borrowed.
        unsafe {
            let left = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
            let tweak = _mm512_broadcast_i32x4(_mm_loadu_si128(tweak.as_ptr().cast()));
            let shifted = _mm512_sllv_epi64(tweak, left);
            let carries = _mm512_srlv_epi64(tweak, _mm512_sub_epi64(_mm512_set1_epi64(64), left));
            let polynomial = _mm512_set1_epi64(POLYNOMIAL);
            let reduced = _mm512_clmulepi64_epi128::<1>(carries, polynomial);
            let shifted = _mm512_xor_si512(shifted, _mm512_bslli_epi128::<8>(carries));
            _mm512_xor_si512(shifted, reduced)
        }
    }

    #[inline(always)]
    fn times_x_lanes(self, tweaks: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe {
            let shifted = _mm512_slli_epi64::<4>(tweaks);
            let carries = _mm512_srli_epi64::<60>(tweaks);
            let polynomial = _mm512_set1_epi64(POLYNOMIAL);
            let reduced = _mm512_clmulepi64_epi128::<1>(carries, polynomial);
            let shifted = _mm512_xor_si512(shifted, _mm512_bslli_epi128::<8>(carries));
            _mm512_xor_si512(shifted, reduced)
        }
    }

    #[inline(always)]
    fn times_x8(self, tweaks: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe {
            let over = _mm512_bsrli_epi128::<15>(tweaks);
            let polynomial = _mm512_set1_epi64(POLYNOMIAL);
            let reduced = _mm512_clmulepi64_epi128::<0>(over, polynomial);
            _mm512_xor_si512(_mm512_bslli_epi128::<1>(tweaks), reduced)
        }
    }

    #[inline(always)]
    fn next_tweaks(self, tweaks: __m512i, _: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe {
            let over = _mm512_bsrli_epi128::<12>(tweaks);
            let polynomial = _mm512_set1_epi64(POLYNOMIAL);
            let reduced = _mm512_clmulepi64_epi128::<0>(over, polynomial);
            _mm512_xor_si512(_mm512_bslli_epi128::<4>(tweaks), reduced)
        }
    }

    #[inline(always)]
    fn choose_above(self, x: __m512i, y: __m512i, nth: __m512i, limit: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_mask_blend_epi32(_mm512_cmplt_epi32_mask(limit, nth), x, y) }
    }

    #[inline(always)]
    fn shift_in(self, previous: __m512i, current: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_alignr_epi64::<6>(current, previous) }
    }

    #[inline(always)]
    fn load_lines(self, data: &[u8], lines: &Lines) -> [__m512i; 4] {
        let a = self.load(line(data, lines[0]));
        let b = self.load(line(data, lines[1]));
        let c = self.load(line(data, lines[2]));
        let d = self.load(line(data, lines[3]));
        // SAFETY: `self` proves AVX-512 F.
        unsafe { columns([a, b, c, d]) }
    }

    #[inline(always)]
    fn store_lines(self, x: [__m512i; 4], data: &mut [u8], lines: &Lines, count: usize) {
        // SAFETY: `self` proves AVX-512 F.
        let x = unsafe { columns(x) };
        for (x, &at) in x.into_iter().zip(lines).take(count) {
            self.store(x, line_mut(data, at));
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
