//! VAES on 256-bit registers.

use std::arch::x86_64::*;

use super::super::{Engine, Lines};
use super::{POLYNOMIAL, WHOLE_REGISTER, line, line_mut};
use crate::arch::instructions::{binary, enter};
use crate::arch::registers::exchange;
use crate::block::Block;
use crate::work::Work;

/// Proof that this CPU has AVX2, VAES and VPCLMULQDQ on 256-bit registers.
#[derive(Clone, Copy)]
pub(crate) struct Vaes256(());

impl Vaes256 {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("vpclmulqdq");
        has.then_some(Self(()))
    }
}

impl Engine for Vaes256 {
    const LANES: usize = 2;
    const TWEAKS_BETWEEN_ROUNDS: bool = false;
    type Vector = __m256i;

    enter!("avx2,vaes,vpclmulqdq");

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> __m256i {
        let blocks: &[Block; Self::LANES] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm256_loadu_si256(blocks.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, x: __m256i, blocks: &mut [Block]) {
        let blocks: &mut [Block; Self::LANES] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm256_storeu_si256(blocks.as_mut_ptr().cast(), x) }
    }

    #[inline(always)]
    fn store_one(self, x: __m256i, block: &mut Block) {
        // SAFETY: `self` proves the feature, and the block is borrowed.
        unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), _mm256_castsi256_si128(x)) }
    }

    #[inline(always)]
    fn splat(self, block: &Block) -> __m256i {
        // SAFETY: `self` proves the feature, and the block is borrowed.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(block.as_ptr().cast())) }
    }

    binary! {
        add: _mm256_xor_si256, sum_words: _mm256_add_epi32,
        round: _mm256_aesenc_epi128, last_round: _mm256_aesenclast_epi128,
        inverse_round: _mm256_aesdec_epi128, last_inverse_round: _mm256_aesdeclast_epi128
    }

    #[inline(always)]
    fn spread(self, tweak: &Block) -> __m256i {
        // SAFETY: `self` proves the features, and the tweak is borrowed.
        unsafe {
            let left = _mm256_set_epi64x(1, 1, 0, 0);
            let tweak = _mm256_broadcastsi128_si256(_mm_loadu_si128(tweak.as_ptr().cast()));
            let shifted = _mm256_sllv_epi64(tweak, left);
            let carries = _mm256_srlv_epi64(tweak, _mm256_sub_epi64(_mm256_set1_epi64x(64), left));
            let polynomial = _mm256_set1_epi64x(POLYNOMIAL);
            let reduced = _mm256_clmulepi64_epi128::<1>(carries, polynomial);
            let shifted = _mm256_xor_si256(shifted, _mm256_bslli_epi128::<8>(carries));
            _mm256_xor_si256(shifted, reduced)
        }
    }

    #[inline(always)]
    fn times_x_lanes(self, tweaks: __m256i) -> __m256i {
        // SAFETY: `self` proves the features.
        unsafe {
            let shifted = _mm256_slli_epi64::<2>(tweaks);
            let carries = _mm256_srli_epi64::<62>(tweaks);
            let polynomial = _mm256_set1_epi64x(POLYNOMIAL);
            let reduced = _mm256_clmulepi64_epi128::<1>(carries, polynomial);
            let shifted = _mm256_xor_si256(shifted, _mm256_bslli_epi128::<8>(carries));
            _mm256_xor_si256(shifted, reduced)
        }
    }

    #[inline(always)]
    fn times_x8(self, tweaks: __m256i) -> __m256i {
        // SAFETY: `self` proves the features.
        unsafe {
            let over = _mm256_bsrli_epi128::<15>(tweaks);
            let polynomial = _mm256_set1_epi64x(POLYNOMIAL);
            let reduced = _mm256_clmulepi64_epi128::<0>(over, polynomial);
            _mm256_xor_si256(_mm256_bslli_epi128::<1>(tweaks), reduced)
        }
    }

    #[inline(always)]
    fn next_tweaks(self, tweaks: __m256i, _: __m256i) -> __m256i {
        // SAFETY: `self` proves the features.
        unsafe {
            let over = _mm256_bsrli_epi128::<14>(tweaks);
            let polynomial = _mm256_set1_epi64x(POLYNOMIAL);
            let reduced = _mm256_clmulepi64_epi128::<0>(over, polynomial);
            _mm256_xor_si256(_mm256_bslli_epi128::<2>(tweaks), reduced)
        }
    }

    #[inline(always)]
    fn choose_above(self, x: __m256i, y: __m256i, nth: __m256i, limit: __m256i) -> __m256i {
        // The sign of a word chooses.
        // SAFETY: `self` proves the feature.
        unsafe {
            let left = _mm256_castsi256_ps(_mm256_sub_epi32(limit, nth));
            let (x, y) = (_mm256_castsi256_ps(x), _mm256_castsi256_ps(y));
            _mm256_castps_si256(_mm256_blendv_ps(x, y, left))
        }
    }

    #[inline(always)]
    fn shift_in(self, previous: __m256i, current: __m256i) -> __m256i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm256_permute2x128_si256::<0x21>(previous, current) }
    }

    #[inline(always)]
    fn load_lines(self, data: &[u8], lines: &Lines) -> [__m256i; 4] {
        let (a, b) = (line(data, lines[0]), line(data, lines[1]));
        let (a01, b01) = (self.load(a), self.load(b));
        let (a23, b23) = (self.load(&a[2..]), self.load(&b[2..]));
        // SAFETY: `self` proves AVX2.
        let ([ab0, ab1], [ab2, ab3]) = unsafe { (exchange(a01, b01), exchange(a23, b23)) };
        [ab0, ab1, ab2, ab3]
    }

    #[inline(always)]
    fn store_lines(self, x: [__m256i; 4], data: &mut [u8], lines: &Lines, count: usize) {
        // SAFETY: `self` proves AVX2.
        let ([a01, b01], [a23, b23]) = unsafe { (exchange(x[0], x[1]), exchange(x[2], x[3])) };
        let lines = lines.iter().take(count);
        for (halves, &at) in [[a01, a23], [b01, b23]].into_iter().zip(lines) {
            let line = line_mut(data, at);
            self.store(halves[0], line);
            self.store(halves[1], &mut line[2..]);
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
