//! ARIA in byte planes, and so in constant time.
//!
//! All four S-boxes are inversion in the field of AES, with an affine map after it (SB1, SB2) or
//! before it (their inverses). The constants of the affine maps are part of the round keys. The
//! diffusion layer A is sums of whole planes, by the factors that the portable code has.

mod few;

use zeroize::Zeroize;

use self::few::FewKey;
use super::{Aria, MOST_KEYS, Words, add, diffuse, sbox};
use crate::block::Block;
use crate::block::planes::few::{encrypt_blocks, encrypt_cbc};
use crate::block::planes::linear::{IDENTITY, Linear, after_inversion, apply, compose, inverse};
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::planes::{Planes, four};

/// ARIA with a key of 128, 192 or 256 bits.
pub(crate) struct InBytes<P: Planes> {
    maps: Maps<P>,
    encryption: [[u32; 16]; MOST_KEYS],
    decryption: [[u32; 16]; MOST_KEYS],
    few_encryption: [FewKey; MOST_KEYS],
    keys: usize,
}

struct Maps<P: Planes> {
    into: P::Map,
    out_of: P::Map,
    /// After inversion in SB1 and SB2.
    after: [P::InverseMap; 2],
    /// Before inversion in SB3 and SB4.
    before: [P::Map; 2],
    /// Of the inverse alone.
    inverse: P::InverseMap,
}

/// The cipher under a key of 16, 24 or 32 bytes.
pub(crate) fn keyed<P: Planes>(key: &[u8], planes: P) -> InPlanes<P, InBytes<P>> {
    let into = P::FROM_AES_FIELD;
    let out_of = inverse(&into);
    let after = [&sbox::SB1, &sbox::SB2].map(|sbox| after_inversion(sbox, &IDENTITY, 0));
    let before = |(map, _): &(Linear, u8)| compose(&into, &compose(&inverse(map), &out_of));
    let maps = Maps {
        into: P::map(&into),
        out_of: P::map(&out_of),
        after: [0, 1].map(|i| P::inverse_map(&compose(&into, &after[i].0))),
        before: [0, 1].map(|i| P::map(&before(&after[i]))),
        inverse: P::inverse_map(&into),
    };
    let [(_, a), (_, b)] = after;
    let portable = Aria::new(key);
    let keys = portable.keys;
    // The constants that SL1 and SL2 take from their inputs and add to their outputs.
    let bytes = |row| [u32::from_be_bytes(row); 4];
    let (inputs, outputs) = (
        [bytes([0, 0, a, b]), bytes([a, b, 0, 0])],
        [bytes([a, b, 0, 0]), bytes([0, 0, a, b])],
    );
    let fold = |round_keys: &[Words; MOST_KEYS]| {
        std::array::from_fn(|i| {
            let mut key = round_keys[i];
            if i < keys - 1 {
                key = add(key, inputs[i % 2]);
            }
            if i > 0 {
                let left = outputs[(i + 1) % 2];
                key = add(key, if i < keys - 1 { diffuse(left) } else { left });
            }
            let bytes = key.map(u32::to_be_bytes);
            std::array::from_fn(|at| four(apply(&into, bytes.as_flattened()[at])))
        })
    };
    let encryption = fold(&portable.encryption);
    let kernel = InBytes {
        maps,
        few_encryption: few::arrange(&encryption, keys),
        encryption,
        decryption: fold(&portable.decryption),
        keys,
    };
    InPlanes { planes, kernel }
}

impl<P: Planes> Kernel<P> for InBytes<P> {
    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        let keys = match encrypt {
            true => &self.encryption[..self.keys],
            false => &self.decryption[..self.keys],
        };
        self.rounds(planes, keys, rows)
    }

    const FEW: usize = if P::INVERTS_AT_ONCE { P::WIDE / 2 } else { 0 };

    #[inline(always)]
    fn encrypt_few(&self, planes: P, blocks: &mut [Block]) {
        if blocks.len() <= P::WIDE / 8 {
            encrypt_blocks::<P, Self, 2>(self, planes, blocks);
        } else {
            encrypt_blocks::<P, Self, 4>(self, planes, blocks);
        }
    }

    fn encrypt_few_cbc(&self, planes: P, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        if ivs.len() <= P::WIDE / 8 {
            encrypt_cbc::<P, Self, 2>(self, planes, ivs, sector_bytes, data);
        } else {
            encrypt_cbc::<P, Self, 4>(self, planes, ivs, sector_bytes, data);
        }
    }
}

/// A block in every place of 16 planes.
type State<P> = [<P as Planes>::Vector; 16];

