//! Registers of AVX2 and AVX-512 for bit-sliced ciphers, each with the proof
//! that there is one: whoever holds the value may compute with it.

use std::arch::x86_64::*;
use std::ops::{BitAnd, BitOr, BitXor, BitXorAssign, Not};

use super::{Avx2, Avx512};
use crate::block::gates::Gate;

/// A register of AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Register256 {
    pub(super) x: __m256i,
    pub(super) cpu: Avx2,
}

impl BitXor for Register256 {
    type Output = Self;

    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        // SAFETY: the register proves AVX2.
        let x = unsafe { _mm256_xor_si256(self.x, other.x) };
        Self { x, ..self }
    }
}

impl BitXorAssign for Register256 {
    #[inline(always)]
    fn bitxor_assign(&mut self, other: Self) {
        *self = *self ^ other;
    }
}

impl BitAnd for Register256 {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        // SAFETY: the register proves AVX2.
        let x = unsafe { _mm256_and_si256(self.x, other.x) };
        Self { x, ..self }
    }
}

impl BitOr for Register256 {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        // SAFETY: the register proves AVX2.
        let x = unsafe { _mm256_or_si256(self.x, other.x) };
        Self { x, ..self }
    }
}

impl Not for Register256 {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        // SAFETY: the register proves AVX2.
        let x = unsafe { _mm256_xor_si256(self.x, _mm256_set1_epi64x(-1)) };
        Self { x, ..self }
    }
}

/// A register of AVX-512.
#[derive(Clone, Copy)]
pub(crate) struct Register512 {
    pub(super) x: __m512i,
    pub(super) cpu: Avx512,
}

impl BitXor for Register512 {
    type Output = Self;

    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        // SAFETY: the register proves AVX-512 F.
        let x = unsafe { _mm512_xor_si512(self.x, other.x) };
        Self { x, ..self }
    }
}

impl Gate for Register512 {
    #[inline(always)]
    fn gate<const TABLE: i32>(x: Self, y: Self, z: Self) -> Self {
        // SAFETY: the registers prove AVX-512 F.
        let result = unsafe { _mm512_ternarylogic_epi32::<TABLE>(x.x, y.x, z.x) };
        Self { x: result, ..x }
    }
}

/// A register of 128 bits with the instructions of AVX-512 for that length.
#[derive(Clone, Copy)]
pub(crate) struct Register128 {
    pub(super) x: __m128i,
    #[expect(dead_code, reason = "the proof is what it is for")]
    pub(super) cpu: Avx512,
}

impl BitXor for Register128 {
    type Output = Self;

    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        // SAFETY: the register proves AVX-512 VL.
        let x = unsafe { _mm_xor_si128(self.x, other.x) };
        Self { x, ..self }
    }
}

impl Gate for Register128 {
    #[inline(always)]
    fn gate<const TABLE: i32>(x: Self, y: Self, z: Self) -> Self {
        // SAFETY: the registers prove AVX-512 VL.
        let result = unsafe { _mm_ternarylogic_epi32::<TABLE>(x.x, y.x, z.x) };
        Self { x: result, ..x }
    }
}
