//! Words in AVX2 registers: those of 32 blocks in planes for look-ups, or of 8 in
//! words.

use std::arch::x86_64::*;

use crate::arch::{Avx2Planes, ByNibbles};
use crate::block::planes::Planes;
use crate::block::planes::words::{InFourWords, Rows, WordTable, Words};

impl Words for Avx2Planes<ByNibbles> {
    const ROWS: Rows = Rows::Added;
    const PAIRS: bool = false;
    type Groups<const G: usize> = InFourWords<Self, G>;

    fn groups<const G: usize>(self) -> InFourWords<Self, G> {
        InFourWords(self)
    }

    /// As [`look_up`](Planes::look_up), of four planes at once.
    #[inline(always)]
    fn look_up_planes<const G: usize>(
        self,
        table: &WordTable,
        x: [__m256i; G],
    ) -> [[__m256i; 4]; G] {
        let planes = table.planes();
        let mut found = [[self.splat(0); 4]; G];
        for g in 0..G {
            // SAFETY: `self` proves AVX2.
            let other_half = unsafe { _mm256_xor_si256(x[g], _mm256_set1_epi8(i8::MIN)) };
            let (found, mut at) = (&mut found[g], [x[g], other_half]);
            // One by one: a loop would keep what was found in memory.
            self.add_rows::<0>(planes, found, &mut at);
            self.add_rows::<1>(planes, found, &mut at);
            self.add_rows::<2>(planes, found, &mut at);
            self.add_rows::<3>(planes, found, &mut at);
            self.add_rows::<4>(planes, found, &mut at);
            self.add_rows::<5>(planes, found, &mut at);
            self.add_rows::<6>(planes, found, &mut at);
            self.add_rows::<7>(planes, found, &mut at);
        }
        found
    }

    /// One `vpermd` looks up eight entries, by the lower three bits.
    #[inline(always)]
    fn look_up_words(self, table: &WordTable, x: __m256i, byte: usize) -> __m256i {
        let above = 24 - 8 * byte as u32;
        let rows = table.words().as_chunks::<8>().0;
        let mut found = [x; 32];
        // SAFETY: `self` proves AVX2, and eight words are borrowed each time.
        unsafe {
            let lower_bits = _mm256_srlv_epi32(x, self.splat(8 * byte as u32));
            for (found, row) in found.iter_mut().zip(rows) {
                let row = _mm256_loadu_si256(row.as_ptr().cast());
                *found = _mm256_permutevar8x32_epi32(row, lower_bits);
            }
            for bit in 3..8 {
                let bit_on_top = _mm256_sllv_epi32(x, self.splat(above + 7 - bit));
                for i in 0..16 >> (bit - 3) {
                    let (zero, one) = (found[2 * i], found[2 * i + 1]);
                    found[i] = _mm256_castps_si256(_mm256_blendv_ps(
                        _mm256_castsi256_ps(zero),
                        _mm256_castsi256_ps(one),
                        _mm256_castsi256_ps(bit_on_top),
                    ));
                }
            }
        }
        found[0]
    }

    #[inline(always)]
    fn subtract_words(self, x: __m256i, y: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_sub_epi32(x, y) }
    }
}

impl Avx2Planes<ByNibbles> {
    /// Adds rows `ROW` of both halves to `found`, and makes `at`, the places in them, those of the
    /// rows after them.
    #[inline(always)]
    fn add_rows<const ROW: usize>(
        self,
        planes: &[[u8; 256]; 4],
        found: &mut [__m256i; 4],
        at: &mut [__m256i; 2],
    ) {
        for (found, plane) in found.iter_mut().zip(planes) {
            let rows = plane.as_chunks::<16>().0;
            *found = self.xor3(
                *found,
                self.look_up_nibble(&rows[ROW], at[0]),
                self.look_up_nibble(&rows[8 + ROW], at[1]),
            );
        }
        for at in at {
            // SAFETY: `self` proves AVX2.
            *at = unsafe { _mm256_subs_epi8(*at, _mm256_set1_epi8(16)) };
        }
    }
}
