//! CTR over a run of sectors.
//!
//! A sector has at most 256 blocks, so its counters carry out of the last byte at most once. The
//! effect of this carry on the other bytes is computed once a sector, over all of them. With the
//! first round key, counter j of a sector is
//!
//! ```text
//! IV, + j in the last byte                          room = 255 − last byte of IV
//! ⊕ key                            if j ≤ room
//! ⊕ key ⊕ (IV ⊕ (IV + 256))        if j > room
//! ```
//!
//! by four instructions: a sum, a comparison, a choice and a sum. Nothing
//! branches on the IV, which may be a secret. On Zen 4, counters that integer
//! instructions make are slower.

use super::{BATCH, Engine, Keyed, MOST_LANES, inner_rounds, last_round, with_keys};
use crate::block::Block;
use crate::work::Work;

/// Most blocks in a batch.
const MOST_BLOCKS: usize = BATCH * MOST_LANES;

/// j in the last byte of block j.
const LAST_BYTES: [Block; MOST_BLOCKS] = {
    let mut blocks = [[0; 16]; MOST_BLOCKS];
    let mut j = 0;
    while j < MOST_BLOCKS {
        blocks[j] = last_byte(j);
        j += 1;
    }
    blocks
};

/// j in the words of block j.
const WORDS: [Block; MOST_BLOCKS] = {
    let mut blocks = [[0; 16]; MOST_BLOCKS];
    let mut j = 0;
    while j < MOST_BLOCKS {
        blocks[j] = words(j as i32);
        j += 1;
    }
    blocks
};

const fn last_byte(byte: usize) -> Block {
    (byte as u128).to_be_bytes()
}

const fn words(word: i32) -> Block {
    let [a, b, c, d] = word.to_le_bytes();
    [a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d]
}

/// Encrypts or decrypts sectors in place; `ivs` has one for each.
pub(super) struct Ctr<'a> {
    pub(super) keys: &'a [Block],
    pub(super) ivs: &'a [Block],
    pub(super) sector_bytes: usize,
    pub(super) data: &'a mut [u8],
}

impl<E: Engine> Work<E> for Ctr<'_> {
    #[inline(always)]
    fn run(self, engine: E) {
        with_keys(engine, self.keys, self);
    }
}

impl Keyed for Ctr<'_> {
    #[inline(always)]
    fn run<E: Engine, const KEYS: usize>(self, engine: E, keys: &[Block; KEYS]) {
        let sectors = self.data.chunks_exact_mut(self.sector_bytes);
        for (sector, iv) in sectors.zip(self.ivs) {
            let mut counters = Counters::of(engine, iv, &keys[0]);
            let blocks = sector.as_chunks_mut::<16>().0;
            for batch in blocks.chunks_exact_mut(BATCH * E::LANES) {
                crypt(engine, keys, counters.next(engine), batch);
            }
        }
    }
}

/// The counters of the next batch.
struct Counters<V> {
    /// The first one, without the carry, in every lane.
    first: V,
    /// In every word what remains of `room` before the first one.
    room: V,
    /// The first round key.
    key: V,
    /// The first round key and what the carry changes.
    key_and_carry: V,
}

impl<V: Copy> Counters<V> {
    #[inline(always)]
    fn of<E: Engine<Vector = V>>(engine: E, iv: &Block, key: &Block) -> Self {
        let number = u128::from_be_bytes(*iv);
        let carry = number ^ number.wrapping_add(256);
        let key = engine.splat(key);
        Self {
            first: engine.splat(iv),
            room: engine.splat(&words(i32::from(!(number as u8)))),
            key,
            key_and_carry: engine.add(key, engine.splat(&carry.to_be_bytes())),
        }
    }

    /// The batch of counters with the first round key.
    #[inline(always)]
    fn next<E: Engine<Vector = V>>(&mut self, engine: E) -> [V; BATCH] {
        let mut batch = [self.key; BATCH];
        for (v, x) in batch.iter_mut().enumerate() {
            let counters = engine.sum_words(self.first, engine.load(&LAST_BYTES[v * E::LANES..]));
            let nth = engine.load(&WORDS[v * E::LANES..]);
            let key = engine.choose_above(self.key, self.key_and_carry, nth, self.room);
            *x = engine.add(counters, key);
        }
        let blocks = BATCH * E::LANES;
        let last_byte = engine.splat(&last_byte(blocks));
        let words = engine.splat(&words(-(blocks as i32)));
        self.first = engine.sum_words(self.first, last_byte);
        self.room = engine.sum_words(self.room, words);
        batch
    }
}

#[inline(always)]
fn crypt<E: Engine, const KEYS: usize>(
    engine: E,
    keys: &[Block; KEYS],
    mut batch: [E::Vector; BATCH],
    blocks: &mut [Block],
) {
    inner_rounds::<E, true, KEYS, BATCH>(engine, keys, &mut batch);
    let last = engine.splat(&keys[KEYS - 1]);
    for (v, &x) in batch.iter().enumerate() {
        // The round adds its key last, so the data may come with it.
        let data = engine.load(&blocks[v * E::LANES..]);
        let y = last_round::<E, true>(engine, x, engine.add(last, data));
        engine.store(y, &mut blocks[v * E::LANES..]);
    }
}
