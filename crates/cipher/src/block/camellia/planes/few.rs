//! Camellia over few blocks: a register holds a half of each, byte after byte.
//!
//! The S-boxes are all taken of all bytes, and each place keeps its own. In a
//! half of bytes a … h, with sums of four bytes s₁ = a + b + c + d and
//! s₂ = e + f + g + h, the P-function is
//!
//! ```text
//! lower word    (s₂ + e, …)   +   (a + b, b + c, c + d, d + a)
//! upper word    the same      +   (s₁ + a, …)
//! ```

use zeroize::Zeroize;

use super::{Linear, Maps, Planes, Subkeys, Sums, apply};
use crate::block::Block;
use crate::block::planes::NOTHING;

/// Registers of halves that are worked on together, left and right ones each.
pub(super) const MOST_PAIRS: usize = 2;

/// The keys of encryption, each half as its two words in memory.
pub(super) struct FewKeys {
    /// Added to the left half at first.
    before: [u32; 2],
    /// Added by each round. Six rounds each; 128-bit keys leave the last out.
    sixes: [[[u32; 2]; 6]; 4],
    /// Of FL and of FL⁻¹.
    between: [[FewLayer; 2]; 3],
    /// Added to the halves of the result.
    after: [[u32; 2]; 2],
    six_count: usize,
}

/// The masks of FL or FL⁻¹: of its product, and of what its *or* leaves.
#[derive(Clone, Copy)]
struct FewLayer {
    left: [u32; 2],
    right: [u32; 2],
}

impl FewKeys {
    pub(super) fn new(sums: &Sums, subkeys: &Subkeys, enter: &Linear) -> Self {
        let words = |bytes: [u8; 8]| {
            let (words, _) = bytes.as_chunks();
            [u32::from_le_bytes(words[0]), u32::from_le_bytes(words[1])]
        };
        let image = |x: u64| words(x.to_be_bytes().map(|byte| apply(enter, byte)));
        Self {
            before: image(sums.before),
            sixes: sums.sixes.map(|six| six.map(image)),
            between: subkeys.between.map(|keys| {
                keys.map(|key| {
                    let [left, right] = words(key.to_be_bytes());
                    FewLayer {
                        left: [left, 0],
                        right: [0, !right],
                    }
                })
            }),
            after: sums.after.map(|half| words(half.to_be_bytes())),
            six_count: subkeys.six_count,
        }
    }
}

impl Drop for FewKeys {
    fn drop(&mut self) {
        self.before.zeroize();
        self.sixes.as_flattened_mut().as_flattened_mut().zeroize();
        for layer in self.between.as_flattened_mut() {
            layer.left.zeroize();
            layer.right.zeroize();
        }
        self.after.as_flattened_mut().zeroize();
    }
}

/// `words` of every half.
#[inline(always)]
fn splat<P: Planes>(planes: P, [a, b]: [u32; 2]) -> P::Vector {
    planes.splat_words([a, b, a, b])
}

/// `byte` of every byte of a half that is one of `places`.
const fn at(places: &[usize]) -> [u32; 2] {
    let mut words = [0; 2];
    let mut i = 0;
    while i < places.len() {
        words[places[i] / 4] |= 0xff << (8 * (places[i] % 4));
        i += 1;
    }
    words
}

impl<P: Planes> Maps<P> {
    /// At most [`MOST_PAIRS`] times as many blocks as two registers hold.
    #[inline(always)]
    pub(super) fn encrypt_in_halves(&self, planes: P, blocks: &mut [Block]) {
        if blocks.len() <= P::WIDE / 8 {
            self.encrypt_pairs::<1>(planes, blocks);
        } else {
            self.encrypt_pairs::<MOST_PAIRS>(planes, blocks);
        }
    }

