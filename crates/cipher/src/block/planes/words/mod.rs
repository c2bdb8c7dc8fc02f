//! 32-bit words of many blocks: what ciphers are written over that add words
//! and look up a word for a byte.
//!
//! The words of a group stand in one of three forms.
//!
//! ```text
//! in four planes   four registers: byte 0 of the word of every block, byte 1, …
//! in four words    four registers, each with the words of a quarter of the blocks
//! in words         one register, for a quarter of the blocks
//! ```
//!
//! In planes an S-box is four look-ups of bytes for as many blocks as a
//! register has bytes, sums carry from plane to plane, and a rotation by a
//! secret number is a choice between planes and one between the bits of two
//! neighbours. In words all of that but the S-box is an instruction; so groups
//! stay in words, and go to planes and back for every look-up, where a CPU
//! takes longer for a sum in planes than for that. A look-up takes its time in
//! all forms however few blocks there are, and less of it in words: so those
//! are for few blocks.

#[cfg(target_arch = "x86_64")]
mod in_planes;
mod in_words;

use std::hint::black_box;

use zeroize::Zeroize;

#[cfg(target_arch = "x86_64")]
pub(crate) use self::in_planes::InFourPlanes;
pub(crate) use self::in_words::{InFourWords, InWords};
use super::Planes;

/// The operations on words of one register width.
pub(crate) trait Words: Planes {
    /// How tables are laid out.
    const ROWS: Rows;

    /// Whether two groups at once take less time than one after the other.
    const PAIRS: bool;

    /// The form of whole groups.
    type Groups<const G: usize>: Groups<Self, G>;

    /// Groups in it.
    fn groups<const G: usize>(self) -> Self::Groups<G>;

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
}

/// How rows of 16 entries stand in the planes of a table.
#[derive(Clone, Copy)]
pub(crate) enum Rows {
    /// One after the other.
    Plain,
    /// Those of planes 0 and 1 in turn, then those of planes 2 and 3. Every row
    /// but the first of each half has the one before it added: the sum of all
    /// rows up to one is that row.
    #[cfg(target_arch = "x86_64")]
    AddedInPairs,
}

/// An S-box from bytes to words on whole cache lines, for every form.
#[repr(C, align(64))]
pub(crate) struct WordTable {
    planes: [[u8; 256]; 4],
    words: [u32; 256],
}

impl WordTable {
    /// The table of these words.
    pub(crate) const fn new(words: &[u32; 256], rows: Rows) -> Self {
        let mut table = Self {
            planes: [[0; 256]; 4],
            words: [0; 256],
        };
        let mut i = 0;
        while i < 256 {
            table.set(i, words[i], rows);
            i += 1;
        }
        table
    }

    /// Replaces entry `i` of a table with these rows.
    pub(crate) const fn set(&mut self, i: usize, word: u32, rows: Rows) {
        let change = (word ^ self.words[i]).to_le_bytes();
        self.words[i] = word;
        let mut plane = 0;
        while plane < 4 {
            let bytes = self.planes.as_flattened_mut();
            match rows {
                Rows::Plain => bytes[256 * plane + i] ^= change[plane],
                #[cfg(target_arch = "x86_64")]
                Rows::AddedInPairs => {
                    let row = 32 * (plane / 2) + 2 * (i / 16) + plane % 2;
                    bytes[16 * row + i % 16] ^= change[plane];
                    if i % 128 < 112 {
                        bytes[16 * (row + 2) + i % 16] ^= change[plane];
                    }
                }
            }
            plane += 1;
        }
    }

    /// Byte i of every entry in array i, if rows are [`Plain`](Rows::Plain).
    ///
    /// The compiler does not see where this comes from. Else it would load all
    /// tables of a cipher into registers before the first round, and having too
    /// few, store them again.
    #[inline(always)]
    pub(crate) fn planes(&self) -> &[[u8; 256]; 4] {
        &black_box(self).planes
    }

    /// The rows of all planes, whose origin is as hidden.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn rows(&self) -> &[[u8; 16]] {
        self.planes().as_flattened().as_chunks().0
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

/// A word that is the same for all blocks, made for every form.
#[derive(Clone, Copy)]
pub(crate) struct Constant {
    word: u32,
    #[cfg(target_arch = "x86_64")]
    in_planes: in_planes::Constant,
}

impl Constant {
    pub(crate) fn new(word: u32) -> Self {
        Self {
            word,
            #[cfg(target_arch = "x86_64")]
            in_planes: in_planes::Constant::new(word),
        }
    }
}

impl Zeroize for Constant {
    fn zeroize(&mut self) {
        self.word.zeroize();
        #[cfg(target_arch = "x86_64")]
        self.in_planes.zeroize();
    }
}

/// A rotation to the left that is the same for all blocks, made for every form.
#[derive(Clone, Copy)]
pub(crate) struct Rotation {
    by: u32,
    #[cfg(target_arch = "x86_64")]
    in_planes: in_planes::Rotation,
}

impl Rotation {
    /// By a number from 0 to 31.
    pub(crate) fn new(by: u32) -> Self {
        Self {
            by,
            #[cfg(target_arch = "x86_64")]
            in_planes: in_planes::Rotation::new(by),
        }
    }
}

impl Zeroize for Rotation {
    fn zeroize(&mut self) {
        self.by.zeroize();
        #[cfg(target_arch = "x86_64")]
        self.in_planes.zeroize();
    }
}

/// How the words of a group of blocks stand in registers. Every method is
/// inlined, as those of [`Planes`] are.
pub(crate) trait Form: Copy {
    /// A word of every block.
    type Word: Copy;

    /// How tables are laid out.
    const ROWS: Rows;

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

/// The form of `G` whole groups.
pub(crate) trait Groups<P: Planes, const G: usize>:
    Form<Word = [[P::Vector; 4]; G]>
{
    /// Makes words of four planes of a group, the least significant first.
    fn arrange(self, planes: [P::Vector; 4]) -> [P::Vector; 4];

    /// Inverse of [`arrange`](Self::arrange).
    fn restore(self, words: [P::Vector; 4]) -> [P::Vector; 4];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::tests;
    use crate::work::Work;

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

    tests::in_words!(forms_equal_code_for_one_word_and_blocks_come_back);

    fn forms_equal_code_for_one_word_and_blocks_come_back<P: Words>(planes: P) {
        planes.enter(AllForms);
        planes.enter(ThereAndBack);
    }

    struct AllForms;

    impl<P: Words> Work<P> for AllForms {
        fn run(self, planes: P) {
            check(InWords(planes), |word| {
                let mut bytes = [0; 64];
                planes.store(word, &mut bytes);
                bytes[..4].try_into().unwrap()
            });
            let form = planes.groups::<1>();
            check(form, |word| {
                form.restore(word[0]).map(|plane| {
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
        let table = WordTable::new(&TABLE, F::ROWS);
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
