//! Words in AVX-512 registers: those of 64 blocks in planes, or of 16 in words.

use std::arch::x86_64::*;

use super::Avx512Bytes;
use crate::block::planes::Planes;
use crate::block::planes::linear::Linear;
use crate::block::planes::words::{WordTable, Words};

impl Words for Avx512Bytes {
    /// One `vpermb` looks up 64 entries of a plane, and the later of four write
    /// only the bytes whose upper two bits are theirs. On Intel's CPUs two
    /// `vpermi2b` are as many shuffles, and need a blend.
    #[inline(always)]
    fn look_up_planes(self, table: &WordTable, x: __m512i) -> [__m512i; 4] {
        // A rotation, because the compiler puts sums and tests in the place of
        // shifts, and those run where `vpermb` has to.
        // SAFETY: `self` proves the features.
        let (bit_7, bit_6) = unsafe {
            let doubled = _mm512_rol_epi32::<1>(x);
            (_mm512_movepi8_mask(x), _mm512_movepi8_mask(doubled))
        };
        let both = bit_7 & bit_6;
        let planes = table.planes();
        let mut found = [x; 4];
        for i in 0..4 {
            let rows = planes[i].as_ptr();
            // SAFETY: `self` proves the features, and the plane is borrowed and
            // has four rows of 64 bytes.
            found[i] = unsafe {
                let a = _mm512_loadu_si512(rows.cast());
                let b = _mm512_loadu_si512(rows.add(64).cast());
                let c = _mm512_loadu_si512(rows.add(128).cast());
                let d = _mm512_loadu_si512(rows.add(192).cast());
                let y = _mm512_permutexvar_epi8(x, a);
                let y = _mm512_mask_permutexvar_epi8(y, bit_6, x, b);
                let y = _mm512_mask_permutexvar_epi8(y, bit_7, x, c);
                _mm512_mask_permutexvar_epi8(y, both, x, d)
            };
        }
        found
    }

    /// One `vpermi2d` looks up 32 entries, by the lower five bits.
    #[inline(always)]
    fn look_up_words(self, table: &WordTable, x: __m512i, byte: usize) -> __m512i {
        let shift = 8 * byte as u32;
        let lower_bits = self.rotate_words(x, (32 - shift) % 32);
        // SAFETY: `self` proves the features.
        let (bit_5, bit_6, bit_7) = unsafe {
            (
                _mm512_test_epi32_mask(x, self.splat(1 << (shift + 5))),
                _mm512_test_epi32_mask(x, self.splat(1 << (shift + 6))),
                _mm512_test_epi32_mask(x, self.splat(1 << (shift + 7))),
            )
        };
        let words = table.words().as_chunks::<16>().0;
        let mut found = [x; 8];
        for i in 0..8 {
            // SAFETY: `self` proves the features, and 16 words are borrowed each
            // time.
            found[i] = unsafe {
                let lower = _mm512_loadu_si512(words[2 * i].as_ptr().cast());
                let upper = _mm512_loadu_si512(words[2 * i + 1].as_ptr().cast());
                _mm512_permutex2var_epi32(lower, lower_bits, upper)
            };
        }
        let [a, b, c, d, e, f, g, h] = found;
        // SAFETY: `self` proves the features.
        unsafe {
            let ab = _mm512_mask_blend_epi32(bit_5, a, b);
            let cd = _mm512_mask_blend_epi32(bit_5, c, d);
            let ef = _mm512_mask_blend_epi32(bit_5, e, f);
            let gh = _mm512_mask_blend_epi32(bit_5, g, h);
            let abcd = _mm512_mask_blend_epi32(bit_6, ab, cd);
            let efgh = _mm512_mask_blend_epi32(bit_6, ef, gh);
            _mm512_mask_blend_epi32(bit_7, abcd, efgh)
        }
    }

    #[inline(always)]
    fn add_bytes(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_add_epi8(x, y) }
    }

    #[inline(always)]
    fn subtract_bytes(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_sub_epi8(x, y) }
    }

    /// Bit 7 carries where two of x, y and not the sum are set.
    #[inline(always)]
    fn carries(self, x: __m512i, y: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        self.top_bit(unsafe { _mm512_ternarylogic_epi32::<0b1101_0100>(x, y, sum) })
    }

    /// Bit 7 borrows where two of not x, y and the difference are set.
    #[inline(always)]
    fn borrows(self, x: __m512i, y: __m512i, difference: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        self.top_bit(unsafe { _mm512_ternarylogic_epi32::<0b1000_1110>(x, y, difference) })
    }

    #[inline(always)]
    fn select(self, mask: __m512i, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_ternarylogic_epi32::<0b1100_1010>(mask, y, x) }
    }

    #[inline(always)]
    fn subtract_words(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_sub_epi32(x, y) }
    }
}

impl Avx512Bytes {
    /// Bit 7 of every byte, as 0 or 1.
    #[inline(always)]
    fn top_bit(self, x: __m512i) -> __m512i {
        const TOP_BIT: Linear = [0, 0, 0, 0, 0, 0, 0, 1];
        self.linear(&Self::map(&TOP_BIT), x)
    }
}
