//! CBC (NIST SP 800-38A, section 6.2) over many sectors at once.
//!
//! ```text
//! C₀ = E(P₀ ⊕ IV)      Cⱼ = E(Pⱼ ⊕ Cⱼ₋₁)
//! ```
//!
//! Encryption is serial inside a sector, but sectors are independent: block j
//! of every sector of the group goes to the cipher in one call.
//!
//! ```text
//!             sector 0   sector 1   sector 2  …
//! block 0     E          E          E            one call
//! block 1     E          E          E            the next
//! ```
//!
//! Sectors lie a power of two apart, so the same block of each falls into the
//! same few sets of the L1 cache. They are therefore read and written by whole
//! cache lines, transposed in between. A few sectors need none of that.

use super::{BATCH_BYTES, BlockMode, GROUP, MOST_SECTORS, SMALL, add, add_all, blocks};
use crate::block::Keyed;

/// Bytes of every sector that are read and written together: a cache line.
const LINE: usize = 64;

/// A block cipher in CBC mode.
pub(crate) struct Cbc<const N: usize> {
    pub(crate) cipher: Keyed<N>,
}

impl<const N: usize> BlockMode<N> for Cbc<N> {
    fn most_sectors(&self) -> usize {
        self.cipher.side_by_side()
    }

    fn encrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]) {
        self.cipher.encrypt_cbc(ivs, data.len() / ivs.len(), data);
    }

    fn decrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]) {
        self.cipher.decrypt_cbc(ivs, data.len() / ivs.len(), data);
    }

    fn encrypt_zeros(&self, ivs: &mut [[u8; N]]) {
        self.cipher.encrypt_blocks(ivs);
    }
}

/// Encrypts sectors by a cipher of blocks, `crypt`, as many side by side as a
/// cipher can ask for.
pub(crate) fn encrypt<const N: usize>(
    ivs: &[[u8; N]],
    sector_bytes: usize,
    data: &mut [u8],
    crypt: &dyn Fn(&mut [[u8; N]]),
) {
    let groups = data.chunks_mut(MOST_SECTORS * sector_bytes);
    for (ivs, group) in ivs.chunks(MOST_SECTORS).zip(groups) {
        match ivs {
            [iv] => encrypt_few(&[*iv], group, |blocks| crypt(blocks)),
            _ if ivs.len() <= GROUP => {
                let mut chain = [[0; N]; GROUP];
                let rows = &mut [0; GROUP * LINE];
                encrypt_in(ivs, &mut chain, rows, group, crypt);
            }
            _ => {
                let mut chain = [[0; N]; MOST_SECTORS];
                let rows = &mut [0; MOST_SECTORS * LINE];
                encrypt_in(ivs, &mut chain, rows, group, crypt);
            }
        }
    }
}

/// Encrypts `S` sectors, block by block, by a cipher of that many, `crypt`. It
/// becomes part of a caller that is compiled for more than the build asks for.
#[inline(always)]
pub(crate) fn encrypt_few<const S: usize, const N: usize>(
    ivs: &[[u8; N]; S],
    data: &mut [u8],
    crypt: impl Fn(&mut [[u8; N]; S]),
) {
    let mut chain = *ivs;
    let blocks = blocks::<N>(data);
    let sector_blocks = blocks.len() / S;
    for nth in 0..sector_blocks {
        for (sector, before) in chain.iter_mut().enumerate() {
            add(before, &blocks[sector * sector_blocks + nth]);
        }
        crypt(&mut chain);
        for (sector, block) in chain.iter().enumerate() {
            blocks[sector * sector_blocks + nth] = *block;
        }
    }
}

/// One sector for each of `ivs`; `chain` and `rows` have room for a block and a
/// line of each.
fn encrypt_in<const N: usize>(
    ivs: &[[u8; N]],
    chain: &mut [[u8; N]],
    rows: &mut [u8],
    data: &mut [u8],
    crypt: &dyn Fn(&mut [[u8; N]]),
) {
    let sectors = ivs.len();
    let sector_bytes = data.len() / sectors;
    let chain = &mut chain[..sectors];
    chain.copy_from_slice(ivs);
    // Row j: block j of this line, of every sector.
    let rows = blocks(&mut rows[..sectors * LINE]);
    for line in (0..sector_bytes).step_by(LINE) {
        for (nth, sector) in data.chunks_exact(sector_bytes).enumerate() {
            let (blocks, _) = sector[line..line + LINE].as_chunks();
            for (row, block) in blocks.iter().enumerate() {
                rows[row * sectors + nth] = *block;
            }
        }
        for row in rows.chunks_exact_mut(sectors) {
            add_all(row, chain);
            crypt(row);
            chain.copy_from_slice(row);
        }
        for (nth, sector) in data.chunks_exact_mut(sector_bytes).enumerate() {
            let (blocks, _) = sector[line..line + LINE].as_chunks_mut();
            for (row, block) in blocks.iter_mut().enumerate() {
                *block = rows[row * sectors + nth];
            }
        }
    }
}

/// Decrypts sectors by a cipher of blocks, `crypt`.
pub(crate) fn decrypt<const N: usize>(
    ivs: &[[u8; N]],
    sector_bytes: usize,
    data: &mut [u8],
    crypt: &dyn Fn(&mut [[u8; N]]),
) {
    match data.len() {
        ..=SMALL => decrypt_in(ivs, sector_bytes, data, &mut [0; SMALL], crypt),
        _ => decrypt_in(ivs, sector_bytes, data, &mut [0; BATCH_BYTES], crypt),
    }
}

/// As many bytes at a time as there is room for the blocks `before` them.
fn decrypt_in<const N: usize>(
    ivs: &[[u8; N]],
    sector_bytes: usize,
    data: &mut [u8],
    before: &mut [u8],
    crypt: &dyn Fn(&mut [[u8; N]]),
) {
    let sector_blocks = sector_bytes / N;
    let before = blocks(before);
    let mut last = [0; N];
    let mut nth_block = 0_usize;
    for batch in blocks(data).chunks_mut(before.len()) {
        let before = &mut before[..batch.len()];
        before[0] = last;
        before[1..].copy_from_slice(&batch[..batch.len() - 1]);
        last = batch[batch.len() - 1];
        let first_start = nth_block.next_multiple_of(sector_blocks);
        for start in (first_start..nth_block + batch.len()).step_by(sector_blocks) {
            before[start - nth_block] = ivs[start / sector_blocks];
        }
        nth_block += batch.len();
        crypt(batch);
        add_all(batch, before);
    }
}
