//! The registers of x86-64, one file for each width. Each file lists by name the operations that
//! are a single instruction.

mod x86_128;
mod x86_256;
mod x86_512;

use self::x86_128::Narrow;
pub(crate) use self::x86_128::Sse2;
pub(super) use self::{x86_256::exchange, x86_512::columns};

/// Methods that fill a register, and that move words within their lane: the same
/// instructions at every width, by their prefix's last letters.
macro_rules! words {
    (
        $broadcast:expr, $set_words:ident, $set_pairs:ident,
        $multiply:ident, $down:ident, $shuffle:ident,
        $low_words:ident, $high_words:ident, $low_pairs:ident, $high_pairs:ident
    ) => {
        #[inline(always)]
        fn splat(self, lane: [u32; 4]) -> Self::Vector {
            // SAFETY: `self` proves that the CPU has them, and the lane is borrowed.
            unsafe { $broadcast(_mm_loadu_si128(lane.as_ptr().cast())) }
        }

        #[inline(always)]
        fn splat_word(self, word: u32) -> Self::Vector {
            // SAFETY: `self` proves that the CPU has it.
            unsafe { $set_words(word as i32) }
        }

        #[inline(always)]
        fn splat_pair(self, pair: u64) -> Self::Vector {
            // SAFETY: `self` proves that the CPU has it.
            unsafe { $set_pairs(pair as i64) }
        }

        #[inline(always)]
        fn multiply_pairs(self, x: Self::Vector) -> Self::Vector {
            // Factors are the even words.
            // SAFETY: `self` proves that the CPU has them.
            unsafe { $multiply(x, $down::<32>(x)) }
        }

        #[inline(always)]
        fn swap_middle(self, x: Self::Vector) -> Self::Vector {
            // SAFETY: `self` proves that the CPU has it.
            unsafe { $shuffle::<0b11_01_10_00>(x) }
        }

        #[inline(always)]
        fn turn<const BY: i32>(self, x: Self::Vector) -> Self::Vector {
            // SAFETY: `self` proves that the CPU has it.
            unsafe {
                match BY {
                    1 => $shuffle::<0b00_11_10_01>(x),
                    2 => $shuffle::<0b01_00_11_10>(x),
                    _ => $shuffle::<0b10_01_00_11>(x),
                }
            }
        }

        #[inline(always)]
        fn transpose(self, [a, b, c, d]: [Self::Vector; 4]) -> [Self::Vector; 4] {
            // SAFETY: `self` proves that the CPU has them.
            unsafe {
                let (ab01, ab23) = ($low_words(a, b), $high_words(a, b));
                let (cd01, cd23) = ($low_words(c, d), $high_words(c, d));
                [
                    $low_pairs(ab01, cd01),
                    $high_pairs(ab01, cd01),
                    $low_pairs(ab23, cd23),
                    $high_pairs(ab23, cd23),
                ]
            }
        }
    };
}

use words;
