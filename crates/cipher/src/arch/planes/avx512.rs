//! Byte planes of 64 blocks.

use std::arch::x86_64::*;

use super::{Table, matrix};
use crate::arch::instructions::{binary, enter, memory, pairs};
use crate::arch::registers::columns;
use crate::block::Block;
use crate::block::planes::linear::{IDENTITY, Linear};
use crate::block::planes::{Lines, Planes, Products};
use crate::work::Work;

/// Proof that this CPU has AVX-512 with its foundation (F), operations on bytes
/// (BW) and the shorter vector lengths (VL), look-ups of bytes (VBMI), GFNI, and
/// VPCLMULQDQ. `BY_ROWS` says how words are [looked up](super::words).
#[derive(Clone, Copy)]
pub(crate) struct Avx512Bytes<const BY_ROWS: bool = false>(());

impl Avx512Bytes {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("vpclmulqdq");
        has.then_some(Self(()))
    }

    /// The same CPU, for words that are looked up the other way.
    pub(crate) fn by_rows(self) -> Avx512Bytes<true> {
        Avx512Bytes(())
    }
}

impl<const BY_ROWS: bool> Planes for Avx512Bytes<BY_ROWS> {
    const WIDE: usize = 64;
    const FROM_AES_FIELD: Linear = IDENTITY;
    const INVERTS_AT_ONCE: bool = true;
    const TURNS: bool = true;
    type Vector = __m512i;
    type Table = Table;
    type Map = u64;
    type InverseMap = u64;

    fn table(bytes: &[u8; 256]) -> Table {
        Table(*bytes)
    }

    fn map(map: &Linear) -> u64 {
        matrix(map)
    }

    fn inverse_map(map: &Linear) -> u64 {
        matrix(map)
    }

    enter!("avx512f,avx512bw,avx512vl,avx512vbmi,gfni,vpclmulqdq");
    memory!(64, _mm512_loadu_si512, _mm512_storeu_si512);

    binary! {
        xor: _mm512_xor_si512, and: _mm512_and_si512, and_not: _mm512_andnot_si512, or: _mm512_or_si512,
        add_words: _mm512_add_epi32
    }

    pairs! {
        interleave_bytes: _mm512_unpacklo_epi8, _mm512_unpackhi_epi8;
        interleave_pairs: _mm512_unpacklo_epi16, _mm512_unpackhi_epi16;
        interleave_words: _mm512_unpacklo_epi32, _mm512_unpackhi_epi32;
        interleave_halves: _mm512_unpacklo_epi64, _mm512_unpackhi_epi64;
    }

