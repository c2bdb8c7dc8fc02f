//! Serpent in vector registers: a word of as many blocks in each as it has
//! lanes, four registers to a group of blocks, and two groups in flight,
//! because a round of one waits for itself.
//!
//! ```text
//! as in memory   a = block 0, block 1, …        b = the next blocks   c   d
//! in lanes       w0 = word 0 of every block of a, b, c and d   w1   w2   w3
//! ```

use super::sbox::Words;
use super::words::{self, Word};
use super::{ROUNDS, RoundKeys};
use crate::block::Block;
use crate::mode::xts::{STRETCH, fill};

/// The registers of one width: a proof that the CPU has them.
///
/// Every method is inlined into a function that [`enter`](Self::enter) calls,
/// where the operation is an instruction or few.
pub(crate) trait Vectors: Copy {
    /// Blocks in a register as they lie in memory: a quarter of its words.
    const BLOCKS: usize;

    /// A register.
    type Word: Word;

    /// Does `work` in a function compiled for this CPU, apart from its caller.
    fn enter<W: Work<Self>>(self, work: W);

    /// The first [`BLOCKS`](Self::BLOCKS) of `blocks`.
    fn load(self, blocks: &[Block]) -> Self::Word;

    /// Writes the first [`BLOCKS`](Self::BLOCKS) of `blocks`.
    fn store(self, x: Self::Word, blocks: &mut [Block]);

    /// `word` in every lane.
    fn splat(self, word: u32) -> Self::Word;

    /// From blocks to words and back: exchanges word i of register j with word
    /// j of register i, for each block.
    fn transpose(self, x: [Self::Word; 4]) -> [Self::Word; 4];

    /// From lines of 64 bytes of [`BLOCKS`](Self::BLOCKS) sectors, one after
    /// the other, to block j of every sector in register j.
    fn blocks_of_lines(self, x: [Self::Word; 4]) -> [Self::Word; 4];

    /// Undoes [`blocks_of_lines`](Self::blocks_of_lines).
    fn lines_of_blocks(self, x: [Self::Word; 4]) -> [Self::Word; 4];
}

/// A kernel with its arguments.
///
/// `run` and all that it calls are `#[inline(always)]`: they must become part
/// of the function with the CPU's features.
pub(crate) trait Work<V: Vectors> {
    /// Does the work.
    fn run(self, vectors: V);
}

/// Most blocks in a register.
const MOST_BLOCKS: usize = 4;

/// Groups in flight.
const PAIR: usize = 2;

/// Blocks in a cache line. Sectors lie a power of two apart, where their blocks
/// share a few sets of the cache, so whole lines are read and written.
const LINE: usize = 4;

/// Encrypts or decrypts every block in place.
pub(crate) struct Blocks<'a, const ENCRYPT: bool> {
    pub(crate) keys: &'a RoundKeys,
    pub(crate) blocks: &'a mut [Block],
}

impl<V: Vectors, const ENCRYPT: bool> Work<V> for Blocks<'_, ENCRYPT> {
    #[inline(always)]
    fn run(self, vectors: V) {
        let mut pairs = self.blocks.chunks_exact_mut(PAIR * 4 * V::BLOCKS);
        for pair in &mut pairs {
            crypt::<ENCRYPT, PAIR, V>(vectors, self.keys, pair);
        }
        let mut groups = pairs.into_remainder().chunks_exact_mut(4 * V::BLOCKS);
        for group in &mut groups {
            crypt::<ENCRYPT, 1, V>(vectors, self.keys, group);
        }
        let rest = groups.into_remainder();
        if !rest.is_empty() {
            let mut padded = [[0; 16]; 4 * MOST_BLOCKS];
            padded[..rest.len()].copy_from_slice(rest);
            crypt::<ENCRYPT, 1, V>(vectors, self.keys, &mut padded);
            rest.copy_from_slice(&padded[..rest.len()]);
        }
    }
}

/// `N` groups of blocks.
#[inline(always)]
fn crypt<const ENCRYPT: bool, const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    blocks: &mut [Block],
) {
    let mut groups = load::<N, V>(vectors, blocks);
    rounds::<ENCRYPT, N, V>(vectors, keys, &mut groups);
    for (nth, x) in groups.as_flattened().iter().enumerate() {
        vectors.store(*x, &mut blocks[nth * V::BLOCKS..]);
    }
}

