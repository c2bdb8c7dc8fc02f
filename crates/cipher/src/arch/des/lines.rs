//! CBC with registers of AVX-512 between the passes of the cipher. Encryption takes a cache
//! line of each of many sectors at a time: eight blocks of eight sectors are turned in
//! registers into eight rows of eight, and back.
//!
//! ```text
//! line of sector s     blocks j, j + 1, … j + 7
//! row j                block j of sectors 0, 1, 2, …
//! ```

use std::arch::x86_64::*;

use super::LANES;
use crate::arch::Avx512;
use crate::block::des::planes::{Planar, Planes, pass_between, pass_chained};
use crate::block::des::{Block, Rounds};
use crate::block::registers::WHOLE_REGISTER;
use crate::work::Work;

/// Bytes of a line, and blocks in it.
const LINE: usize = 64;
const LINE_BLOCKS: usize = LINE / size_of::<Block>();

/// Blocks on whole lines.
#[repr(align(64))]
struct Aligned<const BLOCKS: usize>([Block; BLOCKS]);

/// Encrypts sectors, at most [`LANES`] and by eights, or decrypts any number that are whole lines.
pub(super) struct Lines<'a, const ENCRYPT: bool> {
    pub(super) rounds: Rounds<'a>,
    pub(super) ivs: &'a [Block],
    pub(super) sector_bytes: usize,
    pub(super) data: &'a mut [u8],
}

impl<C: Planes<Registers = Avx512>> Work<C> for Lines<'_, true> {
    #[inline(always)]
    fn run(self, cpu: C) {
        let Self {
            rounds,
            ivs,
            sector_bytes,
            data,
        } = self;
        let sectors = ivs.len();
        let mut work = Planar::new(cpu);
        let Aligned(rows) = &mut Aligned([[0; 8]; LINE_BLOCKS * LANES]);
        for first in (0..sectors).step_by(8) {
            // SAFETY: `cpu` proves AVX-512 F.
            unsafe { gather(data, first, sector_bytes, rows) };
        }
        // SAFETY: `cpu` proves AVX-512 F.
        unsafe { add(&mut rows[..sectors], ivs) };
        for line in (0..sector_bytes).step_by(LINE) {
            for row in rows.chunks_exact_mut(LANES) {
                pass_chained(cpu, rounds, &mut work, row);
            }
            // A sector's next line while the page of this one is known.
            for first in (0..sectors).step_by(8) {
                // SAFETY: `cpu` proves AVX-512 F.
                unsafe { scatter(rows, first, sector_bytes, &mut data[line..]) };
                prefetch_eight(&data[line..], first + 8, sector_bytes);
                if line + LINE < sector_bytes {
                    // SAFETY: `cpu` proves AVX-512 F.
                    unsafe { gather(&data[line + LINE..], first, sector_bytes, rows) };
                    prefetch_eight(&data[line + LINE..], first + 8, sector_bytes);
                }
            }
        }
    }
}

impl<C: Planes<Registers = Avx512>> Work<C> for Lines<'_, false> {
    #[inline(always)]
    fn run(self, cpu: C) {
        let Self {
            rounds,
            ivs,
            sector_bytes,
            data,
        } = self;
        let sector_blocks = sector_bytes / size_of::<Block>();
        let mut work = Planar::new(cpu);
        let Aligned(plain) = &mut Aligned([[0; 8]; LANES]);
        let Aligned(padded) = &mut Aligned([[0; 8]; LANES]);
        let mut before = [0; 8];
        let data = data.as_chunks_mut().0;
        for start in (0..data.len()).step_by(LANES) {
            // A pass reads rows far apart, which the CPU does not foresee.
            let next = data.iter().skip(start + LANES).take(LANES);
            next.step_by(LINE_BLOCKS)
                .for_each(|line| prefetch::<_MM_HINT_T1>(line));
            let end = data.len().min(start + LANES);
            let blocks = &mut data[start..end];
            let from = if blocks.len() == LANES {
                &*blocks
            } else {
                padded[..blocks.len()].copy_from_slice(blocks);
                &*padded
            };
            pass_between(cpu, rounds, &mut work, from, plain);
            // Parts of sectors, where those are longer than a pass.
            for nth in (0..blocks.len()).step_by(sector_blocks) {
                if (start + nth) % sector_blocks == 0 {
                    before = ivs[(start + nth) / sector_blocks];
                }
                let len = sector_blocks.min(blocks.len() - nth);
                // SAFETY: `cpu` proves AVX-512 F.
                before =
                    unsafe { add_blocks_before(&plain[nth..], before, &mut blocks[nth..][..len]) };
            }
        }
    }
}

/// Asks for the lines at the beginning of eight sectors from the `first`, if there are any.
#[inline(always)]
fn prefetch_eight(data: &[u8], first: usize, sector_bytes: usize) {
    let sectors = data.chunks(sector_bytes).skip(first).take(8);
    sectors.for_each(prefetch::<_MM_HINT_T0>);
}

