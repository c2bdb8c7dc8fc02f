//! Three ways to map and to invert bytes.

use std::arch::x86_64::*;

use zeroize::Zeroize;

use super::Avx2Planes;
use crate::arch::planes::matrix;
use crate::arch::{AesNi, Avx2};
use crate::block::planes::linear::{
    IDENTITY, Linear, Nibbles, apply, compose, inverse, of_nibbles,
};
use crate::block::planes::{Planes, Products, tower};
use crate::stack::on_one_page;
use crate::work::Work;

/// A way to map and to invert bytes: what [`Planes`] has of it, for a way that moves
/// nothing unless it says so.
pub(crate) trait Inversion: Copy + Send + Sync + 'static {
    const FROM_AES_FIELD: Linear;
    const INVERTS_AT_ONCE: bool = false;
    const MOVES: bool = false;
    const FROM_AES_FIELD_BACK: Linear = Self::FROM_AES_FIELD;
    const BACK_ADDS: u8 = 0;

    fn enter<W: Work<Avx2Planes<Self>>>(planes: Avx2Planes<Self>, work: W);

    /// A linear map of bytes, or of their inverses.
    type Map: Copy + Zeroize + Send + Sync;

    fn map(map: &Linear) -> Self::Map;

    fn inverse_map(map: &Linear) -> Self::Map;

    fn inverse_map_back(map: &Linear) -> Self::Map {
        Self::inverse_map(map)
    }

    fn linear(planes: Avx2Planes<Self>, map: &Self::Map, x: __m256i) -> __m256i;

    fn invert(planes: Avx2Planes<Self>, map: &Self::Map, x: __m256i) -> __m256i;

    #[inline(always)]
    fn invert_moving(planes: Avx2Planes<Self>, map: &Self::Map, x: __m256i) -> __m256i {
        Self::invert(planes, map, x)
    }

    #[inline(always)]
    fn invert_back(planes: Avx2Planes<Self>, map: &Self::Map, x: __m256i) -> __m256i {
        Self::invert(planes, map, x)
    }

    #[inline(always)]
    fn moved(_: Avx2Planes<Self>, x: __m256i) -> __m256i {
        x
    }

    #[inline(always)]
    fn in_order(_: Avx2Planes<Self>, x: __m256i) -> __m256i {
        x
    }
}

/// By [look-ups of nibbles](tower), which leave all bytes where they are.
#[derive(Clone, Copy)]
pub(crate) struct ByNibbles;

impl Avx2Planes<ByNibbles> {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        Some(Self {
            _cpu: Avx2::detect()?,
            _inversion: ByNibbles,
        })
    }
}

impl Inversion for ByNibbles {
    const FROM_AES_FIELD: Linear = tower::FROM_AES;
    type Map = [Nibbles; 2];

    fn enter<W: Work<Avx2Planes<Self>>>(planes: Avx2Planes<Self>, work: W) {
        #[target_feature(enable = "avx2")]
        #[inline(never)]
        fn enabled<W: Work<Avx2Planes<ByNibbles>>>(planes: Avx2Planes<ByNibbles>, work: W) {
            work.run(planes);
        }
        // SAFETY: `planes` proves AVX2.
        on_one_page(|| unsafe { enabled(planes, work) });
    }

    fn map(map: &Linear) -> [Nibbles; 2] {
        of_nibbles(map)
    }

    fn inverse_map(map: &Linear) -> [Nibbles; 2] {
        tower::after_inversion(map)
    }

    #[inline(always)]
    fn linear(planes: Avx2Planes<Self>, map: &[Nibbles; 2], x: __m256i) -> __m256i {
        by_nibbles(planes, map, x)
    }

    #[inline(always)]
    fn invert(planes: Avx2Planes<Self>, map: &[Nibbles; 2], x: __m256i) -> __m256i {
        tower::invert(planes, map, x)
    }
}

/// Inversion by the last round of AES, encrypting and decrypting (FIPS 197, sections 5.1 and 5.3).
/// Its S-box is an affine map of the inverse, and its ShiftRows moves bytes.
#[derive(Clone, Copy)]
pub(crate) struct ByAes(AesNi);

impl Avx2Planes<ByAes> {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        Some(Self {
            _cpu: Avx2::detect()?,
            _inversion: ByAes(AesNi::detect()?),
        })
    }
}

/// The linear map that AES's S-box applies to an inverse (section 5.1.1), without the constant that
/// it adds.
const AFTER: Linear = {
    let mut map = IDENTITY;
    let mut bit = 0;
    while bit < 8 {
        map[bit] = 0x1f_u8.rotate_left(bit as u32);
        bit += 1;
    }
    map
};

/// The constant that the S-box adds.
const CONSTANT: u8 = 0x63;

/// ShiftRows: which byte comes to each place, and back.
const SHIFT_ROWS: [u8; 16] = [0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11];
const SHIFT_ROWS_BACK: [u8; 16] = [0, 13, 10, 7, 4, 1, 14, 11, 8, 5, 2, 15, 12, 9, 6, 3];

impl Inversion for ByAes {
    const FROM_AES_FIELD: Linear = IDENTITY;
    const MOVES: bool = true;
    const FROM_AES_FIELD_BACK: Linear = AFTER;
    const BACK_ADDS: u8 = CONSTANT;
    type Map = [Nibbles; 2];

