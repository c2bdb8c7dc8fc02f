//! CBC over a run of sectors.
//!
//! Decryption needs the ciphertext before each block, which is the data one
//! block back. Encryption of a block waits for the one before, so every lane
//! takes a sector of its own. Sectors lie 512 to 4096 bytes apart, where blocks
//! of many of them would share a few sets of the cache and throw each other
//! out: so whole lines are taken, and their blocks transposed,
//!
//! ```text
//! line of sector a   a₀ a₁ a₂ a₃        a₀ b₀ c₀ d₀   first
//! line of sector b   b₀ b₁ b₂ b₃   ⇄    a₁ b₁ c₁ d₁   then
//! line of sector c   c₀ c₁ c₂ c₃        a₂ b₂ c₂ d₂   then
//! line of sector d   d₀ d₁ d₂ d₃        a₃ b₃ c₃ d₃   last
//! ```
//!
//! Where a batch of sectors is larger than [`SPAN`], the lines at one place are too
//! many even so, and every register is a line behind the one before it.

use super::{BATCH, Engine, Keyed, LINE, Work, inner_rounds, last_round, with_keys};
use crate::block::Block;

/// Bytes of a batch of sectors whose lines at one place have room in a first-level
/// cache, one beside the other: its size.
const SPAN: usize = 32 << 10;

/// Decrypts sectors in place; `ivs` has one for each.
pub(super) struct Decrypt<'a> {
    pub(super) keys: &'a [Block],
    pub(super) ivs: &'a [Block],
    pub(super) sector_bytes: usize,
    pub(super) data: &'a mut [u8],
}

impl Work for Decrypt<'_> {
    #[inline(always)]
    fn run<E: Engine>(self, engine: E) {
        with_keys(engine, self.keys, self);
    }
}

impl Keyed for Decrypt<'_> {
    #[inline(always)]
    fn run<E: Engine, const KEYS: usize>(self, engine: E, keys: &[Block; KEYS]) {
        let sectors = self.data.chunks_exact_mut(self.sector_bytes);
        for (sector, iv) in sectors.zip(self.ivs) {
            let mut previous = engine.splat(iv);
            let blocks = sector.as_chunks_mut::<16>().0;
            for batch in blocks.chunks_exact_mut(BATCH * E::LANES) {
                let last = engine.load(&batch[(BATCH - 1) * E::LANES..]);
                decrypt(engine, keys, previous, batch);
                previous = last;
            }
        }
    }
}

#[inline(always)]
fn decrypt<E: Engine, const KEYS: usize>(
    engine: E,
    keys: &[Block; KEYS],
    previous: E::Vector,
    blocks: &mut [Block],
) {
    let first = engine.splat(&keys[0]);
    let mut batch = [first; BATCH];
    for (v, x) in batch.iter_mut().enumerate() {
        *x = engine.add(*x, engine.load(&blocks[v * E::LANES..]));
    }
    inner_rounds::<E, false, KEYS, BATCH>(engine, keys, &mut batch);
    let last = engine.splat(&keys[KEYS - 1]);
    // Backwards, so that the ciphertext before a register is still there.
    for v in (0..BATCH).rev() {
        let before = if v == 0 {
            engine.shift_in(previous, engine.load(blocks))
        } else {
            engine.load(&blocks[v * E::LANES - 1..])
        };
        let y = last_round::<E, false>(engine, batch[v], engine.add(last, before));
        engine.store(y, &mut blocks[v * E::LANES..]);
    }
}

/// Encrypts sectors in place; `ivs` has one for each.
pub(super) struct Encrypt<'a> {
    pub(super) keys: &'a [Block],
    pub(super) ivs: &'a [Block],
    pub(super) sector_bytes: usize,
    pub(super) data: &'a mut [u8],
}

impl Work for Encrypt<'_> {
    #[inline(always)]
    fn run<E: Engine>(self, engine: E) {
        with_keys(engine, self.keys, self);
    }
}

impl Keyed for Encrypt<'_> {
    #[inline(always)]
    fn run<E: Engine, const KEYS: usize>(self, engine: E, keys: &[Block; KEYS]) {
        let sector_bytes = self.sector_bytes;
        let full = BATCH * E::LANES;
        let staggered = match full * sector_bytes > SPAN {
            true => self.ivs.len() / full * full,
            false => 0,
        };
        let (first_ivs, ivs) = self.ivs.split_at(staggered);
        let (first, rest) = self.data.split_at_mut(staggered * sector_bytes);
        if staggered > 0 {
            encrypt_staggered::<E, KEYS>(engine, keys, first_ivs, sector_bytes, first);
        }
        for (data, ivs) in rest.chunks_mut(full * sector_bytes).zip(ivs.chunks(full)) {
            // The fewest registers that hold all: a round of few takes less time.
            match ivs.len().div_ceil(E::LANES) {
                1 => encrypt::<E, KEYS, 1>(engine, keys, ivs, sector_bytes, data),
                2 => encrypt::<E, KEYS, 2>(engine, keys, ivs, sector_bytes, data),
                3 | 4 => encrypt::<E, KEYS, 4>(engine, keys, ivs, sector_bytes, data),
                _ => encrypt::<E, KEYS, BATCH>(engine, keys, ivs, sector_bytes, data),
            }
        }
    }
}

