//! SEED in registers of words, and so in constant time.
//!
//! Both S-boxes are affine maps of the same inverse in a field of their own: in
//! S₁ of x²⁴⁷ = x⁻⁸ and in S₂ of x²⁵¹ = x⁻⁴, because to square is linear. Each
//! is made of every byte, and G's masks take what they want. A byte of G's
//! result is a sum of bytes by their distance k:
//!
//! ```text
//! Zᵢ = Σ Yᵢ₋ₖ & m₂ᵢ₋ₖ       Y₀ = S₁(X₀)  Y₁ = S₂(X₁)  Y₂ = S₁(X₂)  Y₃ = S₂(X₃)
//! ```

use zeroize::Zeroize;

use super::{ROUNDS, SBOXES, round_keys};
use crate::block::planes::Planes;
use crate::block::planes::linear::{after_inversion, compose, to_aes_field};
use crate::block::planes::sectors::{InPlanes, Kernel};

/// x⁸ + x⁶ + x⁵ + x + 1.
const FIELD: u16 = 0x163;

/// SEED with a key of 128 bits.
pub(crate) struct InWords<P: Planes> {
    into: P::Map,
    after: [P::InverseMap; 2],
    encryption: [[u32; 2]; ROUNDS],
    decryption: [[u32; 2]; ROUNDS],
}

/// The cipher under a key of 16 bytes.
pub(crate) fn keyed<P: Planes>(key: &[u8], planes: P) -> InPlanes<P, InWords<P>> {
    let encryption = round_keys(key);
    let mut decryption = encryption;
    decryption.reverse();
    let kernel = InWords {
        into: P::map(&compose(&P::FROM_AES_FIELD, &to_aes_field(FIELD))),
        after: [0, 1]
            .map(|i| P::inverse_map(&after_inversion(&SBOXES[i], &to_aes_field(FIELD), 0).0)),
        encryption,
        decryption,
    };
    InPlanes { planes, kernel }
}

/// A word of every block, in `N` registers.
type Word<P, const N: usize> = [<P as Planes>::Vector; N];

impl<P: Planes> Kernel<P> for InWords<P> {
    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        let keys = match encrypt {
            true => &self.encryption,
            false => &self.decryption,
        };
        let [mut a, mut b, mut c, mut d] = load(planes, rows);
        for keys in keys.as_chunks::<2>().0 {
            self.round(planes, &mut a, &mut b, &c, &d, keys[0]);
            self.round(planes, &mut c, &mut d, &a, &b, keys[1]);
        }
        // The last round does not swap.
        store(planes, [c, d, a, b])
    }
}

impl<P: Planes> InWords<P> {
    /// Adds F of c and d to a and b.
    #[inline(always)]
    fn round<const N: usize>(
        &self,
        planes: P,
        a: &mut Word<P, N>,
        b: &mut Word<P, N>,
        c: &Word<P, N>,
        d: &Word<P, N>,
        [first, second]: [u32; 2],
    ) {
        let (first, second) = (planes.splat(first), planes.splat(second));
        for i in 0..N {
            let c = planes.xor(c[i], first);
            let x = self.g(planes, planes.xor3(c, d[i], second));
            let y = self.g(planes, planes.add_words(x, c));
            let z = self.g(planes, planes.add_words(x, y));
            a[i] = planes.xor(a[i], planes.add_words(y, z));
            b[i] = planes.xor(b[i], z);
        }
    }

    #[inline(always)]
    fn g(&self, planes: P, x: P::Vector) -> P::Vector {
        /// m₂ᵢ₋ₖ for every k.
        const MASKS: [u32; 4] = [0xcffc_cffc, 0xf33f_f33f, 0xfccf_fccf, 0x3ff3_3ff3];
        /// The share of the S-boxes' constants in the result, after the sums.
        const LEFT: u32 = {
            let constants =
                u32::from_le_bytes([SBOXES[0][0], SBOXES[1][0], SBOXES[0][0], SBOXES[1][0]]);
            let mut sum = 0;
            let mut k = 0;
            while k < 4 {
                sum ^= constants.rotate_left(8 * k as u32) & MASKS[k];
                k += 1;
            }
            sum
        };
        let x = planes.linear(&self.into, x);
        let even = planes.splat(0x00ff_00ff);
        let y = planes.or(
            planes.and(even, planes.invert(&self.after[0], x)),
            planes.and_not(even, planes.invert(&self.after[1], x)),
        );
        let part =
            |k: usize| planes.and(planes.rotate_words(y, 8 * k as u32), planes.splat(MASKS[k]));
        let start = planes.xor(part(0), planes.splat(LEFT));
        planes.xor(planes.xor(planes.xor(start, part(1)), part(2)), part(3))
    }
}

#[inline(always)]
fn load<P: Planes>(planes: P, rows: [P::Vector; 16]) -> [Word<P, 4>; 4] {
    swap_bytes(planes, planes.rows_to_words(rows))
}

#[inline(always)]
fn store<P: Planes>(planes: P, words: [Word<P, 4>; 4]) -> [P::Vector; 16] {
    planes.words_to_rows(swap_bytes(planes, words))
}

/// Between words in big-endian order and in the CPU's.
#[inline(always)]
fn swap_bytes<P: Planes, const N: usize>(planes: P, mut words: [Word<P, N>; 4]) -> [Word<P, N>; 4] {
    let outer = planes.splat(0xff00_ff00);
    for x in words.as_flattened_mut() {
        *x = planes.or(
            planes.and(outer, planes.rotate_words(*x, 24)),
            planes.and_not(outer, planes.rotate_words(*x, 8)),
        );
    }
    words
}

impl<P: Planes> Drop for InWords<P> {
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
        tests::known_answers::<reference::Seed, _, 16>("seed", keyed);
        tests::equals_reference::<reference::Seed, _, 16>(&[16], keyed);
    }

    tests::in_planes!(check);
}
