//! Planes by the shuffles of bytes of AVX-512 VBMI and the bit matrices of GFNI.
//!
//! ```text
//! eight blocks      byte 8b' + b       byte b of block b'
//! shuffled          byte 8b + b'       byte b of block b'
//! turned, a row     byte 8b + 7 - i    bit i of byte b, of all eight blocks
//! transposed        row  8b + 7 - i    byte r is byte 8b + 7 - i of row r
//! ```
//!
//! The shuffle is part of the first halving, and both together are one operation for a row. So a
//! halving of two rows takes two operations, which by bits takes four. The changed order of rows
//! among the planes costs nothing. The changed order of blocks in a byte costs nothing either,
//! because turning twice restores it.
//!
//! `vpermi2b` could do every halving, but is three operations on Intel's CPUs. Instructions that
//! interleave bytes, pairs or words are one operation everywhere. They also move bytes within every
//! 16 of a row, so the way back differs:
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

use crate::arch::{Avx512, Avx512Bytes};
use crate::block::des::planes::Planes;
use crate::block::registers::Register;
use crate::work::Work;

/// A CPU that has both.
#[derive(Clone, Copy)]
pub(super) struct Turned {
    cpu: Avx512,
    #[expect(dead_code, reason = "the proof is what it is for")]
    bytes: Avx512Bytes,
}

impl Turned {
    pub(super) fn detect(cpu: Avx512) -> Option<Self> {
        let bytes = Avx512Bytes::detect()?;
        Some(Self { cpu, bytes })
    }

    /// Does `work` in a function compiled for this CPU.
    pub(super) fn enter(self, work: impl Work<Self>) {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
        fn enabled(cpu: Turned, work: impl Work<Turned>) {
            work.run(cpu);
        }
        // SAFETY: `self` proves the features.
        unsafe { enabled(self, work) }
    }
}

/// A register whose rows are transposed by bytes.
type Bytes = Register<Avx512>;

impl Planes for Turned {
    type Registers = Avx512;

    const MIRRORED: usize = 7;

    fn registers(self) -> Avx512 {
        self.cpu
    }

    #[inline(always)]
    fn exchange<const WIDTH: u32>(self, x: Bytes, y: Bytes) -> [Bytes; 2] {
        match WIDTH {
            16 => self.exchange_lanes(x, y),
            8 => self.interleave_bytes(x, y),
            _ => self.interleave_pairs(x, y),
        }
    }

    #[inline(always)]
    fn exchange_back<const WIDTH: u32>(self, x: Bytes, y: Bytes) -> [Bytes; 2] {
        match WIDTH {
            16 => self.exchange_lanes(x, y),
            8 => self.interleave_words(x, y),
            _ => self.interleave_bytes(x, y),
        }
    }

    #[inline(always)]
    fn spread(self, x: Bytes, y: Bytes) -> [Bytes; 2] {
        let low = self.select(x, const { &columns_of(halves(0)) }, y);
        let high = self.select(x, const { &columns_of(halves(32)) }, y);
        [self.turn(low), self.turn(high)]
    }

    #[inline(always)]
    fn gather(self, x: Bytes, y: Bytes) -> [Bytes; 2] {
        let (x, y) = (self.turn(x), self.turn(y));
        [
            self.select(x, const { &by_columns(halves(0)) }, y),
            self.select(x, const { &by_columns(halves(32)) }, y),
        ]
    }
}

impl Turned {
    #[inline(always)]
    fn exchange_lanes(self, x: Bytes, y: Bytes) -> [Bytes; 2] {
        // SAFETY: `self` proves AVX-512 F.
        unsafe {
            let lower = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
            let upper = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
            [
                x.with(_mm512_permutex2var_epi64(x.x, lower, y.x)),
                x.with(_mm512_permutex2var_epi64(x.x, upper, y.x)),
            ]
        }
    }

    #[inline(always)]
    fn interleave_bytes(self, x: Bytes, y: Bytes) -> [Bytes; 2] {
        // SAFETY: `self` proves AVX-512 BW.
        unsafe {
            [
                x.with(_mm512_unpacklo_epi8(x.x, y.x)),
                x.with(_mm512_unpackhi_epi8(x.x, y.x)),
            ]
        }
    }

    #[inline(always)]
    fn interleave_pairs(self, x: Bytes, y: Bytes) -> [Bytes; 2] {
        // SAFETY: `self` proves AVX-512 BW.
        unsafe {
            [
                x.with(_mm512_unpacklo_epi16(x.x, y.x)),
                x.with(_mm512_unpackhi_epi16(x.x, y.x)),
            ]
        }
    }

    #[inline(always)]
    fn interleave_words(self, x: Bytes, y: Bytes) -> [Bytes; 2] {
        // SAFETY: `self` proves AVX-512 F.
        unsafe {
            [
                x.with(_mm512_unpacklo_epi64(x.x, y.x)),
                x.with(_mm512_unpackhi_epi64(x.x, y.x)),
            ]
        }
    }

    /// The bytes of `x` and, from 64 on, of `y` at `indices`.
    #[inline(always)]
    fn select(self, x: Bytes, indices: &[u8; 64], y: Bytes) -> Bytes {
        // SAFETY: `self` proves AVX-512 VBMI, and the indices are borrowed.
        let selected = unsafe {
            let indices = _mm512_loadu_si512(indices.as_ptr().cast());
            _mm512_permutex2var_epi8(x.x, indices, y.x)
        };
        x.with(selected)
    }

    /// Bit `i` of byte `7 - j` becomes bit `j` of byte `7 - i`, in every word.
    #[inline(always)]
    fn turn(self, x: Bytes) -> Bytes {
        // SAFETY: `self` proves AVX-512 with GFNI.
        let turned = unsafe {
            let bits = _mm512_set1_epi64(0x0102_0408_1020_4080);
            _mm512_gf2p8affine_epi64_epi8::<0>(bits, x.x)
        };
        x.with(turned)
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
