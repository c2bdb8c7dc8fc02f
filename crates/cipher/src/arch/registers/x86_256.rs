//! Registers of 256 bits: AVX2's.

use std::arch::x86_64::*;

use super::words;
use crate::arch::Avx2;
use crate::arch::instructions::{binary, enter, memory, shifts};
use crate::block::registers::Registers;
use crate::work::Work;

impl Registers for Avx2 {
    const LANES: usize = 2;
    type Vector = __m256i;
    type Narrow = Self;

    fn narrow(self) -> Self {
        self
    }

    enter!("avx2");
    memory!(32, _mm256_loadu_si256, _mm256_storeu_si256);

    binary! {
        xor: _mm256_xor_si256, and: _mm256_and_si256, or: _mm256_or_si256,
        add_words: _mm256_add_epi32, add_pairs: _mm256_add_epi64
    }

    shifts! {
        shift_left: _mm256_sll_epi32, shift_right: _mm256_srl_epi32,
        shift_pairs_left: _mm256_sll_epi64, shift_pairs_right: _mm256_srl_epi64
    }

    words! {
        _mm256_broadcastsi128_si256, _mm256_set1_epi32, _mm256_set1_epi64x,
        _mm256_mul_epu32, _mm256_srli_epi64, _mm256_shuffle_epi32,
        _mm256_unpacklo_epi32, _mm256_unpackhi_epi32, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64
    }

    /// By whole bytes in one shuffle.
    #[inline(always)]
    fn rotate<const BY: i32>(self, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2, and the bytes are borrowed.
        unsafe {
            if BY % 8 == 0 {
                let from = const { &bytes_rotated(BY as u8 / 8) };
                let from = _mm256_broadcastsi128_si256(_mm_loadu_si128(from.as_ptr().cast()));
                return _mm256_shuffle_epi8(x, from);
            }
            let up = _mm256_sll_epi32(x, _mm_cvtsi32_si128(BY));
            _mm256_or_si256(up, _mm256_srl_epi32(x, _mm_cvtsi32_si128(32 - BY)))
        }
    }

    #[inline(always)]
    fn columns(self, [a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
        // SAFETY: `self` proves AVX2.
        let ([ab0, ab1], [cd0, cd1]) = unsafe { (exchange(a, b), exchange(c, d)) };
        [ab0, cd0, ab1, cd1]
    }

    #[inline(always)]
    fn rows(self, [ab0, cd0, ab1, cd1]: [__m256i; 4]) -> [__m256i; 4] {
        // SAFETY: `self` proves AVX2.
        let ([a, b], [c, d]) = unsafe { (exchange(ab0, ab1), exchange(cd0, cd1)) };
        [a, b, c, d]
    }
}

/// The lower lanes of two registers, then the upper ones.
#[target_feature(enable = "avx2")]
#[inline]
pub(in crate::arch) fn exchange(x: __m256i, y: __m256i) -> [__m256i; 2] {
    [
        _mm256_permute2x128_si256::<0x20>(x, y),
        _mm256_permute2x128_si256::<0x31>(x, y),
    ]
}

/// Which byte comes to each place in words that are rotated left by `by` bytes.
const fn bytes_rotated(by: u8) -> [u8; 16] {
    let mut from = [0; 16];
    let mut at = 0_u8;
    while at < 16 {
        from[at as usize] = at & !3 | at.wrapping_sub(by) & 3;
        at += 1;
    }
    from
}