/// Asks for the line that `bytes` begin in.
#[inline(always)]
fn prefetch<const HINT: i32>(bytes: &[u8]) {
    // SAFETY: every CPU with AVX-512 has it, and it does not fail.
    unsafe { _mm_prefetch::<HINT>(bytes.as_ptr().cast()) };
}

/// Rows of the lines at the beginning of eight sectors from the `first`.
#[target_feature(enable = "avx512f")]
fn gather(data: &[u8], first: usize, sector_bytes: usize, rows: &mut [Block]) {
    let mut x = [_mm512_setzero_si512(); 8];
    for (i, x) in x.iter_mut().enumerate() {
        *x = load(&data[(first + i) * sector_bytes..]);
    }
    for (j, x) in turn(x).into_iter().enumerate() {
        store(x, rows[j * LANES + first..].as_flattened_mut());
    }
}

/// Undoes [`gather`].
#[target_feature(enable = "avx512f")]
fn scatter(rows: &[Block], first: usize, sector_bytes: usize, data: &mut [u8]) {
    let mut x = [_mm512_setzero_si512(); 8];
    for (j, x) in x.iter_mut().enumerate() {
        *x = load(rows[j * LANES + first..].as_flattened());
    }
    for (i, x) in turn(x).into_iter().enumerate() {
        store(x, &mut data[(first + i) * sector_bytes..]);
    }
}

/// Adds as many blocks, by eights.
#[target_feature(enable = "avx512f")]
fn add(row: &mut [Block], others: &[Block]) {
    let rows = row.as_chunks_mut::<8>().0;
    for (x, y) in rows.iter_mut().zip(others.as_chunks::<8>().0) {
        let sum = _mm512_xor_si512(load(x.as_flattened()), load(y.as_flattened()));
        store(sum, x.as_flattened_mut());
    }
}

/// Puts `plain` for `blocks`, by eights, each with the block before it added, the first
/// with `before`. Gives the last that was there.
#[target_feature(enable = "avx512f")]
fn add_blocks_before(plain: &[Block], before: Block, blocks: &mut [Block]) -> Block {
    let mut last = _mm512_set1_epi64(i64::from_le_bytes(before));
    let rows = blocks.as_chunks_mut::<8>().0;
    for (row, plain) in rows.iter_mut().zip(plain.as_chunks::<8>().0) {
        let x = load(row.as_flattened());
        let before = _mm512_alignr_epi64::<7>(x, last);
        let sum = _mm512_xor_si512(load(plain.as_flattened()), before);
        store(sum, row.as_flattened_mut());
        last = x;
    }
    let mut words = [[0; 8]; 8];
    store(last, words.as_flattened_mut());
    words[7]
}

/// Word `j` of register `i` becomes word `i` of register `j`.
#[target_feature(enable = "avx512f")]
fn turn(x: [__m512i; 8]) -> [__m512i; 8] {
    let even = quarters([
        _mm512_unpacklo_epi64(x[0], x[1]),
        _mm512_unpacklo_epi64(x[2], x[3]),
        _mm512_unpacklo_epi64(x[4], x[5]),
        _mm512_unpacklo_epi64(x[6], x[7]),
    ]);
    let odd = quarters([
        _mm512_unpackhi_epi64(x[0], x[1]),
        _mm512_unpackhi_epi64(x[2], x[3]),
        _mm512_unpackhi_epi64(x[4], x[5]),
        _mm512_unpackhi_epi64(x[6], x[7]),
    ]);
    [
        even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3],
    ]
}

/// Quarter `j` of register `i` becomes quarter `i` of register `j`.
#[target_feature(enable = "avx512f")]
fn quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    // Of two registers their first and third quarters, or second and fourth.
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let (ab, cd) = (
        _mm512_shuffle_i64x2::<EVEN>(a, b),
        _mm512_shuffle_i64x2::<EVEN>(c, d),
    );
    let (ab_odd, cd_odd) = (
        _mm512_shuffle_i64x2::<ODD>(a, b),
        _mm512_shuffle_i64x2::<ODD>(c, d),
    );
    [
        _mm512_shuffle_i64x2::<EVEN>(ab, cd),
        _mm512_shuffle_i64x2::<EVEN>(ab_odd, cd_odd),
        _mm512_shuffle_i64x2::<ODD>(ab, cd),
        _mm512_shuffle_i64x2::<ODD>(ab_odd, cd_odd),
    ]
}

#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8]) -> __m512i {
    let bytes: &[u8; LINE] = bytes.first_chunk().expect(WHOLE_REGISTER);
    // SAFETY: the bytes are borrowed.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn store(x: __m512i, bytes: &mut [u8]) {
    let bytes: &mut [u8; LINE] = bytes.first_chunk_mut().expect(WHOLE_REGISTER);
    // SAFETY: the bytes are borrowed.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), x) }
}
