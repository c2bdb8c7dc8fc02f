//! AES (FIPS 197), bit-sliced and constant-time.
//!
//! 32 blocks, or a small multiple of that, are worked on together. A block is
//! four words, the columns of AES's state, little endian: byte r of a column is
//! row r. A slice has bit j of the columns of 32 blocks,
//!
//! ```text
//! slice j = bit j of column 0 | of column 1 | of column 2 | of column 3
//!            32 bits, one a block
//! ```
//!
//! or several of these side by side, and j is 8·row + bit. So the S-box is a
//! circuit over eight slices, ShiftRows turns each slice's columns by its row,
//! and MixColumns adds slices of one row to those of another.
//!
//! A register has one to four such slices, one a lane: see [`Lanes`].

use std::ops::{BitAnd, BitXor};

use zeroize::Zeroize;

use super::{MOST_KEYS, Schedule, sbox};
use crate::block::lanes::{Lanes, MOST_WIDE};
use crate::block::{Block, BlockCipher};
use crate::stack::on_one_page;
use crate::work::Work;

/// Bits of a column.
const SLICES: usize = 32;

/// A round key in slices: a column is all ones where the key has a one.
type Key = [[u32; 4]; SLICES];

/// AES with a key of 128, 192 or 256 bits.
pub(crate) struct Bitsliced<L> {
    lanes: L,
    keys: Box<[Key; MOST_KEYS]>,
    count: usize,
}

impl<L: Lanes> Bitsliced<L> {
    /// The cipher under a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8], lanes: L) -> Self {
        let schedule = Schedule::new(key);
        let mut keys = Box::new([[[0; 4]; SLICES]; MOST_KEYS]);
        for (round, (sliced, key)) in keys.iter_mut().zip(schedule.keys()).enumerate() {
            // The S-box's constant, which MixColumns does not change: the
            // elements in a row of its matrix add up to 1.
            let constant = if round == 0 { 0 } else { sbox::CONSTANT };
            for (i, byte) in key.iter().enumerate() {
                for bit in 0..8 {
                    let set = u32::from((byte ^ constant) >> bit & 1).wrapping_neg();
                    sliced[i % 4 * 8 + bit][i / 4] = set;
                }
            }
        }
        let count = schedule.keys().len();
        Self { lanes, keys, count }
    }
}

impl<L: Lanes> BlockCipher<16> for Bitsliced<L> {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        let keys = &self.keys[..self.count];
        on_one_page(|| self.lanes.enter(Blocks::<true> { keys, blocks }));
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        let keys = &self.keys[..self.count];
        on_one_page(|| self.lanes.enter(Blocks::<false> { keys, blocks }));
    }
}

impl<L> Drop for Bitsliced<L> {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

/// Encrypts or decrypts every block in place, as many at once as fill the
/// slices; the last ones are filled up with zeros.
struct Blocks<'a, const ENCRYPT: bool> {
    keys: &'a [Key],
    blocks: &'a mut [Block],
}

impl<L: Lanes, const ENCRYPT: bool> Work<L> for Blocks<'_, ENCRYPT> {
    #[inline(always)]
    fn run(self, lanes: L) {
        let mut groups = self.blocks.chunks_exact_mut(L::WIDE * SLICES);
        for group in &mut groups {
            crypt::<L, ENCRYPT>(lanes, self.keys, group);
        }
        let rest = groups.into_remainder();
        if !rest.is_empty() {
            let mut padded = [[0; 16]; MOST_WIDE * SLICES];
            padded[..rest.len()].copy_from_slice(rest);
            crypt::<L, ENCRYPT>(lanes, self.keys, &mut padded[..L::WIDE * SLICES]);
            rest.copy_from_slice(&padded[..rest.len()]);
        }
    }
}

/// A register of slices, with the operators of its proof.
#[derive(Clone, Copy)]
struct Slice<L: Lanes>(L, L::Vector);

impl<L: Lanes> BitXor for Slice<L> {
    type Output = Self;

    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        Self(self.0, self.0.xor(self.1, other.1))
    }
}

impl<L: Lanes> BitAnd for Slice<L> {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        Self(self.0, self.0.and(self.1, other.1))
    }
}

/// The bits of one row: the S-boxes' input.
type Row<L> = [Slice<L>; 8];

type State<L> = [Row<L>; 4];

#[inline(always)]
fn crypt<L: Lanes, const ENCRYPT: bool>(lanes: L, keys: &[Key], blocks: &mut [Block]) {
    let mut state = load(lanes, blocks);
    let (last, inner) = keys[1..].split_last().expect("keys of many rounds");
    if ENCRYPT {
        add(&mut state, &keys[0]);
        for key in inner {
            substitute_and_shift(&mut state);
            mix_columns(&mut state);
            add(&mut state, key);
        }
        substitute_and_shift(&mut state);
        add(&mut state, last);
    } else {
        add(&mut state, last);
        for key in inner.iter().rev() {
            undo_shift_and_substitute(&mut state);
            add(&mut state, key);
            inverse_mix_columns(&mut state);
        }
        undo_shift_and_substitute(&mut state);
        add(&mut state, &keys[0]);
    }
    store(state, blocks);
}

