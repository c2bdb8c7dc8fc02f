//! POLYVAL by PMULL.

use std::arch::aarch64::*;

use crate::arch::AesCe;
use crate::block::Block;
use crate::mode::polyval::{BATCH, Polyval, Powers};

impl Polyval for AesCe {
    fn update(self, powers: &Powers, sum: u128, blocks: &[Block]) -> u128 {
        // SAFETY: `self` proves PMULL.
        unsafe { update(powers, sum, blocks) }
    }
}

/// The x⁶³ + x⁶² + x⁵⁷ that 1 comes back as, 64 bits up.
const POLYNOMIAL: u64 = 0xc2 << 56;

#[target_feature(enable = "neon,aes")]
fn update(powers: &Powers, sum: u128, blocks: &[Block]) -> u128 {
    let zero = vdupq_n_u64(0);
    let mut sum = load(&sum.to_le_bytes());
    for batch in blocks.chunks(BATCH) {
        let (mut low, mut middle, mut high) = (zero, zero, zero);
        for (block, power) in batch.iter().zip(&powers.0[BATCH - batch.len()..]) {
            let (x, y) = (veorq_u64(load(block), sum), load(&power.to_le_bytes()));
            low = veorq_u64(low, multiply_low(x, y));
            high = veorq_u64(high, multiply_high(x, y));
            let exchanged = vextq_u64::<1>(y, y);
            middle = veorq_u64(middle, multiply_low(x, exchanged));
            middle = veorq_u64(middle, multiply_high(x, exchanged));
            sum = zero;
        }
        low = veorq_u64(low, vextq_u64::<1>(zero, middle));
        high = veorq_u64(high, vextq_u64::<1>(middle, zero));
        sum = veorq_u64(fold(fold(low)), high);
    }
    let mut bytes = [0; 16];
    // SAFETY: the bytes are borrowed.
    unsafe { vst1q_u8(bytes.as_mut_ptr(), vreinterpretq_u8_u64(sum)) };
    u128::from_le_bytes(bytes)
}

/// The low halves' product.
#[inline]
#[target_feature(enable = "neon,aes")]
fn multiply_low(x: uint64x2_t, y: uint64x2_t) -> uint64x2_t {
    let (x, y) = (vgetq_lane_u64::<0>(x), vgetq_lane_u64::<0>(y));
    vreinterpretq_u64_p128(vmull_p64(x, y))
}

/// The high halves' product.
#[inline]
#[target_feature(enable = "neon,aes")]
fn multiply_high(x: uint64x2_t, y: uint64x2_t) -> uint64x2_t {
    let (x, y) = (vreinterpretq_p64_u64(x), vreinterpretq_p64_u64(y));
    vreinterpretq_u64_p128(vmull_high_p64(x, y))
}

/// The low half added back, and the halves exchanged.
#[inline]
#[target_feature(enable = "neon,aes")]
fn fold(x: uint64x2_t) -> uint64x2_t {
    let back = multiply_low(x, vdupq_n_u64(POLYNOMIAL));
    veorq_u64(vextq_u64::<1>(x, x), back)
}

#[inline]
#[target_feature(enable = "neon")]
fn load(block: &Block) -> uint64x2_t {
    // SAFETY: the block is borrowed.
    unsafe { vreinterpretq_u64_u8(vld1q_u8(block.as_ptr())) }
}