    fn enter<W: Work<Avx2Planes<Self>>>(planes: Avx2Planes<Self>, work: W) {
        #[target_feature(enable = "avx2,aes")]
        #[inline(never)]
        fn enabled<W: Work<Avx2Planes<ByAes>>>(planes: Avx2Planes<ByAes>, work: W) {
            work.run(planes);
        }
        // SAFETY: `planes` proves AVX2 and AES-NI.
        on_one_page(|| unsafe { enabled(planes, work) });
    }

    fn map(map: &Linear) -> [Nibbles; 2] {
        of_nibbles(map)
    }

    #[inline(always)]
    fn linear(planes: Avx2Planes<Self>, map: &[Nibbles; 2], x: __m256i) -> __m256i {
        by_nibbles(planes, map, x)
    }

    fn inverse_map(map: &Linear) -> [Nibbles; 2] {
        let map = compose(map, &inverse(&AFTER));
        let [mut lower, upper] = of_nibbles(&map);
        for sum in &mut lower {
            *sum ^= apply(&map, CONSTANT);
        }
        [lower, upper]
    }

    fn inverse_map_back(map: &Linear) -> [Nibbles; 2] {
        of_nibbles(map)
    }

    #[inline(always)]
    fn invert(planes: Avx2Planes<Self>, map: &[Nibbles; 2], x: __m256i) -> __m256i {
        Self::in_order(planes, Self::invert_moving(planes, map, x))
    }

    #[inline(always)]
    fn invert_moving(planes: Avx2Planes<Self>, map: &[Nibbles; 2], x: __m256i) -> __m256i {
        // SAFETY: `planes` proves AVX2 and AES-NI.
        let substituted = unsafe {
            let zero = _mm_setzero_si128();
            let lower = _mm_aesenclast_si128(_mm256_castsi256_si128(x), zero);
            let upper = _mm_aesenclast_si128(_mm256_extracti128_si256::<1>(x), zero);
            _mm256_set_m128i(upper, lower)
        };
        planes.linear(map, substituted)
    }

    #[inline(always)]
    fn invert_back(planes: Avx2Planes<Self>, map: &[Nibbles; 2], x: __m256i) -> __m256i {
        // SAFETY: `planes` proves AVX2 and AES-NI.
        let inverted = unsafe {
            let zero = _mm_setzero_si128();
            let lower = _mm_aesdeclast_si128(_mm256_castsi256_si128(x), zero);
            let upper = _mm_aesdeclast_si128(_mm256_extracti128_si256::<1>(x), zero);
            _mm256_set_m128i(upper, lower)
        };
        planes.linear(map, inverted)
    }

    #[inline(always)]
    fn moved(planes: Avx2Planes<Self>, x: __m256i) -> __m256i {
        planes.shuffle(x, &SHIFT_ROWS)
    }

    #[inline(always)]
    fn in_order(planes: Avx2Planes<Self>, x: __m256i) -> __m256i {
        planes.shuffle(x, &SHIFT_ROWS_BACK)
    }
}

/// A linear map by a look-up of each nibble.
#[inline(always)]
fn by_nibbles<I: Inversion>(
    planes: Avx2Planes<I>,
    [lower, upper]: &[Nibbles; 2],
    x: __m256i,
) -> __m256i {
    planes.xor(
        planes.look_up_nibble(lower, planes.lower_nibble(x)),
        planes.look_up_nibble(upper, planes.upper_nibble(x)),
    )
}

/// By GFNI's instructions, which map a byte and its inverse in the field of AES by a
/// matrix of bits.
#[derive(Clone, Copy)]
pub(crate) struct ByGfni(());

impl Avx2Planes<ByGfni> {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let _cpu = Avx2::detect()?;
        is_x86_feature_detected!("gfni").then_some(Self {
            _cpu,
            _inversion: ByGfni(()),
        })
    }
}

impl Inversion for ByGfni {
    const FROM_AES_FIELD: Linear = IDENTITY;
    const INVERTS_AT_ONCE: bool = true;
    type Map = u64;

    fn enter<W: Work<Avx2Planes<Self>>>(planes: Avx2Planes<Self>, work: W) {
        #[target_feature(enable = "avx2,gfni")]
        #[inline(never)]
        fn enabled<W: Work<Avx2Planes<ByGfni>>>(planes: Avx2Planes<ByGfni>, work: W) {
            work.run(planes);
        }
        // SAFETY: `planes` proves AVX2 and GFNI.
        on_one_page(|| unsafe { enabled(planes, work) });
    }

    fn map(map: &Linear) -> u64 {
        matrix(map)
    }

    fn inverse_map(map: &Linear) -> u64 {
        matrix(map)
    }

    #[inline(always)]
    fn linear(_: Avx2Planes<Self>, &map: &u64, x: __m256i) -> __m256i {
        // SAFETY: the first argument proves AVX2 and GFNI.
        unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(x, _mm256_set1_epi64x(map as i64)) }
    }

    #[inline(always)]
    fn invert(_: Avx2Planes<Self>, &map: &u64, x: __m256i) -> __m256i {
        // SAFETY: the first argument proves AVX2 and GFNI.
        unsafe { _mm256_gf2p8affineinv_epi64_epi8::<0>(x, _mm256_set1_epi64x(map as i64)) }
    }
}

impl Products for Avx2Planes<ByGfni> {
    #[inline(always)]
    fn multiply(self, x: __m256i, y: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2 and GFNI.
        unsafe { _mm256_gf2p8mul_epi8(x, y) }
    }
}
