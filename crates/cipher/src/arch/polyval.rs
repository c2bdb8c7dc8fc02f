//! POLYVAL by PCLMULQDQ.

use std::arch::x86_64::*;

use super::AesNi;
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
