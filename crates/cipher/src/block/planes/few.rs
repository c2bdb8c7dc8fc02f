//! Ciphers over a few blocks, which would leave most of a plane empty: CBC
//! encryption of a few sectors, where every block waits for the one before.
//!
//! The chain stays in registers, in the arrangement that the cipher works in,
//! where what is added to it waits already.

use super::{LINE, Planes};
use crate::block::Block;
use crate::work::Work;

/// A cipher over `ROWS` registers of whole blocks at most.
pub(crate) trait Few<P: Planes, const ROWS: usize>: Send + Sync + 'static {
    /// Whole blocks to what [`encrypt`](Self::encrypt) takes. Of a sum it makes
    /// the sum.
    fn arrange(&self, planes: P, rows: [P::Vector; ROWS]) -> [P::Vector; ROWS];

    /// Encrypts every block.
    fn encrypt(&self, planes: P, state: [P::Vector; ROWS]) -> [P::Vector; ROWS];

    /// Inverse of [`arrange`](Self::arrange).
    fn restore(&self, planes: P, state: [P::Vector; ROWS]) -> [P::Vector; ROWS];

    /// Encrypts whole sectors in place in CBC mode, of which there are no more
    /// than fill `ROWS`; `ivs` has one for each.
    #[inline(always)]
    fn encrypt_cbc(&self, planes: P, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        let lanes = P::WIDE / 16;
        let zero = planes.splat(0);
        let mut chain = [zero; ROWS];
        let mut lines = [[0; MOST_LANES]; ROWS];
        // Lanes without a sector repeat the last one and are not written.
        for (i, (row, lines)) in chain.iter_mut().zip(&mut lines).enumerate() {
            let mut starts = [[0; 16]; MOST_LANES];
            for (lane, start) in starts[..lanes].iter_mut().enumerate() {
                let sector = (i * lanes + lane).min(ivs.len() - 1);
                *start = ivs[sector];
                lines[lane] = sector * sector_bytes;
            }
            *row = planes.load(starts.as_flattened());
        }
        let mut chain = self.arrange(planes, chain);
        let used = ivs.len().div_ceil(lanes);
        // Row i of block j of every sector's line.
        let mut rows = [[zero; ROWS]; LINE / 16];
        for _ in 0..sector_bytes / LINE {
            for (i, lines) in lines[..used].iter().enumerate() {
                let [a, b, c, d] = planes.load_lines(data, lines);
                (rows[0][i], rows[1][i], rows[2][i], rows[3][i]) = (a, b, c, d);
            }
            for rows in &mut rows {
                let plain = self.arrange(planes, *rows);
                for (x, plain) in chain.iter_mut().zip(plain) {
                    *x = planes.xor(*x, plain);
                }
                chain = self.encrypt(planes, chain);
                *rows = self.restore(planes, chain);
            }
            for (i, lines) in lines[..used].iter_mut().enumerate() {
                let x = [rows[0][i], rows[1][i], rows[2][i], rows[3][i]];
                planes.store_lines(x, data, lines, ivs.len() - i * lanes);
                for line in lines {
                    *line += LINE;
                }
            }
        }
    }
}

/// Most registers of blocks.
const MOST_ROWS: usize = 8;

/// Most blocks in a register.
const MOST_LANES: usize = 4;

/// Encrypts every block in place.
#[inline(always)]
pub(crate) fn encrypt_blocks<P: Planes, F: Few<P, ROWS>, const ROWS: usize>(
    few: &F,
    planes: P,
    blocks: &mut [Block],
) {
    let mut padded = [[0; 16]; MOST_ROWS * MOST_LANES];
    for blocks in blocks.chunks_mut(ROWS * P::WIDE / 16) {
        padded[..blocks.len()].copy_from_slice(blocks);
        let mut rows = [planes.splat(0); ROWS];
        for (row, bytes) in rows.iter_mut().zip(padded.as_flattened().chunks(P::WIDE)) {
            *row = planes.load(bytes);
        }
        let state = few.encrypt(planes, few.arrange(planes, rows));
        let rows = few.restore(planes, state);
        let bytes = padded.as_flattened_mut().chunks_mut(P::WIDE);
        for (row, bytes) in rows.into_iter().zip(bytes) {
            planes.store(row, bytes);
        }
        blocks.copy_from_slice(&padded[..blocks.len()]);
    }
}

/// Encrypts whole sectors in place in CBC mode, as many side by side as `ROWS`
/// hold blocks; `ivs` has one for each.
pub(crate) fn encrypt_cbc<P: Planes, F: Few<P, ROWS>, const ROWS: usize>(
    few: &F,
    planes: P,
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    planes.enter(EncryptCbc::<F, ROWS> {
        few,
        ivs,
        sector_bytes,
        data,
    });
}

struct EncryptCbc<'a, F, const ROWS: usize> {
    few: &'a F,
    ivs: &'a [Block],
    sector_bytes: usize,
    data: &'a mut [u8],
}

impl<P: Planes, F: Few<P, ROWS>, const ROWS: usize> Work<P> for EncryptCbc<'_, F, ROWS> {
    #[inline(always)]
    fn run(self, planes: P) {
        let side_by_side = ROWS * P::WIDE / 16;
        let groups = self.data.chunks_mut(side_by_side * self.sector_bytes);
        for (ivs, data) in self.ivs.chunks(side_by_side).zip(groups) {
            self.few.encrypt_cbc(planes, ivs, self.sector_bytes, data);
        }
    }
}
