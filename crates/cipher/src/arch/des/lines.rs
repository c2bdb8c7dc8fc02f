//! CBC with registers of AVX-512 between the passes of the cipher. Encryption takes a cache
//! line of each of many sectors at a time: eight blocks of eight sectors are turned in
//! registers into eight rows of eight, and back.
//!
//! ```text
//! line of sector s     blocks j, j + 1, … j + 7
//! row j                block j of sectors 0, 1, 2, …
//! ```

use std::arch::x86_64::*;

use super::{LANES, WHOLE_REGISTER};
use crate::arch::Avx512;
use crate::block::des::Block;

/// Bytes of a line, and blocks in it.
const LINE: usize = 64;
const LINE_BLOCKS: usize = LINE / size_of::<Block>();

/// Encrypts sectors, at most [`LANES`] and by eights, by a cipher of blocks, `crypt`.
pub(super) fn encrypt(
    _: Avx512,
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
    crypt: impl Fn(&mut [Block]),
) {
    let sectors = ivs.len();
    let mut rows = [[0; 8]; LINE_BLOCKS * LANES];
    let rows = &mut rows[..LINE_BLOCKS * sectors];
    let mut chain = [[0; 8]; LANES];
    let chain = &mut chain[..sectors];
    chain.copy_from_slice(ivs);
    for line in (0..sector_bytes).step_by(LINE) {
        // SAFETY: the first argument proves AVX-512 F.
        unsafe { gather(&data[line..], sector_bytes, rows) };
        let mut before = &*chain;
        for row in rows.chunks_exact_mut(sectors) {
            // SAFETY: the first argument proves AVX-512 F.
            unsafe { add(row, before) };
            crypt(row);
            before = row;
        }
        chain.copy_from_slice(&rows[(LINE_BLOCKS - 1) * sectors..]);
        // SAFETY: the first argument proves AVX-512 F.
        unsafe { scatter(rows, sector_bytes, &mut data[line..]) };
    }
}

/// Decrypts sectors by a cipher of blocks, `crypt`, which has [`LANES`].
pub(super) fn decrypt(
    _: Avx512,
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
    crypt: impl Fn(&mut [Block]),
) {
    let sector_blocks = sector_bytes / size_of::<Block>();
    let mut before = [[0; 8]; LANES];
    let mut last = [0; 8];
    let mut done = 0_usize;
    for blocks in data.as_chunks_mut().0.chunks_mut(LANES) {
        let before = &mut before[..blocks.len()];
        let (first, rest) = before.split_first_mut().expect("no chunk is empty");
        (*first, last) = (last, blocks[rest.len()]);
        rest.copy_from_slice(&blocks[..rest.len()]);
        let next_start = done.next_multiple_of(sector_blocks);
        for start in (next_start..done + blocks.len()).step_by(sector_blocks) {
            before[start - done] = ivs[start / sector_blocks];
        }
        done += blocks.len();
        crypt(blocks);
        // SAFETY: the first argument proves AVX-512 F.
        unsafe { add(blocks, before) };
    }
}

/// Rows of the lines at the beginning of every sector.
#[target_feature(enable = "avx512f")]
fn gather(data: &[u8], sector_bytes: usize, rows: &mut [Block]) {
    let sectors = rows.len() / LINE_BLOCKS;
    for first in (0..sectors).step_by(8) {
        let mut x = [_mm512_setzero_si512(); 8];
        for (i, x) in x.iter_mut().enumerate() {
            *x = load(&data[(first + i) * sector_bytes..]);
        }
        for (j, x) in turn(x).into_iter().enumerate() {
            store(x, rows[j * sectors + first..].as_flattened_mut());
        }
    }
}

/// Undoes [`gather`].
#[target_feature(enable = "avx512f")]
fn scatter(rows: &[Block], sector_bytes: usize, data: &mut [u8]) {
    let sectors = rows.len() / LINE_BLOCKS;
    for first in (0..sectors).step_by(8) {
        let mut x = [_mm512_setzero_si512(); 8];
        for (j, x) in x.iter_mut().enumerate() {
            *x = load(rows[j * sectors + first..].as_flattened());
        }
        for (i, x) in turn(x).into_iter().enumerate() {
            store(x, &mut data[(first + i) * sector_bytes..]);
        }
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