#[inline(always)]
fn add<L: Lanes>(state: &mut State<L>, key: &Key) {
    for (slice, &key) in state.as_flattened_mut().iter_mut().zip(key) {
        *slice = *slice ^ Slice(slice.0, slice.0.splat(key));
    }
}

#[inline(always)]
fn substitute_and_shift<L: Lanes>([a, b, c, d]: &mut State<L>) {
    *a = sbox::forward(*a);
    *b = sbox::forward(*b);
    for Slice(lanes, x) in b {
        *x = lanes.turn::<1>(*x);
    }
    *c = sbox::forward(*c);
    for Slice(lanes, x) in c {
        *x = lanes.turn::<2>(*x);
    }
    *d = sbox::forward(*d);
    for Slice(lanes, x) in d {
        *x = lanes.turn::<3>(*x);
    }
}

#[inline(always)]
fn undo_shift_and_substitute<L: Lanes>([a, b, c, d]: &mut State<L>) {
    *a = sbox::inverse(*a);
    for Slice(lanes, x) in &mut *b {
        *x = lanes.turn::<3>(*x);
    }
    *b = sbox::inverse(*b);
    for Slice(lanes, x) in &mut *c {
        *x = lanes.turn::<2>(*x);
    }
    *c = sbox::inverse(*c);
    for Slice(lanes, x) in &mut *d {
        *x = lanes.turn::<1>(*x);
    }
    *d = sbox::inverse(*d);
}

/// 2a + 3b + c + d, which is 2(a + b) + b + (c + d), in every row.
#[inline(always)]
fn mix_columns<L: Lanes>(state: &mut State<L>) {
    let [a, b, c, d] = *state;
    let (ab, cd) = (sum(a, b), sum(c, d));
    state[0] = sum(sum(double(ab), b), cd);
    state[2] = sum(sum(double(cd), d), ab);
    let (bc, da) = (sum(b, c), sum(d, a));
    state[1] = sum(sum(double(bc), c), da);
    state[3] = sum(sum(double(da), a), bc);
}

/// The matrix (14 11 13 9) is (2 3 1 1) times (5 0 4 0).
#[inline(always)]
fn inverse_mix_columns<L: Lanes>(state: &mut State<L>) {
    let [a, b, c, d] = *state;
    let ac = double(double(sum(a, c)));
    let bd = double(double(sum(b, d)));
    *state = [sum(a, ac), sum(b, bd), sum(c, ac), sum(d, bd)];
    mix_columns(state);
}

/// Bytes times 2, modulo x⁸ + x⁴ + x³ + x + 1.
#[inline(always)]
fn double<L: Lanes>([a, b, c, d, e, f, g, h]: Row<L>) -> Row<L> {
    [h, a ^ h, b, c ^ h, d ^ h, e, f, g]
}

#[inline(always)]
fn sum<L: Lanes>(mut x: Row<L>, y: Row<L>) -> Row<L> {
    for (x, y) in x.iter_mut().zip(y) {
        *x = *x ^ y;
    }
    x
}

#[inline(always)]
fn load<L: Lanes>(lanes: L, blocks: &[Block]) -> State<L> {
    let mut state = [[Slice(lanes, lanes.splat([0; 4])); 8]; 4];
    for (nth, slice) in state.as_flattened_mut().iter_mut().enumerate() {
        slice.1 = lanes.load(&blocks[nth * L::WIDE..]);
    }
    transpose(&mut state);
    state
}

#[inline(always)]
fn store<L: Lanes>(mut state: State<L>, blocks: &mut [Block]) {
    transpose(&mut state);
    for (nth, Slice(lanes, x)) in state.as_flattened().iter().enumerate() {
        lanes.store(*x, &mut blocks[nth * L::WIDE..]);
    }
}

/// Exchanges slices and bits: halves of the square change places, then halves
/// of those, down to single bits.
#[inline(always)]
fn transpose<L: Lanes>(state: &mut State<L>) {
    let slices = state.as_flattened_mut();
    exchange::<L, 16>(slices, 0x0000_ffff);
    exchange::<L, 8>(slices, 0x00ff_00ff);
    exchange::<L, 4>(slices, 0x0f0f_0f0f);
    exchange::<L, 2>(slices, 0x3333_3333);
    exchange::<L, 1>(slices, 0x5555_5555);
}

#[inline(always)]
fn exchange<L: Lanes, const BY: u32>(slices: &mut [Slice<L>], mask: u32) {
    for square in slices.chunks_exact_mut(2 * BY as usize) {
        let (upper, lower) = square.split_at_mut(BY as usize);
        for (upper, lower) in upper.iter_mut().zip(lower) {
            let lanes = upper.0;
            let shifted = Slice(lanes, lanes.shift_right::<BY>(upper.1));
            let moved = (shifted ^ *lower) & Slice(lanes, lanes.splat([mask; 4]));
            *lower = *lower ^ moved;
            *upper = *upper ^ Slice(lanes, lanes.shift_left::<BY>(moved.1));
        }
    }
}