impl<P: Planes> InBytes<P> {
    /// Section 2.3.
    #[inline(always)]
    fn rounds(&self, planes: P, keys: &[[u32; 16]], rows: State<P>) -> State<P> {
        let mut x = planes.transpose(rows);
        if P::FROM_AES_FIELD != IDENTITY {
            for x in &mut x {
                *x = planes.linear(&self.maps.into, *x);
            }
        }
        let (pairs, last) = keys.as_chunks::<2>();
        let (final_pair, pairs) = pairs.split_last().expect("12 rounds at least");
        for pair in pairs {
            x = diffuse_planes(
                planes,
                self.substitute_odd(planes, add_key(planes, x, &pair[0])),
            );
            x = diffuse_planes(
                planes,
                self.substitute_even(planes, add_key(planes, x, &pair[1])),
            );
        }
        x = add_key(planes, x, &final_pair[0]);
        x = diffuse_planes(planes, self.substitute_odd(planes, x));
        x = add_key(planes, x, &final_pair[1]);
        x = self.substitute_even(planes, x);
        // Every byte has moved as often as there were rounds, of which four are none.
        for _ in 0..(keys.len() - 1) % 4 {
            for x in &mut x {
                *x = planes.in_order(*x);
            }
        }
        x = add_key(planes, x, &last[0]);
        if P::FROM_AES_FIELD != IDENTITY {
            for x in &mut x {
                *x = planes.linear(&self.maps.out_of, *x);
            }
        }
        planes.transpose(x)
    }

    /// SL1 of section 2.4.2.
    #[inline(always)]
    fn substitute_odd(&self, planes: P, mut x: State<P>) -> State<P> {
        for [a, b, c, d] in x.as_chunks_mut::<4>().0 {
            [*a, *b] = self.forward(planes, [*a, *b]);
            [*c, *d] = self.backward(planes, [*c, *d]);
        }
        x
    }

    /// SL2.
    #[inline(always)]
    fn substitute_even(&self, planes: P, mut x: State<P>) -> State<P> {
        for [a, b, c, d] in x.as_chunks_mut::<4>().0 {
            [*a, *b] = self.backward(planes, [*a, *b]);
            [*c, *d] = self.forward(planes, [*c, *d]);
        }
        x
    }

    /// SB1 and SB2.
    #[inline(always)]
    fn forward(&self, planes: P, [a, b]: [P::Vector; 2]) -> [P::Vector; 2] {
        let after = &self.maps.after;
        [
            planes.invert_moving(&after[0], a),
            planes.invert_moving(&after[1], b),
        ]
    }

    /// SB3 and SB4.
    #[inline(always)]
    fn backward(&self, planes: P, [a, b]: [P::Vector; 2]) -> [P::Vector; 2] {
        let (before, inverse) = (&self.maps.before, &self.maps.inverse);
        [
            planes.invert_moving(inverse, planes.linear(&before[0], a)),
            planes.invert_moving(inverse, planes.linear(&before[1], b)),
        ]
    }
}

#[inline(always)]
fn add_key<P: Planes>(planes: P, mut x: State<P>, key: &[u32; 16]) -> State<P> {
    for i in 0..16 {
        x[i] = planes.xor(x[i], planes.splat(key[i]));
    }
    x
}

/// A of section 2.4.3: words · bytes · words · within.
#[inline(always)]
fn diffuse_planes<P: Planes>(planes: P, mut x: State<P>) -> State<P> {
    for word in x.as_chunks_mut::<4>().0 {
        let [a, b, c, d] = *word;
        *word = [
            planes.xor3(c, d, b),
            planes.xor3(c, d, a),
            planes.xor3(a, b, d),
            planes.xor3(a, b, c),
        ];
    }
    let x = add_words(planes, x);
    add_words(
        planes,
        [
            x[0], x[1], x[2], x[3], //
            x[5], x[4], x[7], x[6], //
            x[10], x[11], x[8], x[9], //
            x[15], x[14], x[13], x[12],
        ],
    )
}

/// Each word becomes the sum of three: all but d, b, c and a, in this order.
#[inline(always)]
fn add_words<P: Planes>(planes: P, mut x: State<P>) -> State<P> {
    for i in 0..4 {
        let (a, b, c, d) = (x[i], x[4 + i], x[8 + i], x[12 + i]);
        x[i] = planes.xor3(a, b, c);
        x[4 + i] = planes.xor3(c, d, a);
        x[8 + i] = planes.xor3(a, b, d);
        x[12 + i] = planes.xor3(c, d, b);
    }
    x
}

impl<P: Planes> Drop for InBytes<P> {
    fn drop(&mut self) {
        self.encryption.as_flattened_mut().zeroize();
        self.decryption.as_flattened_mut().zeroize();
        let few = self.few_encryption.as_flattened_mut();
        few.as_flattened_mut().zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::{Planes, keyed};
    use crate::block::tests;
    use crate::reference;

    fn check(planes: impl Planes) {
        let keyed = |key: &[u8]| keyed(key, planes);
        tests::known_answers::<reference::Aria, _, 16>("aria", keyed);
        tests::equals_reference::<reference::Aria, _, 16>(&[16, 24, 32], keyed);
        tests::agrees_with::<aria::Aria128, _, 16>(&[16], keyed);
        tests::agrees_with::<aria::Aria192, _, 16>(&[24], keyed);
        tests::agrees_with::<aria::Aria256, _, 16>(&[32], keyed);
    }

    tests::in_planes!(check);
}
