//! Ciphers of 8-byte blocks over whole groups of them.

use super::sectors::{Blocks, InPlanes, Kernel, crypt};
use super::{LINE, Planes, Work};
use crate::Backend;
use crate::block::BlockCipher;

type Block = [u8; 8];

impl<P: Planes, K: Kernel<P, 8>> BlockCipher<8> for InPlanes<P, K> {
    const BACKEND: Backend = P::BACKEND;
    const CONSTANT_TIME: bool = true;

    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        let kernel = &self.kernel;
        self.planes.enter(Blocks::<K, 8, true> { kernel, blocks });
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        let kernel = &self.kernel;
        self.planes.enter(Blocks::<K, 8, false> { kernel, blocks });
    }

    fn encrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        if ivs.len() <= K::FEW {
            let kernel = &self.kernel;
            return kernel.encrypt_few_cbc(self.planes, ivs, sector_bytes, data);
        }
        self.planes.enter(EncryptCbc {
            kernel: &self.kernel,
            ivs,
            sector_bytes,
            data,
        });
    }

    fn decrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.planes.enter(DecryptCbc {
            kernel: &self.kernel,
            ivs,
            sector_bytes,
            data,
        });
    }
}

/// Encrypts whole sectors in place in CBC mode, as many side by side as there
/// are bytes in a register; `ivs` has one for each.
///
/// As with blocks of 16 bytes, whole lines are taken. Their halves of 16 bytes
/// come from two registers of lines:
///
/// ```text
/// lines of sectors a, b, …   a₀ a₁  b₀ b₁  …       a₀ p₀  b₀ q₀  …   row of block 0
/// lines of sectors p, q, …   p₀ p₁  q₀ q₁  …   ▶   a₁ p₁  b₁ q₁  …   row of block 1
/// ```
struct EncryptCbc<'a, K> {
    kernel: &'a K,
    ivs: &'a [Block],
    sector_bytes: usize,
    data: &'a mut [u8],
}

impl<P: Planes, K: Kernel<P, 8>> Work<P> for EncryptCbc<'_, K> {
    #[inline(always)]
    fn run(self, planes: P) {
        let sector_bytes = self.sector_bytes;
        let lanes = P::WIDE / 16;
        // Row i of block j of every sector's line.
        let mut rows = [[planes.splat(0); 8]; LINE / 8];
        let groups = self.data.chunks_mut(P::WIDE * sector_bytes);
        for (ivs, data) in self.ivs.chunks(P::WIDE).zip(groups) {
            let mut chain = [rows[0][0]; 8];
            let mut lines = [[[0; 4]; 2]; 8];
            // Places without a sector repeat the last one and are not written.
            for (i, (row, lines)) in chain.iter_mut().zip(&mut lines).enumerate() {
                let mut starts = [[0; 8]; 8];
                for lane in 0..lanes {
                    for half in 0..2 {
                        let sector = (2 * i + half) * lanes + lane;
                        let sector = sector.min(ivs.len() - 1);
                        starts[2 * lane + half] = ivs[sector];
                        lines[half][lane] = sector * sector_bytes;
                    }
                }
                *row = planes.load(starts.as_flattened());
            }
            let used = ivs.len().div_ceil(2 * lanes);
            for _ in 0..sector_bytes / LINE {
                for (i, [first, second]) in lines[..used].iter().enumerate() {
                    let x = planes.load_lines(data, first);
                    let y = planes.load_lines(data, second);
                    for j in 0..4 {
                        let [even, odd] = planes.interleave_halves(x[j], y[j]);
                        (rows[2 * j][i], rows[2 * j + 1][i]) = (even, odd);
                    }
                }
                for rows in &mut rows {
                    for (x, row) in chain.iter_mut().zip(&*rows) {
                        *x = planes.xor(*x, *row);
                    }
                    crypt::<P, K, 8, true>(self.kernel, planes, &mut chain);
                    *rows = chain;
                }
                for (i, lines) in lines[..used].iter_mut().enumerate() {
                    let (mut x, mut y) = ([chain[0]; 4], [chain[0]; 4]);
                    for j in 0..4 {
                        let (even, odd) = (rows[2 * j][i], rows[2 * j + 1][i]);
                        [x[j], y[j]] = planes.interleave_halves(even, odd);
                    }
                    let count = ivs.len() - 2 * i * lanes;
                    planes.store_lines(x, data, &lines[0], count);
                    planes.store_lines(y, data, &lines[1], count.saturating_sub(lanes));
                    for line in lines.as_flattened_mut() {
                        *line += LINE;
                    }
                }
            }
        }
    }
}

/// Decrypts whole sectors in place in CBC mode; `ivs` has one for each. A group
/// always belongs to one sector.
struct DecryptCbc<'a, K> {
    kernel: &'a K,
    ivs: &'a [Block],
    sector_bytes: usize,
    data: &'a mut [u8],
}

impl<P: Planes, K: Kernel<P, 8>> Work<P> for DecryptCbc<'_, K> {
    #[inline(always)]
    fn run(self, planes: P) {
        let sectors = self.data.chunks_exact_mut(self.sector_bytes);
        for (sector, iv) in sectors.zip(self.ivs) {
            let mut last = *iv;
            for group in sector.chunks_exact_mut(8 * P::WIDE) {
                let mut rows = [planes.splat(0); 8];
                for (row, bytes) in rows.iter_mut().zip(group.chunks_exact(P::WIDE)) {
                    *row = planes.load(bytes);
                }
                crypt::<P, K, 8, false>(self.kernel, planes, &mut rows);
                let next = *group.last_chunk().expect("a group of whole blocks");
                // Backwards, so that the ciphertext before a row is still there.
                for i in (1..8).rev() {
                    let before = planes.load(&group[i * P::WIDE - 8..]);
                    planes.store(planes.xor(rows[i], before), &mut group[i * P::WIDE..]);
                }
                let mut before = [0; MOST_WIDE];
                before[..8].copy_from_slice(&last);
                before[8..P::WIDE].copy_from_slice(&group[..P::WIDE - 8]);
                planes.store(planes.xor(rows[0], planes.load(&before)), group);
                last = next;
            }
        }
    }
}

/// Most bytes in a register.
const MOST_WIDE: usize = 64;
