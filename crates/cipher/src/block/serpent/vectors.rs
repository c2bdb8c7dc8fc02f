//! Serpent in vector registers. Each register holds a word of as many blocks as it has lanes, and
//! four registers hold a group of blocks. As many groups are in flight as the registers hold,
//! because a round of one group waits for itself.
//!
//! ```text
//! as in memory   a = block 0, block 1, …        b = the next blocks   c   d
//! in lanes       w0 = word 0 of every block of a, b, c and d   w1   w2   w3
//! ```
//!
//! On Zen 4, `vpternlogd` starts every half cycle, but only every cycle if an input
//! was just made. A round therefore takes at least 13 cycles for a group of 16 blocks.

use super::words::{self, Two};
use super::{ROUNDS, RoundKeys, Words, shallow};
use crate::block::Block;
use crate::block::registers::{MOST_LANES, Register, Registers};
use crate::mode::xts::STRETCH;
use crate::work::Work;

/// A word of many blocks in each.
type Group<R> = [Register<R>; 4];

/// Groups in flight where there are registers for few.
const PAIR: usize = 2;

/// Groups in flight where there are registers for many.
const FOUR: usize = 4;

/// Blocks in a cache line. Sectors lie a power of two apart, where their blocks
/// share a few sets of the cache, so whole lines are read and written.
const LINE: usize = 4;

/// Encrypts or decrypts every block in place.
pub(super) struct Blocks<'a, const ENCRYPT: bool> {
    pub(super) keys: &'a RoundKeys,
    pub(super) blocks: &'a mut [Block],
}

impl<R: Registers, const ENCRYPT: bool> Work<R> for Blocks<'_, ENCRYPT> {
    #[inline(always)]
    fn run(self, cpu: R) {
        let mut rest = self.blocks;
        if R::MANY {
            rest = crypt_all::<ENCRYPT, FOUR, R>(cpu, self.keys, rest);
        }
        rest = crypt_all::<ENCRYPT, PAIR, R>(cpu, self.keys, rest);
        rest = crypt_all::<ENCRYPT, 1, R>(cpu, self.keys, rest);
        if !rest.is_empty() {
            let mut padded = [[0; 16]; 4 * MOST_LANES];
            padded[..rest.len()].copy_from_slice(rest);
            crypt::<ENCRYPT, 1, R>(cpu, self.keys, &mut padded);
            rest.copy_from_slice(&padded[..rest.len()]);
        }
    }
}

/// `N` groups of blocks at a time; returns what is left over.
#[inline(always)]
fn crypt_all<'a, const ENCRYPT: bool, const N: usize, R: Registers>(
    cpu: R,
    keys: &RoundKeys,
    blocks: &'a mut [Block],
) -> &'a mut [Block] {
    let mut groups = blocks.chunks_exact_mut(N * 4 * R::LANES);
    for groups in &mut groups {
        crypt::<ENCRYPT, N, R>(cpu, keys, groups);
    }
    groups.into_remainder()
}

/// `N` groups of blocks.
#[inline(always)]
fn crypt<const ENCRYPT: bool, const N: usize, R: Registers>(
    cpu: R,
    keys: &RoundKeys,
    blocks: &mut [Block],
) {
    let mut groups = load::<N, R>(cpu, blocks);
    rounds::<ENCRYPT, N, R>(cpu, keys, &mut groups, N == FOUR);
    for (nth, x) in groups.as_flattened().iter().enumerate() {
        x.store(&mut blocks[nth * R::LANES..]);
    }
}

/// Encrypts or decrypts sectors in place in XTS mode; `starts` has the first
/// tweak of each.
pub(super) struct Xts<'a, const ENCRYPT: bool> {
    pub(super) keys: &'a RoundKeys,
    pub(super) starts: &'a [Block],
    pub(super) sector_bytes: usize,
    pub(super) data: &'a mut [u8],
}

