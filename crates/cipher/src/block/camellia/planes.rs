//! Camellia in byte planes, and so in constant time.
//!
//! The S-box s₁ is an inversion in GF(2⁸) between two linear maps:
//!
//! ```text
//! s₁(x) = OUT(1 / IN(x + c5)) + 6e
//! ```
//!
//! So bytes are kept as their images under IN, which leaves one inversion to
//! s₁, s₂ and s₃, and one map more to s₄. All that is added to a byte, round
//! keys and the constants of the S-boxes, adds up: a half of the state has a
//! *mask*, which is what the next F wants to be added to its input, and F adds
//! to its other half whatever changes that one's mask into the next. FL and FL⁻¹
//! are affine under a given key, so they are linear maps here, and change a
//! mask as they change data.
//!
//! Where inversions move blocks, those of the right half are moved: F of the left
//! half comes out so, and F of the right half comes back.
//!
//! One group of blocks is in flight. The state of two fits neither 16 registers of
//! 256 bits nor 32 of 512, and both were slower.

mod few;
#[cfg(target_arch = "x86_64")]
pub(crate) mod serial;

use zeroize::Zeroize;

use self::few::FewKeys;
use super::sbox::SBOX1;
use super::{P_COLUMNS, Subkeys, fl, fl_inverse};
use crate::block::Block;
use crate::block::planes::linear::{
    IDENTITY, Linear, apply, compose, inverse, multiply, to_aes_field,
};
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::planes::{Planes, four};
use crate::work::Work;

/// f of the specification, section 4.4 of "Camellia: A 128-Bit Block Cipher"
/// (Aoki and others 2000).
const F: Linear = [0x32, 0x48, 0x81, 0x24, 0x09, 0x30, 0x84, 0x42];

/// Its h.
const H: Linear = [0x14, 0x28, 0xc1, 0x82, 0x20, 0x09, 0xd0, 0x06];

/// Its β is a root of x⁸ + x⁶ + x⁵ + x³ + 1.
const BETA_FIELD: u16 = 0x169;

/// Its g inverts elements that have 1, α, α², α³ and their products with β for
/// bits, where α = β²³⁸. This is the way from there to the field of AES.
const G_TO_AES: Linear = {
    let (beta, mut alpha) = (2, 1);
    let mut power = 0;
    while power < 238 {
        alpha = multiply(alpha, beta, BETA_FIELD);
        power += 1;
    }
    let mut basis = [1; 8];
    let mut i = 1;
    while i < 4 {
        basis[i] = multiply(basis[i - 1], alpha, BETA_FIELD);
        i += 1;
    }
    while i < 8 {
        basis[i] = multiply(basis[i - 4], beta, BETA_FIELD);
        i += 1;
    }
    compose(&to_aes_field(BETA_FIELD), &basis)
};

const IN: Linear = compose(&G_TO_AES, &F);
const OUT: Linear = compose(&H, &inverse(&G_TO_AES));

const ROTATE_LEFT: Linear = [2, 4, 8, 16, 32, 64, 128, 1];
const ROTATE_RIGHT: Linear = inverse(&ROTATE_LEFT);

/// The values that are added to the bytes of F's input, if the map adds `adds` to images. s₄
/// rotates before it adds.
fn input_mask(leave: &Linear, adds: u8) -> u64 {
    let plain = 0xc5 ^ apply(leave, adds);
    let rotated = apply(&ROTATE_RIGHT, plain);
    u64::from_be_bytes([plain, plain, plain, rotated, plain, plain, rotated, plain])
}

/// The value that F adds to its output for the constants of its S-boxes.
const OUTPUT_MASK: u64 = {
    let (left, right) = (apply(&ROTATE_LEFT, 0x6e), apply(&ROTATE_RIGHT, 0x6e));
    permute([0x6e, left, right, 0x6e, left, right, 0x6e, 0x6e])
};

