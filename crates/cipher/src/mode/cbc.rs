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
//! cache lines, transposed in between.

use super::{BATCH, BlockMode, Blocks, GROUP, add_all, blocks};

/// Bytes of every sector that are read and written together: a cache line.
const LINE: usize = 64;

/// Blocks of 8 bytes in a line of every sector of a group.
const MOST_BLOCKS: usize = GROUP * LINE / 8;

/// The same of a single sector.
const FEW_BLOCKS: usize = LINE / 8;

/// A block cipher in CBC mode.
pub(crate) struct Cbc<C> {
    pub(crate) cipher: C,
}

impl<C: Blocks<N>, const N: usize> BlockMode<N> for Cbc<C> {
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

/// Encrypts sectors by a cipher of blocks, `crypt`, [`GROUP`] side by side.
pub(crate) fn encrypt<const N: usize>(
    ivs: &[[u8; N]],
    sector_bytes: usize,
    data: &mut [u8],
    crypt: impl Fn(&mut [[u8; N]]),
) {
    let groups = data.chunks_mut(GROUP * sector_bytes);
    for (ivs, group) in ivs.chunks(GROUP).zip(groups) {
        match ivs {
            [iv] => encrypt_in::<FEW_BLOCKS, N>(&mut [*iv], sector_bytes, group, &crypt),
            _ => {
                let mut chain = [[0; N]; GROUP];
                let chain = &mut chain[..ivs.len()];
                chain.copy_from_slice(ivs);
                encrypt_in::<MOST_BLOCKS, N>(chain, sector_bytes, group, &crypt);
            }
        }
    }
}

/// `chain` are the IVs at first; `ROOM` is enough for a line of every sector.
fn encrypt_in<const ROOM: usize, const N: usize>(
    chain: &mut [[u8; N]],
    sector_bytes: usize,
    data: &mut [u8],
    crypt: impl Fn(&mut [[u8; N]]),
) {
    let sectors = chain.len();
    // Row j: block j of this line, of every sector.
    let mut rows = [[0; N]; ROOM];
    let rows = &mut rows[..sectors * LINE / N];
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
    crypt: impl Fn(&mut [[u8; N]]),
) {
    let sector_blocks = sector_bytes / N;
    let mut before = [[0; N]; BATCH];
    let mut last = [0; N];
    let mut nth_block = 0_usize;
    for batch in blocks(data).chunks_mut(BATCH) {
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
