//! Serpent's rounds over words of any width.

use super::sbox;

/// A 32-bit word of one block, or of many side by side.
pub(crate) trait Word: Copy {
    /// The bitwise sum.
    fn add(self, other: Self) -> Self;

    /// Rotates every word to the left.
    fn rotate<const BY: i32>(self) -> Self;

    /// Shifts every word to the left.
    fn shift<const BY: i32>(self) -> Self;

    /// S-box `I` modulo 8, its output complemented as the CPU's
    /// [`COMPLEMENTS`](super::Cpu::COMPLEMENTS) say.
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
    fn shift<const BY: i32>(self) -> Self {
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
