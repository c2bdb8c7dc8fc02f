//! AVX2 and AVX-512 registers of 128-bit lanes.

use std::arch::x86_64::*;

use super::{Avx2, Avx512};
use crate::block::Block;
use crate::block::lanes::Lanes;
use crate::work::Work;

const WHOLE_REGISTER: &str = "a register of blocks";

impl Lanes for Avx2 {
    const WIDE: usize = 2;
    type Vector = __m256i;

    fn enter<W: Work<Self>>(self, work: W) {
        #[target_feature(enable = "avx2")]
        fn enabled<W: Work<Avx2>>(lanes: Avx2, work: W) {
            work.run(lanes);
        }
        // SAFETY: `self` proves AVX2.
        unsafe { enabled(self, work) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> __m256i {
        let blocks: &[Block; 2] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX2, and the blocks are borrowed.
        unsafe { _mm256_loadu_si256(blocks.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, x: __m256i, blocks: &mut [Block]) {
        let blocks: &mut [Block; 2] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX2, and the blocks are borrowed.
        unsafe { _mm256_storeu_si256(blocks.as_mut_ptr().cast(), x) }
    }

    #[inline(always)]
    fn splat(self, lane: [u32; 4]) -> __m256i {
        // SAFETY: `self` proves AVX2, and the lane is borrowed.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(lane.as_ptr().cast())) }
    }

    #[inline(always)]
    fn xor(self, x: __m256i, y: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_xor_si256(x, y) }
    }

    #[inline(always)]
    fn and(self, x: __m256i, y: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_and_si256(x, y) }
    }

    #[inline(always)]
    fn add_words(self, x: __m256i, y: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_add_epi32(x, y) }
    }

    #[inline(always)]
    fn add_pairs(self, x: __m256i, y: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_add_epi64(x, y) }
    }

    #[inline(always)]
    fn multiply_pairs(self, x: __m256i) -> __m256i {
        // Factors are the even words.
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_mul_epu32(x, _mm256_srli_epi64::<32>(x)) }
    }

    #[inline(always)]
    fn swap_middle(self, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_shuffle_epi32::<0b11_01_10_00>(x) }
    }

    #[inline(always)]
    fn shift_left<const BY: u32>(self, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_sll_epi32(x, _mm_cvtsi32_si128(BY as i32)) }
    }

    #[inline(always)]
    fn shift_right<const BY: u32>(self, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_srl_epi32(x, _mm_cvtsi32_si128(BY as i32)) }
    }

    /// By whole bytes in one shuffle.
    #[inline(always)]
    fn rotate<const BY: i32>(self, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
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
    fn turn<const BY: i32>(self, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            match BY {
                1 => _mm256_shuffle_epi32::<0b00_11_10_01>(x),
                2 => _mm256_shuffle_epi32::<0b01_00_11_10>(x),
                _ => _mm256_shuffle_epi32::<0b10_01_00_11>(x),
            }
        }
    }

    #[inline(always)]
    fn columns(self, [a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
        // SAFETY: `self` proves AVX2.
        unsafe {
            [
                _mm256_permute2x128_si256::<0x20>(a, b),
                _mm256_permute2x128_si256::<0x20>(c, d),
                _mm256_permute2x128_si256::<0x31>(a, b),
                _mm256_permute2x128_si256::<0x31>(c, d),
            ]
        }
    }
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

impl Lanes for Avx512 {
    const WIDE: usize = 4;
    type Vector = __m512i;

    fn enter<W: Work<Self>>(self, work: W) {
        #[target_feature(enable = "avx512f,avx512vl")]
        fn enabled<W: Work<Avx512>>(lanes: Avx512, work: W) {
            work.run(lanes);
        }
        // SAFETY: `self` proves AVX-512 F.
        unsafe { enabled(self, work) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> __m512i {
        let blocks: &[Block; 4] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 F, and the blocks are borrowed.
        unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, x: __m512i, blocks: &mut [Block]) {
        let blocks: &mut [Block; 4] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 F, and the blocks are borrowed.
        unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), x) }
    }

    #[inline(always)]
    fn splat(self, lane: [u32; 4]) -> __m512i {
        // SAFETY: `self` proves AVX-512 F, and the lane is borrowed.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(lane.as_ptr().cast())) }
    }

    #[inline(always)]
    fn xor(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_xor_si512(x, y) }
    }

    #[inline(always)]
    fn and(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_and_si512(x, y) }
    }

    #[inline(always)]
    fn add_words(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_add_epi32(x, y) }
    }

    #[inline(always)]
    fn add_pairs(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_add_epi64(x, y) }
    }

    #[inline(always)]
    fn multiply_pairs(self, x: __m512i) -> __m512i {
        // Factors are the even words.
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_mul_epu32(x, _mm512_srli_epi64::<32>(x)) }
    }

    #[inline(always)]
    fn swap_middle(self, x: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_shuffle_epi32::<0b11_01_10_00>(x) }
    }

    #[inline(always)]
    fn shift_left<const BY: u32>(self, x: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_sll_epi32(x, _mm_cvtsi32_si128(BY as i32)) }
    }

    #[inline(always)]
    fn shift_right<const BY: u32>(self, x: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_srl_epi32(x, _mm_cvtsi32_si128(BY as i32)) }
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self, x: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_rol_epi32::<BY>(x) }
    }

    #[inline(always)]
    fn turn<const BY: i32>(self, x: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe {
            match BY {
                1 => _mm512_shuffle_epi32::<0b00_11_10_01>(x),
                2 => _mm512_shuffle_epi32::<0b01_00_11_10>(x),
                _ => _mm512_shuffle_epi32::<0b10_01_00_11>(x),
            }
        }
    }

    #[inline(always)]
    fn columns(self, [a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
        // SAFETY: `self` proves AVX-512 F.
        unsafe {
            let a01b01 = _mm512_shuffle_i32x4::<0x44>(a, b);
            let a23b23 = _mm512_shuffle_i32x4::<0xee>(a, b);
            let c01d01 = _mm512_shuffle_i32x4::<0x44>(c, d);
            let c23d23 = _mm512_shuffle_i32x4::<0xee>(c, d);
            [
                _mm512_shuffle_i32x4::<0x88>(a01b01, c01d01),
                _mm512_shuffle_i32x4::<0xdd>(a01b01, c01d01),
                _mm512_shuffle_i32x4::<0x88>(a23b23, c23d23),
                _mm512_shuffle_i32x4::<0xdd>(a23b23, c23d23),
            ]
        }
    }
}
