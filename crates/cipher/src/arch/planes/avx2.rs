//! Byte planes of 32 blocks.

mod inversion;

use std::arch::x86_64::*;

use self::inversion::Inversion;
pub(crate) use self::inversion::{ByAes, ByGfni, ByNibbles};
use super::Table;
use crate::arch::Avx2;
use crate::arch::instructions::{binary, memory, pairs};
use crate::arch::registers::exchange;
use crate::block::Block;
use crate::block::planes::linear::{Linear, Nibbles};
use crate::block::planes::{LINE, Lines, Planes};
use crate::work::Work;

/// Proof that this CPU has AVX2, and what a way to invert bytes needs.
#[derive(Clone, Copy)]
pub(crate) struct Avx2Planes<I> {
    _cpu: Avx2,
    _inversion: I,
}

impl<I: Inversion> Planes for Avx2Planes<I> {
    const WIDE: usize = 32;
    const FROM_AES_FIELD: Linear = I::FROM_AES_FIELD;
    const MOVES: bool = I::MOVES;
    const FROM_AES_FIELD_BACK: Linear = I::FROM_AES_FIELD_BACK;
    const BACK_ADDS: u8 = I::BACK_ADDS;
    const INVERTS_AT_ONCE: bool = I::INVERTS_AT_ONCE;
    type Vector = __m256i;
    type Table = Table;
    type Map = I::Map;
    type InverseMap = I::Map;

    /// Every row but the first of each half is added to the one after it:
    /// [`look_up`](Self::look_up) adds all rows up to the one it wants.
    fn table(bytes: &[u8; 256]) -> Table {
        let mut table = Table(*bytes);
        for half in table.0.as_chunks_mut::<128>().0 {
            for i in (16..128).rev() {
                half[i] ^= half[i - 16];
            }
        }
        table
    }

    fn map(map: &Linear) -> I::Map {
        I::map(map)
    }

    fn inverse_map(map: &Linear) -> I::Map {
        I::inverse_map(map)
    }

    fn inverse_map_back(map: &Linear) -> I::Map {
        I::inverse_map_back(map)
    }

    fn enter<W: Work<Self>>(self, work: W) {
        I::enter(self, work);
    }

    memory!(32, _mm256_loadu_si256, _mm256_storeu_si256);

    binary! {
        xor: _mm256_xor_si256, and: _mm256_and_si256, and_not: _mm256_andnot_si256, or: _mm256_or_si256,
        add_words: _mm256_add_epi32
    }

    pairs! {
        interleave_bytes: _mm256_unpacklo_epi8, _mm256_unpackhi_epi8;
        interleave_pairs: _mm256_unpacklo_epi16, _mm256_unpackhi_epi16;
        interleave_words: _mm256_unpacklo_epi32, _mm256_unpackhi_epi32;
        interleave_halves: _mm256_unpacklo_epi64, _mm256_unpackhi_epi64;
    }

