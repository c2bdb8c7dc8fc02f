//! Anubis in byte planes, and so in constant time.
//!
//! γ is the S-box in every plane, τ another order of planes, and θ sums of
//! planes, doubled and redoubled:
//!
//! ```text
//! a + 2·b + 4·c + 6·d = a + 2·(b + d) + 4·(c + d)
//! ```

use zeroize::Zeroize;

use super::{Anubis, MOST_KEYS, Rows};
use crate::block::involution::planes::SBox;
use crate::block::planes::linear::times;
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::planes::{Planes, four};

/// x⁸ + x⁴ + x³ + x² + 1.
const FIELD: u16 = 0x11d;

/// Anubis with a key of 128 to 320 bits.
pub(crate) struct InBytes<P: Planes> {
    sbox: SBox<P>,
    twice: P::Map,
    four_times: P::Map,
    encryption: [[u32; 16]; MOST_KEYS],
    decryption: [[u32; 16]; MOST_KEYS],
    keys: usize,
}

/// The cipher under a key of 16, 20, … or 40 bytes.
pub(crate) fn keyed<P: Planes>(key: &[u8], planes: P) -> InPlanes<P, InBytes<P>> {
    let portable = Anubis::new(key);
    let spread = |keys: &[Rows; MOST_KEYS]| {
        keys.map(|rows| {
            let bytes = rows.map(u32::to_be_bytes);
            std::array::from_fn(|i| four(bytes.as_flattened()[i]))
        })
    };
    let kernel = InBytes {
        sbox: SBox::new(),
        twice: P::map(&times(2, FIELD)),
        four_times: P::map(&times(4, FIELD)),
        encryption: spread(&portable.encryption),
        decryption: spread(&portable.decryption),
        keys: portable.keys,
    };
    InPlanes { planes, kernel }
}

/// A block in every place of 16 planes.
type State<P> = [<P as Planes>::Vector; 16];

impl<P: Planes> Kernel<P> for InBytes<P> {
    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: State<P>) -> State<P> {
        let keys = match encrypt {
            true => &self.encryption[..self.keys],
            false => &self.decryption[..self.keys],
        };
        self.rounds(planes, keys, rows)
    }
}

impl<P: Planes> InBytes<P> {
    /// "The complete cipher" of the paper.
    #[inline(always)]
    fn rounds(&self, planes: P, keys: &[[u32; 16]], rows: State<P>) -> State<P> {
        let [first, inner @ .., last] = keys else {
            unreachable!("13 round keys at least");
        };
        let mut x = add_key(planes, planes.transpose(rows), first);
        for key in inner {
            x = turn(self.substitute(planes, x));
            for row in x.as_chunks_mut::<4>().0 {
                *row = self.diffuse(planes, *row);
            }
            x = add_key(planes, x, key);
        }
        x = turn(self.substitute(planes, x));
        planes.transpose(add_key(planes, x, last))
    }

    /// γ.
    #[inline(always)]
    fn substitute(&self, planes: P, mut x: State<P>) -> State<P> {
        for x in &mut x {
            *x = self.sbox.look_up(planes, *x);
        }
        x
    }

    /// θ, on one row.
    #[inline(always)]
    fn diffuse(&self, planes: P, [a, b, c, d]: [P::Vector; 4]) -> [P::Vector; 4] {
        let twice = |x, y| planes.linear(&self.twice, planes.xor(x, y));
        let four_times = |x, y| planes.linear(&self.four_times, planes.xor(x, y));
        let (ab, cd) = (four_times(a, b), four_times(c, d));
        let (ac, bd) = (twice(a, c), twice(b, d));
        [
            planes.xor3(a, bd, cd),
            planes.xor3(b, ac, cd),
            planes.xor3(c, bd, ab),
            planes.xor3(d, ac, ab),
        ]
    }
}

/// τ.
#[inline(always)]
fn turn<V: Copy>(x: [V; 16]) -> [V; 16] {
    let mut turned = x;
    for i in 0..16 {
        turned[i] = x[4 * (i % 4) + i / 4];
    }
    turned
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
        self.encryption.as_flattened_mut().zeroize();
        self.decryption.as_flattened_mut().zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::{Planes, keyed};
    use crate::block::tests;
    use crate::reference;

    fn check(planes: impl Planes) {
        let keyed = |key: &[u8]| keyed(key, planes);
        tests::known_answers::<reference::Anubis, _, 16>("anubis", keyed);
        tests::equals_reference::<reference::Anubis, _, 16>(&[16, 20, 24, 28, 32, 36, 40], keyed);
    }

    tests::in_planes!(check);
}
