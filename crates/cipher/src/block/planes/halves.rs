//! Ciphers of 8-byte blocks over whole groups of them.

use super::sectors::{Blocks, InPlanes, Kernel, MOST, at_once, crypt};
use super::{LINE, Planes, Work};
use crate::Backend;
use crate::block::BlockCipher;

type Block = [u8; 8];

impl<P: Planes, K: Kernel<P, 8>> BlockCipher<8> for InPlanes<P, K> {
    const BACKEND: Backend = P::BACKEND;
    const CONSTANT_TIME: bool = true;
    const SIDE_BY_SIDE: usize = at_once::<P, K, 8>() * MOST;

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
        let sectors = at_once::<P, K, 8>() * P::WIDE;
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
fn encrypt_cbc<P: Planes, K: Kernel<P, 8>, const G: usize>(
    kernel: &K,
    planes: P,
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    let lanes = P::WIDE / 16;
    let zero = planes.splat(0);
    // Row i of block j of every sector's line.
    let mut rows = [[[zero; 8]; G]; LINE / 8];
    let mut chain = [[zero; 8]; G];
    let mut lines = [[[[0; 4]; 2]; 8]; G];
    let lines = lines.as_flattened_mut();
    // Places without a sector repeat the last one and are not written.
    let places = chain.as_flattened_mut().iter_mut().zip(&mut *lines);
    for (i, (row, lines)) in places.enumerate() {
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
                rows[2 * j].as_flattened_mut()[i] = even;
                rows[2 * j + 1].as_flattened_mut()[i] = odd;
            }
        }
        for rows in &mut rows {
            let sums = chain.as_flattened_mut().iter_mut();
            for (x, &row) in sums.zip(rows.as_flattened()) {
                *x = planes.xor(*x, row);
            }
            crypt::<P, K, 8, true, G>(kernel, planes, &mut chain);
            *rows = chain;
        }
        for (i, lines) in lines[..used].iter_mut().enumerate() {
            let (mut x, mut y) = ([zero; 4], [zero; 4]);
            for j in 0..4 {
                let even = rows[2 * j].as_flattened()[i];
                let odd = rows[2 * j + 1].as_flattened()[i];
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
        let group_bytes = 8 * P::WIDE;
        let mut chains = Chains {
            ivs: self.ivs,
            sector_groups: self.sector_bytes / group_bytes,
            nth_group: 0,
            last: [0; 8],
        };
        for data in self.data.chunks_mut(at_once::<P, K, 8>() * group_bytes) {
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
    sector_groups: usize,
    nth_group: usize,
    /// The ciphertext before them.
    last: Block,
}

/// Decrypts `G` groups in place.
#[inline(always)]
fn decrypt_cbc<P: Planes, K: Kernel<P, 8>, const G: usize>(
    kernel: &K,
    planes: P,
    chains: &mut Chains,
    data: &mut [u8],
) {
    let mut groups = [[planes.splat(0); 8]; G];
    let rows = groups.as_flattened_mut();
    for (row, bytes) in rows.iter_mut().zip(data.chunks_exact(P::WIDE)) {
        *row = planes.load(bytes);
    }
    crypt::<P, K, 8, false, G>(kernel, planes, &mut groups);
    for (rows, data) in groups.iter().zip(data.chunks_exact_mut(8 * P::WIDE)) {
        let last = if chains.nth_group.is_multiple_of(chains.sector_groups) {
            chains.ivs[chains.nth_group / chains.sector_groups]
        } else {
            chains.last
        };
        chains.last = *data.last_chunk().expect("a group of whole blocks");
        chains.nth_group += 1;
        // Backwards, so that the ciphertext before a row is still there.
        for i in (1..8).rev() {
            let before = planes.load(&data[i * P::WIDE - 8..]);
            planes.store(planes.xor(rows[i], before), &mut data[i * P::WIDE..]);
        }
        let mut before = [0; MOST_WIDE];
        before[..8].copy_from_slice(&last);
        before[8..P::WIDE].copy_from_slice(&data[..P::WIDE - 8]);
        planes.store(planes.xor(rows[0], planes.load(&before)), data);
    }
}

/// Most bytes in a register.
const MOST_WIDE: usize = 64;
