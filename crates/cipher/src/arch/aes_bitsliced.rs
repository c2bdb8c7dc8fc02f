//! The bit-sliced AES on AVX2 and AVX-512 registers: for CPUs, and for virtual
//! ones, that hide their AES instructions.
//!
//! ```text
//! ymm = slice of blocks 0 2 4 … 62 | slice of blocks 1 3 5 … 63
//! zmm = slice of blocks 0 4 8 … 124 | … | slice of blocks 3 7 11 … 127
//! ```
//!
//! A register is private to its type here, and only methods of the proof make
//! one: so its operators, too, are called on CPUs that have them.

use std::arch::x86_64::*;
use std::ops::{BitAnd, BitXor};

use super::{Avx2, Avx512};
use crate::Backend;
use crate::block::Block;
use crate::block::aes::bitsliced::{Cpu, Key, decrypt, encrypt};

const WHOLE_REGISTER: &str = "a register of blocks";

/// 2 slices on a CPU with AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Ymm(__m256i);

impl BitXor for Ymm {
    type Output = Self;

    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        // SAFETY: the operands exist, so the CPU has AVX2.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }
}

impl BitAnd for Ymm {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        // SAFETY: the operands exist, so the CPU has AVX2.
        Self(unsafe { _mm256_and_si256(self.0, other.0) })
    }
}

impl Cpu for Avx2 {
    const BACKEND: Backend = Backend::Avx2;
    const WIDE: usize = 2;
    type Slice = Ymm;

    fn encrypt(self, keys: &[Key], blocks: &mut [Block]) {
        #[target_feature(enable = "avx2")]
        fn enabled(cpu: Avx2, keys: &[Key], blocks: &mut [Block]) {
            encrypt(cpu, keys, blocks);
        }
        // SAFETY: `self` proves AVX2.
        unsafe { enabled(self, keys, blocks) }
    }

    fn decrypt(self, keys: &[Key], blocks: &mut [Block]) {
        #[target_feature(enable = "avx2")]
        fn enabled(cpu: Avx2, keys: &[Key], blocks: &mut [Block]) {
            decrypt(cpu, keys, blocks);
        }
        // SAFETY: `self` proves AVX2.
        unsafe { enabled(self, keys, blocks) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> Ymm {
        let blocks: &[Block; 2] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX2, and the blocks are borrowed.
        Ymm(unsafe { _mm256_loadu_si256(blocks.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, x: Ymm, blocks: &mut [Block]) {
        let blocks: &mut [Block; 2] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX2, and the blocks are borrowed.
        unsafe { _mm256_storeu_si256(blocks.as_mut_ptr().cast(), x.0) }
    }

    #[inline(always)]
    fn splat(self, slice: u128) -> Ymm {
        let bytes = slice.to_le_bytes();
        // SAFETY: `self` proves AVX2, and the bytes are borrowed.
        Ymm(unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(bytes.as_ptr().cast())) })
    }

    #[inline(always)]
    fn shift_left<const BY: u32>(self, x: Ymm) -> Ymm {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_sll_epi32(x.0, _mm_cvtsi32_si128(BY as i32)) })
    }

    #[inline(always)]
    fn shift_right<const BY: u32>(self, x: Ymm) -> Ymm {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_srl_epi32(x.0, _mm_cvtsi32_si128(BY as i32)) })
    }

    #[inline(always)]
    fn turn_1(self, x: Ymm) -> Ymm {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_shuffle_epi32::<0b00_11_10_01>(x.0) })
    }

    #[inline(always)]
    fn turn_2(self, x: Ymm) -> Ymm {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_shuffle_epi32::<0b01_00_11_10>(x.0) })
    }

    #[inline(always)]
    fn turn_3(self, x: Ymm) -> Ymm {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_shuffle_epi32::<0b10_01_00_11>(x.0) })
    }
}

/// 4 slices on a CPU with AVX-512 F.
#[derive(Clone, Copy)]
pub(crate) struct Zmm(__m512i);

impl BitXor for Zmm {
    type Output = Self;

    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        // SAFETY: the operands exist, so the CPU has AVX-512 F.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }
}

impl BitAnd for Zmm {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        // SAFETY: the operands exist, so the CPU has AVX-512 F.
        Self(unsafe { _mm512_and_si512(self.0, other.0) })
    }
}

impl Cpu for Avx512 {
    const BACKEND: Backend = Backend::Avx512;
    const WIDE: usize = 4;
    type Slice = Zmm;

    fn encrypt(self, keys: &[Key], blocks: &mut [Block]) {
        #[target_feature(enable = "avx512f,avx512vl")]
        fn enabled(cpu: Avx512, keys: &[Key], blocks: &mut [Block]) {
            encrypt(cpu, keys, blocks);
        }
        // SAFETY: `self` proves AVX-512 F.
        unsafe { enabled(self, keys, blocks) }
    }

    fn decrypt(self, keys: &[Key], blocks: &mut [Block]) {
        #[target_feature(enable = "avx512f,avx512vl")]
        fn enabled(cpu: Avx512, keys: &[Key], blocks: &mut [Block]) {
            decrypt(cpu, keys, blocks);
        }
        // SAFETY: `self` proves AVX-512 F.
        unsafe { enabled(self, keys, blocks) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> Zmm {
        let blocks: &[Block; 4] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 F, and the blocks are borrowed.
        Zmm(unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, x: Zmm, blocks: &mut [Block]) {
        let blocks: &mut [Block; 4] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 F, and the blocks are borrowed.
        unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), x.0) }
    }

    #[inline(always)]
    fn splat(self, slice: u128) -> Zmm {
        let bytes = slice.to_le_bytes();
        // SAFETY: `self` proves AVX-512 F, and the bytes are borrowed.
        Zmm(unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(bytes.as_ptr().cast())) })
    }

    #[inline(always)]
    fn shift_left<const BY: u32>(self, x: Zmm) -> Zmm {
        // SAFETY: `self` proves AVX-512 F.
        Zmm(unsafe { _mm512_sll_epi32(x.0, _mm_cvtsi32_si128(BY as i32)) })
    }

    #[inline(always)]
    fn shift_right<const BY: u32>(self, x: Zmm) -> Zmm {
        // SAFETY: `self` proves AVX-512 F.
        Zmm(unsafe { _mm512_srl_epi32(x.0, _mm_cvtsi32_si128(BY as i32)) })
    }

    #[inline(always)]
    fn turn_1(self, x: Zmm) -> Zmm {
        // SAFETY: `self` proves AVX-512 F.
        Zmm(unsafe { _mm512_shuffle_epi32::<0b00_11_10_01>(x.0) })
    }

    #[inline(always)]
    fn turn_2(self, x: Zmm) -> Zmm {
        // SAFETY: `self` proves AVX-512 F.
        Zmm(unsafe { _mm512_shuffle_epi32::<0b01_00_11_10>(x.0) })
    }

    #[inline(always)]
    fn turn_3(self, x: Zmm) -> Zmm {
        // SAFETY: `self` proves AVX-512 F.
        Zmm(unsafe { _mm512_shuffle_epi32::<0b10_01_00_11>(x.0) })
    }
}
