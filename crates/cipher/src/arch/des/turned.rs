//! Planes by the shuffles of bytes of AVX-512 VBMI and the bit matrices of GFNI.
//!
//! ```text
//! eight blocks      byte 8b' + b       byte b of block b'
//! shuffled          byte 8b + b'       byte b of block b'
//! turned, a row     byte 8b + 7 - i    bit i of byte b, of all eight blocks
//! transposed        row  8b + 7 - i    byte r is byte 8b + 7 - i of row r
//! ```
//!
//! The shuffle is part of the first halving, so that is one operation for a row, and two for a
//! halving of two rows, which by bits takes four. That rows are planes in another order costs
//! nothing, and neither does that of blocks in a byte: turning twice gives what was there.
//!
//! `vpermi2b` could do every halving, but is three operations on Intel's CPUs. What interleaves
//! bytes, pairs and words is one everywhere. It moves bytes besides, in every 16 of a row, so
//! that the way back is another one:
//!
//! ```text
//! bits of a byte's place     3 2 1 0       a, b, c, d: which of two rows 8, 4, 2, 1 apart
//! there: bytes               2 1 0 a       bit 3 says that of the rows 8 apart now
//!        pairs               1 0 b a       bit 2 that of the rows 4 apart
//!        pairs, pairs        b c d a
//! back:  bytes               c d a 2
//!        bytes, bytes        a 2 1 0
//!        words               3 2 1 0
//! ```

use std::arch::x86_64::*;

use super::WHOLE_REGISTER;
use crate::arch::registers::Register512;
use crate::arch::{Avx512, Avx512Bytes};
use crate::block::des::planes::{Plane, Planes};
use crate::block::des::{Block, gates};

/// A CPU that has both.
#[derive(Clone, Copy)]
pub(super) struct Turned {
    pub(super) cpu: Avx512,
    bytes: Avx512Bytes,
}

/// A register whose rows are transposed by bytes.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    x: Register512,
    bytes: Avx512Bytes,
}

impl Turned {
    pub(super) fn detect(cpu: Avx512) -> Option<Self> {
        let bytes = Avx512Bytes::detect()?;
        Some(Self { cpu, bytes })
    }

    #[inline(always)]
    fn of(self, x: __m512i) -> Bytes {
        let x = Register512 { x, cpu: self.cpu };
        let bytes = self.bytes;
        Bytes { x, bytes }
    }
}

impl Planes for Turned {
    type Plane = Bytes;

    const MIRRORED: usize = 7;

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> Bytes {
        let blocks: &[Block; 8] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 F, and the blocks are borrowed.
        self.of(unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, x: Bytes, blocks: &mut [Block]) {
        let blocks: &mut [Block; 8] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 F, and the blocks are borrowed.
        unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), x.x.x) }
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Bytes {
        // SAFETY: `self` proves AVX-512 F.
        self.of(unsafe { _mm512_set1_epi64(word as i64) })
    }
}

impl Plane for Bytes {
    const WORDS: usize = 8;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let x = self.x ^ other.x;
        Self { x, ..self }
    }

    #[inline(always)]
    fn substitute<const S: usize>(x: [Self; 6]) -> [Self; 4] {
        let bytes = x[0].bytes;
        let [a, b, c, d, e, f] = x;
        let [a, b, c, d] = gates::substitute::<S, _>([a.x, b.x, c.x, d.x, e.x, f.x]);
        [
            Self { x: a, bytes },
            Self { x: b, bytes },
            Self { x: c, bytes },
            Self { x: d, bytes },
        ]
    }

    #[inline(always)]
    fn exchange<const WIDTH: u32>(x: Self, y: Self) -> [Self; 2] {
        match WIDTH {
            16 => Self::exchange_lanes(x, y),
            8 => Self::interleave_bytes(x, y),
            _ => Self::interleave_pairs(x, y),
        }
    }

    #[inline(always)]
    fn exchange_back<const WIDTH: u32>(x: Self, y: Self) -> [Self; 2] {
        match WIDTH {
            16 => Self::exchange_lanes(x, y),
            8 => Self::interleave_words(x, y),
            _ => Self::interleave_bytes(x, y),
        }
    }

    #[inline(always)]
    fn spread(x: Self, y: Self) -> [Self; 2] {
        [
            Self::select(x, const { &columns_of(halves(0)) }, y).turn(),
            Self::select(x, const { &columns_of(halves(32)) }, y).turn(),
        ]
    }

    #[inline(always)]
    fn gather(x: Self, y: Self) -> [Self; 2] {
        let (x, y) = (x.turn(), y.turn());
        [
            Self::select(x, const { &by_columns(halves(0)) }, y),
            Self::select(x, const { &by_columns(halves(32)) }, y),
        ]
    }
}

