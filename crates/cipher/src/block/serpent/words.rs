//! Serpent's rounds over words of any width.

use super::sbox::{self, Words};
use super::{ROUNDS, RoundKeys, gates};
use crate::block::Block;
use crate::block::gates::Gate;
use crate::block::registers::{Register, Registers};

/// A 32-bit word of one block, or of many side by side.
pub(crate) trait Word: Copy {
    /// The bitwise sum.
    fn add(self, other: Self) -> Self;

    /// Rotates every word to the left.
    fn rotate<const BY: i32>(self) -> Self;

    /// Shifts every word to the left.
    fn shift<const BY: u32>(self) -> Self;

    /// S-box `I` modulo 8, its output complemented as in [`COMPLEMENTS`](sbox::COMPLEMENTS)
    /// unless there are gates of three inputs.
    fn forward<const I: usize>(x: [Self; 4]) -> [Self; 4];

    /// The inverse of [`forward`](Self::forward).
    fn inverse<const I: usize>(x: [Self; 4]) -> [Self; 4];
}

impl Word for u32 {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self) -> Self {
        self.rotate_left(BY as u32)
    }

    #[inline(always)]
    fn shift<const BY: u32>(self) -> Self {
        self << BY
    }

    #[inline(always)]
    fn forward<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        sbox::forward::<I, Self>(x)
    }

    #[inline(always)]
    fn inverse<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        sbox::inverse::<I, Self>(x)
    }
}

impl<R: Registers> Word for Register<R> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self) -> Self {
        self.with(self.cpu.rotate::<BY>(self.x))
    }

    #[inline(always)]
    fn shift<const BY: u32>(self) -> Self {
        self.with(self.cpu.shift_left::<BY>(self.x))
    }

    #[inline(always)]
    fn forward<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        match R::TERNARY {
            true => gates::forward::<I, Self>(x),
            false => sbox::forward::<I, Self>(x),
        }
    }

    #[inline(always)]
    fn inverse<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        match R::TERNARY {
            true => gates::inverse::<I, Self>(x),
            false => sbox::inverse::<I, Self>(x),
        }
    }
}

/// A word of two groups, whose operations come in turns: in a group nearly each
/// waits for the one before.
#[derive(Clone, Copy)]
pub(super) struct Two<R: Registers>(Register<R>, Register<R>);

impl<R: Registers> Two<R> {
    #[inline(always)]
    pub(super) fn join(
        [a, b, c, d]: [Register<R>; 4],
        [e, f, g, h]: [Register<R>; 4],
    ) -> [Self; 4] {
        [Two(a, e), Two(b, f), Two(c, g), Two(d, h)]
    }

    /// Inverse of [`join`](Self::join).
    #[inline(always)]
    pub(super) fn part([a, b, c, d]: [Self; 4]) -> [[Register<R>; 4]; 2] {
        [[a.0, b.0, c.0, d.0], [a.1, b.1, c.1, d.1]]
    }
}

impl<R: Registers> Word for Two<R> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0.add(other.0), self.1.add(other.1))
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self) -> Self {
        Self(self.0.rotate::<BY>(), self.1.rotate::<BY>())
    }

    #[inline(always)]
    fn shift<const BY: u32>(self) -> Self {
        Self(self.0.shift::<BY>(), self.1.shift::<BY>())
    }

    #[inline(always)]
    fn forward<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        gates::forward::<I, Self>(x)
    }

    #[inline(always)]
    fn inverse<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        gates::inverse::<I, Self>(x)
    }
}

impl<R: Registers> Gate for Two<R> {
    #[inline(always)]
    fn gate<const TABLE: i32>(x: Self, y: Self, z: Self) -> Self {
        Self(
            Register::gate::<TABLE>(x.0, y.0, z.0),
            Register::gate::<TABLE>(x.1, y.1, z.1),
        )
    }
}

/// Round `I` modulo 8.
#[inline(always)]
pub(crate) fn round<const I: usize, W: Word>(x: [W; 4], key: [W; 4]) -> [W; 4] {
    mix(W::forward::<I>(add(x, key)))
}

/// Round 31, which ends with a key instead of the linear transformation.
#[inline(always)]
pub(crate) fn last_round<W: Word>(x: [W; 4], key: [W; 4], last: [W; 4]) -> [W; 4] {
    add(W::forward::<7>(add(x, key)), last)
}

