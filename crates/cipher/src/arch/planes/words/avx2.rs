//! Words in AVX2 registers: those of 32 blocks in planes for look-ups, or of 8 in
//! words.
//!
//! `_mm256_shuffle_epi8` looks up 16 bytes, so a table of 256 words takes 64 of them.
//! All rows are read however few blocks there are, because an address must not depend
//! on the key.

use std::arch::x86_64::*;

use crate::arch::instructions::binary;
use crate::arch::{Avx2Planes, ByNibbles};
use crate::block::planes::words::{InFourWords, Rows, WordTable, Words};
use crate::block::planes::{NOTHING, Planes};

impl Words for Avx2Planes<ByNibbles> {
    const ROWS: Rows = Rows::AddedInPairs;
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
        let rows = table.rows();
        let mut found = [[self.splat(0); 4]; G];
        for g in 0..G {
            let (found, mut at) = (&mut found[g], self.places(x[g]));
            // One by one: a loop would keep what was found in memory.
            self.add_rows::<0>(rows, found, &mut at);
            self.add_rows::<1>(rows, found, &mut at);
            self.add_rows::<2>(rows, found, &mut at);
            self.add_rows::<3>(rows, found, &mut at);
            self.add_rows::<4>(rows, found, &mut at);
            self.add_rows::<5>(rows, found, &mut at);
            self.add_rows::<6>(rows, found, &mut at);
            self.add_rows::<7>(rows, found, &mut at);
        }
        found
    }

    /// In two planes at once: the bytes of eight words fill half of 16 bytes,
    /// and the other 16 are for the other plane.
    #[inline(always)]
    fn look_up_words(self, table: &WordTable, x: __m256i, byte: usize) -> __m256i {
        /// Byte 2·i of 16 to 4·i, for planes 0 and 2 in turn, and those from 8
        /// on, for planes 1 and 3, between them.
        const BY_WORDS: [u8; 16] = [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15];
        let mut first_of_words = [NOTHING; 16];
        for (i, from) in first_of_words[..4].iter_mut().enumerate() {
            *from = (4 * i + byte) as u8;
        }
        let bytes = self.shuffle(x, &first_of_words);
        // SAFETY: `self` proves AVX2.
        let bytes =
            unsafe { _mm256_permutevar8x32_epi32(bytes, _mm256_set_epi32(1, 1, 4, 0, 1, 1, 4, 0)) };
        let rows = table.rows();
        let (mut found, mut at) = ([self.splat(0); 2], self.places(bytes));
        self.add_pairs_of_rows::<0>(rows, &mut found, &mut at);
        self.add_pairs_of_rows::<1>(rows, &mut found, &mut at);
        self.add_pairs_of_rows::<2>(rows, &mut found, &mut at);
        self.add_pairs_of_rows::<3>(rows, &mut found, &mut at);
        self.add_pairs_of_rows::<4>(rows, &mut found, &mut at);
        self.add_pairs_of_rows::<5>(rows, &mut found, &mut at);
        self.add_pairs_of_rows::<6>(rows, &mut found, &mut at);
        self.add_pairs_of_rows::<7>(rows, &mut found, &mut at);
        let [even_and_odd, _] = self.interleave_bytes(found[0], found[1]);
        // SAFETY: `self` proves AVX2.
        let by_blocks = unsafe { _mm256_permute4x64_epi64::<0b11_01_10_00>(even_and_odd) };
        self.shuffle(by_blocks, &BY_WORDS)
    }

    binary! { subtract_words: _mm256_sub_epi32 }
}

impl Avx2Planes<ByNibbles> {
    /// Where in the first rows of both halves bytes are looked up.
    #[inline(always)]
    fn places(self, x: __m256i) -> [__m256i; 2] {
        // SAFETY: `self` proves AVX2.
        [x, unsafe { _mm256_xor_si256(x, _mm256_set1_epi8(i8::MIN)) }]
    }

    /// Where in the next ones.
    #[inline(always)]
    fn next_places(self, at: &mut [__m256i; 2]) {
        for at in at {
            // SAFETY: `self` proves AVX2.
            *at = unsafe { _mm256_subs_epi8(*at, _mm256_set1_epi8(16)) };
        }
    }

    /// Adds rows `ROW` of both halves to what was found in each plane.
    #[inline(always)]
    fn add_rows<const ROW: usize>(
        self,
        rows: &[[u8; 16]],
        found: &mut [__m256i; 4],
        at: &mut [__m256i; 2],
    ) {
        let [a, b, c, d] = *found;
        *found = [
            self.add_row::<ROW>(&rows[..32], a, *at),
            self.add_row::<ROW>(&rows[1..32], b, *at),
            self.add_row::<ROW>(&rows[32..], c, *at),
            self.add_row::<ROW>(&rows[33..], d, *at),
        ];
        self.next_places(at);
    }

    /// The same in planes 0 and 1, and in planes 2 and 3.
    #[inline(always)]
    fn add_pairs_of_rows<const ROW: usize>(
        self,
        rows: &[[u8; 16]],
        found: &mut [__m256i; 2],
        at: &mut [__m256i; 2],
    ) {
        let [a, b] = *found;
        *found = [
            self.add_pair::<ROW>(&rows[..32], a, *at),
            self.add_pair::<ROW>(&rows[32..], b, *at),
        ];
        self.next_places(at);
    }

    /// Of one plane, which has every second of `rows`.
    #[inline(always)]
    fn add_row<const ROW: usize>(
        self,
        rows: &[[u8; 16]],
        found: __m256i,
        at: [__m256i; 2],
    ) -> __m256i {
        let lower = self.look_up_nibble(&rows[2 * ROW], at[0]);
        let upper = self.look_up_nibble(&rows[2 * (8 + ROW)], at[1]);
        self.xor3(found, lower, upper)
    }

    /// Of two planes, which have `rows` in turn.
    #[inline(always)]
    fn add_pair<const ROW: usize>(
        self,
        rows: &[[u8; 16]],
        found: __m256i,
        at: [__m256i; 2],
    ) -> __m256i {
        let lower = self.load(rows[2 * ROW..][..2].as_flattened());
        let upper = self.load(rows[2 * (8 + ROW)..][..2].as_flattened());
        // SAFETY: `self` proves AVX2.
        let (lower, upper) = unsafe {
            (
                _mm256_shuffle_epi8(lower, at[0]),
                _mm256_shuffle_epi8(upper, at[1]),
            )
        };
        self.xor3(found, lower, upper)
    }
}
