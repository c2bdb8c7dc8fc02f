//! The registers of 128 bits of AVX-512, for one to four blocks. With nothing
//! beside them a round waits for itself: one that ends soon is better here than
//! one with few instructions.

use std::arch::x86_64::*;

use super::super::Avx512;
use super::super::registers::Register128;
use super::WHOLE_REGISTER;
use crate::block::Block;
use crate::block::gates::Gate;
use crate::block::serpent::vectors::Vectors;
use crate::block::serpent::words::{self, Word};
use crate::block::serpent::{RoundKeys, gates, shallow};
use crate::work::Work;

/// The registers of 128 bits of [`Avx512`].
#[derive(Clone, Copy)]
pub(super) struct Narrow(pub(super) Avx512);

impl Vectors for Narrow {
    const BLOCKS: usize = 1;
    type Word = Register128;

    fn enter<W: Work<Self>>(self, work: W) {
        #[target_feature(enable = "avx512f,avx512vl")]
        #[inline(never)]
        fn enabled<W: Work<Narrow>>(cpu: Narrow, work: W) {
            work.run(cpu);
        }
        // SAFETY: `self` proves AVX-512 F and VL.
        unsafe { enabled(self, work) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> Register128 {
        let block: &Block = blocks.first().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 VL, and the block is borrowed.
        let x = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
        Register128 { x, cpu: self.0 }
    }

    #[inline(always)]
    fn store(self, x: Register128, blocks: &mut [Block]) {
        let block: &mut Block = blocks.first_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 VL, and the block is borrowed.
        unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), x.x) }
    }

    #[inline(always)]
    fn splat(self, word: u32) -> Register128 {
        // SAFETY: `self` proves AVX-512 VL.
        let x = unsafe { _mm_set1_epi32(word as i32) };
        Register128 { x, cpu: self.0 }
    }

    #[inline(always)]
    fn transpose(self, [a, b, c, d]: [Register128; 4]) -> [Register128; 4] {
        // SAFETY: `self` proves AVX-512 VL.
        let columns = unsafe {
            let ab01 = _mm_unpacklo_epi32(a.x, b.x);
            let ab23 = _mm_unpackhi_epi32(a.x, b.x);
            let cd01 = _mm_unpacklo_epi32(c.x, d.x);
            let cd23 = _mm_unpackhi_epi32(c.x, d.x);
            [
                _mm_unpacklo_epi64(ab01, cd01),
                _mm_unpackhi_epi64(ab01, cd01),
                _mm_unpacklo_epi64(ab23, cd23),
                _mm_unpackhi_epi64(ab23, cd23),
            ]
        };
        columns.map(|x| Register128 { x, cpu: self.0 })
    }

    #[inline(always)]
    fn blocks_of_lines(self, x: [Register128; 4]) -> [Register128; 4] {
        x
    }

    #[inline(always)]
    fn lines_of_blocks(self, x: [Register128; 4]) -> [Register128; 4] {
        x
    }

    #[inline(always)]
    fn encrypt_alone(self, keys: &RoundKeys, x: [Register128; 4]) -> [Register128; 4] {
        let key = |round: usize| keys[round].map(|word| self.splat(word));
        let mut x = words::add(x, key(0));
        for octet in 0..3 {
            let at = 8 * octet;
            x = mix(self, shallow::forward::<0, _>(x), key(at + 1));
            x = mix(self, shallow::forward::<1, _>(x), key(at + 2));
            x = mix(self, shallow::forward::<2, _>(x), key(at + 3));
            x = mix(self, shallow::forward::<3, _>(x), key(at + 4));
            x = mix(self, shallow::forward::<4, _>(x), key(at + 5));
            x = mix(self, shallow::forward::<5, _>(x), key(at + 6));
            x = mix(self, shallow::forward::<6, _>(x), key(at + 7));
            x = mix(self, shallow::forward::<7, _>(x), key(at + 8));
        }
        x = mix(self, shallow::forward::<0, _>(x), key(25));
        x = mix(self, shallow::forward::<1, _>(x), key(26));
        x = mix(self, shallow::forward::<2, _>(x), key(27));
        x = mix(self, shallow::forward::<3, _>(x), key(28));
        x = mix(self, shallow::forward::<4, _>(x), key(29));
        x = mix(self, shallow::forward::<5, _>(x), key(30));
        x = mix(self, shallow::forward::<6, _>(x), key(31));
        words::add(shallow::forward::<7, _>(x), key(32))
    }
}

/// The linear transformation, section 3.2, and the key of the next round.
///
/// A rotation takes two cycles, so the two that end the transformation are made
/// of what they would rotate, each part on its own, and the key joins the part
/// that is there first. A shift takes one: the last of them is made of two.
#[inline(always)]
fn mix(cpu: Narrow, [a, b, c, d]: [Register128; 4], key: [Register128; 4]) -> [Register128; 4] {
    let c3 = c.rotate::<3>();
    let b1 = sum(b, a.rotate::<13>(), c3);
    let d1 = masked(d ^ c3, a.rotate::<16>(), cpu.splat(!0 << 3));
    let a2 = sum(
        a.rotate::<18>() ^ key[0],
        b1.rotate::<6>(),
        d1.rotate::<12>(),
    );
    let c2 = sum(c.rotate::<25>() ^ key[2], d1.shift::<29>(), down::<3>(d1));
    let c2 = masked(
        c2,
        b1.rotate::<30>(),
        cpu.splat((!0u32 << 7).rotate_left(22)),
    );
    [a2, b1.rotate::<1>() ^ key[1], c2, d1.rotate::<7>() ^ key[3]]
}

/// The sum of three words.
#[inline(always)]
fn sum(x: Register128, y: Register128, z: Register128) -> Register128 {
    Register128::gate::<0x96>(x, y, z)
}

/// `x` + `y` where `mask` has ones.
#[inline(always)]
fn masked(x: Register128, y: Register128, mask: Register128) -> Register128 {
    Register128::gate::<0x78>(x, y, mask)
}

/// Shifts every word to the right.
#[inline(always)]
fn down<const BY: i32>(x: Register128) -> Register128 {
    // SAFETY: the register proves AVX-512 VL.
    let shifted = unsafe { _mm_srli_epi32::<BY>(x.x) };
    Register128 { x: shifted, ..x }
}

impl Word for Register128 {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self) -> Self {
        // SAFETY: the register proves AVX-512 VL.
        let x = unsafe { _mm_rol_epi32::<BY>(self.x) };
        Self { x, ..self }
    }

    #[inline(always)]
    fn shift<const BY: i32>(self) -> Self {
        // SAFETY: the register proves AVX-512 VL.
        let x = unsafe { _mm_slli_epi32::<BY>(self.x) };
        Self { x, ..self }
    }

    #[inline(always)]
    fn forward<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        gates::forward::<I, Self>(x)
    }

    #[inline(always)]
    fn inverse<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        gates::inverse::<I, Self>(x)
    }
}
