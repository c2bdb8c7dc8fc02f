//! Serpent in vector registers: a word of as many blocks in each as it has
//! lanes, four registers to a group of blocks, and as many groups in flight as
//! the registers hold, because a round of one waits for itself.
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
use crate::work::Work;

/// The registers of one width: a proof that the CPU has them.
///
/// Every method is inlined into a function that [`enter`](Self::enter) calls,
/// where the operation is an instruction or few.
pub(crate) trait Vectors: Copy {
    /// Blocks in a register as they lie in memory: a quarter of its words.
    const BLOCKS: usize;

    /// Whether the registers hold four groups of blocks, and not two only.
    const FOUR_GROUPS: bool = false;

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

    /// Round `I` modulo 8 of two groups.
    #[inline(always)]
    fn round<const I: usize>(
        self,
        [x, y]: [[Self::Word; 4]; 2],
        key: [Self::Word; 4],
    ) -> [[Self::Word; 4]; 2] {
        [
            words::round::<I, Self::Word>(x, key),
            words::round::<I, Self::Word>(y, key),
        ]
    }

    /// The inverse of [`round`](Self::round).
    #[inline(always)]
    fn inverse_round<const I: usize>(
        self,
        [x, y]: [[Self::Word; 4]; 2],
        key: [Self::Word; 4],
    ) -> [[Self::Word; 4]; 2] {
        [
            words::inverse_round::<I, Self::Word>(x, key),
            words::inverse_round::<I, Self::Word>(y, key),
        ]
    }

    /// All rounds of one group, with nothing beside it.
    #[inline(always)]
    fn encrypt_alone(self, keys: &RoundKeys, x: [Self::Word; 4]) -> [Self::Word; 4] {
        let mut groups = [x];
        encrypt_together(self, keys, &mut groups);
        groups[0]
    }

    /// Writes `tweak` and its successors, and returns the one after them.
    #[inline(always)]
    fn tweaks(self, stretch: &mut [Block; STRETCH], tweak: u128) -> u128 {
        fill(stretch, tweak)
    }
}

/// Most blocks in a register.
const MOST_BLOCKS: usize = 4;

/// Groups in flight where there are registers for few.
const PAIR: usize = 2;

/// Groups in flight where there are registers for many.
const FOUR: usize = 4;

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
        let mut rest = self.blocks;
        if V::FOUR_GROUPS {
            rest = crypt_all::<ENCRYPT, FOUR, V>(vectors, self.keys, rest);
        }
        rest = crypt_all::<ENCRYPT, PAIR, V>(vectors, self.keys, rest);
        rest = crypt_all::<ENCRYPT, 1, V>(vectors, self.keys, rest);
        if !rest.is_empty() {
            let mut padded = [[0; 16]; 4 * MOST_BLOCKS];
            padded[..rest.len()].copy_from_slice(rest);
            crypt::<ENCRYPT, 1, V>(vectors, self.keys, &mut padded);
            rest.copy_from_slice(&padded[..rest.len()]);
        }
    }
}

/// `N` groups of blocks at a time; returns what is left over.
#[inline(always)]
fn crypt_all<'a, const ENCRYPT: bool, const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    blocks: &'a mut [Block],
) -> &'a mut [Block] {
    let mut groups = blocks.chunks_exact_mut(N * 4 * V::BLOCKS);
    for groups in &mut groups {
        crypt::<ENCRYPT, N, V>(vectors, keys, groups);
    }
    groups.into_remainder()
}

/// `N` groups of blocks.
#[inline(always)]
fn crypt<const ENCRYPT: bool, const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    blocks: &mut [Block],
) {
    let mut groups = load::<N, V>(vectors, blocks);
    rounds::<ENCRYPT, N, V>(vectors, keys, &mut groups, N == FOUR);
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
        let stretches = self.data.as_chunks_mut().0.as_chunks_mut().0;
        let tweaks = Tweaks {
            starts: self.starts,
            sector_stretches: self.sector_bytes / (16 * STRETCH),
            nth: 0,
            next: 0,
        };
        if V::FOUR_GROUPS && stretches.len() > 1 {
            xts_all::<ENCRYPT, 2, FOUR, V>(vectors, self.keys, tweaks, stretches);
        } else {
            xts_all::<ENCRYPT, 1, PAIR, V>(vectors, self.keys, tweaks, stretches);
        }
    }
}