/// At most `N` registers of sectors, each in its lane. Lanes without a sector
/// repeat the last one and are not written.
#[inline(always)]
fn encrypt<E: Engine, const KEYS: usize, const N: usize>(
    engine: E,
    keys: &[Block; KEYS],
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    let zero = [[0; 16]; 4];
    let mut state = [engine.load(&zero); N];
    let mut lines = [[0; 4]; N];
    for v in 0..N {
        let mut start = zero;
        for lane in 0..E::LANES {
            let sector = (v * E::LANES + lane).min(ivs.len() - 1);
            start[lane] = ivs[sector];
            lines[v][lane] = sector * sector_bytes;
        }
        state[v] = engine.load(&start);
    }
    let first = engine.splat(&keys[0]);
    for _ in 0..sector_bytes / LINE {
        let mut blocks = [[first; N]; 4];
        for v in 0..N {
            let line = engine.load_lines(data, &lines[v]);
            for (blocks, block) in blocks.iter_mut().zip(line) {
                blocks[v] = block;
            }
        }
        encrypt_line::<E, KEYS, N>(engine, keys, &mut state, &mut blocks);
        let [a, b, c, d] = blocks;
        for v in 0..N {
            let count = ivs.len().saturating_sub(v * E::LANES).min(E::LANES);
            engine.store_lines([a[v], b[v], c[v], d[v]], data, &lines[v], count);
            for line in &mut lines[v] {
                *line += LINE;
            }
        }
    }
}

/// Whole batches of sectors, one after the other: each register is a line behind
/// the one before it, and goes on to its next sectors when the others are not there
/// yet.
#[inline(always)]
fn encrypt_staggered<E: Engine, const KEYS: usize>(
    engine: E,
    keys: &[Block; KEYS],
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    let first = engine.splat(&keys[0]);
    let mut state = [first; BATCH];
    let mut lines = [[0; 4]; BATCH];
    let lanes_lines = data.len() / LINE / (BATCH * E::LANES);
    // A mask is faster than a division, and sectors are powers of two.
    let within_sector = sector_bytes / LINE - 1;
    for step in 0..lanes_lines + BATCH - 1 {
        let active = |v: usize| (v..v + lanes_lines).contains(&step);
        let mut blocks = [[first; BATCH]; 4];
        for v in 0..BATCH {
            if !active(v) {
                continue;
            }
            if (step - v) & within_sector == 0 {
                let batch = (step - v) * LINE / sector_bytes;
                let sector = (batch * BATCH + v) * E::LANES;
                state[v] = engine.load(&ivs[sector..]);
                for (lane, line) in lines[v][..E::LANES].iter_mut().enumerate() {
                    *line = (sector + lane) * sector_bytes;
                }
            }
            let line = engine.load_lines(data, &lines[v]);
            for (blocks, block) in blocks.iter_mut().zip(line) {
                blocks[v] = block;
            }
        }
        encrypt_line::<E, KEYS, BATCH>(engine, keys, &mut state, &mut blocks);
        let [a, b, c, d] = blocks;
        for v in 0..BATCH {
            if active(v) {
                engine.store_lines([a[v], b[v], c[v], d[v]], data, &lines[v], E::LANES);
                for line in &mut lines[v] {
                    *line += LINE;
                }
            }
        }
    }
}

/// Four blocks of every lane, one after the other.
#[inline(always)]
fn encrypt_line<E: Engine, const KEYS: usize, const N: usize>(
    engine: E,
    keys: &[Block; KEYS],
    state: &mut [E::Vector; N],
    blocks: &mut [[E::Vector; N]; 4],
) {
    let first = engine.splat(&keys[0]);
    let last = engine.splat(&keys[KEYS - 1]);
    for j in 0..blocks.len() {
        if N > 1 || j == 0 {
            for (x, &block) in state.iter_mut().zip(&blocks[j]) {
                *x = engine.add(engine.add(*x, block), first);
            }
        }
        inner_rounds::<E, true, KEYS, N>(engine, keys, state);
        // A round adds its key last, so the next block may come with it:
        // a chain of one block waits for rounds only, and not for a sum.
        if let (1, Some(next)) = (N, blocks.get(j + 1)) {
            let next = engine.add(next[0], first);
            state[0] = last_round::<E, true>(engine, state[0], engine.add(last, next));
            blocks[j][0] = engine.add(state[0], next);
        } else {
            for x in state.iter_mut() {
                *x = last_round::<E, true>(engine, *x, last);
            }
            blocks[j] = *state;
        }
    }
}