impl<R: Registers, const ENCRYPT: bool> Work<R> for Xts<'_, ENCRYPT> {
    #[inline(always)]
    fn run(self, cpu: R) {
        let stretches = self.data.as_chunks_mut().0.as_chunks_mut().0;
        let tweaks = Tweaks {
            starts: self.starts,
            sector_stretches: self.sector_bytes / (16 * STRETCH),
            nth: 0,
            next: 0,
        };
        if R::MANY && stretches.len() > 1 {
            xts_all::<ENCRYPT, 2, FOUR, R>(cpu, self.keys, tweaks, stretches);
        } else {
            xts_all::<ENCRYPT, 1, PAIR, R>(cpu, self.keys, tweaks, stretches);
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
    fn fill(&mut self, cpu: impl Registers, stretch: &mut [Block; STRETCH]) {
        if self.nth.is_multiple_of(self.sector_stretches) {
            let start = self.starts.get(self.nth / self.sector_stretches);
            self.next = u128::from_le_bytes(*start.unwrap_or(&[0; 16]));
        }
        self.nth += 1;
        self.next = cpu.tweaks(stretch, self.next);
    }
}

/// `STRETCHES` at a time, `N` groups of blocks in flight.
#[inline(always)]
fn xts_all<const ENCRYPT: bool, const STRETCHES: usize, const N: usize, R: Registers>(
    cpu: R,
    keys: &RoundKeys,
    mut source: Tweaks,
    data: &mut [[Block; STRETCH]],
) {
    let mut tweaks = [[[[0; 16]; STRETCH]; STRETCHES]; 2];
    for tweaks in &mut tweaks[0] {
        source.fill(cpu, tweaks);
    }
    for (nth, stretches) in data.chunks_mut(STRETCHES).enumerate() {
        // The next tweaks are made beside the rounds of these: a vector waits
        // for words that were stored just before.
        for tweaks in &mut tweaks[(nth + 1) % 2] {
            source.fill(cpu, tweaks);
        }
        let tweaks = tweaks[nth % 2].as_flattened();
        if stretches.len() == STRETCHES {
            xts::<ENCRYPT, N, R>(cpu, keys, tweaks, stretches.as_flattened_mut());
        } else {
            xts::<ENCRYPT, PAIR, R>(cpu, keys, tweaks, stretches.as_flattened_mut());
        }
    }
}

/// `N` groups of blocks at a time.
#[inline(always)]
fn xts<const ENCRYPT: bool, const N: usize, R: Registers>(
    cpu: R,
    keys: &RoundKeys,
    tweaks: &[Block],
    blocks: &mut [Block],
) {
    let tweaks = tweaks.chunks_exact(N * 4 * R::LANES);
    for (blocks, tweaks) in blocks.chunks_exact_mut(N * 4 * R::LANES).zip(tweaks) {
        let mut groups = load::<N, R>(cpu, blocks);
        for (nth, x) in groups.as_flattened_mut().iter_mut().enumerate() {
            *x ^= Register::load(cpu, &tweaks[nth * R::LANES..]);
        }
        rounds::<ENCRYPT, N, R>(cpu, keys, &mut groups, N == FOUR);
        for (nth, x) in groups.as_flattened().iter().enumerate() {
            let at = nth * R::LANES;
            let tweaks = Register::load(cpu, &tweaks[at..]);
            (*x ^ tweaks).store(&mut blocks[at..]);
        }
    }
}

/// Encrypts sectors in place in CBC mode; `ivs` has one for each.
pub(super) struct EncryptCbc<'a> {
    pub(super) keys: &'a RoundKeys,
    pub(super) ivs: &'a [Block],
    pub(super) sector_bytes: usize,
    pub(super) data: &'a mut [u8],
}

impl<R: Registers> Work<R> for EncryptCbc<'_> {
    #[inline(always)]
    fn run(self, cpu: R) {
        let sector_blocks = self.sector_bytes / 16;
        let data = self.data.as_chunks_mut().0;
        let most = if R::MANY { FOUR } else { PAIR } * 4 * R::LANES;
        let groups = data.chunks_mut(most * sector_blocks);
        for (data, ivs) in groups.zip(self.ivs.chunks(most)) {
            if ivs.len() <= 4 * R::LANES {
                encrypt_cbc::<1, R>(cpu, self.keys, ivs, data);
            } else if R::MANY && ivs.len() > PAIR * 4 * R::LANES {
                encrypt_cbc::<FOUR, R>(cpu, self.keys, ivs, data);
            } else {
                encrypt_cbc::<PAIR, R>(cpu, self.keys, ivs, data);
            }
        }
    }
}

