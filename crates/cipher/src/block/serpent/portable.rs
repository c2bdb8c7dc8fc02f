//! Serpent over many blocks by loops that the compiler turns into vector
//! instructions of any width: word j of every block stands side by side,
//!
//! ```text
//! lanes[j] = [word j of block 0, word j of block 1, …]
//! ```
//!
//! and a round is one loop over lanes with no dependence from one to the next.

use super::sbox::Words;
use super::{Block, ROUNDS, RoundKeys, words};

/// Lanes for what is left below `LANES` blocks, which is for each CPU to choose.
const FEW_LANES: usize = 8;

/// Blocks that take less time one by one than in [`FEW_LANES`].
const ALONE: usize = 2;

/// Encrypts every block, `LANES` at a time, with the vectors of the function it is inlined in.
#[inline(always)]
pub(crate) fn encrypt<const LANES: usize>(keys: &RoundKeys, blocks: &mut [Block]) {
    in_lanes::<true, LANES>(keys, blocks);
}

/// Decrypts every block, `LANES` at a time, with the vectors of the function it is inlined in.
#[inline(always)]
pub(crate) fn decrypt<const LANES: usize>(keys: &RoundKeys, blocks: &mut [Block]) {
    in_lanes::<false, LANES>(keys, blocks);
}

/// Cuts `blocks` into groups of `LANES`, then [`FEW_LANES`], the last one
/// filled up with zeros unless its blocks are so few that they are better off
/// alone. No closures here: they would be compiled for the CPU of the build
/// instead of the caller's.
#[inline(always)]
fn in_lanes<const ENCRYPT: bool, const LANES: usize>(keys: &RoundKeys, blocks: &mut [Block]) {
    let (groups, rest) = blocks.as_chunks_mut::<LANES>();
    for group in groups {
        crypt_lanes::<ENCRYPT, LANES>(keys, group);
    }
    for group in rest.chunks_mut(FEW_LANES) {
        if group.len() <= ALONE {
            for block in group {
                one::<ENCRYPT>(keys, block);
            }
            continue;
        }
        let mut padded = [[0; 16]; FEW_LANES];
        padded[..group.len()].copy_from_slice(group);
        crypt_lanes::<ENCRYPT, FEW_LANES>(keys, &mut padded);
        group.copy_from_slice(&padded[..group.len()]);
    }
}

/// A block by itself, in no vector.
pub(crate) fn one<const ENCRYPT: bool>(keys: &RoundKeys, block: &mut Block) {
    crypt_lanes::<ENCRYPT, 1>(keys, std::array::from_mut(block));
}

#[inline(always)]
fn crypt_lanes<const ENCRYPT: bool, const N: usize>(keys: &RoundKeys, blocks: &mut [Block; N]) {
    if ENCRYPT {
        encrypt_lanes(keys, blocks);
    } else {
        decrypt_lanes(keys, blocks);
    }
}

type Lanes<const N: usize> = [[u32; N]; 4];

#[inline(always)]
fn encrypt_lanes<const N: usize>(keys: &RoundKeys, blocks: &mut [Block; N]) {
    let mut lanes = load(blocks);
    for octet in 0..ROUNDS / 8 {
        let keys: &[Words; 8] = &keys.as_chunks().0[octet];
        round::<0, N>(&mut lanes, keys);
        round::<1, N>(&mut lanes, keys);
        round::<2, N>(&mut lanes, keys);
        round::<3, N>(&mut lanes, keys);
        round::<4, N>(&mut lanes, keys);
        round::<5, N>(&mut lanes, keys);
        round::<6, N>(&mut lanes, keys);
        if octet < ROUNDS / 8 - 1 {
            round::<7, N>(&mut lanes, keys);
        }
    }
    let (before, last) = (keys[ROUNDS - 1], keys[ROUNDS]);
    each(&mut lanes, |x| words::last_round(x, before, last));
    store(&lanes, blocks);
}

#[inline(always)]
fn decrypt_lanes<const N: usize>(keys: &RoundKeys, blocks: &mut [Block; N]) {
    let mut lanes = load(blocks);
    let (before, last) = (keys[ROUNDS - 1], keys[ROUNDS]);
    each(&mut lanes, |x| words::inverse_last_round(x, before, last));
    for octet in (0..ROUNDS / 8).rev() {
        let keys: &[Words; 8] = &keys.as_chunks().0[octet];
        if octet < ROUNDS / 8 - 1 {
            inverse_round::<7, N>(&mut lanes, keys);
        }
        inverse_round::<6, N>(&mut lanes, keys);
        inverse_round::<5, N>(&mut lanes, keys);
        inverse_round::<4, N>(&mut lanes, keys);
        inverse_round::<3, N>(&mut lanes, keys);
        inverse_round::<2, N>(&mut lanes, keys);
        inverse_round::<1, N>(&mut lanes, keys);
        inverse_round::<0, N>(&mut lanes, keys);
    }
    store(&lanes, blocks);
}

#[inline(always)]
fn round<const I: usize, const N: usize>(lanes: &mut Lanes<N>, keys: &[Words; 8]) {
    let key = keys[I];
    each(lanes, |x| words::round::<I, u32>(x, key));
}

#[inline(always)]
fn inverse_round<const I: usize, const N: usize>(lanes: &mut Lanes<N>, keys: &[Words; 8]) {
    let key = keys[I];
    each(lanes, |x| words::inverse_round::<I, u32>(x, key));
}

#[inline(always)]
fn each<const N: usize>(lanes: &mut Lanes<N>, map: impl Fn(Words) -> Words) {
    let [a, b, c, d] = lanes;
    for i in 0..N {
        [a[i], b[i], c[i], d[i]] = map([a[i], b[i], c[i], d[i]]);
    }
}

#[inline(always)]
fn load<const N: usize>(blocks: &[Block; N]) -> Lanes<N> {
    let mut lanes = [[0; N]; 4];
    for (i, block) in blocks.iter().enumerate() {
        for (j, word) in block.as_chunks().0.iter().enumerate() {
            lanes[j][i] = u32::from_le_bytes(*word);
        }
    }
    lanes
}

#[inline(always)]
fn store<const N: usize>(lanes: &Lanes<N>, blocks: &mut [Block; N]) {
    for (i, block) in blocks.iter_mut().enumerate() {
        for (j, word) in block.as_chunks_mut().0.iter_mut().enumerate() {
            *word = lanes[j][i].to_le_bytes();
        }
    }
}
