//! 32-bit words of many blocks: what ciphers are written over that add words
//! and look up a word for a byte.
//!
//! The words of a group stand in one of two forms.
//!
//! ```text
//! in planes   four registers: byte 0 of the word of every block, byte 1, …
//! in words    one register, for a quarter of the blocks: word by word
//! ```
//!
//! In planes an S-box is four look-ups of bytes for as many blocks as a
//! register has bytes, sums carry from plane to plane, and a rotation by a
//! secret number is a choice between planes and one between the bits of two
//! neighbours. In words all of that but the S-box is an instruction. A look-up
//! takes its time in both forms however few blocks there are, and less of it in
//! words: so those are for few blocks.

use std::hint::black_box;

use zeroize::Zeroize;

use super::{Planes, four};

/// The operations on words of one register width.
pub(crate) trait Words: Planes {
    /// The words of `table` for every byte of `G` groups, in planes.
    fn look_up_planes<const G: usize>(
        self,
        table: &WordTable,
        x: [Self::Vector; G],
    ) -> [[Self::Vector; 4]; G];

    /// The words of `table` for byte `byte` of every word, 0 the least
    /// significant.
    fn look_up_words(self, table: &WordTable, x: Self::Vector, byte: usize) -> Self::Vector;

    /// Differences of words modulo 2³².
    fn subtract_words(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// Sums of bytes modulo 2⁸.
    fn add_bytes(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// Differences of bytes modulo 2⁸.
    fn subtract_bytes(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// One in every byte where `sum`, which is `x` and `y` and perhaps one
    /// added up, went past 255; zero elsewhere.
    fn carries(self, x: Self::Vector, y: Self::Vector, sum: Self::Vector) -> Self::Vector;

    /// One in every byte where `difference`, which is `x` less `y` and perhaps
    /// less one, went below 0; zero elsewhere.
    fn borrows(self, x: Self::Vector, y: Self::Vector, difference: Self::Vector) -> Self::Vector;

    /// The bits of `y` where `mask` has ones, those of `x` elsewhere.
    fn select(self, mask: Self::Vector, x: Self::Vector, y: Self::Vector) -> Self::Vector;
}

/// An S-box from bytes to words on whole cache lines, for both forms.
#[repr(C, align(64))]
pub(crate) struct WordTable {
    planes: [[u8; 256]; 4],
    words: [u32; 256],
}

impl WordTable {
    /// The table of these words.
    pub(crate) const fn new(words: &[u32; 256]) -> Self {
        let mut table = Self {
            planes: [[0; 256]; 4],
            words: [0; 256],
        };
        let mut i = 0;
        while i < 256 {
            table.set(i, words[i]);
            i += 1;
        }
        table
    }

    /// Replaces entry `i`.
    pub(crate) const fn set(&mut self, i: usize, word: u32) {
        self.words[i] = word;
        let mut plane = 0;
        while plane < 4 {
            self.planes[plane][i] = (word >> (8 * plane)) as u8;
            plane += 1;
        }
    }

    /// Byte i of every entry in array i.
    ///
    /// The compiler does not see where this comes from. Else it would load all
    /// tables of a cipher into registers before the first round, and having too
    /// few, store them again.
    #[inline(always)]
    pub(crate) fn planes(&self) -> &[[u8; 256]; 4] {
        &black_box(self).planes
    }

    /// The entries, whose origin is as hidden.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[u32; 256] {
        &black_box(self).words
    }
}

impl Drop for WordTable {
    fn drop(&mut self) {
        self.planes.as_flattened_mut().zeroize();
        self.words.zeroize();
    }
}

/// A word that is the same for all blocks, made for both forms.
#[derive(Clone, Copy)]
pub(crate) struct Constant {
    word: u32,
    /// Each byte in every byte of a word.
    planes: [u32; 4],
}

impl Constant {
    pub(crate) fn new(word: u32) -> Self {
        Self {
            word,
            planes: word.to_le_bytes().map(four),
        }
    }
}

impl Zeroize for Constant {
    fn zeroize(&mut self) {
        self.word.zeroize();
        self.planes.zeroize();
    }
}

/// A rotation to the left that is the same for all blocks, made for both forms.
#[derive(Clone, Copy)]
pub(crate) struct Rotation {
    by: u32,
    /// All ones if planes come from two planes below.
    two_planes: u32,
    /// All ones if they come from one plane below, after that.
    one_plane: u32,
    /// By how much bytes are rotated left, after that,
    bits: u32,
    /// and by how much those of the plane below,
    bits_below: u32,
    /// of which these bits are taken.
    from_below: u32,
}

impl Rotation {
    /// By a number from 0 to 31.
    pub(crate) fn new(by: u32) -> Self {
        let bits = by % 8;
        Self {
            by,
            two_planes: (by >> 4 & 1).wrapping_neg(),
            one_plane: (by >> 3 & 1).wrapping_neg(),
            bits,
            bits_below: 24 + bits,
            from_below: four(((1 << bits) - 1) as u8),
        }
    }
}

impl Zeroize for Rotation {
    fn zeroize(&mut self) {
        self.by.zeroize();
        self.two_planes.zeroize();
        self.one_plane.zeroize();
        self.bits.zeroize();
        self.bits_below.zeroize();
        self.from_below.zeroize();
    }
}

/// How the words of a group of blocks stand in registers. Every method is
/// inlined, as those of [`Planes`] are.
pub(crate) trait Form: Copy {
    /// A word of every block.
    type Word: Copy;

    /// The same word for all blocks.
    fn constant(self, word: &Constant) -> Self::Word;

    /// The bitwise sum.
    fn xor(self, x: Self::Word, y: Self::Word) -> Self::Word;

    /// The sum modulo 2³².
    fn add(self, x: Self::Word, y: Self::Word) -> Self::Word;

    /// The difference modulo 2³².
    fn subtract(self, x: Self::Word, y: Self::Word) -> Self::Word;

    /// The rotation.
    fn rotate(self, x: Self::Word, by: &Rotation) -> Self::Word;

    /// The words of `table` for byte `byte` of every word, 0 the least
    /// significant.
    fn look_up(self, table: &WordTable, x: Self::Word, byte: usize) -> Self::Word;
}

/// Words of `G` groups in four planes each, the least significant first.
#[derive(Clone, Copy)]
pub(crate) struct InFourPlanes<P, const G: usize>(pub(crate) P);

impl<P: Words, const G: usize> Form for InFourPlanes<P, G> {
    type Word = [[P::Vector; 4]; G];

    #[inline(always)]
    fn constant(self, word: &Constant) -> Self::Word {
        let [a, b, c, d] = word.planes;
        let Self(planes) = self;
        let word = [
            planes.splat(a),
            planes.splat(b),
            planes.splat(c),
            planes.splat(d),
        ];
        [word; G]
    }

    #[inline(always)]
    fn xor(self, mut x: Self::Word, y: Self::Word) -> Self::Word {
        for g in 0..G {
            for i in 0..4 {
                x[g][i] = self.0.xor(x[g][i], y[g][i]);
            }
        }
        x
    }

    #[inline(always)]
    fn add(self, x: Self::Word, y: Self::Word) -> Self::Word {
        let Self(planes) = self;
        let mut sum = x;
        for g in 0..G {
            let (x, y, sum) = (&x[g], &y[g], &mut sum[g]);
            for i in 0..4 {
                sum[i] = planes.add_bytes(x[i], y[i]);
                if i > 0 {
                    let carries = planes.carries(x[i - 1], y[i - 1], sum[i - 1]);
                    sum[i] = planes.add_bytes(sum[i], carries);
                }
            }
        }
        sum
    }

    #[inline(always)]
    fn subtract(self, x: Self::Word, y: Self::Word) -> Self::Word {
        let Self(planes) = self;
        let mut difference = x;
        for g in 0..G {
            let (x, y, difference) = (&x[g], &y[g], &mut difference[g]);
            for i in 0..4 {
                difference[i] = planes.subtract_bytes(x[i], y[i]);
                if i > 0 {
                    let borrows = planes.borrows(x[i - 1], y[i - 1], difference[i - 1]);
                    difference[i] = planes.subtract_bytes(difference[i], borrows);
                }
            }
        }
        difference
    }

    #[inline(always)]
    fn rotate(self, mut x: Self::Word, by: &Rotation) -> Self::Word {
        for x in &mut x {
            *x = self.rotate_group(*x, by);
        }
        x
    }

    #[inline(always)]
    fn look_up(self, table: &WordTable, x: Self::Word, byte: usize) -> Self::Word {
        let mut bytes = [x[0][byte]; G];
        for g in 0..G {
            bytes[g] = x[g][byte];
        }
        self.0.look_up_planes(table, bytes)
    }
}

impl<P: Words, const G: usize> InFourPlanes<P, G> {
    #[inline(always)]
    fn rotate_group(self, [a, b, c, d]: [P::Vector; 4], by: &Rotation) -> [P::Vector; 4] {
        let Self(planes) = self;
        let mask = planes.splat(by.two_planes);
        let [a, b, c, d] = [
            planes.select(mask, a, c),
            planes.select(mask, b, d),
            planes.select(mask, c, a),
            planes.select(mask, d, b),
        ];
        let mask = planes.splat(by.one_plane);
        let whole = [
            planes.select(mask, a, d),
            planes.select(mask, b, a),
            planes.select(mask, c, b),
            planes.select(mask, d, c),
        ];
        // Rotated words of a plane have the wrong neighbour's bits where
        // `from_below` has ones. Rotated by `bits_below`, bytes are shifted
        // right by what is left of eight bits, which puts the right ones there.
        let mask = planes.splat(by.from_below);
        let mut rotated = whole;
        for i in 0..4 {
            let here = planes.rotate_words(whole[i], by.bits);
            let below = planes.rotate_words(whole[(i + 3) % 4], by.bits_below);
            rotated[i] = planes.select(mask, here, below);
        }
        rotated
    }
}

/// Words of a quarter as many blocks in one register.
#[derive(Clone, Copy)]
pub(crate) struct InWords<P>(pub(crate) P);

impl<P: Words> Form for InWords<P> {
    type Word = P::Vector;

    #[inline(always)]
    fn constant(self, word: &Constant) -> P::Vector {
        self.0.splat(word.word)
    }

    #[inline(always)]
    fn xor(self, x: P::Vector, y: P::Vector) -> P::Vector {
        self.0.xor(x, y)
    }

    #[inline(always)]
    fn add(self, x: P::Vector, y: P::Vector) -> P::Vector {
        self.0.add_words(x, y)
    }

    #[inline(always)]
    fn subtract(self, x: P::Vector, y: P::Vector) -> P::Vector {
        self.0.subtract_words(x, y)
    }

    #[inline(always)]
    fn rotate(self, x: P::Vector, by: &Rotation) -> P::Vector {
        self.0.rotate_words(x, by.by)
    }

    #[inline(always)]
    fn look_up(self, table: &WordTable, x: P::Vector, byte: usize) -> P::Vector {
        self.0.look_up_words(table, x, byte)
    }
}

/// Most words in a register.
const MOST_WORDS: usize = 16;

impl<P: Words> InWords<P> {
    /// Blocks of `W` words, each big-endian or little-endian, at most as many
    /// as there are words in a register.
    #[inline(always)]
    pub(crate) fn load<const BIG_ENDIAN: bool, const N: usize, const W: usize>(
        self,
        blocks: &[[u8; N]],
    ) -> [P::Vector; W] {
        let mut bytes = [[[0; 4]; MOST_WORDS]; W];
        for (lane, block) in blocks.iter().enumerate() {
            for (word, bytes) in block.as_chunks::<4>().0.iter().zip(&mut bytes) {
                bytes[lane] = little_endian::<BIG_ENDIAN>(*word);
            }
        }
        let mut words = [self.0.splat(0); W];
        for (word, bytes) in words.iter_mut().zip(&bytes) {
            *word = self.0.load(bytes.as_flattened());
        }
        words
    }

    /// What undoes [`load`](Self::load).
    #[inline(always)]
    pub(crate) fn store<const BIG_ENDIAN: bool, const N: usize, const W: usize>(
        self,
        words: [P::Vector; W],
        blocks: &mut [[u8; N]],
    ) {
        let mut bytes = [[[0; 4]; MOST_WORDS]; W];
        for (word, bytes) in words.into_iter().zip(&mut bytes) {
            self.0.store(word, bytes.as_flattened_mut());
        }
        for (lane, block) in blocks.iter_mut().enumerate() {
            for (word, bytes) in block.as_chunks_mut::<4>().0.iter_mut().zip(&bytes) {
                *word = little_endian::<BIG_ENDIAN>(bytes[lane]);
            }
        }
    }
}

#[inline(always)]
fn little_endian<const BIG_ENDIAN: bool>([a, b, c, d]: [u8; 4]) -> [u8; 4] {
    if BIG_ENDIAN {
        [d, c, b, a]
    } else {
        [a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Avx512Bytes;
    use crate::block::planes::Work;

    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut i = 0;
        while i < 256 {
            table[i] = (i as u32 + 3).wrapping_mul(0x9e37_79b1);
            i += 1;
        }
        table
    };

    /// With a carry out of every byte, out of some and out of none.
    const WORDS: [u32; 10] = [
        0,
        1,
        0xff,
        0x100,
        0x00ff_ffff,
        0x8000_0000,
        u32::MAX,
        0x0123_4567,
        0xfedc_ba98,
        0x7f80_ff01,
    ];

    #[test]
    fn both_forms_equal_code_for_one_word() {
        match Avx512Bytes::detect() {
            Some(planes) => {
                planes.enter(BothForms);
                planes.by_rows().enter(BothForms);
            }
            None => println!("skipped: this CPU has no AVX-512 VBMI with GFNI"),
        }
    }

    struct BothForms;

    impl<P: Words> Work<P> for BothForms {
        fn run(self, planes: P) {
            check(InWords(planes), |word| {
                let mut bytes = [0; 64];
                planes.store(word, &mut bytes);
                bytes[..4].try_into().unwrap()
            });
            check(InFourPlanes::<_, 1>(planes), |[word]| {
                word.map(|plane| {
                    let mut bytes = [0; 64];
                    planes.store(plane, &mut bytes);
                    bytes[0]
                })
            });
        }
    }

    /// `first` gives the bytes of the first block's word.
    fn check<F: Form>(form: F, first: impl Fn(F::Word) -> [u8; 4]) {
        let word = |x: u32| form.constant(&Constant::new(x));
        let first = |word: F::Word| u32::from_le_bytes(first(word));
        let table = WordTable::new(&TABLE);
        for x in WORDS {
            for y in WORDS {
                assert_eq!(first(form.xor(word(x), word(y))), x ^ y);
                let sum = form.add(word(x), word(y));
                assert_eq!(first(sum), x.wrapping_add(y), "{x:#x} + {y:#x}");
                let difference = form.subtract(word(x), word(y));
                assert_eq!(first(difference), x.wrapping_sub(y), "{x:#x} - {y:#x}");
            }
            for by in 0..32 {
                let rotated = form.rotate(word(x), &Rotation::new(by));
                assert_eq!(first(rotated), x.rotate_left(by), "{x:#x} by {by}");
            }
            for byte in 0..4 {
                let found = first(form.look_up(&table, word(x), byte));
                assert_eq!(found, TABLE[usize::from(x.to_le_bytes()[byte])]);
            }
        }
    }

    #[test]
    fn blocks_come_back_from_words() {
        match Avx512Bytes::detect() {
            Some(planes) => planes.enter(ThereAndBack),
            None => println!("skipped: this CPU has no AVX-512 VBMI with GFNI"),
        }
    }

    struct ThereAndBack;

    impl<P: Words> Work<P> for ThereAndBack {
        fn run(self, planes: P) {
            let form = InWords(planes);
            for count in 0..=P::WIDE / 4 {
                let blocks: Vec<[u8; 8]> = (0..count)
                    .map(|i| std::array::from_fn(|j| (8 * i + j) as u8))
                    .collect();
                let mut changed = blocks.clone();
                let words: [_; 2] = form.load::<true, 8, 2>(&blocks);
                form.store::<false, 8, 2>(words, &mut changed);
                for (block, changed) in blocks.iter().zip(changed) {
                    let [a, b, c, d, e, f, g, h] = *block;
                    assert_eq!(changed, [d, c, b, a, h, g, f, e]);
                }
            }
        }
    }
}