impl Bytes {
    #[inline(always)]
    fn exchange_lanes(x: Self, y: Self) -> [Self; 2] {
        // SAFETY: the registers prove AVX-512 F.
        unsafe {
            let lower = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
            let upper = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
            [
                x.with(_mm512_permutex2var_epi64(x.x.x, lower, y.x.x)),
                x.with(_mm512_permutex2var_epi64(x.x.x, upper, y.x.x)),
            ]
        }
    }

    #[inline(always)]
    fn interleave_bytes(x: Self, y: Self) -> [Self; 2] {
        // SAFETY: the registers prove AVX-512 BW.
        unsafe {
            [
                x.with(_mm512_unpacklo_epi8(x.x.x, y.x.x)),
                x.with(_mm512_unpackhi_epi8(x.x.x, y.x.x)),
            ]
        }
    }

    #[inline(always)]
    fn interleave_pairs(x: Self, y: Self) -> [Self; 2] {
        // SAFETY: the registers prove AVX-512 BW.
        unsafe {
            [
                x.with(_mm512_unpacklo_epi16(x.x.x, y.x.x)),
                x.with(_mm512_unpackhi_epi16(x.x.x, y.x.x)),
            ]
        }
    }

    #[inline(always)]
    fn interleave_words(x: Self, y: Self) -> [Self; 2] {
        // SAFETY: the registers prove AVX-512 F.
        unsafe {
            [
                x.with(_mm512_unpacklo_epi64(x.x.x, y.x.x)),
                x.with(_mm512_unpackhi_epi64(x.x.x, y.x.x)),
            ]
        }
    }

    #[inline(always)]
    fn with(self, x: __m512i) -> Self {
        let x = Register512 { x, ..self.x };
        Self { x, ..self }
    }

    /// The bytes of `x` and, from 64 on, of `y` at `indices`.
    #[inline(always)]
    fn select(x: Self, indices: &[u8; 64], y: Self) -> Self {
        // SAFETY: the registers prove AVX-512 VBMI, and the indices are borrowed.
        let selected = unsafe {
            let indices = _mm512_loadu_si512(indices.as_ptr().cast());
            _mm512_permutex2var_epi8(x.x.x, indices, y.x.x)
        };
        x.with(selected)
    }

    /// Bit `i` of byte `7 - j` becomes bit `j` of byte `7 - i`, in every word.
    #[inline(always)]
    fn turn(self) -> Self {
        // SAFETY: the register proves AVX-512 with GFNI.
        let turned = unsafe {
            let bits = _mm512_set1_epi64(0x0102_0408_1020_4080);
            _mm512_gf2p8affine_epi64_epi8::<0>(bits, self.x.x)
        };
        self.with(turned)
    }
}

/// Byte `b` of each word after another.
const COLUMNS: [u8; 64] = {
    let mut indices = [0; 64];
    let mut i = 0;
    while i < 64 {
        indices[i] = (8 * (i % 8) + i / 8) as u8;
        i += 1;
    }
    indices
};

/// Where `indices` finds its bytes before the shuffle that they are in.
const fn columns_of(mut indices: [u8; 64]) -> [u8; 64] {
    let mut i = 0;
    while i < 64 {
        let index = indices[i];
        indices[i] = index & 64 | COLUMNS[(index & 63) as usize];
        i += 1;
    }
    indices
}

/// The shuffle of what is at `indices`.
const fn by_columns(indices: [u8; 64]) -> [u8; 64] {
    let mut shuffled = [0; 64];
    let mut i = 0;
    while i < 64 {
        shuffled[i] = indices[COLUMNS[i] as usize];
        i += 1;
    }
    shuffled
}

/// The half at `which` of two registers, the second's behind the first's.
const fn halves(which: u8) -> [u8; 64] {
    let mut indices = [0; 64];
    let mut i = 0;
    while i < 64 {
        let at = i as u8 & !32 | which;
        indices[i] = if i < 32 { at } else { 64 | at };
        i += 1;
    }
    indices
}