    #[inline(always)]
    fn encrypt_pairs<const N: usize>(&self, planes: P, blocks: &mut [Block]) {
        let (keys, maps) = (&self.few, &self.sides[0]);
        let mut padded = [[0; 16]; MOST_PAIRS * 8];
        padded[..blocks.len()].copy_from_slice(blocks);
        let mut rows = padded.as_flattened_mut().chunks_mut(P::WIDE);
        let mut left = [splat(planes, keys.before); N];
        let mut right = left;
        for i in 0..N {
            let mut row = || planes.load(rows.next().expect("room for every pair"));
            let [x, y] = planes.interleave_halves(row(), row());
            left[i] = planes.xor(left[i], planes.linear(&maps.enter, x));
            right[i] = planes.linear(&maps.enter, y);
        }
        for (nth, six) in keys.sixes[..keys.six_count].iter().enumerate() {
            if nth > 0 {
                let [fl, fl_inverse] = &keys.between[nth - 1];
                for x in &mut left {
                    let plain = planes.linear(&maps.leave, *x);
                    let y = change_left(planes, fl, change_right(planes, fl, plain));
                    *x = planes.linear(&maps.enter, y);
                }
                for x in &mut right {
                    let plain = planes.linear(&maps.leave, *x);
                    let y = change_left(planes, fl_inverse, plain);
                    let y = change_right(planes, fl_inverse, y);
                    *x = planes.linear(&maps.enter, y);
                }
            }
            for added in six.as_chunks::<2>().0 {
                for i in 0..N {
                    right[i] = self.round_in_halves(planes, left[i], right[i], added[0]);
                }
                for i in 0..N {
                    left[i] = self.round_in_halves(planes, right[i], left[i], added[1]);
                }
            }
        }
        let after = [splat(planes, keys.after[0]), splat(planes, keys.after[1])];
        for i in 0..N {
            let x = planes.xor(planes.linear(&maps.leave, right[i]), after[0]);
            let y = planes.xor(planes.linear(&maps.leave, left[i]), after[1]);
            let rows = padded.as_flattened_mut()[2 * i * P::WIDE..].chunks_mut(P::WIDE);
            for (x, row) in planes.interleave_halves(x, y).into_iter().zip(rows) {
                planes.store(x, row);
            }
        }
        blocks.copy_from_slice(&padded[..blocks.len()]);
    }

    /// `to` with F of `from` and what changes its mask.
    #[inline(always)]
    fn round_in_halves(
        &self,
        planes: P,
        from: P::Vector,
        to: P::Vector,
        added: [u32; 2],
    ) -> P::Vector {
        const UPPER_TWICE: [u8; 16] = [0, 1, 2, 3, 0, 1, 2, 3, 8, 9, 10, 11, 8, 9, 10, 11];
        const LOWER_TWICE: [u8; 16] = [4, 5, 6, 7, 4, 5, 6, 7, 12, 13, 14, 15, 12, 13, 14, 15];
        let s4 = splat(planes, const { at(&[3, 6]) });
        let rotated = planes.linear(&self.sides[0].rotate, from);
        let x = planes.or(planes.and_not(s4, from), planes.and(s4, rotated));
        let places = const { [at(&[0, 3, 6, 7]), at(&[1, 4]), at(&[2, 5])] };
        let [s1, s2, s3] = places.map(|words| splat(planes, words));
        let y = planes.xor3(
            planes.and(s1, planes.invert(&self.substitute[0], x)),
            planes.and(s2, planes.invert(&self.substitute[1], x)),
            planes.and(s3, planes.invert(&self.substitute[2], x)),
        );
        let pairs = planes.xor(y, planes.rotate_words(y, 24));
        let rests = planes.xor3(pairs, planes.rotate_words(pairs, 16), y);
        let upper = planes.and(rests, splat(planes, [u32::MAX, 0]));
        let sum = planes.xor3(to, splat(planes, added), upper);
        planes.xor3(
            sum,
            planes.shuffle(rests, &LOWER_TWICE),
            planes.shuffle(pairs, &UPPER_TWICE),
        )
    }
}

/// The first line of FL, section 2.4.2, without its constants.
#[inline(always)]
fn change_right<P: Planes>(planes: P, layer: &FewLayer, x: P::Vector) -> P::Vector {
    const TO_NUMBERS: [u8; 16] = [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12];
    const N: u8 = NOTHING;
    const TO_RIGHT: [u8; 16] = [N, N, N, N, 3, 2, 1, 0, N, N, N, N, 11, 10, 9, 8];
    let product = planes.and(x, splat(planes, layer.left));
    let rotated = planes.rotate_words(planes.shuffle(product, &TO_NUMBERS), 1);
    planes.xor(x, planes.shuffle(rotated, &TO_RIGHT))
}

/// Its second line, without its constants.
#[inline(always)]
fn change_left<P: Planes>(planes: P, layer: &FewLayer, x: P::Vector) -> P::Vector {
    const N: u8 = NOTHING;
    const TO_LEFT: [u8; 16] = [4, 5, 6, 7, N, N, N, N, 12, 13, 14, 15, N, N, N, N];
    let left = planes.and(x, splat(planes, layer.right));
    planes.xor(x, planes.shuffle(left, &TO_LEFT))
}
