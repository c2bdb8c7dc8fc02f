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

    /// Whether two groups at once take less time than one after the other: where
    /// a step of a round waits for the one before, those of another group fill
    /// the time.
    const IN_PAIRS: bool = false;

    /// Encrypts every block of two groups.
    #[inline(always)]
    fn encrypt_pair(&self, planes: P, [a, b]: [[P::Vector; N]; 2]) -> [[P::Vector; N]; 2] {
        [self.encrypt(planes, a), self.encrypt(planes, b)]
    }

    /// Decrypts every block of two groups.
    #[inline(always)]
    fn decrypt_pair(&self, planes: P, [a, b]: [[P::Vector; N]; 2]) -> [[P::Vector; N]; 2] {
        [self.decrypt(planes, a), self.decrypt(planes, b)]
    }

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
    const SIDE_BY_SIDE: usize = at_once::<P, K, 16>() * MOST;

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
pub(super) const MOST: usize = 64;

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
        for blocks in self.blocks.chunks_mut(at_once::<P, K, N>() * P::WIDE) {
            if blocks.len() > P::WIDE {
                in_groups::<P, K, N, ENCRYPT, 2>(self.kernel, planes, blocks);
            } else {
                in_groups::<P, K, N, ENCRYPT, 1>(self.kernel, planes, blocks);
            }
        }
    }
}

/// Groups that a kernel is given at once.
pub(super) const fn at_once<P: Planes, K: Kernel<P, N>, const N: usize>() -> usize {
    if K::IN_PAIRS { 2 } else { 1 }
}

/// Encrypts or decrypts at most `G` groups of blocks in place.
#[inline(always)]
fn in_groups<P: Planes, K: Kernel<P, N>, const N: usize, const ENCRYPT: bool, const G: usize>(
    kernel: &K,
    planes: P,
    blocks: &mut [[u8; N]],
) {
    let mut padded = [[[0; N]; MOST]; G];
    let padded = padded.as_flattened_mut();
    let whole = blocks.len() == G * P::WIDE;
    let used = if whole {
        &mut *blocks
    } else {
        padded[..blocks.len()].copy_from_slice(blocks);
        &mut padded[..G * P::WIDE]
    };
    let mut groups = [[planes.splat(0); N]; G];
    let bytes = used.as_flattened().chunks(P::WIDE);
    for (row, bytes) in groups.as_flattened_mut().iter_mut().zip(bytes) {
        *row = planes.load(bytes);
    }
    crypt::<P, K, N, ENCRYPT, G>(kernel, planes, &mut groups);
    let bytes = used.as_flattened_mut().chunks_mut(P::WIDE);
    for (&row, bytes) in groups.as_flattened().iter().zip(bytes) {
        planes.store(row, bytes);
    }
    if !whole {
        blocks.copy_from_slice(&padded[..blocks.len()]);
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
        let group_bytes = 16 * P::WIDE;
        let mut tweaks = Tweaks {
            starts: self.starts,
            sector_halves: self.sector_bytes / (group_bytes / 2),
            nth_half: 0,
            last: [planes.splat(0); 8],
        };
        let at_once = at_once::<P, K, 16>() * group_bytes;
        for data in self.data.chunks_mut(at_once) {
            if data.len() > group_bytes {
                xts::<P, K, ENCRYPT, 2>(self.kernel, planes, &mut tweaks, data);
            } else {
                xts::<P, K, ENCRYPT, 1>(self.kernel, planes, &mut tweaks, data);
            }
        }
    }
}

/// Encrypts or decrypts at most `G` groups in place.
#[inline(always)]
fn xts<P: Planes, K: Kernel<P>, const ENCRYPT: bool, const G: usize>(
    kernel: &K,
    planes: P,
    tweaks: &mut Tweaks<P>,
    data: &mut [u8],
) {
    let zero = planes.splat(0);
    let mut sums = [[zero; 16]; G];
    let (halves, _) = sums.as_flattened_mut().as_chunks_mut::<8>();
    for half in &mut halves[..data.len() / (8 * P::WIDE)] {
        *half = tweaks.next(planes);
    }
    let sums = sums.as_flattened();
    let mut groups = [[zero; 16]; G];
    let rows = groups.as_flattened_mut().iter_mut().zip(sums);
    for ((row, &sum), bytes) in rows.zip(data.chunks(P::WIDE)) {
        *row = planes.xor(planes.load(bytes), sum);
    }
    crypt::<P, K, 16, ENCRYPT, G>(kernel, planes, &mut groups);
    let rows = groups.as_flattened().iter().zip(sums);
    for ((&row, &sum), bytes) in rows.zip(data.chunks_mut(P::WIDE)) {
        planes.store(planes.xor(row, sum), bytes);
    }
}

/// The tweaks of sectors, half a group at a time.
struct Tweaks<'a, P: Planes> {
    starts: &'a [Block],
    sector_halves: usize,
    nth_half: usize,
    last: [P::Vector; 8],
}

impl<P: Planes> Tweaks<'_, P> {
    #[inline(always)]
    fn next(&mut self, planes: P) -> [P::Vector; 8] {
        self.last = if self.nth_half.is_multiple_of(self.sector_halves) {
            planes.first_tweaks(&self.starts[self.nth_half / self.sector_halves])
        } else {
            planes.next_tweaks(self.last)
        };
        self.nth_half += 1;
        self.last
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
        let sectors = at_once::<P, K, 16>() * P::WIDE;
        let groups = self.data.chunks_mut(sectors * self.sector_bytes);
        for (ivs, data) in self.ivs.chunks(sectors).zip(groups) {
            if ivs.len() > P::WIDE {
                encrypt_cbc::<P, K, 2>(self.kernel, planes, ivs, self.sector_bytes, data);
            } else {
                encrypt_cbc::<P, K, 1>(self.kernel, planes, ivs, self.sector_bytes, data);
            }
        }
    }
}

