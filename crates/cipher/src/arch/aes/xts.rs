//! XTS over a run of sectors whose first tweaks are encrypted already.
//!
//! The tweaks of a batch stay in registers. With n blocks a register, that of
//! register v is T·x^(n·v + i) in lane i:
//!
//! ```text
//! spread      T·x⁰ … T·xⁿ⁻¹                       from the sector's T
//! next ones   × xⁿ up to x⁸, then each × x⁸ from the one that is 8/n before
//! next batch  each × x^(8n), whole bytes
//! ```
//!
//! so no product waits for more than a few others, and none goes through
//! memory. A product by whole bytes is two byte shifts, a carry-less product of
//! what left at the top by x⁷ + x² + x + 1, and a sum. They are made between the
//! rounds of the batch before, which leave units of the CPU idle, and those of the
//! next sector before the rounds. AES-NI alone makes one tweak of the other by shifts:
//! a carry-less product of 128 bits occupies the AES units for four operations.

use super::{BATCH, Engine, Keyed, inner_keys, last_round, round, with_keys};
use crate::block::Block;
use crate::work::Work;

/// Encrypts or decrypts sectors in place; `starts` has one tweak a sector.
pub(super) struct Xts<'a, const ENCRYPT: bool> {
    pub(super) keys: &'a [Block],
    pub(super) starts: &'a [Block],
    pub(super) sector_bytes: usize,
    pub(super) data: &'a mut [u8],
}

impl<E: Engine, const ENCRYPT: bool> Work<E> for Xts<'_, ENCRYPT> {
    #[inline(always)]
    fn run(self, engine: E) {
        with_keys(engine, self.keys, self);
    }
}

impl<const ENCRYPT: bool> Keyed for Xts<'_, ENCRYPT> {
    #[inline(always)]
    fn run<E: Engine, const KEYS: usize>(self, engine: E, keys: &[Block; KEYS]) {
        let mut starts = self.starts.iter();
        let Some(start) = starts.next() else {
            return;
        };
        let mut tweaks = first_tweaks(engine, start);
        for sector in self.data.chunks_exact_mut(self.sector_bytes) {
            let blocks = sector.as_chunks_mut::<16>().0;
            let mut batches = blocks.chunks_exact_mut(BATCH * E::LANES);
            while let Some(batch) = batches.next() {
                let more = batches.len() > 0;
                if more && E::TWEAKS_BETWEEN_ROUNDS {
                    tweaks = crypt::<E, ENCRYPT, KEYS, true>(engine, keys, &tweaks, batch);
                    continue;
                }
                let mut next = tweaks;
                if more {
                    let mut before = tweaks[BATCH - 1];
                    for tweak in &mut next {
                        before = engine.next_tweaks(*tweak, before);
                        *tweak = before;
                    }
                } else if let Some(start) = starts.next() {
                    next = first_tweaks(engine, start);
                }
                crypt::<E, ENCRYPT, KEYS, false>(engine, keys, &tweaks, batch);
                tweaks = next;
            }
        }
    }
}

#[inline(always)]
fn first_tweaks<E: Engine>(engine: E, start: &Block) -> [E::Vector; BATCH] {
    let mut tweaks = [engine.spread(start); BATCH];
    for v in 1..BATCH {
        tweaks[v] = if v < 8 / E::LANES {
            engine.times_x_lanes(tweaks[v - 1])
        } else {
            engine.times_x8(tweaks[v - 8 / E::LANES])
        };
    }
    tweaks
}

/// One batch. Gives the tweaks of the next, where `NEXT` asks for them.
#[inline(always)]
fn crypt<E: Engine, const ENCRYPT: bool, const KEYS: usize, const NEXT: bool>(
    engine: E,
    keys: &[Block; KEYS],
    tweaks: &[E::Vector; BATCH],
    blocks: &mut [Block],
) -> [E::Vector; BATCH] {
    let mut next = *tweaks;
    let mut before = tweaks[BATCH - 1];
    let (early, late) = inner_keys::<E, KEYS>(keys);
    let first = engine.splat(&keys[0]);
    let mut batch = [first; BATCH];
    for (v, x) in batch.iter_mut().enumerate() {
        let data = engine.load(&blocks[v * E::LANES..]);
        *x = engine.add(engine.add(data, tweaks[v]), *x);
    }
    for (nth, key) in early.iter().enumerate() {
        let key = engine.splat(key);
        for x in &mut batch {
            *x = round::<E, ENCRYPT>(engine, *x, key);
        }
        // AES-128 has as many rounds left after the first as there are tweaks.
        if NEXT && (1..=BATCH).contains(&nth) {
            before = engine.next_tweaks(tweaks[nth - 1], before);
            next[nth - 1] = before;
        }
    }
    for (nth, key) in (early.len()..).zip(late) {
        let key = engine.splat(key);
        for x in &mut batch {
            *x = round::<E, ENCRYPT>(engine, *x, key);
        }
        if NEXT && (1..=BATCH).contains(&nth) {
            before = engine.next_tweaks(tweaks[nth - 1], before);
            next[nth - 1] = before;
        }
    }
    let last = engine.splat(&keys[KEYS - 1]);
    for (v, &x) in batch.iter().enumerate() {
        // The round adds its key last, so the tweak may come with it.
        let y = last_round::<E, ENCRYPT>(engine, x, engine.add(last, tweaks[v]));
        engine.store(y, &mut blocks[v * E::LANES..]);
    }
    next
}