    #[inline(always)]
    fn splat(self, word: u32) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_set1_epi32(word as i32) }
    }

    #[inline(always)]
    fn splat_words(self, words: [u32; 4]) -> __m512i {
        // SAFETY: `self` proves the feature, and the words are borrowed.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(words.as_ptr().cast())) }
    }

    #[inline(always)]
    fn xor3(self, x: __m512i, y: __m512i, z: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_ternarylogic_epi32::<0b1001_0110>(x, y, z) }
    }

    #[inline(always)]
    fn look_up(self, table: &Table, x: __m512i) -> __m512i {
        let rows = table.0.as_ptr();
        // SAFETY: `self` proves the features, and the table is borrowed and
        // has four rows of 64 bytes.
        unsafe {
            let a = _mm512_loadu_si512(rows.cast());
            let b = _mm512_loadu_si512(rows.add(64).cast());
            let c = _mm512_loadu_si512(rows.add(128).cast());
            let d = _mm512_loadu_si512(rows.add(192).cast());
            let lower = _mm512_permutex2var_epi8(a, x, b);
            let upper = _mm512_permutex2var_epi8(c, x, d);
            _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), lower, upper)
        }
    }

    #[inline(always)]
    fn look_up_nibble(self, table: &[u8; 16], x: __m512i) -> __m512i {
        // SAFETY: `self` proves the features, and the table is borrowed.
        unsafe {
            let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
            _mm512_shuffle_epi8(table, x)
        }
    }

    #[inline(always)]
    fn upper_nibble(self, x: __m512i) -> __m512i {
        const UPPER: Linear = [0, 0, 0, 0, 1, 2, 4, 8];
        self.linear(&Self::map(&UPPER), x)
    }

    #[inline(always)]
    fn lower_nibble(self, x: __m512i) -> __m512i {
        self.and(x, self.splat(0x0f0f_0f0f))
    }

    #[inline(always)]
    fn linear(self, &map: &u64, x: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(x, _mm512_set1_epi64(map as i64)) }
    }

    #[inline(always)]
    fn invert(self, &map: &u64, x: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe { _mm512_gf2p8affineinv_epi64_epi8::<0>(x, _mm512_set1_epi64(map as i64)) }
    }

    #[inline(always)]
    fn linear_by_half(self, &maps: &[u64; 2], x: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(x, self.splat_maps(maps)) }
    }

    #[inline(always)]
    fn invert_by_half(self, &maps: &[u64; 2], x: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe { _mm512_gf2p8affineinv_epi64_epi8::<0>(x, self.splat_maps(maps)) }
    }

    #[inline(always)]
    fn rotate_each_word(self, x: __m512i, by: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_rolv_epi32(x, by) }
    }

    #[inline(always)]
    fn shuffle(self, x: __m512i, from: &[u8; 16]) -> __m512i {
        // SAFETY: `self` proves the features, and the numbers are borrowed.
        unsafe {
            let from = _mm512_broadcast_i32x4(_mm_loadu_si128(from.as_ptr().cast()));
            _mm512_shuffle_epi8(x, from)
        }
    }

    /// By rotations and selections, which have another port than shuffles, of
    /// which a cipher with tables has enough: byte k of word j of register i to
    /// byte 4·j + i of plane k. The words are rotated until their byte k is at byte
    /// i + k; so is plane k, and is rotated back.
    #[inline(always)]
    fn to_planes(self, [a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
        /// Bytes 0 and 2 of every word, 0 and 1, 1 and 2.
        const EVEN: u64 = 0x5555_5555_5555_5555;
        const LOWER: u64 = 0x3333_3333_3333_3333;
        const MIDDLE: u64 = 0x6666_6666_6666_6666;
        // SAFETY: `self` proves the features.
        unsafe {
            let b = _mm512_rol_epi32::<8>(b);
            let c = _mm512_rol_epi32::<16>(c);
            let d = _mm512_rol_epi32::<24>(d);
            let even_ab = _mm512_mask_blend_epi8(EVEN, b, a);
            let odd_ab = _mm512_mask_blend_epi8(EVEN, a, b);
            let even_cd = _mm512_mask_blend_epi8(EVEN, d, c);
            let odd_cd = _mm512_mask_blend_epi8(EVEN, c, d);
            [
                _mm512_mask_blend_epi8(LOWER, even_cd, even_ab),
                _mm512_ror_epi32::<8>(_mm512_mask_blend_epi8(MIDDLE, odd_cd, odd_ab)),
                _mm512_ror_epi32::<16>(_mm512_mask_blend_epi8(LOWER, even_ab, even_cd)),
                _mm512_ror_epi32::<24>(_mm512_mask_blend_epi8(MIDDLE, odd_ab, odd_cd)),
            ]
        }
    }

    /// In as many shuffles as if nothing were turned: any two halves of 16 bytes make
    /// a row in one.
    #[inline(always)]
    fn half_turned_words_to_rows(self, [a, b, c, d]: [[__m512i; 4]; 4]) -> [__m512i; 16] {
        let interleaved = |x: [__m512i; 4], y: [__m512i; 4]| {
            [
                self.interleave_words(x[0], y[0]),
                self.interleave_words(x[1], y[1]),
                self.interleave_words(x[2], y[2]),
                self.interleave_words(x[3], y[3]),
            ]
        };
        let (first, second) = (interleaved(a, b), interleaved(c, d));
        let mut rows = [a[0]; 16];
        for i in 0..4 {
            for j in 0..4 {
                let (x, y) = (first[j][i / 2], second[i][j / 2]);
                // SAFETY: `self` proves the feature.
                rows[4 * i + j] = unsafe {
                    let (x, y) = (_mm512_castsi512_pd(x), _mm512_castsi512_pd(y));
                    _mm512_castpd_si512(match (i % 2, j % 2) {
                        (0, 0) => _mm512_shuffle_pd::<0b0000_0000>(x, y),
                        (0, _) => _mm512_shuffle_pd::<0b1010_1010>(x, y),
                        (_, 0) => _mm512_shuffle_pd::<0b0101_0101>(x, y),
                        (_, _) => _mm512_shuffle_pd::<0b1111_1111>(x, y),
                    })
                };
            }
        }
        rows
    }

    #[inline(always)]
    fn first_tweaks(self, tweak: &Block) -> [__m512i; 8] {
        let mut tweaks = [self.splat(0); 8];
        // SAFETY: `self` proves the features, and the tweak is borrowed.
        unsafe {
            let tweak = _mm512_broadcast_i32x4(_mm_loadu_si128(tweak.as_ptr().cast()));
            tweaks[0] = self.times_x(tweak, _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0));
            tweaks[1] = self.times_x(tweak, _mm512_set_epi64(7, 7, 6, 6, 5, 5, 4, 4));
        }
        for i in 0..2 {
            tweaks[2 + i] = self.times_x8::<1, 15>(tweaks[i]);
        }
        for i in 0..4 {
            tweaks[4 + i] = self.times_x8::<2, 14>(tweaks[i]);
        }
        tweaks
    }

    #[inline(always)]
    fn next_tweaks(self, mut tweaks: [__m512i; 8]) -> [__m512i; 8] {
        for tweak in &mut tweaks {
            *tweak = self.times_x8::<4, 12>(*tweak);
        }
        tweaks
    }

    #[inline(always)]
    fn load_lines(self, data: &[u8], lines: &Lines) -> [__m512i; 4] {
        let a = self.load(&data[lines[0]..]);
        let b = self.load(&data[lines[1]..]);
        let c = self.load(&data[lines[2]..]);
        let d = self.load(&data[lines[3]..]);
        // SAFETY: `self` proves AVX-512 F.
        unsafe { columns([a, b, c, d]) }
    }

    #[inline(always)]
    fn store_lines(self, x: [__m512i; 4], data: &mut [u8], lines: &Lines, count: usize) {
        // SAFETY: `self` proves AVX-512 F.
        let x = unsafe { columns(x) };
        for (x, &at) in x.into_iter().zip(lines).take(count) {
            self.store(x, &mut data[at..]);
        }
    }
}