/// The P-function, section 2.4.1 of the RFC.
const fn permute(bytes: [u8; 8]) -> u64 {
    let mut sum = 0;
    let mut i = 0;
    while i < 8 {
        sum ^= u64::from_ne_bytes([bytes[i]; 8]) & P_COLUMNS[i];
        i += 1;
    }
    sum
}

/// Camellia with a key of 128, 192 or 256 bits.
pub(crate) struct Maps<P: Planes> {
    encryption: Keys<P>,
    decryption: Keys<P>,
    /// Of the left half, and of the right.
    sides: [Side<P>; 2],
    /// s₁, s₂ and s₃ of images of the left half, to such.
    substitute: [P::InverseMap; 3],
    few: FewKeys,
}

/// The maps of a half.
struct Side<P: Planes> {
    /// To the images of bytes, and back.
    enter: P::Map,
    leave: P::Map,
    /// s₁, s₂ and s₃ of images, to those of the other half.
    substitute: [P::InverseMap; 3],
    /// A rotation of images to the left, which makes s₄ of s₁.
    rotate: P::Map,
}

/// The cipher under a key of 16, 24 or 32 bytes.
pub(crate) fn keyed<P: Planes>(key: &[u8], planes: P) -> InPlanes<P, Maps<P>> {
    let mut encryption = subkeys(key, planes);
    let mut decryption = encryption.reversed();
    let enter = [
        compose(&P::FROM_AES_FIELD, &IN),
        compose(&P::FROM_AES_FIELD_BACK, &IN),
    ];
    let leave = enter.map(|enter| inverse(&enter));
    let masks = [
        input_mask(&leave[0], 0),
        input_mask(&leave[1], P::BACK_ADDS),
    ];
    let outputs = |enter: &Linear| {
        [IDENTITY, ROTATE_LEFT, ROTATE_RIGHT].map(|rotate| compose(enter, &compose(&rotate, &OUT)))
    };
    let side = |nth: usize, substitute| Side {
        enter: P::map(&enter[nth]),
        leave: P::map(&leave[nth]),
        substitute,
        rotate: P::map(&compose(&enter[nth], &compose(&ROTATE_LEFT, &leave[nth]))),
    };
    let kernel = Maps {
        encryption: Keys::new(&encryption, &enter, masks),
        decryption: Keys::new(&decryption, &enter, masks),
        sides: [
            side(0, outputs(&enter[1]).map(|map| P::inverse_map(&map))),
            side(1, outputs(&enter[0]).map(|map| P::inverse_map_back(&map))),
        ],
        substitute: outputs(&enter[0]).map(|map| P::inverse_map(&map)),
        few: FewKeys::new(
            &Sums::new(&encryption, [masks[0]; 2]),
            &encryption,
            &enter[0],
        ),
    };
    encryption.wipe();
    decryption.wipe();
    InPlanes { planes, kernel }
}

fn subkeys(key: &[u8], planes: impl Planes) -> Subkeys {
    Subkeys::new(key, |x| {
        let mut bytes = x.to_be_bytes();
        planes.enter(Substitute { bytes: &mut bytes });
        permute(bytes)
    })
}

/// The eight S-boxes of F.
struct Substitute<'a> {
    bytes: &'a mut [u8; 8],
}

impl<P: Planes> Work<P> for Substitute<'_> {
    #[inline(always)]
    fn run(self, planes: P) {
        let x = self.bytes;
        for i in [3, 6] {
            x[i] = x[i].rotate_left(1);
        }
        let mut plane = [0; 64];
        plane[..8].copy_from_slice(x);
        let found = planes.look_up(&P::table(&SBOX1), planes.load(&plane));
        planes.store(found, &mut plane);
        x.copy_from_slice(&plane[..8]);
        for (i, by) in [(1, 1), (2, 7), (4, 1), (5, 7)] {
            x[i] = x[i].rotate_left(by);
        }
        plane.zeroize();
    }
}

