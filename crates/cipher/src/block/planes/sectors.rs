//! The modes over whole groups of blocks: what a kernel in byte planes leaves to
//! do. Blocks have 16 bytes or 8.

use super::{LINE, Planes};
use crate::block::{Block, BlockCipher};
use crate::mode::cbc;
use crate::work::Work;

/// A keyed cipher for as many blocks as there are bytes in a register.
///
/// Its methods are `#[inline(always)]`, as those of [`Work`] are. `rows` are
/// registers of whole blocks, one after the other in memory: as many as a block
/// has bytes, which are 16 or 8.
pub(crate) trait Kernel<P: Planes, const N: usize = 16>: Send + Sync + 'static {
    /// Whether decryption is encryption with other keys, so that one function
    /// does for both.
    const SAME_BOTH_WAYS: bool = true;

    /// Encrypts or decrypts every block.
    fn crypt(&self, planes: P, encrypt: bool, rows: [P::Vector; N]) -> [P::Vector; N];

    /// Whether two groups at once take less time than one after the other: where
    /// a step of a round waits for the one before, those of another group fill
    /// the time.
    const IN_PAIRS: bool = false;

    /// Encrypts or decrypts every block of two groups.
    #[inline(always)]
    fn crypt_pair(
        &self,
        planes: P,
        encrypt: bool,
        [a, b]: [[P::Vector; N]; 2],
    ) -> [[P::Vector; N]; 2] {
        [
            self.crypt(planes, encrypt, a),
            self.crypt(planes, encrypt, b),
        ]
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
        cbc::encrypt(ivs, sector_bytes, data, &|blocks| {
            planes.enter(FewBlocks {
                kernel: self,
                blocks,
            });
        });
    }
}

/// Encrypts a few blocks in place.
struct FewBlocks<'a, K, const N: usize> {
    kernel: &'a K,
    blocks: &'a mut [[u8; N]],
}

impl<P: Planes, K: Kernel<P, N>, const N: usize> Work<P> for FewBlocks<'_, K, N> {
    #[inline(always)]
    fn run(self, planes: P) {
        self.kernel.encrypt_few(planes, self.blocks);
    }
}

/// A kernel as the modes see it, so that they are compiled once for all of them.
trait Rounds<P: Planes, const N: usize> {
    /// Groups that it is best given at once: one or two.
    fn at_once(&self) -> usize;

    /// Encrypts or decrypts one group or two in place.
    fn crypt(&self, encrypt: bool, groups: &mut [[P::Vector; N]]);
}

/// A block cipher made of a kernel.
pub(crate) struct InPlanes<P, K> {
    pub(crate) planes: P,
    pub(crate) kernel: K,
}

impl<P: Planes, K: Kernel<P, N>, const N: usize> Rounds<P, N> for InPlanes<P, K> {
    fn at_once(&self) -> usize {
        if K::IN_PAIRS { 2 } else { 1 }
    }

    fn crypt(&self, encrypt: bool, groups: &mut [[P::Vector; N]]) {
        let kernel = &self.kernel;
        if K::SAME_BOTH_WAYS || encrypt {
            self.planes.enter(Groups::<P, K, N, true> {
                kernel,
                encrypt,
                groups,
            });
        } else {
            self.planes.enter(Groups::<P, K, N, false> {
                kernel,
                encrypt,
                groups,
            });
        }
    }
}

/// `ENCRYPT` says which way a function goes that does not do for both.
struct Groups<'a, P: Planes, K, const N: usize, const ENCRYPT: bool> {
    kernel: &'a K,
    encrypt: bool,
    groups: &'a mut [[P::Vector; N]],
}

impl<P: Planes, K: Kernel<P, N>, const N: usize, const ENCRYPT: bool> Work<P>
    for Groups<'_, P, K, N, ENCRYPT>
{
    #[inline(always)]
    fn run(self, planes: P) {
        let encrypt = match K::SAME_BOTH_WAYS {
            true => self.encrypt,
            false => ENCRYPT,
        };
        match self.groups {
            [rows] => *rows = self.kernel.crypt(planes, encrypt, *rows),
            [a, b] if K::IN_PAIRS => {
                [*a, *b] = self.kernel.crypt_pair(planes, encrypt, [*a, *b]);
            }
            _ => unreachable!("no more groups than are best given at once"),
        }
    }
}

impl<P: Planes, K: Kernel<P, N>, const N: usize> BlockCipher<N> for InPlanes<P, K> {
    fn side_by_side(&self) -> usize {
        Rounds::<P, N>::at_once(self) * MOST
    }