/// At most `N` groups of sectors, each in its lane. Lanes without a sector
/// repeat the last one and are not written.
#[inline(always)]
fn encrypt_cbc<const N: usize, R: Registers>(
    cpu: R,
    keys: &RoundKeys,
    ivs: &[Block],
    data: &mut [Block],
) {
    let sectors = ivs.len();
    let sector_blocks = data.len() / sectors;
    let mut starts = [ivs[sectors - 1]; FOUR * 4 * MOST_LANES];
    starts[..sectors].copy_from_slice(ivs);
    let mut chain = load::<N, R>(cpu, &starts);
    for x in &mut chain {
        *x = transpose(*x);
    }
    for line in (0..sector_blocks).step_by(LINE) {
        // Register `part` of the lines of sectors `first` and on: its first
        // sector, and its first block in the data.
        let place = |first: usize, part: usize| {
            let sector = first + part * R::LANES / LINE;
            let at = sector.min(sectors - 1) * sector_blocks + line + part * R::LANES % LINE;
            (sector, at)
        };
        let mut lines = [[[Register::splat_word(cpu, 0); LINE]; 4]; N];
        for (nth, x) in lines.as_flattened_mut().iter_mut().enumerate() {
            for (part, x) in x.iter_mut().enumerate() {
                *x = Register::load(cpu, &data[place(nth * R::LANES, part).1..]);
            }
            *x = blocks_of_lines(*x);
        }
        for block in 0..LINE {
            for (x, lines) in chain.iter_mut().zip(&lines) {
                let plain = [0, 1, 2, 3].map(|register: usize| lines[register][block]);
                *x = words::add(*x, transpose(plain));
            }
            // A lone group goes from block to block in registers.
            match &mut chain[..] {
                [x] => *x = encrypt_alone(cpu, keys, *x),
                _ => rounds_in_lanes::<true, N, R>(cpu, keys, &mut chain),
            }
            for (x, lines) in chain.iter().zip(&mut lines) {
                for (register, x) in transpose(*x).into_iter().enumerate() {
                    lines[register][block] = x;
                }
            }
        }
        for (nth, x) in lines.as_flattened().iter().enumerate() {
            for (part, x) in lines_of_blocks(*x).into_iter().enumerate() {
                let (sector, at) = place(nth * R::LANES, part);
                if sector < sectors {
                    x.store(&mut data[at..]);
                }
            }
        }
    }
}

/// Decrypts sectors in place in CBC mode; `ivs` has one for each.
pub(super) struct DecryptCbc<'a> {
    pub(super) keys: &'a RoundKeys,
    pub(super) ivs: &'a [Block],
    pub(super) sector_bytes: usize,
    pub(super) data: &'a mut [u8],
}

impl<R: Registers> Work<R> for DecryptCbc<'_> {
    #[inline(always)]
    fn run(self, cpu: R) {
        let mut cbc = Cbc {
            ivs: self.ivs,
            sector_blocks: self.sector_bytes / 16,
            done: 0,
            previous: [0; 16],
        };
        let mut rest = self.data.as_chunks_mut().0;
        if R::MANY {
            rest = decrypt_cbc::<FOUR, R>(cpu, self.keys, &mut cbc, rest);
        }
        // The smallest sector is whole pairs.
        decrypt_cbc::<PAIR, R>(cpu, self.keys, &mut cbc, rest);
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
    /// The ciphertext or IV before block `at` of the next blocks; `None` if it is one of these
    /// blocks.
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
fn decrypt_cbc<'a, const N: usize, R: Registers>(
    cpu: R,
    keys: &RoundKeys,
    cbc: &mut Cbc,
    blocks: &'a mut [Block],
) -> &'a mut [Block] {
    let mut all = blocks.chunks_exact_mut(N * 4 * R::LANES);
    for blocks in &mut all {
        let last = blocks[blocks.len() - 1];
        let mut groups = load::<N, R>(cpu, blocks);
        rounds::<false, N, R>(cpu, keys, &mut groups, false);
        // Backwards, so that the ciphertext before a register is still there.
        for (nth, x) in groups.as_flattened().iter().enumerate().rev() {
            let at = nth * R::LANES;
            let before = match cbc.before(at) {
                Some(previous) => {
                    let mut first = [previous; MOST_LANES];
                    first[1..R::LANES].copy_from_slice(&blocks[at..at + R::LANES - 1]);
                    Register::load(cpu, &first)
                }
                None => Register::load(cpu, &blocks[at - 1..]),
            };
            (*x ^ before).store(&mut blocks[at..]);
        }
        cbc.done += blocks.len();
        cbc.previous = last;
    }
    all.into_remainder()
}

