//! Kuznyechik in byte planes, and so in constant time.
//!
//! S is a look-up. L is R sixteen times, and R only makes one new byte and
//! moves the others, which in planes costs nothing:
//!
//! ```text
//! ℓ = 148·(a₁₅ + a₁) + 32·(a₁₄ + a₂) + 133·(a₁₃ + a₃) + 16·(a₁₂ + a₄)
//!   + 194·(a₁₁ + a₅) + 192·(a₁₀ + a₆) + 251·a₈ + (a₉ + a₇) + a₀
//! ```
//!
//! Read from its end, this is the same: L⁻¹ is L of the bytes in reverse.

#[cfg(target_arch = "x86_64")]
pub(crate) mod few;

use zeroize::Zeroize;

use super::{KEYS, PI_INVERSE, pi, round_keys};
use crate::block::planes::linear::times;
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::planes::{Planes, four};

/// x⁸ + x⁷ + x⁶ + x + 1.
const FIELD: u16 = 0x1c3;

/// Kuznyechik with a key of 256 bits.
pub(crate) struct InBytes<P: Planes> {
    pi: P::Table,
    pi_inverse: P::Table,
    factors: Factors<P>,
    round_keys: [[u32; 16]; KEYS],
}

struct Factors<P: Planes> {
    by_148: P::Map,
    by_32: P::Map,
    by_133: P::Map,
    by_16: P::Map,
    by_194: P::Map,
    by_192: P::Map,
    by_251: P::Map,
}

/// The cipher under a key of 32 bytes.
pub(crate) fn keyed<P: Planes>(key: &[u8], planes: P) -> InPlanes<P, InBytes<P>> {
    let by = |factor| P::map(&times(factor, FIELD));
    let mut round_keys = round_keys(key);
    let kernel = InBytes {
        pi: P::table(&pi::PI),
        pi_inverse: P::table(&PI_INVERSE),
        factors: Factors {
            by_148: by(148),
            by_32: by(32),
            by_133: by(133),
            by_16: by(16),
            by_194: by(194),
            by_192: by(192),
            by_251: by(251),
        },
        round_keys: round_keys.map(|key| key.to_le_bytes().map(four)),
    };
    round_keys.zeroize();
    InPlanes { planes, kernel }
}

/// A block in every place of 16 planes, the last byte first when decrypting.
type State<P> = [<P as Planes>::Vector; 16];

impl<P: Planes> Kernel<P> for InBytes<P> {
    const SAME_BOTH_WAYS: bool = false;

    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: State<P>) -> State<P> {
        if encrypt {
            self.encrypt(planes, rows)
        } else {
            self.decrypt(planes, rows)
        }
    }
}

impl<P: Planes> InBytes<P> {
    #[inline(always)]
    fn encrypt(&self, planes: P, rows: State<P>) -> State<P> {
        let mut x = planes.transpose(rows);
        let [keys @ .., last] = &self.round_keys;
        for key in keys {
            x = add_key(planes, x, key);
            for x in &mut x {
                *x = planes.look_up(&self.pi, *x);
            }
            x = self.mix(planes, x);
        }
        planes.transpose(add_key(planes, x, last))
    }

    #[inline(always)]
    fn decrypt(&self, planes: P, rows: State<P>) -> State<P> {
        let mut x = planes.transpose(rows);
        let [keys @ .., last] = &self.round_keys;
        x = add_key(planes, x, last);
        for key in keys.iter().rev() {
            x.reverse();
            x = self.mix(planes, x);
            x.reverse();
            for x in &mut x {
                *x = planes.look_up(&self.pi_inverse, *x);
            }
            x = add_key(planes, x, key);
        }
        planes.transpose(x)
    }

    /// L.
    #[inline(always)]
    fn mix(&self, planes: P, x: State<P>) -> State<P> {
        // One by one: a loop would turn the array in memory.
        let x = self.turn_4(planes, x);
        let x = self.turn_4(planes, x);
        let x = self.turn_4(planes, x);
        self.turn_4(planes, x)
    }

    #[inline(always)]
    fn turn_4(&self, planes: P, x: State<P>) -> State<P> {
        let x = self.turn(planes, x);
        let x = self.turn(planes, x);
        let x = self.turn(planes, x);
        self.turn(planes, x)
    }

    /// R; a₁₅ is plane 0. It is made last, and so it is added last.
    #[inline(always)]
    fn turn(&self, planes: P, x: State<P>) -> State<P> {
        let by = &self.factors;
        let a = planes.xor3(
            pair(planes, &by.by_32, &x, 1),
            pair(planes, &by.by_133, &x, 2),
            pair(planes, &by.by_16, &x, 3),
        );
        let b = planes.xor3(
            pair(planes, &by.by_194, &x, 4),
            pair(planes, &by.by_192, &x, 5),
            planes.linear(&by.by_251, x[7]),
        );
        let c = planes.xor3(x[6], x[8], x[15]);
        let new = planes.xor(planes.xor3(a, b, c), pair(planes, &by.by_148, &x, 0));
        let [
            x0,
            x1,
            x2,
            x3,
            x4,
            x5,
            x6,
            x7,
            x8,
            x9,
            x10,
            x11,
            x12,
            x13,
            x14,
            _,
        ] = x;
        [
            new, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14,
        ]
    }
}

/// `map` of the sum of the two planes that share a factor. No closure: that
/// would be compiled for the CPU of the build.
#[inline(always)]
fn pair<P: Planes>(planes: P, map: &P::Map, x: &State<P>, i: usize) -> P::Vector {
    planes.linear(map, planes.xor(x[i], x[14 - i]))
}

#[inline(always)]
fn add_key<P: Planes>(planes: P, mut x: State<P>, key: &[u32; 16]) -> State<P> {
    for i in 0..16 {
        x[i] = planes.xor(x[i], planes.splat(key[i]));
    }
    x
}

impl<P: Planes> Drop for InBytes<P> {
    fn drop(&mut self) {
        self.round_keys.as_flattened_mut().zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::{Planes, keyed};
    use crate::block::tests;
    use crate::reference;

    fn check(planes: impl Planes) {
        let keyed = |key: &[u8]| keyed(key, planes);
        tests::known_answers::<reference::Kuznyechik, _, 16>("kuznyechik", keyed);
        tests::equals_reference::<reference::Kuznyechik, _, 16>(&[32], keyed);
        tests::agrees_with::<kuznyechik::Kuznyechik, _, 16>(&[32], keyed);
    }

    tests::in_planes!(check);
}
