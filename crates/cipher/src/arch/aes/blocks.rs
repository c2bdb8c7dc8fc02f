//! Independent blocks: IVs, and the modes that have no kernel of their own.

use super::{BATCH, Engine, Keyed, inner_rounds, last_round, with_keys};
use crate::block::Block;
use crate::work::Work;

/// Encrypts or decrypts every block in place.
pub(super) struct Blocks<'a, const ENCRYPT: bool> {
    pub(super) keys: &'a [Block],
    pub(super) blocks: &'a mut [Block],
}

impl<E: Engine, const ENCRYPT: bool> Work<E> for Blocks<'_, ENCRYPT> {
    #[inline(always)]
    fn run(self, engine: E) {
        with_keys(engine, self.keys, self);
    }
}

impl<const ENCRYPT: bool> Keyed for Blocks<'_, ENCRYPT> {
    #[inline(always)]
    fn run<E: Engine, const KEYS: usize>(self, engine: E, keys: &[Block; KEYS]) {
        let mut batches = self.blocks.chunks_exact_mut(BATCH * E::LANES);
        for batch in &mut batches {
            crypt::<E, ENCRYPT, KEYS, BATCH>(engine, keys, batch);
        }
        let mut registers = batches.into_remainder().chunks_exact_mut(E::LANES);
        for register in &mut registers {
            crypt::<E, ENCRYPT, KEYS, 1>(engine, keys, register);
        }
        // One block in every lane. A load of several blocks would wait for the stores that wrote
        // them one by one.
        for block in registers.into_remainder() {
            let mut x = [engine.add(engine.splat(block), engine.splat(&keys[0]))];
            inner_rounds::<E, ENCRYPT, KEYS, 1>(engine, keys, &mut x);
            let y = last_round::<E, ENCRYPT>(engine, x[0], engine.splat(&keys[KEYS - 1]));
            engine.store_one(y, block);
        }
    }
}

/// `N` registers of blocks.
#[inline(always)]
fn crypt<E: Engine, const ENCRYPT: bool, const KEYS: usize, const N: usize>(
    engine: E,
    keys: &[Block; KEYS],
    blocks: &mut [Block],
) {
    let first = engine.splat(&keys[0]);
    let mut batch = [first; N];
    for (v, x) in batch.iter_mut().enumerate() {
        *x = engine.add(*x, engine.load(&blocks[v * E::LANES..]));
    }
    inner_rounds::<E, ENCRYPT, KEYS, N>(engine, keys, &mut batch);
    let last = engine.splat(&keys[KEYS - 1]);
    for (v, &x) in batch.iter().enumerate() {
        let y = last_round::<E, ENCRYPT>(engine, x, last);
        engine.store(y, &mut blocks[v * E::LANES..]);
    }
}