    fn encrypt_blocks(&self, blocks: &mut [[u8; N]]) {
        if blocks.len() <= K::FEW {
            let kernel = &self.kernel;
            self.planes.enter(FewBlocks { kernel, blocks });
        } else {
            self.planes.enter(Blocks {
                rounds: self,
                encrypt: true,
                blocks,
            });
        }
    }

    fn decrypt_blocks(&self, blocks: &mut [[u8; N]]) {
        self.planes.enter(Blocks {
            rounds: self,
            encrypt: false,
            blocks,
        });
    }

    fn encrypt_xts(&self, starts: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        self.planes.enter(Xts {
            rounds: self,
            encrypt: true,
            starts,
            sector_bytes,
            data,
        });
    }

    fn decrypt_xts(&self, starts: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        self.planes.enter(Xts {
            rounds: self,
            encrypt: false,
            starts,
            sector_bytes,
            data,
        });
    }

    fn encrypt_cbc(&self, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        if ivs.len() <= K::FEW {
            let kernel = &self.kernel;
            return kernel.encrypt_few_cbc(self.planes, ivs, sector_bytes, data);
        }
        self.planes.enter(EncryptCbc {
            rounds: self,
            ivs,
            sector_bytes,
            data,
        });
    }

    fn decrypt_cbc(&self, ivs: &[[u8; N]], sector_bytes: usize, data: &mut [u8]) {
        self.planes.enter(DecryptCbc {
            rounds: self,
            ivs,
            sector_bytes,
            data,
        });
    }
}

/// Most blocks in a group.
const MOST: usize = 64;

/// Encrypts or decrypts every block in place. The blocks left over take a group of their own.
struct Blocks<'a, P, const N: usize> {
    rounds: &'a dyn Rounds<P, N>,
    encrypt: bool,
    blocks: &'a mut [[u8; N]],
}

impl<P: Planes, const N: usize> Work<P> for Blocks<'_, P, N> {
    #[inline(always)]
    fn run(self, planes: P) {
        for blocks in self.blocks.chunks_mut(self.rounds.at_once() * P::WIDE) {
            if blocks.len() > P::WIDE {
                in_groups::<P, N, 2>(self.rounds, self.encrypt, planes, blocks);
            } else {
                in_groups::<P, N, 1>(self.rounds, self.encrypt, planes, blocks);
            }
        }
    }
}

/// Encrypts or decrypts at most `G` groups of blocks in place.
#[inline(always)]
fn in_groups<P: Planes, const N: usize, const G: usize>(
    rounds: &dyn Rounds<P, N>,
    encrypt: bool,
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
    rounds.crypt(encrypt, &mut groups);
    let bytes = used.as_flattened_mut().chunks_mut(P::WIDE);
    for (&row, bytes) in groups.as_flattened().iter().zip(bytes) {
        planes.store(row, bytes);
    }
    if !whole {
        blocks.copy_from_slice(&padded[..blocks.len()]);
    }
}

/// Encrypts or decrypts whole sectors in place in XTS mode; `starts` has the first tweak of each.
/// Eight registers always belong to one sector.
///
/// XTS is for blocks of 16 bytes: it is never called for others.
struct Xts<'a, P, const N: usize> {
    rounds: &'a dyn Rounds<P, N>,
    encrypt: bool,
    starts: &'a [[u8; N]],
    sector_bytes: usize,
    data: &'a mut [u8],
}

impl<P: Planes, const N: usize> Work<P> for Xts<'_, P, N> {
    #[inline(always)]
    fn run(self, planes: P) {
        let group_bytes = N * P::WIDE;
        let mut tweaks = Tweaks {
            starts: self.starts.as_flattened().as_chunks().0,
            sector_eights: self.sector_bytes / (8 * P::WIDE),
            nth_eight: 0,
            last: [planes.splat(0); 8],
        };
        for data in self.data.chunks_mut(self.rounds.at_once() * group_bytes) {
            if data.len() > group_bytes {
                xts::<P, N, 2>(self.rounds, self.encrypt, planes, &mut tweaks, data);
            } else {
                xts::<P, N, 1>(self.rounds, self.encrypt, planes, &mut tweaks, data);
            }
        }
    }
}