/// The inverse of [`round`].
#[inline(always)]
pub(crate) fn inverse_round<const I: usize, W: Word>(x: [W; 4], key: [W; 4]) -> [W; 4] {
    add(W::inverse::<I>(unmix(x)), key)
}

/// The inverse of [`last_round`].
#[inline(always)]
pub(crate) fn inverse_last_round<W: Word>(x: [W; 4], key: [W; 4], last: [W; 4]) -> [W; 4] {
    add(W::inverse::<7>(add(x, last)), key)
}

#[inline(always)]
pub(crate) fn add<W: Word>(x: [W; 4], y: [W; 4]) -> [W; 4] {
    [
        x[0].add(y[0]),
        x[1].add(y[1]),
        x[2].add(y[2]),
        x[3].add(y[3]),
    ]
}

/// The linear transformation, section 3.2.
#[inline(always)]
pub(crate) fn mix<W: Word>([mut a, mut b, mut c, mut d]: [W; 4]) -> [W; 4] {
    a = a.rotate::<13>();
    c = c.rotate::<3>();
    b = b.add(a).add(c);
    d = d.add(c).add(a.shift::<3>());
    b = b.rotate::<1>();
    d = d.rotate::<7>();
    a = a.add(b).add(d);
    c = c.add(d).add(b.shift::<7>());
    a = a.rotate::<5>();
    c = c.rotate::<22>();
    [a, b, c, d]
}

#[inline(always)]
fn unmix<W: Word>([mut a, mut b, mut c, mut d]: [W; 4]) -> [W; 4] {
    c = c.rotate::<10>();
    a = a.rotate::<27>();
    c = c.add(d).add(b.shift::<7>());
    a = a.add(b).add(d);
    d = d.rotate::<25>();
    b = b.rotate::<31>();
    d = d.add(c).add(a.shift::<3>());
    b = b.add(a).add(c);
    c = c.rotate::<29>();
    a = a.rotate::<19>();
    [a, b, c, d]
}

/// A block by itself, in no vector.
pub(super) fn one<const ENCRYPT: bool>(keys: &RoundKeys, block: &mut Block) {
    let words = block.as_chunks_mut().0;
    let x = [0, 1, 2, 3].map(|i: usize| u32::from_le_bytes(words[i]));
    let x = match ENCRYPT {
        true => encrypt_one(keys, x),
        false => decrypt_one(keys, x),
    };
    for (word, x) in words.iter_mut().zip(x) {
        *word = x.to_le_bytes();
    }
}

fn encrypt_one(keys: &RoundKeys, mut x: Words) -> Words {
    for (nth, keys) in keys.as_chunks::<8>().0.iter().enumerate() {
        x = round::<0, u32>(x, keys[0]);
        x = round::<1, u32>(x, keys[1]);
        x = round::<2, u32>(x, keys[2]);
        x = round::<3, u32>(x, keys[3]);
        x = round::<4, u32>(x, keys[4]);
        x = round::<5, u32>(x, keys[5]);
        x = round::<6, u32>(x, keys[6]);
        if nth < ROUNDS / 8 - 1 {
            x = round::<7, u32>(x, keys[7]);
        }
    }
    last_round(x, keys[ROUNDS - 1], keys[ROUNDS])
}

fn decrypt_one(keys: &RoundKeys, x: Words) -> Words {
    let mut x = inverse_last_round(x, keys[ROUNDS - 1], keys[ROUNDS]);
    for (nth, keys) in keys.as_chunks::<8>().0.iter().enumerate().rev() {
        if nth < ROUNDS / 8 - 1 {
            x = inverse_round::<7, u32>(x, keys[7]);
        }
        x = inverse_round::<6, u32>(x, keys[6]);
        x = inverse_round::<5, u32>(x, keys[5]);
        x = inverse_round::<4, u32>(x, keys[4]);
        x = inverse_round::<3, u32>(x, keys[3]);
        x = inverse_round::<2, u32>(x, keys[2]);
        x = inverse_round::<1, u32>(x, keys[1]);
        x = inverse_round::<0, u32>(x, keys[0]);
    }
    x
}
