//! Bit-sliced DES and Triple DES in registers of AVX2 and AVX-512: a bit of 256
//! or 512 blocks in each; and [few blocks](serial) one by one.

mod lines;
mod serial;
mod turned;

use std::arch::x86_64::*;

use self::serial::Serial;
use self::turned::Turned;
use super::registers::{Register256, Register512};
use super::{Avx2, Avx512, Avx512Bytes};
use crate::block::Keyed;
use crate::block::des::planes::{Plane, Planes, lower, pass, passes};
use crate::block::des::{Block, Cpu, RoundKey, Rounds, gates, sbox};
use crate::mode::cbc;

const WHOLE_REGISTER: &str = "a register of blocks";

/// Bits of a register of AVX-512.
const LANES: usize = 64 * Register512::WORDS;

impl Cpu for Avx2 {
    fn crypt(self, rounds: Rounds<'_>, blocks: &mut [Block]) {
        passes(64 * Register256::WORDS, blocks, |blocks| {
            // SAFETY: `self` proves AVX2.
            unsafe { pass_avx2(self, rounds, blocks) }
        });
    }
}

impl Cpu for Avx512 {
    fn few(self, keys: &[RoundKey]) -> Option<Keyed<8>> {
        let cpu = Avx512Bytes::detect()?;
        Some(Box::new(Serial::new(cpu, keys)))
    }

    fn crypt(self, rounds: Rounds<'_>, blocks: &mut [Block]) {
        passes(LANES, blocks, |blocks| match Turned::detect(self) {
            // SAFETY: `cpu` proves what it is compiled for.
            Some(cpu) => unsafe { pass_bytes(cpu, rounds, blocks) },
            // SAFETY: `self` proves AVX-512 F and VL.
            None => unsafe { pass_avx512(self, rounds, blocks) },
        });
    }

    fn encrypt_cbc(self, rounds: Rounds<'_>, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        for (ivs, data) in ivs.chunks(LANES).zip(data.chunks_mut(LANES * sector_bytes)) {
            if ivs.len() % 8 != 0 {
                cbc::encrypt(ivs, sector_bytes, data, &|blocks| {
                    self.crypt(rounds, blocks)
                });
                continue;
            }
            match Turned::detect(self) {
                // SAFETY: `cpu` proves what it is compiled for.
                Some(cpu) => unsafe { encrypt_bytes(cpu, rounds, ivs, sector_bytes, data) },
                // SAFETY: `self` proves AVX-512 F and VL.
                None => unsafe { encrypt_avx512(self, rounds, ivs, sector_bytes, data) },
            }
        }
    }

    fn decrypt_cbc(self, rounds: Rounds<'_>, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        match Turned::detect(self) {
            // SAFETY: `cpu` proves what it is compiled for.
            Some(cpu) => unsafe { decrypt_bytes(cpu, rounds, ivs, sector_bytes, data) },
            // SAFETY: `self` proves AVX-512 F and VL.
            None => unsafe { decrypt_avx512(self, rounds, ivs, sector_bytes, data) },
        }
    }
}

#[target_feature(enable = "avx2")]
fn pass_avx2(cpu: Avx2, rounds: Rounds<'_>, blocks: &mut [Block]) {
    pass(cpu, rounds, blocks);
}

#[target_feature(enable = "avx512f,avx512vl")]
fn pass_avx512(cpu: Avx512, rounds: Rounds<'_>, blocks: &mut [Block]) {
    pass(cpu, rounds, blocks);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
fn pass_bytes(cpu: Turned, rounds: Rounds<'_>, blocks: &mut [Block]) {
    pass(cpu, rounds, blocks);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
fn encrypt_bytes(
    cpu: Turned,
    rounds: Rounds<'_>,
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    lines::encrypt(cpu.cpu, cpu, rounds, ivs, sector_bytes, data);
}

#[target_feature(enable = "avx512f,avx512vl")]
fn encrypt_avx512(
    cpu: Avx512,
    rounds: Rounds<'_>,
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    lines::encrypt(cpu, cpu, rounds, ivs, sector_bytes, data);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
fn decrypt_bytes(
    cpu: Turned,
    rounds: Rounds<'_>,
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    lines::decrypt(cpu.cpu, cpu, rounds, ivs, sector_bytes, data);
}

#[target_feature(enable = "avx512f,avx512vl")]
fn decrypt_avx512(
    cpu: Avx512,
    rounds: Rounds<'_>,
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    lines::decrypt(cpu, cpu, rounds, ivs, sector_bytes, data);
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
