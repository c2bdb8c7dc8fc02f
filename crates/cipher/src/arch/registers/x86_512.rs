//! Registers of 512 bits: AVX-512's.

use std::arch::x86_64::*;

use super::{Narrow, words};
use crate::arch::Avx512;
use crate::arch::instructions::{binary, enter, memory, shifts};
use crate::block::Block;
use crate::block::registers::Registers;
use crate::mode::xts::STRETCH;
use crate::work::Work;

impl Registers for Avx512 {
    const LANES: usize = 4;
    const TERNARY: bool = true;
    const MANY: bool = true;
    type Vector = __m512i;
    type Narrow = Narrow;

    fn narrow(self) -> Narrow {
        Narrow(self)
    }

    enter!("avx512f,avx512vl");
    memory!(64, _mm512_loadu_si512, _mm512_storeu_si512);

    binary! {
        xor: _mm512_xor_si512, and: _mm512_and_si512, or: _mm512_or_si512,
        add_words: _mm512_add_epi32, add_pairs: _mm512_add_epi64
    }

    shifts! {
        shift_left: _mm512_sll_epi32, shift_right: _mm512_srl_epi32,
        shift_pairs_left: _mm512_sll_epi64, shift_pairs_right: _mm512_srl_epi64
    }

    words! {
        _mm512_broadcast_i32x4, _mm512_set1_epi32, _mm512_set1_epi64,
        _mm512_mul_epu32, _mm512_srli_epi64, _mm512_shuffle_epi32,
        _mm512_unpacklo_epi32, _mm512_unpackhi_epi32, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64
    }

    #[inline(always)]
    fn gate<const TABLE: i32>(self, x: __m512i, y: __m512i, z: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_ternarylogic_epi32::<TABLE>(x, y, z) }
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self, x: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { _mm512_rol_epi32::<BY>(x) }
    }

    #[inline(always)]
    fn columns(self, x: [__m512i; 4]) -> [__m512i; 4] {
        // SAFETY: `self` proves AVX-512 F.
        unsafe { columns(x) }
    }

    /// Columns of columns are rows.
    #[inline(always)]
    fn rows(self, x: [__m512i; 4]) -> [__m512i; 4] {
        self.columns(x)
    }

    /// Each register is a product of one long before it, so that few wait for
    /// one another.
    #[inline(always)]
    fn tweaks(self, stretch: &mut [Block; STRETCH], tweak: u128) -> u128 {
        const { assert!(STRETCH == 32) }
        // SAFETY: `self` proves AVX-512 F.
        let (x, next) = unsafe {
            let mut x = [spread(tweak); 8];
            x[1] = times_x::<4, 60>(x[0]);
            for i in 0..2 {
                x[2 + i] = times_x::<8, 56>(x[i]);
            }
            for i in 0..4 {
                x[4 + i] = times_x::<16, 48>(x[i]);
            }
            (x, times_x::<32, 32>(x[0]))
        };
        for (x, blocks) in x.into_iter().zip(stretch.as_chunks_mut::<4>().0) {
            self.store(x, blocks.as_flattened_mut());
        }
        let mut stored = [[0; 16]; 4];
        self.store(next, stored.as_flattened_mut());
        u128::from_le_bytes(stored[0])
    }
}

/// The lanes 0 of the four registers, then the lanes 1, and so on.
#[target_feature(enable = "avx512f")]
#[inline]
pub(in crate::arch) fn columns([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
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

/// `tweak`·xⁱ in block i.
#[target_feature(enable = "avx512f")]
#[inline]
fn spread(tweak: u128) -> __m512i {
    let [low, high] = [tweak as i64, (tweak >> 64) as i64];
    let tweak = _mm512_set_epi64(high, low, high, low, high, low, high, low);
    let by = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
    let over = _mm512_srlv_epi64(tweak, _mm512_sub_epi64(_mm512_set1_epi64(64), by));
    reduced(_mm512_sllv_epi64(tweak, by), over)
}

/// Every block as a tweak, times x to the power of `BY`, which is at most 57;
/// `REST` is 64 − `BY`.
#[target_feature(enable = "avx512f")]
#[inline]
fn times_x<const BY: u32, const REST: u32>(tweaks: __m512i) -> __m512i {
    let over = _mm512_srli_epi64::<REST>(tweaks);
    reduced(_mm512_slli_epi64::<BY>(tweaks), over)
}

/// Adds `over`, the bits that left either half of a block, back to `shifted`. Those of the lower
/// half go to the upper half. Those of the upper half, times x⁷ + x² + x + 1, go to the lower half.
#[target_feature(enable = "avx512f")]
#[inline]
fn reduced(shifted: __m512i, over: __m512i) -> __m512i {
    let low_halves = 0x55;
    let carries = _mm512_shuffle_epi32::<0x4e>(over);
    let by_x = _mm512_maskz_slli_epi64::<1>(low_halves, carries);
    let by_x2 = _mm512_maskz_slli_epi64::<2>(low_halves, carries);
    let by_x7 = _mm512_maskz_slli_epi64::<7>(low_halves, carries);
    let over = _mm512_ternarylogic_epi64::<0x96>(by_x, by_x2, by_x7);
    _mm512_ternarylogic_epi64::<0x96>(shifted, carries, over)
}
