//! SM4 in registers of words, and so in constant time.
//!
//! The S-box is A·(1/(A·x + c)) + c in a field of its own (Liu and others,
//! *Analysis of the SMS4 block cipher*, 2007). The state is kept as A·x in the
//! field where inversion is at hand, so that a byte is ready for it. L needs
//! bytes of the S-boxes, b, whole and rotated by two:
//!
//! ```text
//! L(b)ᵢ = bᵢ + bᵢ₊₃ + Σ bⱼ⋘2 + (bᵢ »6) + (bᵢ₊₃ «2)     p = b + (b «2)
//!       = pᵢ + wᵢ₊₁ + wᵢ₊₂ + qᵢ₊₃                       q = b + (b »6)
//!                                                       w = p + q = b⋘2
//! ```
//!
//! with « and » shifts of a byte and i modulo 4. p and q are two linear maps
//! of the same inverse, and the rest are rotations by whole bytes.

use zeroize::Zeroize;

use super::{ROUNDS, round_keys, sbox};
use crate::block::planes::linear::{
    Linear, after_inversion, apply, compose, inverse, to_aes_field,
};
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::planes::{Planes, four};

const FIELD: u16 = 0x1f5;

/// A.
const BEFORE: Linear = [0xcb, 0x97, 0x2f, 0x5e, 0xbc, 0x79, 0xf2, 0xe5];

/// c.
const CONSTANT: u8 = 0xd3;

/// x + (x «2).
const ADD_UPPER: Linear = [5, 10, 20, 40, 80, 160, 64, 128];

/// x + (x »6).
const ADD_LOWER: Linear = [1, 2, 4, 8, 16, 32, 65, 130];

/// SM4 with a key of 128 bits.
pub(crate) struct InWords<P: Planes> {
    into: P::Map,
    out_of: P::Map,
    p: P::InverseMap,
    q: P::InverseMap,
    encryption: [u32; ROUNDS],
    decryption: [u32; ROUNDS],
}

/// The cipher under a key of 16 bytes.
pub(crate) fn keyed<P: Planes>(key: &[u8], planes: P) -> InPlanes<P, InWords<P>> {
    let to_aes = to_aes_field(FIELD);
    let to_field = compose(&P::FROM_AES_FIELD, &to_aes);
    let into = compose(&to_field, &BEFORE);
    let out_of = inverse(&into);
    let to_inverse = compose(&to_aes, &BEFORE);
    let zero = apply(&inverse(&BEFORE), CONSTANT);
    let (after, constant) = after_inversion(&sbox::SBOX, &to_inverse, zero);
    let map = |last: &Linear| P::inverse_map(&compose(&into, &compose(last, &after)));
    // L of the S-box's constant in every byte.
    let left = constant.rotate_left(2);
    let mut encryption = round_keys(key);
    let mut decryption = encryption;
    decryption.reverse();
    for keys in [&mut encryption, &mut decryption] {
        // What the constants have added to each word so far.
        let mut sums = [0; 4];
        for (i, key) in keys.iter_mut().enumerate() {
            let sum = sums[(i + 1) % 4] ^ sums[(i + 2) % 4] ^ sums[(i + 3) % 4] ^ zero;
            sums[i % 4] ^= left;
            let bytes = (*key ^ four(sum)).to_be_bytes();
            *key = u32::from_le_bytes(bytes.map(|byte| apply(&into, byte)));
        }
    }
    let kernel = InWords {
        into: P::map(&into),
        out_of: P::map(&out_of),
        p: map(&ADD_UPPER),
        q: map(&ADD_LOWER),
        encryption,
        decryption,
    };
    InPlanes { planes, kernel }
}

impl<P: Planes> Kernel<P> for InWords<P> {
    #[inline(always)]
    fn encrypt(&self, planes: P, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        let words = planes.rows_to_words(rows);
        planes.words_to_rows(self.crypt(planes, &self.encryption, words))
    }

    #[inline(always)]
    fn decrypt(&self, planes: P, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        let words = planes.rows_to_words(rows);
        planes.words_to_rows(self.crypt(planes, &self.decryption, words))
    }
}

impl<P: Planes> InWords<P> {
    #[inline(always)]
    fn crypt<const N: usize>(
        &self,
        planes: P,
        keys: &[u32; ROUNDS],
        mut words: [[P::Vector; N]; 4],
    ) -> [[P::Vector; N]; 4] {
        for x in words.as_flattened_mut() {
            *x = planes.linear(&self.into, *x);
        }
        let [mut a, mut b, mut c, mut d] = words;
        for keys in keys.as_chunks::<4>().0 {
            self.round(planes, &mut a, &b, &c, &d, keys[0]);
            self.round(planes, &mut b, &c, &d, &a, keys[1]);
            self.round(planes, &mut c, &d, &a, &b, keys[2]);
            self.round(planes, &mut d, &a, &b, &c, keys[3]);
        }
        let mut words = [d, c, b, a];
        for x in words.as_flattened_mut() {
            *x = planes.linear(&self.out_of, *x);
        }
        words
    }

    #[inline(always)]
    fn round<const N: usize>(
        &self,
        planes: P,
        a: &mut [P::Vector; N],
        b: &[P::Vector; N],
        c: &[P::Vector; N],
        d: &[P::Vector; N],
        key: u32,
    ) {
        let key = planes.splat(key);
        for i in 0..N {
            let x = planes.xor(d[i], planes.xor3(b[i], c[i], key));
            let p = planes.invert(&self.p, x);
            let q = planes.invert(&self.q, x);
            let w = planes.xor(p, q);
            let others = planes.xor3(a[i], p, planes.rotate_words(q, 8));
            a[i] = planes.xor3(
                others,
                planes.rotate_words(w, 24),
                planes.rotate_words(w, 16),
            );
        }
    }
}

impl<P: Planes> Drop for InWords<P> {
    fn drop(&mut self) {
        self.encryption.zeroize();
        self.decryption.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::{Planes, keyed};
    use crate::block::tests;
    use crate::reference;

    fn check(planes: impl Planes) {
        let keyed = |key: &[u8]| keyed(key, planes);
        tests::known_answers::<reference::Sm4, _, 16>("sm4", keyed);
        tests::equals_reference::<reference::Sm4, _, 16>(&[16], keyed);
        tests::agrees_with::<sm4::Sm4, _, 16>(&[16], keyed);
    }

    tests::in_planes!(check);
}