/// The values that are added to the state on its way, so that each half has the wanted mask.
struct Sums {
    /// To the left half at first.
    before: u64,
    /// By each round, to the half that it changes.
    sixes: [[u64; 6]; 4],
    /// To both halves at last.
    after: [u64; 2],
}

impl Sums {
    /// `masks` are what F wants besides its key, of the left half and of the right.
    fn new(subkeys: &Subkeys, masks: [u64; 2]) -> Self {
        let mut wanted = subkeys.sixes[..subkeys.six_count]
            .as_flattened()
            .iter()
            .zip(masks.into_iter().cycle())
            .map(|(key, mask)| key ^ mask);
        // The mask of the half that F takes next, and that of the other.
        let mut next = wanted.next().expect("a first round");
        let mut other = subkeys.before[1];
        let before = subkeys.before[0] ^ next;
        let mut sixes = [[0; 6]; 4];
        for (nth, six) in sixes[..subkeys.six_count].iter_mut().enumerate() {
            for (round, sum) in six.iter_mut().enumerate() {
                let new = match wanted.next() {
                    Some(mask) if round < 5 => mask,
                    Some(mask) => fl_inverse(mask, subkeys.between[nth][0]),
                    None => 0,
                };
                *sum = other ^ OUTPUT_MASK ^ new;
                (next, other) = (new, next);
            }
            if nth + 1 < subkeys.six_count {
                next = fl(next, subkeys.between[nth][0]);
                other = fl_inverse(other, subkeys.between[nth][1]);
            }
        }
        Self {
            before,
            sixes,
            after: [other ^ subkeys.after[0], next ^ subkeys.after[1]],
        }
    }
}

impl Drop for Sums {
    fn drop(&mut self) {
        self.before.zeroize();
        self.sixes.as_flattened_mut().zeroize();
        self.after.zeroize();
    }
}

/// The keys of one direction's rounds, for images of bytes.
struct Keys<P: Planes> {
    /// Added to the left half at first.
    before: [u32; 8],
    /// Added by each round. Six rounds each; 128-bit keys leave the last out.
    sixes: [[[u32; 8]; 6]; 4],
    /// FL and FL⁻¹ between one six and the next.
    between: [[Layer<P>; 2]; 3],
    /// Added to bytes at last.
    after: [u32; 16],
    six_count: usize,
}

impl<P: Planes> Keys<P> {
    /// `enter` makes images of either half, and `masks` are those of [`Sums`].
    fn new(subkeys: &Subkeys, enter: &[Linear; 2], masks: [u64; 2]) -> Self {
        let sums = Sums::new(subkeys, masks);
        let image =
            |x: u64, side: usize| x.to_be_bytes().map(|byte| four(apply(&enter[side], byte)));
        let [left, right] = sums.after.map(|half| half.to_be_bytes().map(four));
        let mut after = [0; 16];
        after[..8].copy_from_slice(&left);
        after[8..].copy_from_slice(&right);
        Self {
            before: image(sums.before, 0),
            // The first round changes the right half.
            sixes: sums.sixes.map(|[a, b, c, d, e, f]| {
                [
                    image(a, 1),
                    image(b, 0),
                    image(c, 1),
                    image(d, 0),
                    image(e, 1),
                    image(f, 0),
                ]
            }),
            between: subkeys.between.map(|[fl, fl_inverse]| {
                [Layer::new(fl, &enter[0]), Layer::new(fl_inverse, &enter[1])]
            }),
            after,
            six_count: subkeys.six_count,
        }
    }
}

impl<P: Planes> Drop for Keys<P> {
    fn drop(&mut self) {
        self.before.zeroize();
        self.sixes.as_flattened_mut().as_flattened_mut().zeroize();
        for layer in self.between.as_flattened_mut() {
            layer.left.zeroize();
            layer.carried.zeroize();
            layer.right.zeroize();
        }
        self.after.zeroize();
    }
}

