//! POLYVAL (RFC 8452, section 3), a hash in GF(2¹²⁸).
//!
//! ```text
//! S₀ = 0      Sⱼ = (Sⱼ₋₁ + Xⱼ)·h·x⁻¹²⁸  modulo x¹²⁸ + x¹²⁷ + x¹²⁶ + x¹²¹ + 1
//! ```
//!
//! [`BATCH`] steps are one sum of products by the powers of h, reduced once.

use zeroize::Zeroize;

use crate::block::Block;
use crate::block::registers::AnyCpu;

/// Blocks under one reduction.
pub(crate) const BATCH: usize = 32;

/// h³²·x⁻³¹·¹²⁸ … h: what each block of a batch is multiplied by, on whole cache
/// lines. Wiped when dropped.
#[repr(align(64))]
pub(crate) struct Powers(pub(crate) [u128; BATCH]);

impl Powers {
    /// The powers of `h`.
    pub(crate) fn new(h: Block) -> Self {
        let h = u128::from_le_bytes(h);
        let mut powers = [h; BATCH];
        for i in (0..BATCH - 1).rev() {
            powers[i] = reduce(multiply(powers[i + 1], h));
        }
        Self(powers)
    }
}

impl Drop for Powers {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// A CPU that computes POLYVAL.
pub(crate) trait Polyval: Copy + Send + Sync + 'static {
    /// The hash after `blocks`, from `sum` before them.
    fn update(self, powers: &Powers, sum: u128, blocks: &[Block]) -> u128;
}

impl Polyval for AnyCpu {
    fn update(self, powers: &Powers, mut sum: u128, blocks: &[Block]) -> u128 {
        for batch in blocks.chunks(BATCH) {
            let mut products = (0, 0);
            for (block, &power) in batch.iter().zip(&powers.0[BATCH - batch.len()..]) {
                let (low, high) = multiply(u128::from_le_bytes(*block) ^ sum, power);
                products = (products.0 ^ low, products.1 ^ high);
                sum = 0;
            }
            sum = reduce(products);
        }
        sum
    }
}

/// The product of polynomials, its low half first.
pub(super) fn multiply(x: u128, y: u128) -> (u128, u128) {
    let (x0, x1, y0, y1) = (x as u64, (x >> 64) as u64, y as u64, (y >> 64) as u64);
    let (low, high) = (carryless(x0, y0), carryless(x1, y1));
    let middle = carryless(x0 ^ x1, y0 ^ y1) ^ low ^ high;
    (low ^ middle << 64, high ^ middle >> 64)
}

/// The product without carries. Of factors with every fifth bit, no more than
/// 13 ones meet in a position, and their sum spills into the four bits above,
/// which are of no interest.
fn carryless(x: u64, y: u64) -> u128 {
    const FIFTH: u128 = {
        let (mut mask, mut bit) = (0, 0);
        while bit < 128 {
            mask |= 1 << bit;
            bit += 5;
        }
        mask
    };
    let mut product = 0;
    for k in 0..5 {
        let mut sum = 0;
        for i in 0..5 {
            let j = (k + 5 - i) % 5;
            let (x, y) = (x & (FIFTH << i) as u64, y & (FIFTH << j) as u64);
            sum ^= u128::from(x) * u128::from(y);
        }
        product |= sum & FIFTH << k;
    }
    product
}

/// The product times x⁻¹²⁸: each half of the low part is added back times
/// x⁶³ + x⁶² + x⁵⁷, 64 bits up.
fn reduce((mut low, high): (u128, u128)) -> u128 {
    for _ in 0..2 {
        let out = u128::from(low as u64);
        low = low.rotate_left(64) ^ out << 63 ^ out << 62 ^ out << 57;
    }
    low ^ high
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::arch::{AesNi, Vaes512};

    /// RFC 8452, section 7 and appendix A.
    #[test]
    fn known_answer() {
        let bytes = |x: u128| x.to_be_bytes();
        let powers = Powers::new(bytes(0x2562_9347_5892_4276_1d31_f826_ba4b_757b));
        let blocks = [
            bytes(0x4f4f_9566_8c83_dfb6_4017_62bb_2d01_a262),
            bytes(0xd1a2_4ddd_2721_d006_bbe4_5f20_d3c9_f362),
        ];
        let sum = AnyCpu.update(&powers, 0, &blocks);
        assert_eq!(
            sum.to_le_bytes(),
            bytes(0xf7a3_b47b_8461_19fa_e5b7_866c_f5e5_b77e)
        );
    }
    /// Every number of blocks around a batch, by every instruction that is here.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn instructions_multiply_as_words_do() {
        let powers = Powers::new([0x9c; 16]);
        let blocks: Vec<Block> = (0..3 * BATCH + 5)
            .map(|i| (i as u128 + 1).wrapping_mul(u128::MAX / 59).to_le_bytes())
            .collect();
        for length in 0..blocks.len() {
            let blocks = &blocks[..length];
            let sum = u128::MAX / 7;
            let expected = AnyCpu.update(&powers, sum, blocks);
            if let Some(cpu) = AesNi::detect() {
                assert_eq!(cpu.update(&powers, sum, blocks), expected, "{length}");
            }
            if let Some(cpu) = Vaes512::detect() {
                assert_eq!(cpu.update(&powers, sum, blocks), expected, "{length}");
            }
        }
    }
}
