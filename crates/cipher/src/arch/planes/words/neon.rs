//! Words in NEON registers: those of 16 blocks in planes for look-ups, or of 4 in
//! words.

use std::arch::aarch64::*;

use crate::arch::Neon;
use crate::block::planes::Planes;
use crate::block::planes::words::{InFourWords, Rows, WordTable, Words};

impl Words for Neon {
    const ROWS: Rows = Rows::Plain;
    const PAIRS: bool = false;
    type Groups<const G: usize> = InFourWords<Self, G>;

    fn groups<const G: usize>(self) -> InFourWords<Self, G> {
        InFourWords(self)
    }

    /// As [`look_up`](Planes::look_up), of four planes at once.
    #[inline(always)]
    fn look_up_planes<const G: usize>(
        self,
        table: &WordTable,
        x: [uint8x16_t; G],
    ) -> [[uint8x16_t; 4]; G] {
        let planes = table.planes();
        x.map(|x| planes.each_ref().map(|plane| self.look_up_byte(plane, x)))
    }

    /// A row of TBX is 16 entries of four bytes each, which the lower four bits
    /// times four, and 0 to 3, number. In rows that are not meant the upper four
    /// do not vanish, and all is too large a number.
    #[inline(always)]
    fn look_up_words(self, table: &WordTable, x: uint8x16_t, byte: usize) -> uint8x16_t {
        let b = byte as u8;
        let everywhere = [
            b,
            b,
            b,
            b,
            b + 4,
            b + 4,
            b + 4,
            b + 4,
            b + 8,
            b + 8,
            b + 8,
            b + 8,
            b + 12,
            b + 12,
            b + 12,
            b + 12,
        ];
        let x = self.shuffle(x, &everywhere);
        let nth_byte = self.splat(u32::from_le_bytes([0, 1, 2, 3]));
        let mut found = x;
        for (nth, row) in (0_u8..).zip(table.words().as_chunks::<16>().0) {
            // SAFETY: `self` proves NEON, and 16 words are borrowed.
            unsafe {
                let entry = vqshlq_n_u8::<2>(veorq_u8(x, vdupq_n_u8(16 * nth)));
                let row = vld1q_u8_x4(row.as_ptr().cast());
                found = vqtbx4q_u8(found, row, self.or(entry, nth_byte));
            }
        }
        found
    }

    #[inline(always)]
    fn subtract_words(self, x: uint8x16_t, y: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves NEON.
        unsafe {
            let (x, y) = (vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(y));
            vreinterpretq_u8_u32(vsubq_u32(x, y))
        }
    }
}