/// FL or FL⁻¹ under one key, without the constants that masks take up.
struct Layer<P: Planes> {
    /// The product with the key's left half and a shift to the left, by byte.
    left: [P::Map; 4],
    /// The same product, and what the shift moves into the byte before it.
    carried: [P::Map; 4],
    /// The sum with the key's right half as a bitwise *or*: what is left of a byte.
    right: [P::Map; 4],
}

impl<P: Planes> Layer<P> {
    fn new(key: u64, enter: &Linear) -> Self {
        const SHIFT: Linear = [2, 4, 8, 16, 32, 64, 128, 0];
        const CARRY: Linear = [0, 0, 0, 0, 0, 0, 0, 1];
        let leave = inverse(enter);
        let masked = |then: &Linear, mask: u8| {
            let mut map = *then;
            for (bit, image) in map.iter_mut().enumerate() {
                *image &= (mask >> bit & 1).wrapping_neg();
            }
            P::map(&compose(enter, &compose(&map, &leave)))
        };
        let [a, b, c, d, e, f, g, h] = key.to_be_bytes();
        Self {
            left: [a, b, c, d].map(|mask| masked(&SHIFT, mask)),
            carried: [a, b, c, d].map(|mask| masked(&CARRY, mask)),
            right: [e, f, g, h].map(|mask| masked(&IDENTITY, !mask)),
        }
    }

    /// Section 2.4.2.
    #[inline(always)]
    fn fl(&self, planes: P, x: &mut Half<P>) {
        self.change_right(planes, x);
        self.change_left(planes, x);
    }

    /// Section 2.4.3.
    #[inline(always)]
    fn fl_inverse(&self, planes: P, x: &mut Half<P>) {
        self.change_left(planes, x);
        self.change_right(planes, x);
    }

    #[inline(always)]
    fn change_right(&self, planes: P, x: &mut Half<P>) {
        for i in 0..4 {
            let j = (i + 1) % 4;
            x[4 + i] = planes.xor3(
                x[4 + i],
                planes.linear(&self.left[i], x[i]),
                planes.linear(&self.carried[j], x[j]),
            );
        }
    }

    #[inline(always)]
    fn change_left(&self, planes: P, x: &mut Half<P>) {
        for i in 0..4 {
            x[i] = planes.xor(x[i], planes.linear(&self.right[i], x[4 + i]));
        }
    }
}

/// Half a block, the most significant byte first.
type Half<P> = [<P as Planes>::Vector; 8];

impl<P: Planes> Kernel<P> for Maps<P> {
    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        let keys = match encrypt {
            true => &self.encryption,
            false => &self.decryption,
        };
        self.rounds(planes, keys, rows)
    }

    const FEW: usize = few::MOST_PAIRS * P::WIDE / 8;

    #[inline(always)]
    fn encrypt_few(&self, planes: P, blocks: &mut [Block]) {
        self.encrypt_in_halves(planes, blocks);
    }
}

impl<P: Planes> Maps<P> {
    /// Section 2.3 of the RFC.
    #[inline(always)]
    fn rounds(&self, planes: P, keys: &Keys<P>, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        let mut state = planes.transpose(rows);
        let [mut left, mut right] = [[state[0]; 8]; 2];
        let (of_left, of_right) = (self.side::<true>(), self.side::<false>());
        for i in 0..8 {
            let x = planes.linear(&of_left.enter, state[i]);
            left[i] = planes.xor(x, planes.splat(keys.before[i]));
            right[i] = planes.moved(planes.linear(&of_right.enter, state[8 + i]));
        }
        for (nth, six) in keys.sixes[..keys.six_count].iter().enumerate() {
            if nth > 0 {
                let [fl, fl_inverse] = &keys.between[nth - 1];
                fl.fl(planes, &mut left);
                fl_inverse.fl_inverse(planes, &mut right);
            }
            for added in six.as_chunks::<2>().0 {
                self.round::<true>(planes, &left, &mut right, &added[0]);
                self.round::<false>(planes, &right, &mut left, &added[1]);
            }
        }
        for i in 0..8 {
            state[i] = planes.linear(&of_right.leave, planes.in_order(right[i]));
            state[8 + i] = planes.linear(&of_left.leave, left[i]);
        }
        for (x, &key) in state.iter_mut().zip(&keys.after) {
            *x = planes.xor(*x, planes.splat(key));
        }
        planes.transpose(state)
    }

