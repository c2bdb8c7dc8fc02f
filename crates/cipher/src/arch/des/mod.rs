//! Bit-sliced DES and Triple DES in registers of AVX2 and AVX-512: a bit of 256
//! or 512 blocks in each; and [few blocks](serial) one by one.

mod serial;

use std::arch::x86_64::*;

use self::serial::Serial;
use super::registers::{Register256, Register512};
use super::{Avx2, Avx512, Avx512Bytes};
use crate::Backend;
use crate::block::des::planes::{Plane, Planes, crypt, lower};
use crate::block::des::{Block, Cpu, Few, RoundKey, gates, sbox};

const WHOLE_REGISTER: &str = "a register of blocks";

impl Cpu for Avx2 {
    const BACKEND: Backend = Backend::Avx2;

    fn encrypt(self, keys: &[RoundKey], blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX2.
        unsafe { encrypt_avx2(self, keys, blocks) }
    }

    fn decrypt(self, keys: &[RoundKey], blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX2.
        unsafe { decrypt_avx2(self, keys, blocks) }
    }
}

impl Cpu for Avx512 {
    const BACKEND: Backend = Backend::Avx512;

    fn few(self, keys: &[RoundKey]) -> Option<Box<dyn Few>> {
        let cpu = Avx512Bytes::detect()?;
        Some(Box::new(Serial::new(cpu, keys)))
    }

    fn encrypt(self, keys: &[RoundKey], blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX-512 F and VL.
        unsafe { encrypt_avx512(self, keys, blocks) }
    }

    fn decrypt(self, keys: &[RoundKey], blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX-512 F and VL.
        unsafe { decrypt_avx512(self, keys, blocks) }
    }
}

#[target_feature(enable = "avx2")]
fn encrypt_avx2(cpu: Avx2, keys: &[RoundKey], blocks: &mut [Block]) {
    crypt::<true, _>(cpu, keys, blocks);
}

#[target_feature(enable = "avx2")]
fn decrypt_avx2(cpu: Avx2, keys: &[RoundKey], blocks: &mut [Block]) {
    crypt::<false, _>(cpu, keys, blocks);
}

#[target_feature(enable = "avx512f,avx512vl")]
fn encrypt_avx512(cpu: Avx512, keys: &[RoundKey], blocks: &mut [Block]) {
    crypt::<true, _>(cpu, keys, blocks);
}

#[target_feature(enable = "avx512f,avx512vl")]
fn decrypt_avx512(cpu: Avx512, keys: &[RoundKey], blocks: &mut [Block]) {
    crypt::<false, _>(cpu, keys, blocks);
}

impl Planes for Avx2 {
    type Plane = Register256;

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> Register256 {
        let blocks: &[Block; 4] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX2, and the blocks are borrowed.
        let x = unsafe { _mm256_loadu_si256(blocks.as_ptr().cast()) };
        Register256 { x, cpu: self }
    }

    #[inline(always)]
    fn store(self, x: Register256, blocks: &mut [Block]) {
        let blocks: &mut [Block; 4] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX2, and the blocks are borrowed.
        unsafe { _mm256_storeu_si256(blocks.as_mut_ptr().cast(), x.x) }
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Register256 {
        // SAFETY: `self` proves AVX2.
        let x = unsafe { _mm256_set1_epi64x(word as i64) };
        Register256 { x, cpu: self }
    }
}

impl Plane for Register256 {
    const WORDS: usize = 4;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn substitute<const S: usize>(x: [Self; 6]) -> [Self; 4] {
        sbox::substitute::<S, Self>(x)
    }

    #[inline(always)]
    fn exchange<const WIDTH: u32>(x: Self, y: Self) -> [Self; 2] {
        let width = WIDTH as i32;
        let lower = x.cpu.splat(lower(WIDTH));
        // SAFETY: the register proves AVX2.
        let down = unsafe { _mm256_srl_epi64(x.x, _mm_cvtsi32_si128(width)) };
        let difference = (Self { x: down, ..x } ^ y) & lower;
        // SAFETY: the register proves AVX2.
        let up = unsafe { _mm256_sll_epi64(difference.x, _mm_cvtsi32_si128(width)) };
        [x ^ Self { x: up, ..x }, y ^ difference]
    }
}

impl Planes for Avx512 {
    type Plane = Register512;

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> Register512 {
        let blocks: &[Block; 8] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 F, and the blocks are borrowed.
        let x = unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) };
        Register512 { x, cpu: self }
    }

    #[inline(always)]
    fn store(self, x: Register512, blocks: &mut [Block]) {
        let blocks: &mut [Block; 8] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 F, and the blocks are borrowed.
        unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), x.x) }
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Register512 {
        // SAFETY: `self` proves AVX-512 F.
        let x = unsafe { _mm512_set1_epi64(word as i64) };
        Register512 { x, cpu: self }
    }
}

impl Plane for Register512 {
    const WORDS: usize = 8;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn substitute<const S: usize>(x: [Self; 6]) -> [Self; 4] {
        gates::substitute::<S, Self>(x)
    }

    #[inline(always)]
    fn exchange<const WIDTH: u32>(x: Self, y: Self) -> [Self; 2] {
        /// The third where the second has a one, else the first.
        const CHOOSE: i32 = 0b1011_1000;
        let width = WIDTH as i32;
        let (low, high) = (
            x.cpu.splat(lower(WIDTH)),
            x.cpu.splat(lower(WIDTH) << WIDTH),
        );
        // SAFETY: the registers prove AVX-512 F.
        unsafe {
            let down = _mm512_srl_epi64(x.x, _mm_cvtsi32_si128(width));
            let up = _mm512_sll_epi64(y.x, _mm_cvtsi32_si128(width));
            let new_x = _mm512_ternarylogic_epi64::<CHOOSE>(x.x, high.x, up);
            let new_y = _mm512_ternarylogic_epi64::<CHOOSE>(y.x, low.x, down);
            [Self { x: new_x, ..x }, Self { x: new_y, ..y }]
        }
    }
}