/// `N` groups as they lie in memory.
#[inline(always)]
fn load<const N: usize, R: Registers>(cpu: R, blocks: &[Block]) -> [Group<R>; N] {
    let mut groups = [[Register::splat_word(cpu, 0); 4]; N];
    for (nth, x) in groups.as_flattened_mut().iter_mut().enumerate() {
        *x = Register::load(cpu, &blocks[nth * R::LANES..]);
    }
    groups
}

/// All rounds over `N` groups, which are as they lie in memory before and
/// after. `here` compiles them into the caller, for whom groups do not go
/// through memory then; else they are compiled once for all that call them.
#[inline(always)]
fn rounds<const ENCRYPT: bool, const N: usize, R: Registers>(
    cpu: R,
    keys: &RoundKeys,
    groups: &mut [Group<R>; N],
    here: bool,
) {
    for x in &mut *groups {
        *x = transpose(*x);
    }
    if !here {
        rounds_in_lanes::<ENCRYPT, N, R>(cpu, keys, groups);
    } else if ENCRYPT {
        encrypt(cpu, keys, groups);
    } else {
        decrypt(cpu, keys, groups);
    }
    for x in groups {
        *x = transpose(*x);
    }
}

/// All rounds over `N` groups in lanes: compiled once for all that call it.
#[inline(always)]
fn rounds_in_lanes<const ENCRYPT: bool, const N: usize, R: Registers>(
    cpu: R,
    keys: &RoundKeys,
    groups: &mut [Group<R>; N],
) {
    cpu.enter(Rounds::<ENCRYPT, N, R> { keys, groups });
}

struct Rounds<'a, const ENCRYPT: bool, const N: usize, R: Registers> {
    keys: &'a RoundKeys,
    groups: &'a mut [Group<R>; N],
}

impl<const ENCRYPT: bool, const N: usize, R: Registers> Work<R> for Rounds<'_, ENCRYPT, N, R> {
    #[inline(always)]
    fn run(self, cpu: R) {
        // A copy stays in registers.
        let mut groups = *self.groups;
        if ENCRYPT {
            encrypt(cpu, self.keys, &mut groups);
        } else {
            decrypt(cpu, self.keys, &mut groups);
        }
        *self.groups = groups;
    }
}

#[inline(always)]
fn encrypt<const N: usize, R: Registers>(cpu: R, keys: &RoundKeys, groups: &mut [Group<R>; N]) {
    match &mut groups[..] {
        [x] => *x = encrypt_alone(cpu, keys, *x),
        _ => encrypt_together(cpu, keys, groups),
    }
}

#[inline(always)]
fn encrypt_together<const N: usize, R: Registers>(
    cpu: R,
    keys: &RoundKeys,
    groups: &mut [Group<R>; N],
) {
    for octet in 0..ROUNDS / 8 {
        let keys: &[Words; 8] = &keys.as_chunks().0[octet];
        round::<0, N, R>(cpu, groups, keys);
        round::<1, N, R>(cpu, groups, keys);
        round::<2, N, R>(cpu, groups, keys);
        round::<3, N, R>(cpu, groups, keys);
        round::<4, N, R>(cpu, groups, keys);
        round::<5, N, R>(cpu, groups, keys);
        round::<6, N, R>(cpu, groups, keys);
        if octet < ROUNDS / 8 - 1 {
            round::<7, N, R>(cpu, groups, keys);
        }
    }
    let before = splat(cpu, keys[ROUNDS - 1]);
    let last = splat(cpu, keys[ROUNDS]);
    for x in groups {
        *x = words::last_round(*x, before, last);
    }
}

