//! XTS (IEEE Std 1619-2018, section 5) over whole sectors.
//!
//! ```text
//! T₀ = E[tweak key](IV of the sector)      Tⱼ₊₁ = Tⱼ·x in GF(2¹²⁸)
//! Cⱼ = E[data key](Pⱼ ⊕ Tⱼ) ⊕ Tⱼ
//! ```
//!
//! A sector is a multiple of 16 bytes, so ciphertext stealing never happens.
//! The first tweaks of up to [`GROUP`] sectors are encrypted in one call. What
//! follows is the cipher's own kernel or [`run`], which calls the cipher for
//! [`BATCH`] blocks at a time, whichever sectors they belong to.

use crate::block::{Block, BlockCipher};
use crate::{Backend, IvGenerator, IvSector, SectorCipher, SectorLayout};

/// Sectors whose first tweaks are encrypted in one call.
const GROUP: usize = 64;

/// Blocks encrypted in one call: their tweaks stay in the L1 cache.
const BATCH: usize = 128;

/// Blocks that always belong to one sector: those of the smallest size.
const STRETCH: usize = 32;

/// A block cipher in XTS mode.
pub(crate) struct Xts<C> {
    data: C,
    tweak: C,
    iv: IvGenerator,
    layout: SectorLayout,
}

impl<C: BlockCipher<16>> Xts<C> {
    /// Makes the ciphers by `keyed`; `key` is data key then tweak key, of equal
    /// length.
    pub(crate) fn new(
        keyed: impl Fn(&[u8]) -> C,
        key: &[u8],
        iv: IvGenerator,
        layout: SectorLayout,
    ) -> Self {
        let (data, tweak) = key.split_at(key.len() / 2);
        Self {
            data: keyed(data),
            tweak: keyed(tweak),
            iv,
            layout,
        }
    }

    /// Cuts the run into groups and gives `crypt` each, with its first tweaks.
    fn groups(&self, first: IvSector, data: &mut [u8], crypt: impl Fn(&[Block], &mut [u8])) {
        let sector_bytes = self.layout.size.bytes();
        assert!(
            data.len().is_multiple_of(sector_bytes),
            "{} bytes are not a whole number of {sector_bytes}-byte sectors",
            data.len()
        );
        let mut sector = first;
        for group in data.chunks_mut(GROUP * sector_bytes) {
            let mut starts = [[0; 16]; GROUP];
            let starts = &mut starts[..group.len() / sector_bytes];
            for start in &mut *starts {
                *start = self.iv.block(sector);
                sector = sector.advance(1, self.layout);
            }
            self.tweak.encrypt_blocks(starts);
            crypt(starts, group);
        }
    }
}

/// Whole sectors in place by a cipher of blocks, `crypt`.
pub(crate) fn run(
    starts: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
    crypt: impl Fn(&mut [Block]),
) {
    let stretches = sector_bytes / (STRETCH * 16);
    let mut tweak = 0;
    let mut nth_stretch = 0;
    let mut tweaks = [0_u128; BATCH];
    let (blocks, []) = data.as_chunks_mut::<16>() else {
        unreachable!("sectors are whole blocks");
    };
    for batch in blocks.chunks_mut(BATCH) {
        let tweaks = &mut tweaks[..batch.len()];
        for stretch in tweaks.as_chunks_mut::<STRETCH>().0 {
            if nth_stretch % stretches == 0 {
                tweak = u128::from_le_bytes(starts[nth_stretch / stretches]);
            }
            nth_stretch += 1;
            tweak = fill(stretch, tweak);
        }
        add(batch, tweaks);
        crypt(batch);
        add(batch, tweaks);
    }
}

impl<C: BlockCipher<16>> SectorCipher for Xts<C> {
    fn layout(&self) -> SectorLayout {
        self.layout
    }

    fn backend(&self) -> Backend {
        C::BACKEND
    }

    fn constant_time(&self) -> bool {
        C::CONSTANT_TIME
    }

    fn encrypt(&self, first: IvSector, data: &mut [u8]) {
        let bytes = self.layout.size.bytes();
        self.groups(first, data, |starts, group| {
            self.data.encrypt_xts(starts, bytes, group);
        });
    }

    fn decrypt(&self, first: IvSector, data: &mut [u8]) {
        let bytes = self.layout.size.bytes();
        self.groups(first, data, |starts, group| {
            self.data.decrypt_xts(starts, bytes, group);
        });
    }
}

/// Writes `tweak` and its successors, and returns the one after them. Four
/// runs side by side, because one doubling waits for the one before.
#[inline(always)]
fn fill(stretch: &mut [u128; STRETCH], tweak: u128) -> u128 {
    let [a, b, c, d] = stretch.as_chunks_mut::<8>().0 else {
        unreachable!("a stretch is four runs of eight");
    };
    a[0] = tweak;
    b[0] = times_x8(a[0]);
    c[0] = times_x8(b[0]);
    d[0] = times_x8(c[0]);
    for i in 1..8 {
        a[i] = times_x(a[i - 1]);
        b[i] = times_x(b[i - 1]);
        c[i] = times_x(c[i - 1]);
        d[i] = times_x(d[i - 1]);
    }
    times_x8(d[0])
}

fn add(blocks: &mut [Block], tweaks: &[u128]) {
    for (block, tweak) in blocks.iter_mut().zip(tweaks) {
        *block = (u128::from_ne_bytes(*block) ^ tweak.to_le()).to_ne_bytes();
    }
}

/// Multiplies by x modulo x¹²⁸ + x⁷ + x² + x + 1, without a branch.
const fn times_x(tweak: u128) -> u128 {
    (tweak << 1) ^ (((tweak as i128 >> 127) as u128) & 0x87)
}

/// Multiplies by x⁸: the byte that overflows comes back times x⁷ + x² + x + 1.
const fn times_x8(tweak: u128) -> u128 {
    let over = tweak >> 120;
    (tweak << 8) ^ over ^ (over << 1) ^ (over << 2) ^ (over << 7)
}