/// Encrypts or decrypts sectors in place in XTS mode; `starts` has the first
/// tweak of each.
pub(crate) struct Xts<'a, const ENCRYPT: bool> {
    pub(crate) keys: &'a RoundKeys,
    pub(crate) starts: &'a [Block],
    pub(crate) sector_bytes: usize,
    pub(crate) data: &'a mut [u8],
}

impl<V: Vectors, const ENCRYPT: bool> Work<V> for Xts<'_, ENCRYPT> {
    #[inline(always)]
    fn run(self, vectors: V) {
        let stretches = self.sector_bytes / (16 * STRETCH);
        let data = self.data.as_chunks_mut().0.chunks_exact_mut(STRETCH);
        let mut tweak = u128::from_le_bytes(self.starts[0]);
        let mut tweaks = [[[0; 16]; STRETCH]; 2];
        tweak = fill(&mut tweaks[0], tweak);
        for (nth, blocks) in data.enumerate() {
            // The tweaks of the next stretch are made beside the rounds of this
            // one: a vector waits for words that were stored just before.
            let next = nth + 1;
            if next % stretches == 0 {
                let start = self.starts.get(next / stretches).unwrap_or(&[0; 16]);
                tweak = u128::from_le_bytes(*start);
            }
            tweak = fill(&mut tweaks[next % 2], tweak);
            let tweaks = tweaks[nth % 2].chunks_exact(PAIR * 4 * V::BLOCKS);
            let pairs = blocks.chunks_exact_mut(PAIR * 4 * V::BLOCKS);
            for (blocks, tweaks) in pairs.zip(tweaks) {
                xts::<ENCRYPT, V>(vectors, self.keys, tweaks, blocks);
            }
        }
    }
}

#[inline(always)]
fn xts<const ENCRYPT: bool, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    tweaks: &[Block],
    blocks: &mut [Block],
) {
    let mut groups = load::<PAIR, V>(vectors, blocks);
    for (nth, x) in groups.as_flattened_mut().iter_mut().enumerate() {
        *x = x.add(vectors.load(&tweaks[nth * V::BLOCKS..]));
    }
    rounds::<ENCRYPT, PAIR, V>(vectors, keys, &mut groups);
    for (nth, x) in groups.as_flattened().iter().enumerate() {
        let at = nth * V::BLOCKS;
        vectors.store(x.add(vectors.load(&tweaks[at..])), &mut blocks[at..]);
    }
}

/// Encrypts sectors in place in CBC mode; `ivs` has one for each.
pub(crate) struct EncryptCbc<'a> {
    pub(crate) keys: &'a RoundKeys,
    pub(crate) ivs: &'a [Block],
    pub(crate) sector_bytes: usize,
    pub(crate) data: &'a mut [u8],
}

impl<V: Vectors> Work<V> for EncryptCbc<'_> {
    #[inline(always)]
    fn run(self, vectors: V) {
        let sector_blocks = self.sector_bytes / 16;
        let data = self.data.as_chunks_mut().0;
        let groups = data.chunks_mut(PAIR * 4 * V::BLOCKS * sector_blocks);
        for (data, ivs) in groups.zip(self.ivs.chunks(PAIR * 4 * V::BLOCKS)) {
            if ivs.len() <= 4 * V::BLOCKS {
                encrypt_cbc::<1, V>(vectors, self.keys, ivs, data);
            } else {
                encrypt_cbc::<PAIR, V>(vectors, self.keys, ivs, data);
            }
        }
    }
}

