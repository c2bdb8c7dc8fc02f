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
use crate::block::Block;
use crate::block::planes::few::{self, Few};
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

/// The sum of both: x⋘2.
const ROTATE_BY_TWO: Linear = [4, 8, 16, 32, 64, 128, 1, 2];

/// SM4 with a key of 128 bits.
pub(crate) struct InWords<P: Planes> {
    into: P::Map,
    out_of: P::Map,
    p: P::InverseMap,
    q: P::InverseMap,
    /// Of p + q: where a round is waited for, sooner than the sum.
    w: P::InverseMap,
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
        // The sums that the constants have added to each word so far.
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
        w: map(&ROTATE_BY_TWO),
        encryption,
        decryption,
    };
    InPlanes { planes, kernel }
}

impl<P: Planes> Kernel<P> for InWords<P> {
    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        let keys = match encrypt {
            true => &self.encryption,
            false => &self.decryption,
        };
        let words = planes.rows_to_words(rows);
        planes.words_to_rows(self.rounds(planes, keys, words))
    }

    const FEW: usize = P::WIDE / 2;

    #[inline(always)]
    fn encrypt_few(&self, planes: P, blocks: &mut [Block]) {
        if blocks.len() <= P::WIDE / 4 {
            few::encrypt_blocks::<P, Self, 4>(self, planes, blocks);
        } else {
            few::encrypt_blocks::<P, Self, 8>(self, planes, blocks);
        }
    }

    fn encrypt_few_cbc(&self, planes: P, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        if ivs.len() <= P::WIDE / 4 {
            few::encrypt_cbc::<P, Self, 4>(self, planes, ivs, sector_bytes, data);
        } else {
            few::encrypt_cbc::<P, Self, 8>(self, planes, ivs, sector_bytes, data);
        }
    }
}

/// Of every four registers of blocks, registers of their words.
impl<P: Planes, const ROWS: usize> Few<P, ROWS> for InWords<P> {
    #[inline(always)]
    fn arrange(&self, planes: P, mut rows: [P::Vector; ROWS]) -> [P::Vector; ROWS] {
        for rows in rows.as_chunks_mut::<4>().0 {
            *rows = planes.transpose_squares(*rows);
            for x in rows {
                *x = planes.linear(&self.into, *x);
            }
        }
        rows
    }

    #[inline(always)]
    fn encrypt(&self, planes: P, mut state: [P::Vector; ROWS]) -> [P::Vector; ROWS] {
        let (words, _) = state.as_chunks_mut::<4>();
        let mut sums = [planes.splat(0); ROWS];
        for (x, [_, b, c, d]) in sums.iter_mut().zip(&*words) {
            *x = planes.xor(*b, self.others(planes, *c, *d, 0));
        }
        for i in (0..ROUNDS).step_by(4) {
            for (x, [a, _, c, d]) in sums.iter_mut().zip(&mut *words) {
                self.step(planes, x, a, self.others(planes, *c, *d, i + 1));
            }
            for (x, [a, b, _, d]) in sums.iter_mut().zip(&mut *words) {
                self.step(planes, x, b, self.others(planes, *d, *a, i + 2));
            }
            for (x, [a, b, c, _]) in sums.iter_mut().zip(&mut *words) {
                self.step(planes, x, c, self.others(planes, *a, *b, i + 3));
            }
            for (x, [_, b, c, d]) in sums.iter_mut().zip(&mut *words) {
                self.step(planes, x, d, self.others(planes, *b, *c, i + 4));
            }
        }
        for words in words {
            words.reverse();
        }
        state
    }

    #[inline(always)]
    fn restore(&self, planes: P, mut state: [P::Vector; ROWS]) -> [P::Vector; ROWS] {
        for words in state.as_chunks_mut::<4>().0 {
            for x in &mut *words {
                *x = planes.linear(&self.out_of, *x);
            }
            *words = planes.transpose_squares(*words);
        }
        state
    }
}

impl<P: Planes> InWords<P> {
    /// The sum of the round's inputs, round key included, without the word that was changed last.
    /// After the last round it is unused.
    #[inline(always)]
    fn others(&self, planes: P, x: P::Vector, y: P::Vector, round: usize) -> P::Vector {
        planes.xor3(x, y, planes.splat(self.encryption[round % ROUNDS]))
    }

    /// A round that takes `x` for a sum, changes `a`, and makes `x` what the next
    /// one takes: nothing waits for more than it must.
    #[inline(always)]
    fn step(&self, planes: P, x: &mut P::Vector, a: &mut P::Vector, others: P::Vector) {
        let unturned = planes.xor(*a, planes.invert(&self.p, *x));
        let w = planes.invert(&self.w, *x);
        let turned = planes.xor3(
            planes.rotate_words(planes.invert(&self.q, *x), 8),
            planes.rotate_words(w, 24),
            planes.rotate_words(w, 16),
        );
        *a = planes.xor(unturned, turned);
        *x = planes.xor3(unturned, turned, others);
    }

    #[inline(always)]
    fn rounds<const N: usize>(
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
