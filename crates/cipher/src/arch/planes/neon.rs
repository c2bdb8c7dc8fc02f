//! Byte planes of 16 blocks.

use std::arch::aarch64::*;

use super::Table;
use crate::arch::Neon;
use crate::arch::instructions::{binary, enter};
use crate::block::Block;
use crate::block::planes::linear::{Linear, Nibbles, of_nibbles};
use crate::block::planes::{LINE, Lines, Planes, tower};
use crate::block::registers::WHOLE_REGISTER;
use crate::work::Work;

impl Planes for Neon {
    const WIDE: usize = 16;
    const FROM_AES_FIELD: Linear = tower::FROM_AES;
    const INVERTS_AT_ONCE: bool = false;
    type Vector = uint8x16_t;
    type Table = Table;
    type Map = [Nibbles; 2];
    type InverseMap = [Nibbles; 2];

    fn table(bytes: &[u8; 256]) -> Table {
        Table(*bytes)
    }

    fn map(map: &Linear) -> [Nibbles; 2] {
        of_nibbles(map)
    }

    fn inverse_map(map: &Linear) -> [Nibbles; 2] {
        tower::after_inversion(map)
    }

    enter!("neon");

    #[inline(always)]
    fn load(self, bytes: &[u8]) -> uint8x16_t {
        let bytes: &[u8; 16] = bytes.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves NEON, and the bytes are borrowed.
        unsafe { vld1q_u8(bytes.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, x: uint8x16_t, bytes: &mut [u8]) {
        let bytes: &mut [u8; 16] = bytes.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves NEON, and the bytes are borrowed.
        unsafe { vst1q_u8(bytes.as_mut_ptr(), x) }
    }

    binary! { xor: veorq_u8, and: vandq_u8, or: vorrq_u8 }

    #[inline(always)]
    fn splat(self, word: u32) -> uint8x16_t {
        // SAFETY: `self` proves NEON.
        unsafe { vreinterpretq_u8_u32(vdupq_n_u32(word)) }
    }

    #[inline(always)]
    fn splat_words(self, words: [u32; 4]) -> uint8x16_t {
        // SAFETY: `self` proves NEON, and the words are borrowed.
        unsafe { vreinterpretq_u8_u32(vld1q_u32(words.as_ptr())) }
    }

    #[inline(always)]
    fn xor3(self, x: uint8x16_t, y: uint8x16_t, z: uint8x16_t) -> uint8x16_t {
        self.xor(self.xor(x, y), z)
    }

    #[inline(always)]
    fn and_not(self, x: uint8x16_t, y: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves NEON.
        unsafe { vbicq_u8(y, x) }
    }

    #[inline(always)]
    fn look_up(self, table: &Table, x: uint8x16_t) -> uint8x16_t {
        self.look_up_byte(&table.0, x)
    }

    #[inline(always)]
    fn look_up_nibble(self, table: &Nibbles, x: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves NEON, and the table is borrowed.
        unsafe { vqtbl1q_u8(vld1q_u8(table.as_ptr()), x) }
    }

    #[inline(always)]
    fn upper_nibble(self, x: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves NEON.
        unsafe { vshrq_n_u8::<4>(x) }
    }

    #[inline(always)]
    fn lower_nibble(self, x: uint8x16_t) -> uint8x16_t {
        self.and(x, self.splat(0x0f0f_0f0f))
    }

    #[inline(always)]
    fn linear(self, [lower, upper]: &[Nibbles; 2], x: uint8x16_t) -> uint8x16_t {
        self.xor(
            self.look_up_nibble(lower, self.lower_nibble(x)),
            self.look_up_nibble(upper, self.upper_nibble(x)),
        )
    }

    #[inline(always)]
    fn invert(self, map: &[Nibbles; 2], x: uint8x16_t) -> uint8x16_t {
        tower::invert(self, map, x)
    }

    #[inline(always)]
    fn add_words(self, x: uint8x16_t, y: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves NEON.
        unsafe {
            let (x, y) = (vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(y));
            vreinterpretq_u8_u32(vaddq_u32(x, y))
        }
    }

    #[inline(always)]
    fn rotate_each_word(self, x: uint8x16_t, by: uint8x16_t) -> uint8x16_t {
        // A negative shift to the left goes to the right, and one by all 32 bits
        // gives zero, as it has to.
        // SAFETY: `self` proves NEON.
        unsafe {
            let (x, by) = (vreinterpretq_u32_u8(x), vreinterpretq_s32_u8(by));
            let right = vsubq_s32(by, vdupq_n_s32(32));
            vreinterpretq_u8_u32(vorrq_u32(vshlq_u32(x, by), vshlq_u32(x, right)))
        }
    }

    #[inline(always)]
    fn interleave_bytes(self, x: uint8x16_t, y: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: `self` proves NEON.
        unsafe { [vzip1q_u8(x, y), vzip2q_u8(x, y)] }
    }

    #[inline(always)]
    fn interleave_pairs(self, x: uint8x16_t, y: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: `self` proves NEON.
        unsafe {
            let (x, y) = (vreinterpretq_u16_u8(x), vreinterpretq_u16_u8(y));
            [
                vreinterpretq_u8_u16(vzip1q_u16(x, y)),
                vreinterpretq_u8_u16(vzip2q_u16(x, y)),
            ]
        }
    }

    #[inline(always)]
    fn interleave_words(self, x: uint8x16_t, y: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: `self` proves NEON.
        unsafe {
            let (x, y) = (vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(y));
            [
                vreinterpretq_u8_u32(vzip1q_u32(x, y)),
                vreinterpretq_u8_u32(vzip2q_u32(x, y)),
            ]
        }
    }

    #[inline(always)]
    fn interleave_halves(self, x: uint8x16_t, y: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: `self` proves NEON.
        unsafe {
            let (x, y) = (vreinterpretq_u64_u8(x), vreinterpretq_u64_u8(y));
            [
                vreinterpretq_u8_u64(vzip1q_u64(x, y)),
                vreinterpretq_u8_u64(vzip2q_u64(x, y)),
            ]
        }
    }

    #[inline(always)]
    fn shuffle(self, x: uint8x16_t, from: &[u8; 16]) -> uint8x16_t {
        // SAFETY: `self` proves NEON, and the numbers are borrowed.
        unsafe { vqtbl1q_u8(x, vld1q_u8(from.as_ptr())) }
    }

    #[inline(always)]
    fn first_tweaks(self, tweak: &Block) -> [uint8x16_t; 8] {
        let mut tweaks = [self.load(tweak); 8];
        for i in 1..8 {
            tweaks[i] = self.times_x(tweaks[i - 1]);
        }
        tweaks
    }

    #[inline(always)]
    fn next_tweaks(self, mut tweaks: [uint8x16_t; 8]) -> [uint8x16_t; 8] {
        for tweak in &mut tweaks {
            *tweak = self.times_x8(*tweak);
        }
        tweaks
    }

    #[inline(always)]
    fn load_lines(self, data: &[u8], lines: &Lines) -> [uint8x16_t; 4] {
        let line = &data[lines[0]..][..LINE];
        [
            self.load(line),
            self.load(&line[16..]),
            self.load(&line[32..]),
            self.load(&line[48..]),
        ]
    }

    #[inline(always)]
    fn store_lines(self, x: [uint8x16_t; 4], data: &mut [u8], lines: &Lines, count: usize) {
        if count > 0 {
            let line = &mut data[lines[0]..][..LINE];
            for (i, x) in x.into_iter().enumerate() {
                self.store(x, &mut line[16 * i..]);
            }
        }
    }
}

impl Neon {
    /// The byte of `table` for every byte.
    ///
    /// TBL takes numbers below 64: in each quarter of the table the others give
    /// zero or, with TBX, what was found before.
    #[inline(always)]
    pub(super) fn look_up_byte(self, table: &[u8; 256], x: uint8x16_t) -> uint8x16_t {
        let (quarters, _) = table.as_chunks::<64>();
        // SAFETY: `self` proves NEON, and the table is borrowed.
        unsafe {
            let mut found = vqtbl4q_u8(vld1q_u8_x4(quarters[0].as_ptr()), x);
            for (nth, quarter) in (0_u8..4).zip(quarters).skip(1) {
                let quarter = vld1q_u8_x4(quarter.as_ptr());
                found = vqtbx4q_u8(found, quarter, veorq_u8(x, vdupq_n_u8(64 * nth)));
            }
            found
        }
    }
}
