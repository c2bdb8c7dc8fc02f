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
//! The portable slice is a `u128`; what a CPU has beyond is a [`Cpu`].

use zeroize::Zeroize;

use super::sbox::{self, Bits};
use super::{MOST_KEYS, Schedule};
use crate::Backend;
use crate::block::{Block, BlockCipher};

/// Bits of a column.
const SLICES: usize = 32;

/// Slices side by side in the widest register.
const MOST_WIDE: usize = 4;

/// A round key in slices: a column is all ones where the key has a one.
pub(crate) type Key = [u128; SLICES];

/// The bits of one row: the S-boxes' input.
type Row<T> = [T; 8];

type State<T> = [Row<T>; 4];

/// The operations on slices of one width: a proof that the CPU has them.
pub(crate) trait Cpu: Copy + Send + Sync + 'static {
    /// What does the work.
    const BACKEND: Backend;

    /// Slices of 32 blocks side by side.
    const WIDE: usize;

    /// A register of slices.
    type Slice: Bits;

    /// Does [`encrypt`] in a function compiled for this CPU.
    fn encrypt(self, keys: &[Key], blocks: &mut [Block]);

    /// Does [`decrypt`] in a function compiled for this CPU.
    fn decrypt(self, keys: &[Key], blocks: &mut [Block]);

    /// The first [`WIDE`](Self::WIDE) of `blocks`, little endian.
    fn load(self, blocks: &[Block]) -> Self::Slice;

    /// Writes the first [`WIDE`](Self::WIDE) of `blocks`, little endian.
    fn store(self, x: Self::Slice, blocks: &mut [Block]);

    /// `slice` side by side with itself.
    fn splat(self, slice: u128) -> Self::Slice;

    /// Every word shifted left.
    fn shift_left<const BY: u32>(self, x: Self::Slice) -> Self::Slice;

    /// Every word shifted right.
    fn shift_right<const BY: u32>(self, x: Self::Slice) -> Self::Slice;

    /// Column c + 1 to column c.
    fn turn_1(self, x: Self::Slice) -> Self::Slice;

    /// Column c + 2 to column c.
    fn turn_2(self, x: Self::Slice) -> Self::Slice;

    /// Column c + 3 to column c.
    fn turn_3(self, x: Self::Slice) -> Self::Slice;
}

/// Any CPU that the build is for.
#[derive(Clone, Copy)]
pub(crate) struct AnyCpu;

impl Cpu for AnyCpu {
    const BACKEND: Backend = Backend::Portable;
    const WIDE: usize = 1;
    type Slice = u128;

    fn encrypt(self, keys: &[Key], blocks: &mut [Block]) {
        encrypt(self, keys, blocks);
    }

    fn decrypt(self, keys: &[Key], blocks: &mut [Block]) {
        decrypt(self, keys, blocks);
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> u128 {
        u128::from_le_bytes(blocks[0])
    }

    #[inline(always)]
    fn store(self, x: u128, blocks: &mut [Block]) {
        blocks[0] = x.to_le_bytes();
    }

    #[inline(always)]
    fn splat(self, slice: u128) -> u128 {
        slice
    }

    #[inline(always)]
    fn shift_left<const BY: u32>(self, x: u128) -> u128 {
        x << BY & columns(u32::MAX << BY)
    }

    #[inline(always)]
    fn shift_right<const BY: u32>(self, x: u128) -> u128 {
        x >> BY & columns(u32::MAX >> BY)
    }

    #[inline(always)]
    fn turn_1(self, x: u128) -> u128 {
        x.rotate_right(32)
    }

    #[inline(always)]
    fn turn_2(self, x: u128) -> u128 {
        x.rotate_right(64)
    }

    #[inline(always)]
    fn turn_3(self, x: u128) -> u128 {
        x.rotate_right(96)
    }
}

/// The same word in every column.
const fn columns(word: u32) -> u128 {
    word as u128 * 0x0000_0001_0000_0001_0000_0001_0000_0001
}

/// AES with a key of 128, 192 or 256 bits.
pub(crate) struct Bitsliced<C> {
    cpu: C,
    keys: Box<[Key; MOST_KEYS]>,
    count: usize,
}

impl<C: Cpu> Bitsliced<C> {
    /// The cipher under a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8], cpu: C) -> Self {
        let schedule = Schedule::new(key);
        let mut keys = Box::new([[0; SLICES]; MOST_KEYS]);
        for (round, (sliced, key)) in keys.iter_mut().zip(schedule.keys()).enumerate() {
            // The S-box's constant, which MixColumns does not change: the
            // elements in a row of its matrix add up to 1.
            let constant = if round == 0 { 0 } else { sbox::CONSTANT };
            for (i, byte) in key.iter().enumerate() {
                for bit in 0..8 {
                    let set = u32::from((byte ^ constant) >> bit & 1).wrapping_neg();
                    sliced[i % 4 * 8 + bit] |= u128::from(set) << (i / 4 * 32);
                }
            }
        }
        let count = schedule.keys().len();
        Self { cpu, keys, count }
    }
}

