//! Words in AVX-512 registers: those of 64 blocks in planes, or of 16 in words.
//!
//! A table of 256 bytes fills four registers. Bytes are looked up in two of them at
//! once, which AMD's CPUs do in the time that one takes; or in rows of one register each.
//! On Intel's `vpermi2b` is three operations, two of them for the one port that
//! shuffles, and all from a mask to a vector takes three cycles and GFNI five: Blowfish
//! and CAST take 9 to 11 % less by rows there. Which it is, is [measured](crate::choice).

use std::arch::x86_64::*;

use crate::arch::Avx512Bytes;
use crate::arch::instructions::binary;
use crate::block::planes::Planes;
use crate::block::planes::linear::Linear;
use crate::block::planes::words::{InFourPlanes, Rows, WordTable, Words};

impl<const BY_ROWS: bool> Words for Avx512Bytes<BY_ROWS> {
    const ROWS: Rows = Rows::Plain;
    const PAIRS: bool = true;
    type Groups<const G: usize> = InFourPlanes<BY_ROWS, G>;

    fn groups<const G: usize>(self) -> InFourPlanes<BY_ROWS, G> {
        InFourPlanes(self)
    }

    /// For all groups with the same loads of the table.
    #[inline(always)]
    fn look_up_planes<const G: usize>(
        self,
        table: &WordTable,
        x: [__m512i; G],
    ) -> [[__m512i; 4]; G] {
        let planes = table.planes();
        let mut found = [[x[0]; 4]; G];
        let (mut bit_6, mut bit_7) = ([0; G], [0; G]);
        for g in 0..G {
            // SAFETY: `self` proves the features.
            unsafe {
                bit_6[g] = _mm512_test_epi8_mask(x[g], self.splat(0x4040_4040));
                bit_7[g] = _mm512_movepi8_mask(x[g]);
            }
        }
        for i in 0..4 {
            let rows = planes[i].as_ptr();
            // SAFETY: `self` proves the features, and the plane is borrowed and
            // has four rows of 64 bytes.
            unsafe {
                let a = _mm512_loadu_si512(rows.cast());
                let b = _mm512_loadu_si512(rows.add(64).cast());
                let c = _mm512_loadu_si512(rows.add(128).cast());
                let d = _mm512_loadu_si512(rows.add(192).cast());
                for g in 0..G {
                    let (lower, upper) = if BY_ROWS {
                        let lower = _mm512_permutexvar_epi8(x[g], a);
                        let upper = _mm512_permutexvar_epi8(x[g], c);
                        (
                            _mm512_mask_permutexvar_epi8(lower, bit_6[g], x[g], b),
                            _mm512_mask_permutexvar_epi8(upper, bit_6[g], x[g], d),
                        )
                    } else {
                        (
                            _mm512_permutex2var_epi8(a, x[g], b),
                            _mm512_permutex2var_epi8(c, x[g], d),
                        )
                    };
                    found[g][i] = _mm512_mask_blend_epi8(bit_7[g], lower, upper);
                }
            }
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

    binary! { subtract_words: _mm512_sub_epi32 }
}

/// The operations that sums of words in planes are made of.
impl<const BY_ROWS: bool> Avx512Bytes<BY_ROWS> {
    /// Sums of bytes modulo 2⁸.
    #[inline(always)]
    pub(crate) fn add_bytes(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_add_epi8(x, y) }
    }

    /// Differences of bytes modulo 2⁸.
    #[inline(always)]
    pub(crate) fn subtract_bytes(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_sub_epi8(x, y) }
    }

    /// One in every byte where `sum`, which is `x` and `y` and perhaps one
    /// added up, went past 255; zero elsewhere: bit 7 carries where two of x, y and not
    /// the sum are set.
    #[inline(always)]
    pub(crate) fn carries(self, x: __m512i, y: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        self.top_bit(unsafe { _mm512_ternarylogic_epi32::<0b1101_0100>(x, y, sum) })
    }

    /// One in every byte where `difference`, which is `x` less `y` and perhaps
    /// less one, went below 0; zero elsewhere: bit 7 borrows where two of not x, y and the
    /// difference are set.
    #[inline(always)]
    pub(crate) fn borrows(self, x: __m512i, y: __m512i, difference: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        self.top_bit(unsafe { _mm512_ternarylogic_epi32::<0b1000_1110>(x, y, difference) })
    }

    /// The bits of `y` where `mask` has ones, those of `x` elsewhere.
    #[inline(always)]
    pub(crate) fn select(self, mask: __m512i, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_ternarylogic_epi32::<0b1100_1010>(mask, y, x) }
    }

    /// Bit 7 of every byte, as 0 or 1.
    #[inline(always)]
    fn top_bit(self, x: __m512i) -> __m512i {
        if BY_ROWS {
            // SAFETY: `self` proves the feature.
            let shifted = unsafe { _mm512_srli_epi16::<7>(x) };
            return self.and(shifted, self.splat(0x0101_0101));
        }
        const TOP_BIT: Linear = [0, 0, 0, 0, 0, 0, 0, 1];
        self.linear(&Self::map(&TOP_BIT), x)
    }
}