impl Products for Avx512Bytes {
    #[inline(always)]
    fn multiply(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe { _mm512_gf2p8mul_epi8(x, y) }
    }
}

impl<const BY_ROWS: bool> Avx512Bytes<BY_ROWS> {
    /// A map for each half of every 16 bytes.
    #[inline(always)]
    fn splat_maps(self, maps: [u64; 2]) -> __m512i {
        // SAFETY: `self` proves the feature, and the maps are borrowed.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(maps.as_ptr().cast())) }
    }

    /// XTS: every block times x to the power of `by`, which is at most 63 and
    /// stands in both halves.
    #[inline(always)]
    fn times_x(self, x: __m512i, by: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe {
            let shifted = _mm512_sllv_epi64(x, by);
            let over = _mm512_srlv_epi64(x, _mm512_sub_epi64(_mm512_set1_epi64(64), by));
            let reduced = _mm512_clmulepi64_epi128::<1>(over, _mm512_set1_epi64(0x87));
            self.xor3(shifted, _mm512_bslli_epi128::<8>(over), reduced)
        }
    }

    /// XTS: every block times x to the power of 8·`BYTES`, which is at most 64;
    /// `REST` is 16 − `BYTES`.
    #[inline(always)]
    fn times_x8<const BYTES: i32, const REST: i32>(self, x: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe {
            let over = _mm512_bsrli_epi128::<REST>(x);
            let reduced = _mm512_clmulepi64_epi128::<0>(over, _mm512_set1_epi64(0x87));
            _mm512_xor_si512(_mm512_bslli_epi128::<BYTES>(x), reduced)
        }
    }
}
