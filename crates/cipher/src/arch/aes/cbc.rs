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

use super::{BATCH, Engine, Keyed, LINE, Lines, inner_rounds, last_round, with_keys};
use crate::block::Block;
use crate::work::Work;

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

impl<E: Engine> Work<E> for Decrypt<'_> {
    #[inline(always)]
    fn run(self, engine: E) {
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

impl<E: Engine> Work<E> for Encrypt<'_> {
    #[inline(always)]
    fn run(self, engine: E) {
        with_keys(engine, self.keys, self);
    }
}

impl Keyed for Encrypt<'_> {
    #[inline(always)]
    fn run<E: Engine, const KEYS: usize>(self, engine: E, keys: &[Block; KEYS]) {
        let sector_bytes = self.sector_bytes;
        let full = BATCH * E::LANES;
        let whole = self.ivs.len() / full * full;
        let (first_ivs, ivs) = self.ivs.split_at(whole);
        let (first, rest) = self.data.split_at_mut(whole * sector_bytes);
        if whole > 0 {
            encrypt_batches::<E, KEYS>(engine, keys, first_ivs, sector_bytes, first);
        }
        for (data, ivs) in rest.chunks_mut(full * sector_bytes).zip(ivs.chunks(full)) {
            // The fewest registers that hold all: a round of few takes less time.
            match ivs.len().div_ceil(E::LANES) {
                1 => encrypt_chain::<E, KEYS>(engine, keys, ivs, sector_bytes, data),
                2 => encrypt::<E, KEYS, 2>(engine, keys, ivs, sector_bytes, data),
                3 | 4 => encrypt::<E, KEYS, 4>(engine, keys, ivs, sector_bytes, data),
                _ => encrypt::<E, KEYS, BATCH>(engine, keys, ivs, sector_bytes, data),
            }
        }
    }
}

/// One register of sectors, each in its lane: a chain that waits for nothing but
/// rounds. A round adds its key last, so the next block comes with it.
#[inline(always)]
fn encrypt_chain<E: Engine, const KEYS: usize>(
    engine: E,
    keys: &[Block; KEYS],
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    let ([start], [mut lines]) = begin::<E, 1>(engine, ivs, sector_bytes);
    let (first, last) = (engine.splat(&keys[0]), engine.splat(&keys[KEYS - 1]));
    let mut line = engine.load_lines(data, &lines);
    let mut state = [engine.add(start, engine.add(line[0], first))];
    let line_count = sector_bytes / LINE;
    for nth in 1..=line_count {
        let here = lines;
        for line in &mut lines {
            *line += LINE;
        }
        // Behind the last line no block is next, and what is added to the chain
        // then goes nowhere.
        let next_line = match nth < line_count {
            true => engine.load_lines(data, &lines),
            false => line,
        };
        let mut found = line;
        for (j, next) in [line[1], line[2], line[3], next_line[0]]
            .into_iter()
            .enumerate()
        {
            inner_rounds::<E, true, KEYS, 1>(engine, keys, &mut state);
            let next = engine.add(next, first);
            state[0] = last_round::<E, true>(engine, state[0], engine.add(last, next));
            found[j] = engine.add(state[0], next);
        }
        engine.store_lines(found, data, &here, ivs.len().min(E::LANES));
        line = next_line;
    }
}

/// The starts of `N` registers of sectors, and where their first lines are. Lanes
/// without a sector repeat the last one, and are not to be written.
#[inline(always)]
fn begin<E: Engine, const N: usize>(
    engine: E,
    ivs: &[Block],
    sector_bytes: usize,
) -> ([E::Vector; N], [Lines; N]) {
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
    (state, lines)
}