impl<C: Cpu> BlockCipher<16> for Bitsliced<C> {
    const BACKEND: Backend = C::BACKEND;
    const CONSTANT_TIME: bool = true;

    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        self.cpu.encrypt(&self.keys[..self.count], blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        self.cpu.decrypt(&self.keys[..self.count], blocks);
    }
}

impl<C> Drop for Bitsliced<C> {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

/// Encrypts every block, with the instructions of the function it is inlined
/// in.
#[inline(always)]
pub(crate) fn encrypt<C: Cpu>(cpu: C, keys: &[Key], blocks: &mut [Block]) {
    in_groups::<C, true>(cpu, keys, blocks);
}

/// Decrypts every block, with the instructions of the function it is inlined
/// in.
#[inline(always)]
pub(crate) fn decrypt<C: Cpu>(cpu: C, keys: &[Key], blocks: &mut [Block]) {
    in_groups::<C, false>(cpu, keys, blocks);
}

/// Cuts `blocks` into groups that fill the slices, the last one filled up with
/// zeros.
#[inline(always)]
fn in_groups<C: Cpu, const ENCRYPT: bool>(cpu: C, keys: &[Key], blocks: &mut [Block]) {
    let mut groups = blocks.chunks_exact_mut(C::WIDE * SLICES);
    for group in &mut groups {
        crypt::<C, ENCRYPT>(cpu, keys, group);
    }
    let rest = groups.into_remainder();
    if !rest.is_empty() {
        let mut padded = [[0; 16]; MOST_WIDE * SLICES];
        padded[..rest.len()].copy_from_slice(rest);
        crypt::<C, ENCRYPT>(cpu, keys, &mut padded[..C::WIDE * SLICES]);
        rest.copy_from_slice(&padded[..rest.len()]);
    }
}

#[inline(always)]
fn crypt<C: Cpu, const ENCRYPT: bool>(cpu: C, keys: &[Key], blocks: &mut [Block]) {
    let mut state = load(cpu, blocks);
    let (last, inner) = keys[1..].split_last().expect("keys of many rounds");
    if ENCRYPT {
        add(cpu, &mut state, &keys[0]);
        for key in inner {
            substitute_and_shift(cpu, &mut state);
            mix_columns(&mut state);
            add(cpu, &mut state, key);
        }
        substitute_and_shift(cpu, &mut state);
        add(cpu, &mut state, last);
    } else {
        add(cpu, &mut state, last);
        for key in inner.iter().rev() {
            undo_shift_and_substitute(cpu, &mut state);
            add(cpu, &mut state, key);
            inverse_mix_columns(&mut state);
        }
        undo_shift_and_substitute(cpu, &mut state);
        add(cpu, &mut state, &keys[0]);
    }
    store(cpu, state, blocks);
}

#[inline(always)]
fn add<C: Cpu>(cpu: C, state: &mut State<C::Slice>, key: &Key) {
    for (slice, &key) in state.as_flattened_mut().iter_mut().zip(key) {
        *slice = *slice ^ cpu.splat(key);
    }
}

#[inline(always)]
fn substitute_and_shift<C: Cpu>(cpu: C, [a, b, c, d]: &mut State<C::Slice>) {
    *a = sbox::forward(*a);
    *b = sbox::forward(*b);
    for x in &mut *b {
        *x = cpu.turn_1(*x);
    }
    *c = sbox::forward(*c);
    for x in &mut *c {
        *x = cpu.turn_2(*x);
    }
    *d = sbox::forward(*d);
    for x in &mut *d {
        *x = cpu.turn_3(*x);
    }
}

#[inline(always)]
fn undo_shift_and_substitute<C: Cpu>(cpu: C, [a, b, c, d]: &mut State<C::Slice>) {
    *a = sbox::inverse(*a);
    for x in &mut *b {
        *x = cpu.turn_3(*x);
    }
    *b = sbox::inverse(*b);
    for x in &mut *c {
        *x = cpu.turn_2(*x);
    }
    *c = sbox::inverse(*c);
    for x in &mut *d {
        *x = cpu.turn_1(*x);
    }
    *d = sbox::inverse(*d);
}

/// 2a + 3b + c + d, which is 2(a + b) + b + (c + d), in every row.
#[inline(always)]
fn mix_columns<T: Bits>(state: &mut State<T>) {
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
fn inverse_mix_columns<T: Bits>(state: &mut State<T>) {
    let [a, b, c, d] = *state;
    let ac = double(double(sum(a, c)));
    let bd = double(double(sum(b, d)));
    *state = [sum(a, ac), sum(b, bd), sum(c, ac), sum(d, bd)];
    mix_columns(state);
}

/// Bytes times 2, modulo x⁸ + x⁴ + x³ + x + 1.
#[inline(always)]
fn double<T: Bits>([a, b, c, d, e, f, g, h]: Row<T>) -> Row<T> {
    [h, a ^ h, b, c ^ h, d ^ h, e, f, g]
}

#[inline(always)]
fn sum<T: Bits>(mut x: Row<T>, y: Row<T>) -> Row<T> {
    for (x, y) in x.iter_mut().zip(y) {
        *x = *x ^ y;
    }
    x
}

#[inline(always)]
fn load<C: Cpu>(cpu: C, blocks: &[Block]) -> State<C::Slice> {
    let mut state = [[cpu.splat(0); 8]; 4];
    for (nth, slice) in state.as_flattened_mut().iter_mut().enumerate() {
        *slice = cpu.load(&blocks[nth * C::WIDE..]);
    }
    transpose(cpu, &mut state);
    state
}

#[inline(always)]
fn store<C: Cpu>(cpu: C, mut state: State<C::Slice>, blocks: &mut [Block]) {
    transpose(cpu, &mut state);
    for (nth, &slice) in state.as_flattened().iter().enumerate() {
        cpu.store(slice, &mut blocks[nth * C::WIDE..]);
    }
}

/// Exchanges slices and bits: halves of the square change places, then halves
/// of those, down to single bits.
#[inline(always)]
fn transpose<C: Cpu>(cpu: C, state: &mut State<C::Slice>) {
    let slices = state.as_flattened_mut();
    exchange::<C, 16>(cpu, slices, 0x0000_ffff);
    exchange::<C, 8>(cpu, slices, 0x00ff_00ff);
    exchange::<C, 4>(cpu, slices, 0x0f0f_0f0f);
    exchange::<C, 2>(cpu, slices, 0x3333_3333);
    exchange::<C, 1>(cpu, slices, 0x5555_5555);
}

#[inline(always)]
fn exchange<C: Cpu, const BY: u32>(cpu: C, slices: &mut [C::Slice], mask: u32) {
    let mask = cpu.splat(columns(mask));
    for square in slices.chunks_exact_mut(2 * BY as usize) {
        let (upper, lower) = square.split_at_mut(BY as usize);
        for (upper, lower) in upper.iter_mut().zip(lower) {
            let moved = (cpu.shift_right::<BY>(*upper) ^ *lower) & mask;
            *lower = *lower ^ moved;
            *upper = *upper ^ cpu.shift_left::<BY>(moved);
        }
    }
}
