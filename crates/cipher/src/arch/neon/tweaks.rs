//! XTS: multiplication of tweaks, modulo x¹²⁸ + x⁷ + x² + x + 1.

use std::arch::aarch64::*;

use super::Neon;

/// The x⁷ + x² + x + 1 that x¹²⁸ comes back as.
const POLYNOMIAL: u8 = 0x87;

impl Neon {
    /// `tweak`·x.
    #[inline(always)]
    pub(in crate::arch) fn times_x(self, tweak: uint8x16_t) -> uint8x16_t {
        const BACK: [u64; 2] = [POLYNOMIAL as u64, 1];
        // SAFETY: `self` proves NEON, and the constant is borrowed.
        unsafe {
            // All ones in a half where the other half's top bit leaves it.
            let signs = vshrq_n_s64::<63>(vreinterpretq_s64_u8(tweak));
            let carries = vreinterpretq_u64_s64(vextq_s64::<1>(signs, signs));
            let shifted = vshlq_n_u64::<1>(vreinterpretq_u64_u8(tweak));
            let back = vandq_u64(carries, vld1q_u64(BACK.as_ptr()));
            vreinterpretq_u8_u64(veorq_u64(shifted, back))
        }
    }

    /// `tweak`·x⁸.
    #[inline(always)]
    pub(in crate::arch) fn times_x8(self, tweak: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves NEON.
        unsafe {
            let zeros = vdupq_n_u8(0);
            let over = vget_low_u8(vextq_u8::<15>(tweak, zeros));
            let reduced = vmull_p8(vreinterpret_p8_u8(over), vdup_n_p8(POLYNOMIAL));
            let shifted = vextq_u8::<15>(zeros, tweak);
            veorq_u8(shifted, vreinterpretq_u8_p16(reduced))
        }
    }
}