/// Encrypts or decrypts at most `G` groups in place.
#[inline(always)]
fn xts<P: Planes, const N: usize, const G: usize>(
    rounds: &dyn Rounds<P, N>,
    encrypt: bool,
    planes: P,
    tweaks: &mut Tweaks<P>,
    data: &mut [u8],
) {
    let zero = planes.splat(0);
    let mut sums = [[zero; N]; G];
    let (eights, _) = sums.as_flattened_mut().as_chunks_mut::<8>();
    for eight in &mut eights[..data.len() / (8 * P::WIDE)] {
        *eight = tweaks.next(planes);
    }
    let sums = sums.as_flattened();
    let mut groups = [[zero; N]; G];
    let rows = groups.as_flattened_mut().iter_mut().zip(sums);
    for ((row, &sum), bytes) in rows.zip(data.chunks(P::WIDE)) {
        *row = planes.xor(planes.load(bytes), sum);
    }
    rounds.crypt(encrypt, &mut groups);
    let rows = groups.as_flattened().iter().zip(sums);
    for ((&row, &sum), bytes) in rows.zip(data.chunks_mut(P::WIDE)) {
        planes.store(planes.xor(row, sum), bytes);
    }
}

/// The tweaks of sectors, eight registers at a time.
struct Tweaks<'a, P: Planes> {
    starts: &'a [Block],
    sector_eights: usize,
    nth_eight: usize,
    last: [P::Vector; 8],
}

impl<P: Planes> Tweaks<'_, P> {
    #[inline(always)]
    fn next(&mut self, planes: P) -> [P::Vector; 8] {
        self.last = if self.nth_eight.is_multiple_of(self.sector_eights) {
            planes.first_tweaks(&self.starts[self.nth_eight / self.sector_eights])
        } else {
            planes.next_tweaks(self.last)
        };
        self.nth_eight += 1;
        self.last
    }
}

/// Encrypts whole sectors in place in CBC mode, as many side by side as there
/// are bytes in a register; `ivs` has one for each.
///
/// Sectors lie a power of two apart, where blocks of many of them would share a
/// few sets of the cache: so whole lines are taken. Of shorter blocks their halves
/// of 16 bytes come from two registers of lines:
///
/// ```text
/// lines of sectors a, b, …   a₀ a₁  b₀ b₁  …       a₀ p₀  b₀ q₀  …   row of block 0
/// lines of sectors p, q, …   p₀ p₁  q₀ q₁  …   ▶   a₁ p₁  b₁ q₁  …   row of block 1
/// ```
struct EncryptCbc<'a, P, const N: usize> {
    rounds: &'a dyn Rounds<P, N>,
    ivs: &'a [[u8; N]],
    sector_bytes: usize,
    data: &'a mut [u8],
}

impl<P: Planes, const N: usize> Work<P> for EncryptCbc<'_, P, N> {
    #[inline(always)]
    fn run(self, planes: P) {
        let sectors = self.rounds.at_once() * P::WIDE;
        let groups = self.data.chunks_mut(sectors * self.sector_bytes);
        for (ivs, data) in self.ivs.chunks(sectors).zip(groups) {
            if ivs.len() > P::WIDE {
                encrypt_cbc::<P, N, 2>(self.rounds, planes, ivs, self.sector_bytes, data);
            } else {
                encrypt_cbc::<P, N, 1>(self.rounds, planes, ivs, self.sector_bytes, data);
            }
        }
    }
}

/// Most blocks in a line.
const LINE_BLOCKS: usize = LINE / 8;

