//! CBC over a run of sectors for any block cipher.
//!
//! ```text
//! C₋₁ = IV      Cⱼ = E(Pⱼ ⊕ Cⱼ₋₁)
//! ```

use super::BlockCipher;

/// Sectors whose blocks are encrypted in one call.
const SECTORS: usize = 64;

/// Blocks decrypted in one call.
const BATCH: usize = 64;

/// Encrypts sectors in place. A block waits for the one before, so block j of
/// many sectors is encrypted in one call, then block j + 1 of all.
pub(super) fn encrypt<const N: usize>(
    cipher: &impl BlockCipher<N>,
    ivs: &[[u8; N]],
    sector_bytes: usize,
    data: &mut [u8],
) {
    let groups = data.chunks_mut(SECTORS * sector_bytes);
    for (group, ivs) in groups.zip(ivs.chunks(SECTORS)) {
        let mut state = [[0; N]; SECTORS];
        let state = &mut state[..ivs.len()];
        state.copy_from_slice(ivs);
        for at in (0..sector_bytes).step_by(N) {
            for (nth, block) in state.iter_mut().enumerate() {
                add(block, &group[nth * sector_bytes + at..][..N]);
            }
            cipher.encrypt_blocks(state);
            for (nth, block) in state.iter().enumerate() {
                group[nth * sector_bytes + at..][..N].copy_from_slice(block);
            }
        }
    }
}

/// Decrypts sectors in place.
pub(super) fn decrypt<const N: usize>(
    cipher: &impl BlockCipher<N>,
    ivs: &[[u8; N]],
    sector_bytes: usize,
    data: &mut [u8],
) {
    for (sector, iv) in data.chunks_exact_mut(sector_bytes).zip(ivs) {
        let mut before = *iv;
        for batch in sector.as_chunks_mut::<N>().0.chunks_mut(BATCH) {
            let mut added = [[0; N]; BATCH];
            added[0] = before;
            added[1..batch.len()].copy_from_slice(&batch[..batch.len() - 1]);
            before = batch[batch.len() - 1];
            cipher.decrypt_blocks(batch);
            for (block, added) in batch.iter_mut().zip(&added) {
                add(block, added);
            }
        }
    }
}

fn add(block: &mut [u8], other: &[u8]) {
    for (byte, other) in block.iter_mut().zip(other) {
        *byte ^= other;
    }
}