/// The tweaks of one stretch of blocks after the other.
struct Tweaks<'a> {
    starts: &'a [Block],
    sector_stretches: usize,
    nth: usize,
    next: u128,
}

impl Tweaks<'_> {
    #[inline(always)]
    fn fill<V: Vectors>(&mut self, vectors: V, stretch: &mut [Block; STRETCH]) {
        if self.nth.is_multiple_of(self.sector_stretches) {
            let start = self.starts.get(self.nth / self.sector_stretches);
            self.next = u128::from_le_bytes(*start.unwrap_or(&[0; 16]));
        }
        self.nth += 1;
        self.next = vectors.tweaks(stretch, self.next);
    }
}

/// `STRETCHES` at a time, `N` groups of blocks in flight.
#[inline(always)]
fn xts_all<const ENCRYPT: bool, const STRETCHES: usize, const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    mut source: Tweaks,
    data: &mut [[Block; STRETCH]],
) {
    let mut tweaks = [[[[0; 16]; STRETCH]; STRETCHES]; 2];
    for tweaks in &mut tweaks[0] {
        source.fill(vectors, tweaks);
    }
    for (nth, stretches) in data.chunks_mut(STRETCHES).enumerate() {
        // The next tweaks are made beside the rounds of these: a vector waits
        // for words that were stored just before.
        for tweaks in &mut tweaks[(nth + 1) % 2] {
            source.fill(vectors, tweaks);
        }
        let tweaks = tweaks[nth % 2].as_flattened();
        if stretches.len() == STRETCHES {
            xts::<ENCRYPT, N, V>(vectors, keys, tweaks, stretches.as_flattened_mut());
        } else {
            xts::<ENCRYPT, PAIR, V>(vectors, keys, tweaks, stretches.as_flattened_mut());
        }
    }
}

/// `N` groups of blocks at a time.
#[inline(always)]
fn xts<const ENCRYPT: bool, const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    tweaks: &[Block],
    blocks: &mut [Block],
) {
    let tweaks = tweaks.chunks_exact(N * 4 * V::BLOCKS);
    for (blocks, tweaks) in blocks.chunks_exact_mut(N * 4 * V::BLOCKS).zip(tweaks) {
        let mut groups = load::<N, V>(vectors, blocks);
        for (nth, x) in groups.as_flattened_mut().iter_mut().enumerate() {
            *x = x.add(vectors.load(&tweaks[nth * V::BLOCKS..]));
        }
        rounds::<ENCRYPT, N, V>(vectors, keys, &mut groups, N == FOUR);
        for (nth, x) in groups.as_flattened().iter().enumerate() {
            let at = nth * V::BLOCKS;
            vectors.store(x.add(vectors.load(&tweaks[at..])), &mut blocks[at..]);
        }
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
        let most = if V::FOUR_GROUPS { FOUR } else { PAIR } * 4 * V::BLOCKS;
        let groups = data.chunks_mut(most * sector_blocks);
        for (data, ivs) in groups.zip(self.ivs.chunks(most)) {
            if ivs.len() <= 4 * V::BLOCKS {
                encrypt_cbc::<1, V>(vectors, self.keys, ivs, data);
            } else if V::FOUR_GROUPS && ivs.len() > PAIR * 4 * V::BLOCKS {
                encrypt_cbc::<FOUR, V>(vectors, self.keys, ivs, data);
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
    let mut starts = [ivs[sectors - 1]; FOUR * 4 * MOST_BLOCKS];
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
            // A lone group goes from block to block in registers.
            match &mut chain[..] {
                [x] => *x = vectors.encrypt_alone(keys, *x),
                _ => rounds_in_lanes::<true, N, V>(vectors, keys, &mut chain),
            }
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
        let mut cbc = Cbc {
            ivs: self.ivs,
            sector_blocks: self.sector_bytes / 16,
            done: 0,
            previous: [0; 16],
        };
        let mut rest = self.data.as_chunks_mut().0;
        if V::FOUR_GROUPS {
            rest = decrypt_cbc::<FOUR, V>(vectors, self.keys, &mut cbc, rest);
        }
        // The smallest sector is whole pairs.
        decrypt_cbc::<PAIR, V>(vectors, self.keys, &mut cbc, rest);
    }
}

/// Where decryption is.
struct Cbc<'a> {
    ivs: &'a [Block],
    sector_blocks: usize,
    /// Blocks that are decrypted, the last of which was this one.
    done: usize,
    previous: Block,
}

impl Cbc<'_> {
    /// What stood before block `at` of those that come, where that is not
    /// among them.
    #[inline(always)]
    fn before(&self, at: usize) -> Option<Block> {
        let place = self.done + at;
        match place.is_multiple_of(self.sector_blocks) {
            true => Some(self.ivs[place / self.sector_blocks]),
            false if at == 0 => Some(self.previous),
            false => None,
        }
    }
}