/// Encrypts as many sectors in place as fill `G` groups at most.
#[inline(always)]
fn encrypt_cbc<P: Planes, K: Kernel<P>, const G: usize>(
    kernel: &K,
    planes: P,
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    let lanes = P::WIDE / 16;
    let zero = planes.splat(0);
    // Row i of block j of every sector's line.
    let mut rows = [[[zero; 16]; G]; LINE / 16];
    let mut chain = [[zero; 16]; G];
    let mut lines = [[[0; 4]; 16]; G];
    let lines = lines.as_flattened_mut();
    // Places without a sector repeat the last one and are not written.
    let places = chain.as_flattened_mut().iter_mut().zip(&mut *lines);
    for (i, (row, lines)) in places.enumerate() {
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
            let line = planes.load_lines(data, lines);
            for (rows, x) in rows.iter_mut().zip(line) {
                rows.as_flattened_mut()[i] = x;
            }
        }
        for rows in &mut rows {
            let sums = chain.as_flattened_mut().iter_mut();
            for (x, &row) in sums.zip(rows.as_flattened()) {
                *x = planes.xor(*x, row);
            }
            crypt::<P, K, 16, true, G>(kernel, planes, &mut chain);
            *rows = chain;
        }
        for (i, lines) in lines[..used].iter_mut().enumerate() {
            let mut x = [zero; 4];
            for (x, rows) in x.iter_mut().zip(&rows) {
                *x = rows.as_flattened()[i];
            }
            planes.store_lines(x, data, lines, ivs.len() - i * lanes);
            for line in lines {
                *line += LINE;
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
        let group_bytes = 16 * P::WIDE;
        let mut chains = Chains {
            ivs: self.ivs,
            sector_rows: self.sector_bytes / P::WIDE,
            nth_row: 0,
            last: [0; 16],
        };
        let at_once = at_once::<P, K, 16>() * group_bytes;
        for data in self.data.chunks_mut(at_once) {
            if data.len() > group_bytes {
                decrypt_cbc::<P, K, 2>(self.kernel, planes, &mut chains, data);
            } else {
                decrypt_cbc::<P, K, 1>(self.kernel, planes, &mut chains, data);
            }
        }
    }
}

/// What the blocks of sectors are added to.
struct Chains<'a> {
    ivs: &'a [Block],
    sector_rows: usize,
    nth_row: usize,
    /// The ciphertext before them.
    last: Block,
}

/// Decrypts at most `G` groups in place.
#[inline(always)]
fn decrypt_cbc<P: Planes, K: Kernel<P>, const G: usize>(
    kernel: &K,
    planes: P,
    chains: &mut Chains,
    data: &mut [u8],
) {
    let mut groups = [[planes.splat(0); 16]; G];
    let rows = groups.as_flattened_mut();
    for (row, bytes) in rows.iter_mut().zip(data.chunks(P::WIDE)) {
        *row = planes.load(bytes);
    }
    crypt::<P, K, 16, false, G>(kernel, planes, &mut groups);
    let next = *data.last_chunk().expect("a group of whole blocks");
    let used = data.len() / P::WIDE;
    // Backwards, so that the ciphertext before a row is still there.
    for (i, &row) in groups.as_flattened()[..used].iter().enumerate().rev() {
        let at = i * P::WIDE;
        let nth_row = chains.nth_row + i;
        let before = if nth_row.is_multiple_of(chains.sector_rows) {
            let iv = &chains.ivs[nth_row / chains.sector_rows];
            planes.shift_in(iv, planes.load(&data[at..]))
        } else if i == 0 {
            planes.shift_in(&chains.last, planes.load(data))
        } else {
            planes.load(&data[at - 16..])
        };
        planes.store(planes.xor(row, before), &mut data[at..]);
    }
    chains.last = next;
    chains.nth_row += used;
}

/// Encrypts or decrypts `groups` in place: the cipher, compiled once for all
/// modes.
#[inline(always)]
pub(super) fn crypt<
    P: Planes,
    K: Kernel<P, N>,
    const N: usize,
    const ENCRYPT: bool,
    const G: usize,
>(
    kernel: &K,
    planes: P,
    groups: &mut [[P::Vector; N]; G],
) {
    planes.enter(Groups::<P, K, N, ENCRYPT, G> { kernel, groups });
}

struct Groups<'a, P: Planes, K, const N: usize, const ENCRYPT: bool, const G: usize> {
    kernel: &'a K,
    groups: &'a mut [[P::Vector; N]; G],
}

impl<P: Planes, K: Kernel<P, N>, const N: usize, const ENCRYPT: bool, const G: usize> Work<P>
    for Groups<'_, P, K, N, ENCRYPT, G>
{
    #[inline(always)]
    fn run(self, planes: P) {
        match &mut self.groups[..] {
            [rows] if ENCRYPT => *rows = self.kernel.encrypt(planes, *rows),
            [rows] => *rows = self.kernel.decrypt(planes, *rows),
            [a, b] if ENCRYPT => [*a, *b] = self.kernel.encrypt_pair(planes, [*a, *b]),
            [a, b] => [*a, *b] = self.kernel.decrypt_pair(planes, [*a, *b]),
            _ => unreachable!("one group or two"),
        }
    }
}