/// At most `N` registers of sectors, each in its lane.
#[inline(always)]
fn encrypt<E: Engine, const KEYS: usize, const N: usize>(
    engine: E,
    keys: &[Block; KEYS],
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    let (mut state, mut lines) = begin::<E, N>(engine, ivs, sector_bytes);
    let first = engine.splat(&keys[0]);
    for _ in 0..sector_bytes / LINE {
        let mut blocks = [[first; N]; 4];
        for v in 0..N {
            let line = engine.load_lines(data, &lines[v]);
            for (blocks, block) in blocks.iter_mut().zip(line) {
                blocks[v] = block;
            }
        }
        for blocks in &mut blocks {
            encrypt_blocks::<E, KEYS, N>(engine, keys, &mut state, blocks);
        }
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

/// Whole batches of sectors, one after the other.
///
/// A register's next line is read, and its last one written, while all encrypt
/// the line between: else the rounds would wait while lines are transposed.
/// Where lines of a batch share too few sets of the cache, each register is a
/// line behind the one before it, and goes on to its next sectors when the others
/// are not there yet.
#[inline(always)]
fn encrypt_batches<E: Engine, const KEYS: usize>(
    engine: E,
    keys: &[Block; KEYS],
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    let lag = usize::from(BATCH * E::LANES * sector_bytes > SPAN);
    let lanes_lines = data.len() / LINE / (BATCH * E::LANES);
    // Shifts are faster than divisions, and sectors are powers of two.
    let within_sector = sector_bytes / LINE - 1;
    let sector_shift = sector_bytes.trailing_zeros() - LINE.trailing_zeros();
    let first_sector = |v: usize, line: usize| ((line >> sector_shift) * BATCH + v) * E::LANES;
    let place = |v: usize, line: usize| -> Lines {
        let start = first_sector(v, line) * sector_bytes + (line & within_sector) * LINE;
        std::array::from_fn(|lane| start + lane * sector_bytes)
    };
    let zero = engine.splat(&[0; 16]);
    let mut state = [zero; BATCH];
    let mut lines = [[[zero; BATCH]; 4]; 2];
    let [present, other] = &mut lines;
    let (mut present, mut other) = (present, other);
    let last_step = lanes_lines + lag * (BATCH - 1);
    for step in 0..=last_step + 1 {
        // Register v encrypts line `step - 1 - v * lag`.
        let nth = |v: usize, step: usize| step.wrapping_sub(v * lag);
        for (j, blocks) in present.iter_mut().enumerate() {
            for v in j * BATCH / 4..(j + 1) * BATCH / 4 {
                let written = nth(v, step.wrapping_sub(2));
                if written < lanes_lines {
                    let line = other.each_ref().map(|others| others[v]);
                    engine.store_lines(line, data, &place(v, written), E::LANES);
                }
                let read = nth(v, step);
                if read < lanes_lines {
                    let line = engine.load_lines(data, &place(v, read));
                    for (others, block) in other.iter_mut().zip(line) {
                        others[v] = block;
                    }
                }
            }
            if j == 0 {
                for (v, state) in state.iter_mut().enumerate() {
                    let line = nth(v, step.wrapping_sub(1));
                    if line < lanes_lines && line & within_sector == 0 {
                        *state = engine.load(&ivs[first_sector(v, line)..]);
                    }
                }
            }
            if (1..=last_step).contains(&step) {
                encrypt_blocks::<E, KEYS, BATCH>(engine, keys, &mut state, blocks);
            }
        }
        std::mem::swap(&mut present, &mut other);
    }
}

/// A block of every lane.
#[inline(always)]
fn encrypt_blocks<E: Engine, const KEYS: usize, const N: usize>(
    engine: E,
    keys: &[Block; KEYS],
    state: &mut [E::Vector; N],
    blocks: &mut [E::Vector; N],
) {
    let first = engine.splat(&keys[0]);
    let last = engine.splat(&keys[KEYS - 1]);
    for (x, &block) in state.iter_mut().zip(&*blocks) {
        *x = engine.add(engine.add(*x, block), first);
    }
    inner_rounds::<E, true, KEYS, N>(engine, keys, state);
    for x in state.iter_mut() {
        *x = last_round::<E, true>(engine, *x, last);
    }
    *blocks = *state;
}