    /// The maps of the left half or of the right: where they are the same, registers
    /// keep them for both.
    #[inline(always)]
    fn side<const LEFT: bool>(&self) -> &Side<P> {
        &self.sides[usize::from(P::MOVES && !LEFT)]
    }

    /// S-box `nth` of three, of a byte of the left half or of the right.
    #[inline(always)]
    fn substitute<const OF_LEFT: bool>(&self, planes: P, nth: usize, x: P::Vector) -> P::Vector {
        let map = &self.side::<OF_LEFT>().substitute[nth];
        if OF_LEFT {
            planes.invert_moving(map, x)
        } else {
            planes.invert_back(map, x)
        }
    }

    /// Adds F of `from`, and what changes the mask, to `to`.
    #[inline(always)]
    fn round<const OF_LEFT: bool>(
        &self,
        planes: P,
        from: &Half<P>,
        to: &mut Half<P>,
        added: &[u32; 8],
    ) {
        let rotate = &self.side::<OF_LEFT>().rotate;
        let a = self.substitute::<OF_LEFT>(planes, 0, from[0]);
        let b = self.substitute::<OF_LEFT>(planes, 1, from[1]);
        let c = self.substitute::<OF_LEFT>(planes, 2, from[2]);
        let d = self.substitute::<OF_LEFT>(planes, 0, planes.linear(rotate, from[3]));
        let e = self.substitute::<OF_LEFT>(planes, 1, from[4]);
        let f = self.substitute::<OF_LEFT>(planes, 2, from[5]);
        let g = self.substitute::<OF_LEFT>(planes, 0, planes.linear(rotate, from[6]));
        let h = self.substitute::<OF_LEFT>(planes, 0, from[7]);
        // The lower half of P, and what the upper half has besides.
        let lower = [
            planes.xor3(planes.xor3(f, g, h), a, b),
            planes.xor3(planes.xor3(e, g, h), b, c),
            planes.xor3(planes.xor3(e, f, h), c, d),
            planes.xor3(planes.xor3(e, f, g), d, a),
        ];
        let besides = [
            planes.xor3(b, c, d),
            planes.xor3(a, c, d),
            planes.xor3(a, b, d),
            planes.xor3(a, b, c),
        ];
        for i in 0..4 {
            let sum = planes.xor(to[i], planes.splat(added[i]));
            to[i] = planes.xor3(sum, lower[i], besides[i]);
            to[4 + i] = planes.xor3(to[4 + i], lower[i], planes.splat(added[4 + i]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::planes::linear::AES_FIELD;
    use crate::block::tests;
    use crate::reference;

    #[test]
    fn the_s_box_is_an_inversion_between_linear_maps() {
        for x in 0..=255 {
            let y = apply(&IN, x ^ 0xc5);
            let inverse = (0..=255).find(|&z| multiply(y, z, AES_FIELD) == 1);
            let found = apply(&OUT, inverse.unwrap_or(0)) ^ 0x6e;
            assert_eq!(found, SBOX1[usize::from(x)], "{x}");
        }
    }

    fn check(planes: impl Planes) {
        let keyed = |key: &[u8]| keyed(key, planes);
        tests::known_answers::<reference::Camellia, _, 16>("camellia", keyed);
        tests::equals_reference::<reference::Camellia, _, 16>(&[16, 24, 32], keyed);
        tests::agrees_with::<camellia::Camellia128, _, 16>(&[16], keyed);
        tests::agrees_with::<camellia::Camellia192, _, 16>(&[24], keyed);
        tests::agrees_with::<camellia::Camellia256, _, 16>(&[32], keyed);
    }

    tests::in_planes!(check);
}
