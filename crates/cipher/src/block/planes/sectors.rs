//! Ciphers over whole groups of blocks: what a kernel in byte planes leaves to
//! do, here for blocks of 16 bytes.

use super::{LINE, Planes, Work};
use crate::Backend;
use crate::block::{Block, BlockCipher};
use crate::mode::cbc;

/// A keyed cipher for as many blocks as there are bytes in a register.
///
/// Its methods are `#[inline(always)]`, as those of [`Work`] are. `rows` are
/// registers of whole blocks, one after the other in memory: as many as a block
/// has bytes, which are 16 or 8.
pub(crate) trait Kernel<P: Planes, const N: usize = 16>: Send + Sync + 'static {
    /// Encrypts every block.
    fn encrypt(&self, planes: P, rows: [P::Vector; N]) -> [P::Vector; N];

    /// Decrypts every block.
    fn decrypt(&self, planes: P, rows: [P::Vector; N]) -> [P::Vector; N];

    /// Most blocks that [`encrypt_few`](Self::encrypt_few) takes less time for
    /// than planes full of them: CBC encryption asks for as many as there are
    /// sectors, and XTS for as many tweaks.
    const FEW: usize = 0;

    /// Encrypts at most [`FEW`](Self::FEW) blocks in place.
    fn encrypt_few(&self, _: P, blocks: &mut [[u8; N]]) {
        assert!(blocks.is_empty(), "this kernel works on many blocks only");
    }

    /// Encrypts at most [`FEW`](Self::FEW) sectors in place in CBC mode; `ivs`
    /// has one for each.
    fn encrypt_few_cbc(&self, planes: P, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8])
    where
        Self: Sized,
    {
        cbc::encrypt(ivs, sector_bytes, data, |blocks| {
            planes.enter(Blocks::<Self, N, true> {
                kernel: self,
                blocks,
            });
        });
    }
}

/// A block cipher made of a kernel.
pub(crate) struct InPlanes<P, K> {
    pub(crate) planes: P,
    pub(crate) kernel: K,
}

impl<P: Planes, K: Kernel<P>> BlockCipher<16> for InPlanes<P, K> {
    const BACKEND: Backend = P::BACKEND;
    const CONSTANT_TIME: bool = true;

    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        let kernel = &self.kernel;
        self.planes.enter(Blocks::<K, 16, true> { kernel, blocks });
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        let kernel = &self.kernel;
        self.planes.enter(Blocks::<K, 16, false> { kernel, blocks });
    }

    fn encrypt_xts(&self, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.planes.enter(Xts::<K, true> {
            kernel: &self.kernel,
            starts,
            sector_bytes,
            data,
        });
    }

    fn decrypt_xts(&self, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.planes.enter(Xts::<K, false> {
            kernel: &self.kernel,
            starts,
            sector_bytes,
            data,
        });
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

/// Most blocks in a group.
const MOST: usize = 64;

/// Encrypts or decrypts every block in place. What is left over takes a group
/// of its own.
pub(super) struct Blocks<'a, K, const N: usize, const ENCRYPT: bool> {
    pub(super) kernel: &'a K,
    pub(super) blocks: &'a mut [[u8; N]],
}

impl<P: Planes, K: Kernel<P, N>, const N: usize, const ENCRYPT: bool> Work<P>
    for Blocks<'_, K, N, ENCRYPT>
{
    #[inline(always)]
    fn run(self, planes: P) {
        if ENCRYPT && self.blocks.len() <= K::FEW {
            return self.kernel.encrypt_few(planes, self.blocks);
        }
        let mut padded = [[0; N]; MOST];
        for group in self.blocks.chunks_mut(P::WIDE) {
            let whole = group.len() == P::WIDE;
            let blocks = if whole {
                &mut *group
            } else {
                padded[..group.len()].copy_from_slice(group);
                &mut padded[..P::WIDE]
            };
            let mut rows = [planes.splat(0); N];
            for (row, bytes) in rows.iter_mut().zip(blocks.as_flattened().chunks(P::WIDE)) {
                *row = planes.load(bytes);
            }
            crypt::<P, K, N, ENCRYPT>(self.kernel, planes, &mut rows);
            let bytes = blocks.as_flattened_mut().chunks_mut(P::WIDE);
            for (row, bytes) in rows.into_iter().zip(bytes) {
                planes.store(row, bytes);
            }
            if !whole {
                group.copy_from_slice(&padded[..group.len()]);
            }
        }
    }
}

/// Encrypts or decrypts whole sectors in place in XTS mode; `starts` has the
/// first tweak of each. Half a group always belongs to one sector.
struct Xts<'a, K, const ENCRYPT: bool> {
    kernel: &'a K,
    starts: &'a [Block],
    sector_bytes: usize,
    data: &'a mut [u8],
}

impl<P: Planes, K: Kernel<P>, const ENCRYPT: bool> Work<P> for Xts<'_, K, ENCRYPT> {
    #[inline(always)]
    fn run(self, planes: P) {
        let half_bytes = 8 * P::WIDE;
        let sector_halves = self.sector_bytes / half_bytes;
        let zero = planes.splat(0);
        let mut nth_half = 0;
        let mut last = [zero; 8];
        for group in self.data.chunks_mut(2 * half_bytes) {
            let mut tweaks = [zero; 16];
            let (halves, _) = tweaks.as_chunks_mut::<8>();
            for half in &mut halves[..group.len() / half_bytes] {
                last = if nth_half % sector_halves == 0 {
                    planes.first_tweaks(&self.starts[nth_half / sector_halves])
                } else {
                    planes.next_tweaks(last)
                };
                nth_half += 1;
                *half = last;
            }
            let mut rows = [zero; 16];
            for (i, bytes) in group.chunks(P::WIDE).enumerate() {
                rows[i] = planes.xor(planes.load(bytes), tweaks[i]);
            }
            crypt::<P, K, 16, ENCRYPT>(self.kernel, planes, &mut rows);
            for (i, bytes) in group.chunks_mut(P::WIDE).enumerate() {
                planes.store(planes.xor(rows[i], tweaks[i]), bytes);
            }
        }
    }
}

