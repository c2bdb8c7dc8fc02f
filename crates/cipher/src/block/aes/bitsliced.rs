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
//! A register has one to four such slices, one a lane: see [`Registers`].

use zeroize::Zeroize;

use super::{MOST_KEYS, Schedule, sbox};
use crate::block::registers::{MOST_LANES, Register, Registers};
use crate::block::{Block, BlockCipher};
use crate::stack::on_one_page;
use crate::work::Work;

/// Bits of a column.
const SLICES: usize = 32;

/// A round key in slices: a column is all ones where the key has a one.
type Key = [[u32; 4]; SLICES];

/// AES with a key of 128, 192 or 256 bits.
pub(crate) struct Bitsliced<R> {
    cpu: R,
    keys: Box<[Key; MOST_KEYS]>,
    count: usize,
}

impl<R: Registers> Bitsliced<R> {
    /// The cipher under a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8], cpu: R) -> Self {
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
        Self { cpu, keys, count }
    }
}

impl<R: Registers> BlockCipher<16> for Bitsliced<R> {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        let keys = &self.keys[..self.count];
        on_one_page(|| self.cpu.enter(Blocks::<true> { keys, blocks }));
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        let keys = &self.keys[..self.count];
        on_one_page(|| self.cpu.enter(Blocks::<false> { keys, blocks }));
    }
}

impl<R> Drop for Bitsliced<R> {
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

impl<R: Registers, const ENCRYPT: bool> Work<R> for Blocks<'_, ENCRYPT> {
    #[inline(always)]
    fn run(self, cpu: R) {
        let mut groups = self.blocks.chunks_exact_mut(R::LANES * SLICES);
        for group in &mut groups {
            crypt::<R, ENCRYPT>(cpu, self.keys, group);
        }
        let rest = groups.into_remainder();
        if !rest.is_empty() {
            let mut padded = [[0; 16]; MOST_LANES * SLICES];
            padded[..rest.len()].copy_from_slice(rest);
            crypt::<R, ENCRYPT>(cpu, self.keys, &mut padded[..R::LANES * SLICES]);
            rest.copy_from_slice(&padded[..rest.len()]);
        }
    }
}

/// The bits of one row: the S-boxes' input.
type Row<R> = [Register<R>; 8];

type State<R> = [Row<R>; 4];

#[inline(always)]
fn crypt<R: Registers, const ENCRYPT: bool>(cpu: R, keys: &[Key], blocks: &mut [Block]) {
    let mut state = load(cpu, blocks);
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
fn add<R: Registers>(state: &mut State<R>, key: &Key) {
    for (slice, &key) in state.as_flattened_mut().iter_mut().zip(key) {
        *slice ^= slice.with(slice.cpu.splat(key));
    }
}

#[inline(always)]
fn substitute_and_shift<R: Registers>([a, b, c, d]: &mut State<R>) {
    *a = sbox::forward(*a);
    *b = sbox::forward(*b);
    for x in b {
        x.x = x.cpu.turn::<1>(x.x);
    }
    *c = sbox::forward(*c);
    for x in c {
        x.x = x.cpu.turn::<2>(x.x);
    }
    *d = sbox::forward(*d);
    for x in d {
        x.x = x.cpu.turn::<3>(x.x);
    }
}

#[inline(always)]
fn undo_shift_and_substitute<R: Registers>([a, b, c, d]: &mut State<R>) {
    *a = sbox::inverse(*a);
    for x in &mut *b {
        x.x = x.cpu.turn::<3>(x.x);
    }
    *b = sbox::inverse(*b);
    for x in &mut *c {
        x.x = x.cpu.turn::<2>(x.x);
    }
    *c = sbox::inverse(*c);
    for x in &mut *d {
        x.x = x.cpu.turn::<1>(x.x);
    }
    *d = sbox::inverse(*d);
}

/// 2a + 3b + c + d, which is 2(a + b) + b + (c + d), in every row.
#[inline(always)]
fn mix_columns<R: Registers>(state: &mut State<R>) {
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
fn inverse_mix_columns<R: Registers>(state: &mut State<R>) {
    let [a, b, c, d] = *state;
    let ac = double(double(sum(a, c)));
    let bd = double(double(sum(b, d)));
    *state = [sum(a, ac), sum(b, bd), sum(c, ac), sum(d, bd)];
    mix_columns(state);
}

/// Bytes times 2, modulo x⁸ + x⁴ + x³ + x + 1.
#[inline(always)]
fn double<R: Registers>([a, b, c, d, e, f, g, h]: Row<R>) -> Row<R> {
    [h, a ^ h, b, c ^ h, d ^ h, e, f, g]
}

#[inline(always)]
fn sum<R: Registers>(mut x: Row<R>, y: Row<R>) -> Row<R> {
    for (x, y) in x.iter_mut().zip(y) {
        *x ^= y;
    }
    x
}

#[inline(always)]
fn load<R: Registers>(cpu: R, blocks: &[Block]) -> State<R> {
    let mut state = [[Register::splat_word(cpu, 0); 8]; 4];
    for (nth, slice) in state.as_flattened_mut().iter_mut().enumerate() {
        *slice = Register::load(cpu, &blocks[nth * R::LANES..]);
    }
    transpose(&mut state);
    state
}

#[inline(always)]
fn store<R: Registers>(mut state: State<R>, blocks: &mut [Block]) {
    transpose(&mut state);
    for (nth, slice) in state.as_flattened().iter().enumerate() {
        slice.store(&mut blocks[nth * R::LANES..]);
    }
}

/// Exchanges slices and bits: halves of the square change places, then halves
/// of those, down to single bits.
#[inline(always)]
fn transpose<R: Registers>(state: &mut State<R>) {
    let slices = state.as_flattened_mut();
    exchange::<R, 16>(slices, 0x0000_ffff);
    exchange::<R, 8>(slices, 0x00ff_00ff);
    exchange::<R, 4>(slices, 0x0f0f_0f0f);
    exchange::<R, 2>(slices, 0x3333_3333);
    exchange::<R, 1>(slices, 0x5555_5555);
}

#[inline(always)]
fn exchange<R: Registers, const BY: u32>(slices: &mut [Register<R>], mask: u32) {
    for square in slices.chunks_exact_mut(2 * BY as usize) {
        let (upper, lower) = square.split_at_mut(BY as usize);
        for (upper, lower) in upper.iter_mut().zip(lower) {
            let cpu = upper.cpu;
            let shifted = upper.with(cpu.shift_right::<BY>(upper.x));
            let moved = (shifted ^ *lower) & Register::splat_word(cpu, mask);
            *lower ^= moved;
            *upper ^= upper.with(cpu.shift_left::<BY>(moved.x));
        }
    }
}
