//! CTR over a run of sectors.
//!
//! A sector has at most 256 blocks, so its counters carry out of the last byte
//! at most once. What that changes in the others is computed once a sector,
//! over all of them, and counter j is
//!
//! ```text
//! IV, + j in the last byte                          room = 255 − last byte of IV
//! ⊕ (IV ⊕ (IV + 256)) if j > room
//! ```
//!
//! by three instructions, a comparison among them. Nothing branches on the IV,
//! which may be a secret.

use super::{BATCH, Engine, Keyed, MOST_LANES, inner_rounds, last_round, with_keys};
use crate::block::Block;
use crate::work::Work;

/// j in the last byte of block j.
const LAST_BYTES: [Block; MOST_LANES] = [last_byte(0), last_byte(1), last_byte(2), last_byte(3)];

/// j in the words of block j.
const WORDS: [Block; MOST_LANES] = [words(0), words(1), words(2), words(3)];

const fn last_byte(byte: u8) -> Block {
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
            let mut counters = Counters::of(engine, iv);
            let blocks = sector.as_chunks_mut::<16>().0;
            for batch in blocks.chunks_exact_mut(BATCH * E::LANES) {
                crypt(engine, keys, &mut counters, batch);
            }
        }
    }
}

/// The counters of the next register of blocks.
struct Counters<V> {
    /// Without the carry.
    blocks: V,
    /// In every word what remains of `room` before the register's first block:
    /// negative once the carry is past.
    room: V,
    /// What the carry changes.
    carry: V,
}

impl<V: Copy> Counters<V> {
    #[inline(always)]
    fn of<E: Engine<Vector = V>>(engine: E, iv: &Block) -> Self {
        let number = u128::from_be_bytes(*iv);
        let carry = number ^ number.wrapping_add(256);
        Self {
            blocks: engine.sum_words(engine.splat(iv), engine.load(&LAST_BYTES)),
            room: engine.splat(&words(i32::from(!(number as u8)))),
            carry: engine.splat(&carry.to_be_bytes()),
        }
    }

    #[inline(always)]
    fn next<E: Engine<Vector = V>>(&mut self, engine: E) -> V {
        let numbers = engine.load(&WORDS);
        let counters = engine.add_above(self.blocks, self.carry, numbers, self.room);
        let last_byte = engine.splat(&last_byte(E::LANES as u8));
        let words = engine.splat(&words(-(E::LANES as i32)));
        self.blocks = engine.sum_words(self.blocks, last_byte);
        self.room = engine.sum_words(self.room, words);
        counters
    }
}

#[inline(always)]
fn crypt<E: Engine, const KEYS: usize>(
    engine: E,
    keys: &[Block; KEYS],
    counters: &mut Counters<E::Vector>,
    blocks: &mut [Block],
) {
    let first = engine.splat(&keys[0]);
    let mut batch = [first; BATCH];
    for x in &mut batch {
        *x = engine.add(*x, counters.next(engine));
    }
    inner_rounds::<E, true, KEYS, BATCH>(engine, keys, &mut batch);
    let last = engine.splat(&keys[KEYS - 1]);
    for (v, &x) in batch.iter().enumerate() {
        // The round adds its key last, so the data may come with it.
        let data = engine.load(&blocks[v * E::LANES..]);
        let y = last_round::<E, true>(engine, x, engine.add(last, data));
        engine.store(y, &mut blocks[v * E::LANES..]);
    }
}
