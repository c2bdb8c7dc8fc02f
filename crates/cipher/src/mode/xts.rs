//! XTS (IEEE Std 1619-2018, section 5) over whole sectors.
//!
//! ```text
//! T₀ = E[tweak key](IV of the sector)      Tⱼ₊₁ = Tⱼ·x in GF(2¹²⁸)
//! Cⱼ = E[data key](Pⱼ ⊕ Tⱼ) ⊕ Tⱼ
//! ```
//!
//! A sector is a multiple of 16 bytes, so ciphertext stealing never happens. The work goes in
//! batches that fill a cipher with many lanes. The first tweaks of the group's sectors are computed
//! in one call, then [`BATCH`] blocks a call, whichever sectors they belong to.

use super::{BATCH, BlockMode, add, add_all, blocks, times_x};
use crate::block::{Block, Keyed, Keying};

/// Blocks that always belong to one sector: those of the smallest size.
pub(crate) const STRETCH: usize = 32;

/// A block cipher in XTS mode.
pub(crate) struct Xts {
    data: Keyed<16>,
    tweak: Keyed<16>,
}

impl Xts {
    /// Makes the ciphers by `keyed`; `key` is data key then tweak key, of equal
    /// length.
    pub(crate) fn new(keyed: &Keying<16>, key: &[u8]) -> Self {
        let (data, tweak) = key.split_at(key.len() / 2);
        Self {
            data: keyed(data),
            tweak: keyed(tweak),
        }
    }
}

impl BlockMode<16> for Xts {
    fn encrypt(&self, ivs: &mut [Block], data: &mut [u8]) {
        self.tweak.encrypt_blocks(ivs);
        self.data.encrypt_xts(ivs, data.len() / ivs.len(), data);
    }

    fn decrypt(&self, ivs: &mut [Block], data: &mut [u8]) {
        self.tweak.encrypt_blocks(ivs);
        self.data.decrypt_xts(ivs, data.len() / ivs.len(), data);
    }

    fn encrypt_zeros(&self, ivs: &mut [Block]) {
        self.tweak.encrypt_blocks(ivs);
        for iv in ivs {
            let tweak = *iv;
            self.data.encrypt_blocks(std::slice::from_mut(iv));
            add(iv, &tweak);
        }
    }
}

/// Encrypts or decrypts whole sectors in place by `crypt`, a cipher of blocks; `starts` has the
/// first tweak of each.
///
/// XTS is for blocks of 16 bytes: this is compiled for other `N`, but never called.
pub(crate) fn run<const N: usize>(
    starts: &[[u8; N]],
    sector_bytes: usize,
    data: &mut [u8],
    crypt: &dyn Fn(&mut [[u8; N]]),
) {
    let starts: &[Block] = starts.as_flattened().as_chunks().0;
    let crypt = |batch: &mut [Block]| crypt(blocks(batch.as_flattened_mut()));
    let stretches = sector_bytes / (STRETCH * 16);
    // Clearing room for more tweaks would take a small sector longer than
    // computing its own.
    match data.len() / 16 {
        STRETCH => run_in::<STRETCH>(starts, stretches, data, crypt),
        _ => run_in::<BATCH>(starts, stretches, data, crypt),
    }
}

/// A sector is `stretches` long, and [`run`] works on `BATCH` blocks at a time.
fn run_in<const BATCH: usize>(
    starts: &[Block],
    stretches: usize,
    data: &mut [u8],
    crypt: impl Fn(&mut [Block]),
) {
    let mut tweak = 0;
    let mut nth_stretch = 0;
    let mut tweaks = [[0; 16]; BATCH];
    for batch in blocks(data).chunks_mut(BATCH) {
        let tweaks = &mut tweaks[..batch.len()];
        for stretch in tweaks.as_chunks_mut::<STRETCH>().0 {
            if nth_stretch % stretches == 0 {
                tweak = u128::from_le_bytes(starts[nth_stretch / stretches]);
            }
            nth_stretch += 1;
            tweak = fill(stretch, tweak);
        }
        add_all(batch, tweaks);
        crypt(batch);
        add_all(batch, tweaks);
    }
}

/// Writes `tweak` and its successors, and returns the one after them. Four
/// runs side by side, because one doubling waits for the one before.
#[inline(always)]
pub(crate) fn fill(stretch: &mut [Block; STRETCH], tweak: u128) -> u128 {
    const RUN: usize = STRETCH / 4;
    let mut runs = [tweak; 4];
    for i in 1..4 {
        runs[i] = times_x8(runs[i - 1]);
    }
    let next = times_x8(runs[3]);
    for i in 0..RUN {
        for (nth, tweak) in runs.iter_mut().enumerate() {
            stretch[nth * RUN + i] = tweak.to_le_bytes();
            *tweak = times_x(*tweak);
        }
    }
    next
}

/// Multiplies by x⁸: the byte that overflows comes back times x⁷ + x² + x + 1.
const fn times_x8(tweak: u128) -> u128 {
    let over = tweak >> 120;
    (tweak << 8) ^ over ^ (over << 1) ^ (over << 2) ^ (over << 7)
}