#[inline(always)]
fn decrypt<const N: usize, R: Registers>(cpu: R, keys: &RoundKeys, groups: &mut [Group<R>; N]) {
    let before = splat(cpu, keys[ROUNDS - 1]);
    let last = splat(cpu, keys[ROUNDS]);
    for x in &mut *groups {
        *x = words::inverse_last_round(*x, before, last);
    }
    for octet in (0..ROUNDS / 8).rev() {
        let keys: &[Words; 8] = &keys.as_chunks().0[octet];
        if octet < ROUNDS / 8 - 1 {
            inverse_round::<7, N, R>(cpu, groups, keys);
        }
        inverse_round::<6, N, R>(cpu, groups, keys);
        inverse_round::<5, N, R>(cpu, groups, keys);
        inverse_round::<4, N, R>(cpu, groups, keys);
        inverse_round::<3, N, R>(cpu, groups, keys);
        inverse_round::<2, N, R>(cpu, groups, keys);
        inverse_round::<1, N, R>(cpu, groups, keys);
        inverse_round::<0, N, R>(cpu, groups, keys);
    }
}

/// All rounds of one group, with nothing beside it.
#[inline(always)]
fn encrypt_alone<R: Registers>(cpu: R, keys: &RoundKeys, x: Group<R>) -> Group<R> {
    if R::TERNARY && R::LANES == 1 {
        return shallow::encrypt(cpu, keys, x);
    }
    let mut groups = [x];
    encrypt_together(cpu, keys, &mut groups);
    groups[0]
}

#[inline(always)]
fn round<const I: usize, const N: usize, R: Registers>(
    cpu: R,
    groups: &mut [Group<R>; N],
    keys: &[Words; 8],
) {
    let key = splat(cpu, keys[I]);
    let (pairs, rest) = pairs::<R>(groups);
    for [x, y] in pairs {
        let both = words::round::<I, Two<R>>(Two::join(*x, *y), Two::join(key, key));
        [*x, *y] = Two::part(both);
    }
    for x in rest {
        *x = words::round::<I, Register<R>>(*x, key);
    }
}

#[inline(always)]
fn inverse_round<const I: usize, const N: usize, R: Registers>(
    cpu: R,
    groups: &mut [Group<R>; N],
    keys: &[Words; 8],
) {
    let key = splat(cpu, keys[I]);
    let (pairs, rest) = pairs::<R>(groups);
    for [x, y] in pairs {
        let both = words::inverse_round::<I, Two<R>>(Two::join(*x, *y), Two::join(key, key));
        [*x, *y] = Two::part(both);
    }
    for x in rest {
        *x = words::inverse_round::<I, Register<R>>(*x, key);
    }
}

/// Splits the groups: the pairs do their rounds in turns, operation by operation, and the rest one
/// after the other. Without gates of three inputs there are too few registers for turns.
#[inline(always)]
fn pairs<R: Registers>(groups: &mut [Group<R>]) -> (&mut [[Group<R>; 2]], &mut [Group<R>]) {
    match R::TERNARY {
        true => groups.as_chunks_mut(),
        false => (&mut [], groups),
    }
}

#[inline(always)]
pub(super) fn splat<R: Registers>(cpu: R, key: Words) -> Group<R> {
    [
        Register::splat_word(cpu, key[0]),
        Register::splat_word(cpu, key[1]),
        Register::splat_word(cpu, key[2]),
        Register::splat_word(cpu, key[3]),
    ]
}

/// From blocks to words and back, for each block.
#[inline(always)]
fn transpose<R: Registers>([a, b, c, d]: Group<R>) -> Group<R> {
    group(a.cpu, a.cpu.transpose([a.x, b.x, c.x, d.x]))
}

/// From lines of 64 bytes of as many sectors as there are lanes, one after the other, to block
/// j of every sector in register j.
#[inline(always)]
fn blocks_of_lines<R: Registers>([a, b, c, d]: Group<R>) -> Group<R> {
    group(a.cpu, a.cpu.rows([a.x, b.x, c.x, d.x]))
}

/// Undoes [`blocks_of_lines`].
#[inline(always)]
fn lines_of_blocks<R: Registers>([a, b, c, d]: Group<R>) -> Group<R> {
    group(a.cpu, a.cpu.columns([a.x, b.x, c.x, d.x]))
}

#[inline(always)]
fn group<R: Registers>(cpu: R, [a, b, c, d]: [R::Vector; 4]) -> Group<R> {
    [
        Register { x: a, cpu },
        Register { x: b, cpu },
        Register { x: c, cpu },
        Register { x: d, cpu },
    ]
}
