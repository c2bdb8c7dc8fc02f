//! Khazad in byte planes, and so in constant time.
//!
//! Entry (i, j) of θ's matrix is h of i ⊕ j, and every h a sum of some of 1, 2,
//! 4 and 8: three doublings of every plane, and sums.

use zeroize::Zeroize;

use super::{KEYS, Khazad};
use crate::block::involution::planes::SBox;
use crate::block::planes::linear::times;
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::planes::{Planes, four};

/// x⁸ + x⁴ + x³ + x² + 1.
const FIELD: u16 = 0x11d;

/// Khazad with a key of 128 bits.
pub(crate) struct InBytes<P: Planes> {
    sbox: SBox<P>,
    /// By 2, 4 and 8.
    products: [P::Map; 3],
    encryption: [[u32; 8]; KEYS],
    decryption: [[u32; 8]; KEYS],
}

/// The cipher under a key of 16 bytes.
pub(crate) fn keyed<P: Planes>(key: &[u8], planes: P) -> InPlanes<P, InBytes<P>> {
    let portable = Khazad::new(key);
    let spread = |keys: &[u64; KEYS]| keys.map(|key| key.to_be_bytes().map(four));
    let kernel = InBytes {
        sbox: SBox::new(),
        products: [2, 4, 8].map(|factor| P::map(&times(factor, FIELD))),
        encryption: spread(&portable.encryption),
        decryption: spread(&portable.decryption),
    };
    InPlanes { planes, kernel }
}

/// A block in every place of 8 planes.
type State<P> = [<P as Planes>::Vector; 8];

impl<P: Planes> Kernel<P, 8> for InBytes<P> {
    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: State<P>) -> State<P> {
        let keys = match encrypt {
            true => &self.encryption,
            false => &self.decryption,
        };
        self.rounds(planes, keys, rows)
    }
}

impl<P: Planes> InBytes<P> {
    /// "The complete cipher" of the paper.
    #[inline(always)]
    fn rounds(&self, planes: P, keys: &[[u32; 8]; KEYS], rows: State<P>) -> State<P> {
        let [first, inner @ .., last] = keys;
        let mut x = add_key(planes, planes.halves_to_planes(rows), first);
        for key in inner {
            x = self.diffuse(planes, self.substitute(planes, x));
            x = add_key(planes, x, key);
        }
        x = add_key(planes, self.substitute(planes, x), last);
        planes.planes_to_halves(x)
    }

    /// γ.
    #[inline(always)]
    fn substitute(&self, planes: P, mut x: State<P>) -> State<P> {
        for x in &mut x {
            *x = self.sbox.look_up(planes, *x);
        }
        x
    }

    /// θ: 1, 3, 4, 5, 6, 8, 11 and 7 are h of 0 to 7.
    #[inline(always)]
    fn diffuse(&self, planes: P, x: State<P>) -> State<P> {
        let [twice, four_times, eight_times] = &self.products;
        let (mut y2, mut y4, mut y8) = (x, x, x);
        for i in 0..8 {
            y2[i] = planes.linear(twice, x[i]);
            y4[i] = planes.linear(four_times, x[i]);
            y8[i] = planes.linear(eight_times, x[i]);
        }
        let mut sums = x;
        for j in 0..8 {
            let ones = planes.xor3(x[j], x[j ^ 1], x[j ^ 3]);
            let ones = planes.xor3(ones, x[j ^ 6], x[j ^ 7]);
            let twos = planes.xor3(y2[j ^ 1], y2[j ^ 4], planes.xor(y2[j ^ 6], y2[j ^ 7]));
            let fours = planes.xor3(y4[j ^ 2], y4[j ^ 3], planes.xor(y4[j ^ 4], y4[j ^ 7]));
            let eights = planes.xor(y8[j ^ 5], y8[j ^ 6]);
            sums[j] = planes.xor3(planes.xor(ones, twos), fours, eights);
        }
        sums
    }
}

#[inline(always)]
fn add_key<P: Planes>(planes: P, mut x: State<P>, key: &[u32; 8]) -> State<P> {
    for i in 0..8 {
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
        tests::known_answers::<reference::Khazad, _, 8>("khazad", keyed);
        tests::equals_reference::<reference::Khazad, _, 8>(&[16], keyed);
    }

    tests::in_planes!(check);
}