/// At most `N` groups of sectors, each in its lane. Lanes without a sector
/// repeat the last one and are not written.
#[inline(always)]
fn encrypt_cbc<const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    ivs: &[Block],
    data: &mut [Block],
) {
    let sectors = ivs.len();
    let sector_blocks = data.len() / sectors;
    let mut starts = [ivs[sectors - 1]; PAIR * 4 * MOST_BLOCKS];
    starts[..sectors].copy_from_slice(ivs);
    let mut chain = load::<N, V>(vectors, &starts);
    for x in &mut chain {
        *x = vectors.transpose(*x);
    }
    for line in (0..sector_blocks).step_by(LINE) {
        // Register `part` of the lines of sectors `first` and on: its first
        // sector, and its first block in the data.
        let place = |first: usize, part: usize| {
            let sector = first + part * V::BLOCKS / LINE;
            let at = sector.min(sectors - 1) * sector_blocks + line + part * V::BLOCKS % LINE;
            (sector, at)
        };
        let mut lines = [[[vectors.splat(0); LINE]; 4]; N];
        for (nth, x) in lines.as_flattened_mut().iter_mut().enumerate() {
            for (part, x) in x.iter_mut().enumerate() {
                *x = vectors.load(&data[place(nth * V::BLOCKS, part).1..]);
            }
            *x = vectors.blocks_of_lines(*x);
        }
        for block in 0..LINE {
            for (x, lines) in chain.iter_mut().zip(&lines) {
                let plain = [0, 1, 2, 3].map(|register: usize| lines[register][block]);
                *x = words::add(*x, vectors.transpose(plain));
            }
            rounds_in_lanes::<true, N, V>(vectors, keys, &mut chain);
            for (x, lines) in chain.iter().zip(&mut lines) {
                for (register, x) in vectors.transpose(*x).into_iter().enumerate() {
                    lines[register][block] = x;
                }
            }
        }
        for (nth, x) in lines.as_flattened().iter().enumerate() {
            for (part, x) in vectors.lines_of_blocks(*x).into_iter().enumerate() {
                let (sector, at) = place(nth * V::BLOCKS, part);
                if sector < sectors {
                    vectors.store(x, &mut data[at..]);
                }
            }
        }
    }
}

/// Decrypts sectors in place in CBC mode; `ivs` has one for each.
pub(crate) struct DecryptCbc<'a> {
    pub(crate) keys: &'a RoundKeys,
    pub(crate) ivs: &'a [Block],
    pub(crate) sector_bytes: usize,
    pub(crate) data: &'a mut [u8],
}

impl<V: Vectors> Work<V> for DecryptCbc<'_> {
    #[inline(always)]
    fn run(self, vectors: V) {
        let sectors = self.data.chunks_exact_mut(self.sector_bytes);
        for (sector, iv) in sectors.zip(self.ivs) {
            let mut previous = *iv;
            let blocks = sector.as_chunks_mut().0;
            for pair in blocks.chunks_exact_mut(PAIR * 4 * V::BLOCKS) {
                let last = pair[pair.len() - 1];
                decrypt_cbc(vectors, self.keys, previous, pair);
                previous = last;
            }
        }
    }
}

#[inline(always)]
fn decrypt_cbc<V: Vectors>(vectors: V, keys: &RoundKeys, previous: Block, blocks: &mut [Block]) {
    let mut first = [previous; MOST_BLOCKS];
    first[1..V::BLOCKS].copy_from_slice(&blocks[..V::BLOCKS - 1]);
    let mut groups = load::<PAIR, V>(vectors, blocks);
    rounds::<false, PAIR, V>(vectors, keys, &mut groups);
    // Backwards, so that the ciphertext before a register is still there.
    for (nth, x) in groups.as_flattened().iter().enumerate().rev() {
        let at = nth * V::BLOCKS;
        let before = match at {
            0 => vectors.load(&first),
            _ => vectors.load(&blocks[at - 1..]),
        };
        vectors.store(x.add(before), &mut blocks[at..]);
    }
}

/// `N` groups as they lie in memory.
#[inline(always)]
fn load<const N: usize, V: Vectors>(vectors: V, blocks: &[Block]) -> [[V::Word; 4]; N] {
    let mut groups = [[vectors.splat(0); 4]; N];
    for (nth, x) in groups.as_flattened_mut().iter_mut().enumerate() {
        *x = vectors.load(&blocks[nth * V::BLOCKS..]);
    }
    groups
}