/// `N` groups at a time; returns what is left over.
#[inline(always)]
fn decrypt_cbc<'a, const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    cbc: &mut Cbc,
    blocks: &'a mut [Block],
) -> &'a mut [Block] {
    let mut all = blocks.chunks_exact_mut(N * 4 * V::BLOCKS);
    for blocks in &mut all {
        let last = blocks[blocks.len() - 1];
        let mut groups = load::<N, V>(vectors, blocks);
        rounds::<false, N, V>(vectors, keys, &mut groups, false);
        // Backwards, so that the ciphertext before a register is still there.
        for (nth, x) in groups.as_flattened().iter().enumerate().rev() {
            let at = nth * V::BLOCKS;
            let before = match cbc.before(at) {
                Some(previous) => {
                    let mut first = [previous; MOST_BLOCKS];
                    first[1..V::BLOCKS].copy_from_slice(&blocks[at..at + V::BLOCKS - 1]);
                    vectors.load(&first)
                }
                None => vectors.load(&blocks[at - 1..]),
            };
            vectors.store(x.add(before), &mut blocks[at..]);
        }
        cbc.done += blocks.len();
        cbc.previous = last;
    }
    all.into_remainder()
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
/// after. `here` compiles them into the caller, for whom groups do not go
/// through memory then; else they are compiled once for all that call them.
#[inline(always)]
fn rounds<const ENCRYPT: bool, const N: usize, V: Vectors>(
    vectors: V,
    keys: &RoundKeys,
    groups: &mut [[V::Word; 4]; N],
    here: bool,
) {
    for x in &mut *groups {
        *x = vectors.transpose(*x);
    }
    if !here {
        rounds_in_lanes::<ENCRYPT, N, V>(vectors, keys, groups);
    } else if ENCRYPT {
        encrypt(vectors, keys, groups);
    } else {
        decrypt(vectors, keys, groups);
    }
    for x in groups {
        *x = vectors.transpose(*x);
    }
}

/// All rounds over `N` groups in lanes: compiled once for all that call it.
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
    match &mut groups[..] {
        [x] => *x = vectors.encrypt_alone(keys, *x),
        _ => encrypt_together(vectors, keys, groups),
    }
}

#[inline(always)]
fn encrypt_together<const N: usize, V: Vectors>(
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
    let (pairs, rest) = groups.as_chunks_mut();
    for pair in pairs {
        *pair = vectors.round::<I>(*pair, key);
    }
    for x in rest {
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
    let (pairs, rest) = groups.as_chunks_mut();
    for pair in pairs {
        *pair = vectors.inverse_round::<I>(*pair, key);
    }
    for x in rest {
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