/// Encrypts whole sectors in place in CBC mode, as many side by side as there
/// are bytes in a register; `ivs` has one for each.
///
/// Sectors lie a power of two apart, where blocks of many of them would share a
/// few sets of the cache: so whole lines are taken.
struct EncryptCbc<'a, K> {
    kernel: &'a K,
    ivs: &'a [Block],
    sector_bytes: usize,
    data: &'a mut [u8],
}

impl<P: Planes, K: Kernel<P>> Work<P> for EncryptCbc<'_, K> {
    #[inline(always)]
    fn run(self, planes: P) {
        let sector_bytes = self.sector_bytes;
        let lanes = P::WIDE / 16;
        // Row i of block j of every sector's line.
        let mut rows = [[planes.splat(0); 16]; LINE / 16];
        let groups = self.data.chunks_mut(P::WIDE * sector_bytes);
        for (ivs, data) in self.ivs.chunks(P::WIDE).zip(groups) {
            let mut chain = [rows[0][0]; 16];
            let mut lines = [[0; 4]; 16];
            // Places without a sector repeat the last one and are not written.
            for (i, (row, lines)) in chain.iter_mut().zip(&mut lines).enumerate() {
                let mut starts = [[0; 16]; 4];
                for (lane, start) in starts[..lanes].iter_mut().enumerate() {
                    let sector = (i * lanes + lane).min(ivs.len() - 1);
                    *start = ivs[sector];
                    lines[lane] = sector * sector_bytes;
                }
                *row = planes.load(starts.as_flattened());
            }
            let used = ivs.len().div_ceil(lanes);
            for _ in 0..sector_bytes / LINE {
                for (i, lines) in lines[..used].iter().enumerate() {
                    let [a, b, c, d] = planes.load_lines(data, lines);
                    (rows[0][i], rows[1][i], rows[2][i], rows[3][i]) = (a, b, c, d);
                }
                for rows in &mut rows {
                    for (x, row) in chain.iter_mut().zip(&*rows) {
                        *x = planes.xor(*x, *row);
                    }
                    crypt::<P, K, 16, true>(self.kernel, planes, &mut chain);
                    *rows = chain;
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
}

/// Decrypts whole sectors in place in CBC mode; `ivs` has one for each.
struct DecryptCbc<'a, K> {
    kernel: &'a K,
    ivs: &'a [Block],
    sector_bytes: usize,
    data: &'a mut [u8],
}

impl<P: Planes, K: Kernel<P>> Work<P> for DecryptCbc<'_, K> {
    #[inline(always)]
    fn run(self, planes: P) {
        let sector_rows = self.sector_bytes / P::WIDE;
        let mut nth_row = 0;
        let mut last = [0; 16];
        for group in self.data.chunks_mut(16 * P::WIDE) {
            let mut rows = [planes.splat(0); 16];
            for (row, bytes) in rows.iter_mut().zip(group.chunks(P::WIDE)) {
                *row = planes.load(bytes);
            }
            crypt::<P, K, 16, false>(self.kernel, planes, &mut rows);
            let next = *group.last_chunk().expect("a group of whole blocks");
            // Backwards, so that the ciphertext before a row is still there.
            for i in (0..group.len() / P::WIDE).rev() {
                let at = i * P::WIDE;
                let starts = (nth_row + i) % sector_rows == 0;
                let before = if starts {
                    let iv = &self.ivs[(nth_row + i) / sector_rows];
                    planes.shift_in(iv, planes.load(&group[at..]))
                } else if i == 0 {
                    planes.shift_in(&last, planes.load(group))
                } else {
                    planes.load(&group[at - 16..])
                };
                planes.store(planes.xor(rows[i], before), &mut group[at..]);
            }
            last = next;
            nth_row += group.len() / P::WIDE;
        }
    }
}

/// Encrypts or decrypts `rows` in place: the cipher, compiled once for all
/// modes.
#[inline(always)]
pub(super) fn crypt<P: Planes, K: Kernel<P, N>, const N: usize, const ENCRYPT: bool>(
    kernel: &K,
    planes: P,
    rows: &mut [P::Vector; N],
) {
    planes.enter(Rows::<P, K, N, ENCRYPT> { kernel, rows });
}

struct Rows<'a, P: Planes, K, const N: usize, const ENCRYPT: bool> {
    kernel: &'a K,
    rows: &'a mut [P::Vector; N],
}

impl<P: Planes, K: Kernel<P, N>, const N: usize, const ENCRYPT: bool> Work<P>
    for Rows<'_, P, K, N, ENCRYPT>
{
    #[inline(always)]
    fn run(self, planes: P) {
        *self.rows = if ENCRYPT {
            self.kernel.encrypt(planes, *self.rows)
        } else {
            self.kernel.decrypt(planes, *self.rows)
        };
    }
}
