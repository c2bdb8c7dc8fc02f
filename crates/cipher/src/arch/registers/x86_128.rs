//! Registers of 128 bits: SSE2's, which every x86-64 has, and those of AVX-512, for one to
//! four blocks. With nothing beside them a round of a cipher waits for itself, and shorter
//! registers leave ports to each other that longer ones do not.

use std::arch::x86_64::*;

use super::words;
use crate::arch::Avx512;
use crate::arch::instructions::{binary, enter, memory, shifts};
use crate::block::registers::Registers;
use crate::work::Work;

/// SSE2, which every x86-64 has, so it needs no proof.
#[derive(Clone, Copy)]
pub(crate) struct Sse2;

/// The operations that both kinds of 128-bit registers do by the same instructions.
macro_rules! common {
    () => {
        const LANES: usize = 1;
        type Vector = __m128i;
        type Narrow = Self;

        fn narrow(self) -> Self {
            self
        }

        memory!(16, _mm_loadu_si128, _mm_storeu_si128);

        binary! {
            xor: _mm_xor_si128, and: _mm_and_si128, or: _mm_or_si128,
            add_words: _mm_add_epi32, add_pairs: _mm_add_epi64
        }

        shifts! {
            shift_left: _mm_sll_epi32, shift_right: _mm_srl_epi32,
            shift_pairs_left: _mm_sll_epi64, shift_pairs_right: _mm_srl_epi64
        }

        words! {
            std::convert::identity, _mm_set1_epi32, _mm_set1_epi64x,
            _mm_mul_epu32, _mm_srli_epi64, _mm_shuffle_epi32,
            _mm_unpacklo_epi32, _mm_unpackhi_epi32, _mm_unpacklo_epi64, _mm_unpackhi_epi64
        }

        #[inline(always)]
        fn columns(self, x: [__m128i; 4]) -> [__m128i; 4] {
            x
        }

        #[inline(always)]
        fn rows(self, x: [__m128i; 4]) -> [__m128i; 4] {
            x
        }
    };
}

impl Registers for Sse2 {
    common!();
    enter!("sse2");

    #[inline(always)]
    fn rotate<const BY: i32>(self, x: __m128i) -> __m128i {
        // SAFETY: every x86-64 has SSE2.
        unsafe {
            let up = _mm_sll_epi32(x, _mm_cvtsi32_si128(BY));
            _mm_or_si128(up, _mm_srl_epi32(x, _mm_cvtsi32_si128(32 - BY)))
        }
    }
}

/// The registers of 128 bits of [`Avx512`].
#[derive(Clone, Copy)]
pub(crate) struct Narrow(pub(in crate::arch) Avx512);

impl Registers for Narrow {
    const TERNARY: bool = true;

    common!();
    enter!("avx512f,avx512vl");

    #[inline(always)]
    fn gate<const TABLE: i32>(self, x: __m128i, y: __m128i, z: __m128i) -> __m128i {
        // SAFETY: `self` proves AVX-512 VL.
        unsafe { _mm_ternarylogic_epi32::<TABLE>(x, y, z) }
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self, x: __m128i) -> __m128i {
        // SAFETY: `self` proves AVX-512 VL.
        unsafe { _mm_rol_epi32::<BY>(x) }
    }
}