/// Encrypts as many sectors in place as fill `G` groups at most.
#[inline(always)]
fn encrypt_cbc<P: Planes, const N: usize, const G: usize>(
    rounds: &dyn Rounds<P, N>,
    planes: P,
    ivs: &[[u8; N]],
    sector_bytes: usize,
    data: &mut [u8],
) {
    let lanes = P::WIDE / 16;
    // Registers of lines for one of blocks.
    let parts = 16 / N;
    let zero = planes.splat(0);
    // Row i of block j of every sector's line.
    let mut rows = [[[zero; N]; G]; LINE_BLOCKS];
    let rows = &mut rows[..LINE / N];
    let mut chain = [[zero; N]; G];
    let mut lines = [[[[0; 4]; 2]; N]; G];
    let lines = lines.as_flattened_mut();
    // Places without a sector repeat the last one and are not written.
    let places = chain.as_flattened_mut().iter_mut().zip(&mut *lines);
    for (i, (row, lines)) in places.enumerate() {
        let mut starts = [[0; N]; LINE_BLOCKS];
        for lane in 0..lanes {
            for part in 0..parts {
                let sector = (parts * i + part) * lanes + lane;
                let sector = sector.min(ivs.len() - 1);
                starts[parts * lane + part] = ivs[sector];
                lines[part][lane] = sector * sector_bytes;
            }
        }
        *row = planes.load(starts.as_flattened());
    }
    let used = ivs.len().div_ceil(parts * lanes);
    for _ in 0..sector_bytes / LINE {
        for (i, [first, second]) in lines[..used].iter().enumerate() {
            let x = planes.load_lines(data, first);
            let y = match parts {
                2 => planes.load_lines(data, second),
                _ => x,
            };
            for j in 0..4 {
                if parts == 2 {
                    let [even, odd] = planes.interleave_halves(x[j], y[j]);
                    rows[2 * j].as_flattened_mut()[i] = even;
                    rows[2 * j + 1].as_flattened_mut()[i] = odd;
                } else {
                    rows[j].as_flattened_mut()[i] = x[j];
                }
            }
        }
        for rows in &mut *rows {
            let sums = chain.as_flattened_mut().iter_mut();
            for (x, &row) in sums.zip(rows.as_flattened()) {
                *x = planes.xor(*x, row);
            }
            rounds.crypt(true, &mut chain);
            *rows = chain;
        }
        for (i, lines) in lines[..used].iter_mut().enumerate() {
            let (mut x, mut y) = ([zero; 4], [zero; 4]);
            for j in 0..4 {
                if parts == 2 {
                    let even = rows[2 * j].as_flattened()[i];
                    let odd = rows[2 * j + 1].as_flattened()[i];
                    [x[j], y[j]] = planes.interleave_halves(even, odd);
                } else {
                    x[j] = rows[j].as_flattened()[i];
                }
            }
            let count = ivs.len() - parts * i * lanes;
            planes.store_lines(x, data, &lines[0], count);
            if parts == 2 {
                planes.store_lines(y, data, &lines[1], count.saturating_sub(lanes));
            }
            for line in lines.as_flattened_mut() {
                *line += LINE;
            }
        }
    }
}

/// Decrypts whole sectors in place in CBC mode; `ivs` has one for each.
struct DecryptCbc<'a, P, const N: usize> {
    rounds: &'a dyn Rounds<P, N>,
    ivs: &'a [[u8; N]],
    sector_bytes: usize,
    data: &'a mut [u8],
}

impl<P: Planes, const N: usize> Work<P> for DecryptCbc<'_, P, N> {
    #[inline(always)]
    fn run(self, planes: P) {
        let group_bytes = N * P::WIDE;
        let mut chains = Chains {
            ivs: self.ivs,
            sector_rows: self.sector_bytes / P::WIDE,
            nth_row: 0,
            last: [0; N],
        };
        for data in self.data.chunks_mut(self.rounds.at_once() * group_bytes) {
            if data.len() > group_bytes {
                decrypt_cbc::<P, N, 2>(self.rounds, planes, &mut chains, data);
            } else {
                decrypt_cbc::<P, N, 1>(self.rounds, planes, &mut chains, data);
            }
        }
    }
}

/// The IVs and the ciphertext that decrypted blocks are added to in CBC mode.
struct Chains<'a, const N: usize> {
    ivs: &'a [[u8; N]],
    sector_rows: usize,
    nth_row: usize,
    /// The ciphertext before them.
    last: [u8; N],
}

/// Most bytes in a register.
const MOST_WIDE: usize = 64;

/// Decrypts at most `G` groups in place.
#[inline(always)]
fn decrypt_cbc<P: Planes, const N: usize, const G: usize>(
    rounds: &dyn Rounds<P, N>,
    planes: P,
    chains: &mut Chains<N>,
    data: &mut [u8],
) {
    let mut groups = [[planes.splat(0); N]; G];
    let rows = groups.as_flattened_mut();
    for (row, bytes) in rows.iter_mut().zip(data.chunks(P::WIDE)) {
        *row = planes.load(bytes);
    }
    rounds.crypt(false, &mut groups);
    let next = *data.last_chunk().expect("a group of whole blocks");
    let used = data.len() / P::WIDE;
    // Backwards, so that the ciphertext before a row is still there.
    for (i, &row) in groups.as_flattened()[..used].iter().enumerate().rev() {
        let at = i * P::WIDE;
        let nth_row = chains.nth_row + i;
        let first = match nth_row.is_multiple_of(chains.sector_rows) {
            true => Some(&chains.ivs[nth_row / chains.sector_rows]),
            false if i == 0 => Some(&chains.last),
            false => None,
        };
        let before = match first {
            Some(first) => {
                let mut before = [0; MOST_WIDE];
                before[..N].copy_from_slice(first);
                before[N..P::WIDE].copy_from_slice(&data[at..at + P::WIDE - N]);
                planes.load(&before)
            }
            None => planes.load(&data[at - N..]),
        };
        planes.store(planes.xor(row, before), &mut data[at..]);
    }
    chains.last = next;
    chains.nth_row += used;
}