    #[inline(always)]
    fn splat(self, word: u32) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_set1_epi32(word as i32) }
    }

    #[inline(always)]
    fn splat_words(self, words: [u32; 4]) -> __m256i {
        // SAFETY: `self` proves AVX2, and the words are borrowed.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(words.as_ptr().cast())) }
    }

    #[inline(always)]
    fn xor3(self, x: __m256i, y: __m256i, z: __m256i) -> __m256i {
        self.xor(self.xor(x, y), z)
    }

    /// As a signed number, the byte less 16·i is not negative for the rows up
    /// to the wanted one, and then its lower nibble is the place in the row;
    /// it is negative for the rows after it, and for all of the other half,
    /// and then `vpshufb` gives zero.
    #[inline(always)]
    fn look_up(self, table: &Table, x: __m256i) -> __m256i {
        let (rows, _) = table.0.as_chunks::<16>();
        // SAFETY: `self` proves AVX2.
        let (sixteen, other_half) = unsafe {
            let top = _mm256_set1_epi8(i8::MIN);
            (_mm256_set1_epi8(16), _mm256_xor_si256(x, top))
        };
        let (mut lower, mut upper) = (x, other_half);
        let mut found = self.xor(
            self.look_up_nibble(&rows[0], lower),
            self.look_up_nibble(&rows[8], upper),
        );
        for i in 1..8 {
            // SAFETY: `self` proves AVX2.
            unsafe {
                lower = _mm256_subs_epi8(lower, sixteen);
                upper = _mm256_subs_epi8(upper, sixteen);
            }
            found = self.xor3(
                found,
                self.look_up_nibble(&rows[i], lower),
                self.look_up_nibble(&rows[8 + i], upper),
            );
        }
        found
    }

    #[inline(always)]
    fn look_up_nibble(self, table: &Nibbles, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2, and the table is borrowed.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            _mm256_shuffle_epi8(table, x)
        }
    }

    #[inline(always)]
    fn upper_nibble(self, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        self.lower_nibble(unsafe { _mm256_srli_epi32::<4>(x) })
    }

    #[inline(always)]
    fn lower_nibble(self, x: __m256i) -> __m256i {
        self.and(x, self.splat(0x0f0f_0f0f))
    }

    #[inline(always)]
    fn linear(self, map: &I::Map, x: __m256i) -> __m256i {
        I::linear(self, map, x)
    }

    #[inline(always)]
    fn invert(self, map: &I::Map, x: __m256i) -> __m256i {
        I::invert(self, map, x)
    }

    #[inline(always)]
    fn invert_moving(self, map: &I::Map, x: __m256i) -> __m256i {
        I::invert_moving(self, map, x)
    }

    #[inline(always)]
    fn invert_back(self, map: &I::Map, x: __m256i) -> __m256i {
        I::invert_back(self, map, x)
    }

    #[inline(always)]
    fn moved(self, x: __m256i) -> __m256i {
        I::moved(self, x)
    }

    #[inline(always)]
    fn in_order(self, x: __m256i) -> __m256i {
        I::in_order(self, x)
    }

    #[inline(always)]
    fn rotate_each_word(self, x: __m256i, by: __m256i) -> __m256i {
        // A shift by all 32 bits gives zero, as it has to.
        // SAFETY: `self` proves AVX2.
        unsafe {
            let right = _mm256_sub_epi32(_mm256_set1_epi32(32), by);
            _mm256_or_si256(_mm256_sllv_epi32(x, by), _mm256_srlv_epi32(x, right))
        }
    }

    #[inline(always)]
    fn shuffle(self, x: __m256i, from: &[u8; 16]) -> __m256i {
        // SAFETY: `self` proves AVX2, and the numbers are borrowed.
        unsafe {
            let from = _mm256_broadcastsi128_si256(_mm_loadu_si128(from.as_ptr().cast()));
            _mm256_shuffle_epi8(x, from)
        }
    }

    #[inline(always)]
    fn first_tweaks(self, tweak: &Block) -> [__m256i; 8] {
        let mut tweaks = [self.splat(0); 8];
        for i in 0..4 {
            // SAFETY: `self` proves AVX2, and the tweak is borrowed.
            unsafe {
                let tweak = _mm256_broadcastsi128_si256(_mm_loadu_si128(tweak.as_ptr().cast()));
                let by = 2 * i as i64;
                tweaks[i] = self.times_x(tweak, _mm256_set_epi64x(by + 1, by + 1, by, by));
            }
            tweaks[4 + i] = self.times_x8::<1, 15>(tweaks[i]);
        }
        tweaks
    }

    #[inline(always)]
    fn next_tweaks(self, mut tweaks: [__m256i; 8]) -> [__m256i; 8] {
        for tweak in &mut tweaks {
            *tweak = self.times_x8::<2, 14>(*tweak);
        }
        tweaks
    }

    #[inline(always)]
    fn load_lines(self, data: &[u8], lines: &Lines) -> [__m256i; 4] {
        let (a, b) = (&data[lines[0]..][..LINE], &data[lines[1]..][..LINE]);
        let (a01, b01) = (self.load(a), self.load(b));
        let (a23, b23) = (self.load(&a[32..]), self.load(&b[32..]));
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
            let line = &mut data[at..at + LINE];
            self.store(halves[0], line);
            self.store(halves[1], &mut line[32..]);
        }
    }
}

impl<I: Inversion> Avx2Planes<I> {
    /// XTS: every block times x to the power of `by`, which is at most 57 and
    /// stands in both halves.
    #[inline(always)]
    fn times_x(self, x: __m256i, by: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let over = _mm256_srlv_epi64(x, _mm256_sub_epi64(_mm256_set1_epi64x(64), by));
            let shifted = self.xor(_mm256_sllv_epi64(x, by), _mm256_bslli_epi128::<8>(over));
            self.reduce(shifted, _mm256_bsrli_epi128::<8>(over))
        }
    }

    /// XTS: what left at the top comes back times x⁷ + x² + x + 1; `over` has
    /// at most 57 bits.
    #[inline(always)]
    fn reduce(self, shifted: __m256i, over: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let twice = _mm256_slli_epi64::<1>(over);
            let sum = self.xor3(over, twice, _mm256_slli_epi64::<2>(over));
            self.xor3(shifted, sum, _mm256_slli_epi64::<7>(over))
        }
    }

    /// XTS: every block times x to the power of 8·`BYTES`, which is at most 32;
    /// `REST` is 16 − `BYTES`.
    #[inline(always)]
    fn times_x8<const BYTES: i32, const REST: i32>(self, x: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let over = _mm256_bsrli_epi128::<REST>(x);
            self.reduce(_mm256_bslli_epi128::<BYTES>(x), over)
        }
    }
}