/// All rounds over `N` groups, which are as they lie in memory before and
/// after.
#[inline(always)]
fn rounds<const ENCRYPT: bool, const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    groups: &mut [[V::Word; 4]; N],
) {
    for x in &mut *groups {
        *x = vectors.transpose(*x);
    }
    rounds_in_lanes::<ENCRYPT, N, V>(vectors, keys, groups);
    for x in groups {
        *x = vectors.transpose(*x);
    }
}

/// All rounds over `N` groups in lanes: compiled once for all modes.
#[inline(always)]
fn rounds_in_lanes<const ENCRYPT: bool, const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    groups: &mut [[V::Word; 4]; N],
) {
    vectors.enter(Rounds::<ENCRYPT, N, V> { keys, groups });
}

struct Rounds<'a, const ENCRYPT: bool, const N: usize, V: Vectors> {
    keys: &'a RoundKeys,
    groups: &'a mut [[V::Word; 4]; N],
}

impl<const ENCRYPT: bool, const N: usize, V: Vectors> Work<V> for Rounds<'_, ENCRYPT, N, V> {
    #[inline(always)]
    fn run(self, vectors: V) {
        // A copy stays in registers.
        let mut groups = *self.groups;
        if ENCRYPT {
            encrypt(vectors, self.keys, &mut groups);
        } else {
            decrypt(vectors, self.keys, &mut groups);
        }
        *self.groups = groups;
    }
}

#[inline(always)]
fn encrypt<const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    groups: &mut [[V::Word; 4]; N],
) {
    for octet in 0..ROUNDS / 8 {
        let keys: &[Words; 8] = &keys.as_chunks().0[octet];
        round::<0, N, V>(vectors, groups, keys);
        round::<1, N, V>(vectors, groups, keys);
        round::<2, N, V>(vectors, groups, keys);
        round::<3, N, V>(vectors, groups, keys);
        round::<4, N, V>(vectors, groups, keys);
        round::<5, N, V>(vectors, groups, keys);
        round::<6, N, V>(vectors, groups, keys);
        if octet < ROUNDS / 8 - 1 {
            round::<7, N, V>(vectors, groups, keys);
        }
    }
    let before = splat(vectors, keys[ROUNDS - 1]);
    let last = splat(vectors, keys[ROUNDS]);
    for x in groups {
        *x = words::last_round(*x, before, last);
    }
}

#[inline(always)]
fn decrypt<const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    groups: &mut [[V::Word; 4]; N],
) {
    let before = splat(vectors, keys[ROUNDS - 1]);
    let last = splat(vectors, keys[ROUNDS]);
    for x in &mut *groups {
        *x = words::inverse_last_round(*x, before, last);
    }
    for octet in (0..ROUNDS / 8).rev() {
        let keys: &[Words; 8] = &keys.as_chunks().0[octet];
        if octet < ROUNDS / 8 - 1 {
            inverse_round::<7, N, V>(vectors, groups, keys);
        }
        inverse_round::<6, N, V>(vectors, groups, keys);
        inverse_round::<5, N, V>(vectors, groups, keys);
        inverse_round::<4, N, V>(vectors, groups, keys);
        inverse_round::<3, N, V>(vectors, groups, keys);
        inverse_round::<2, N, V>(vectors, groups, keys);
        inverse_round::<1, N, V>(vectors, groups, keys);
        inverse_round::<0, N, V>(vectors, groups, keys);
    }
}

#[inline(always)]
fn round<const I: usize, const N: usize, V: Vectors>(
    vectors: V,
    groups: &mut [[V::Word; 4]; N],
    keys: &[Words; 8],
) {
    let key = splat(vectors, keys[I]);
    for x in groups {
        *x = words::round::<I, V::Word>(*x, key);
    }
}

#[inline(always)]
fn inverse_round<const I: usize, const N: usize, V: Vectors>(
    vectors: V,
    groups: &mut [[V::Word; 4]; N],
    keys: &[Words; 8],
) {
    let key = splat(vectors, keys[I]);
    for x in groups {
        *x = words::inverse_round::<I, V::Word>(*x, key);
    }
}

#[inline(always)]
fn splat<V: Vectors>(vectors: V, key: Words) -> [V::Word; 4] {
    [
        vectors.splat(key[0]),
        vectors.splat(key[1]),
        vectors.splat(key[2]),
        vectors.splat(key[3]),
    ]
}
