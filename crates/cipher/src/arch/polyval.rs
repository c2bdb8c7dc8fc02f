//! POLYVAL by PCLMULQDQ, and four blocks at a time by VPCLMULQDQ.

use std::arch::x86_64::*;

use super::{AesNi, Vaes512};
use crate::block::Block;
use crate::mode::polyval::{BATCH, Polyval, Powers};

impl Polyval for AesNi {
    fn update(self, powers: &Powers, sum: u128, blocks: &[Block]) -> u128 {
        // SAFETY: `self` proves PCLMULQDQ.
        unsafe { update(powers, sum, blocks) }
    }
}

/// The x⁶³ + x⁶² + x⁵⁷ that 1 comes back as, 64 bits up.
const POLYNOMIAL: i64 = 0xc2 << 56;

#[target_feature(enable = "pclmulqdq")]
fn update(powers: &Powers, sum: u128, blocks: &[Block]) -> u128 {
    let mut sum = load(&sum.to_le_bytes());
    for batch in blocks.chunks(BATCH) {
        let (mut low, mut middle, mut high) = (sum, sum, sum);
        for (i, (block, power)) in batch
            .iter()
            .zip(&powers.0[BATCH - batch.len()..])
            .enumerate()
        {
            let (x, y) = (load(block), load(&power.to_le_bytes()));
            if i == 0 {
                let x = _mm_xor_si128(x, sum);
                low = _mm_clmulepi64_si128::<0x00>(x, y);
                high = _mm_clmulepi64_si128::<0x11>(x, y);
                middle = crossed(x, y);
            } else {
                low = _mm_xor_si128(low, _mm_clmulepi64_si128::<0x00>(x, y));
                high = _mm_xor_si128(high, _mm_clmulepi64_si128::<0x11>(x, y));
                middle = _mm_xor_si128(middle, crossed(x, y));
            }
        }
        low = _mm_xor_si128(low, _mm_slli_si128::<8>(middle));
        high = _mm_xor_si128(high, _mm_srli_si128::<8>(middle));
        sum = _mm_xor_si128(fold(fold(low)), high);
    }
    let mut bytes = [0; 16];
    // SAFETY: the bytes are borrowed.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), sum) };
    u128::from_le_bytes(bytes)
}

#[inline]
#[target_feature(enable = "pclmulqdq")]
fn crossed(x: __m128i, y: __m128i) -> __m128i {
    _mm_xor_si128(
        _mm_clmulepi64_si128::<0x01>(x, y),
        _mm_clmulepi64_si128::<0x10>(x, y),
    )
}

/// The low half added back, and the halves exchanged.
#[inline]
#[target_feature(enable = "pclmulqdq")]
fn fold(x: __m128i) -> __m128i {
    let back = _mm_clmulepi64_si128::<0x00>(x, _mm_set1_epi64x(POLYNOMIAL));
    _mm_xor_si128(_mm_shuffle_epi32::<0b01_00_11_10>(x), back)
}

#[inline]
#[target_feature(enable = "pclmulqdq")]
fn load(block: &Block) -> __m128i {
    // SAFETY: the block is borrowed.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

impl Polyval for Vaes512 {
    fn update(self, powers: &Powers, sum: u128, blocks: &[Block]) -> u128 {
        // SAFETY: `self` proves AVX-512 F and VPCLMULQDQ, which PCLMULQDQ is part of.
        unsafe { update_wide(powers, sum, blocks) }
    }
}

#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq")]
fn update_wide(powers: &Powers, sum: u128, blocks: &[Block]) -> u128 {
    let mut sum = load(&sum.to_le_bytes());
    for batch in blocks.chunks(BATCH) {
        let mut carried = _mm512_zextsi128_si512(sum);
        let mut products = [_mm512_setzero_si512(); 3];
        let (fours, rest) = batch.as_chunks::<4>();
        let (powers, last_powers) = powers.0[BATCH - batch.len()..].as_chunks::<4>();
        for (blocks, powers) in fours.iter().zip(powers) {
            let x = _mm512_xor_si512(load_four(blocks), carried);
            products = add_products(products, x, load_four(powers));
            carried = _mm512_setzero_si512();
        }
        if !rest.is_empty() {
            let x = _mm512_xor_si512(load_four(rest), carried);
            products = add_products(products, x, load_four(last_powers));
        }
        let [low, middle, high] = products;
        let middle = add_four(middle);
        let low = _mm_xor_si128(add_four(low), _mm_slli_si128::<8>(middle));
        let high = _mm_xor_si128(add_four(high), _mm_srli_si128::<8>(middle));
        sum = _mm_xor_si128(fold(fold(low)), high);
    }
    let mut bytes = [0; 16];
    // SAFETY: the bytes are borrowed.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), sum) };
    u128::from_le_bytes(bytes)
}

/// The products of the low halves, of one with the other, and of the high ones.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn add_products([low, middle, high]: [__m512i; 3], x: __m512i, y: __m512i) -> [__m512i; 3] {
    [
        _mm512_xor_si512(low, _mm512_clmulepi64_epi128::<0x00>(x, y)),
        _mm512_ternarylogic_epi64::<0x96>(
            middle,
            _mm512_clmulepi64_epi128::<0x01>(x, y),
            _mm512_clmulepi64_epi128::<0x10>(x, y),
        ),
        _mm512_xor_si512(high, _mm512_clmulepi64_epi128::<0x11>(x, y)),
    ]
}

/// At most four values of 16 bytes, and zeros.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_four<T: Copy>(values: &[T]) -> __m512i {
    const { assert!(size_of::<T>() == 16) }
    let halves = (1_u16 << (2 * values.len().min(4))) - 1;
    // SAFETY: what the mask has is borrowed; the rest is not read.
    unsafe { _mm512_maskz_loadu_epi64(halves as __mmask8, values.as_ptr().cast()) }
}

/// The sum of the four lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_four(x: __m512i) -> __m128i {
    let x = _mm512_xor_si512(x, _mm512_shuffle_i64x2::<0b11_10_11_10>(x, x));
    let x = _mm512_xor_si512(x, _mm512_shuffle_i64x2::<0b01_01_01_01>(x, x));
    _mm512_castsi512_si128(x)
}
