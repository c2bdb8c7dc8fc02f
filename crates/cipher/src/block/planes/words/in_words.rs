//! Words in registers of words.

use super::{Constant, Form, Groups, Rotation, Rows, WordTable, Words};

/// Words of a quarter as many blocks in one register.
#[derive(Clone, Copy)]
pub(crate) struct InWords<P>(pub(crate) P);

impl<P: Words> Form for InWords<P> {
    type Word = P::Vector;
    const ROWS: Rows = P::ROWS;

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

    /// Inverse of [`load`](Self::load).
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

/// Words of `G` groups in four registers each, and in planes for look-ups.
#[derive(Clone, Copy)]
pub(crate) struct InFourWords<P, const G: usize>(pub(crate) P);

impl<P: Words, const G: usize> Form for InFourWords<P, G> {
    type Word = [[P::Vector; 4]; G];
    const ROWS: Rows = P::ROWS;

    #[inline(always)]
    fn constant(self, word: &Constant) -> Self::Word {
        [[InWords(self.0).constant(word); 4]; G]
    }

    #[inline(always)]
    fn xor(self, mut x: Self::Word, y: Self::Word) -> Self::Word {
        for (x, &y) in x.as_flattened_mut().iter_mut().zip(y.as_flattened()) {
            *x = InWords(self.0).xor(*x, y);
        }
        x
    }

    #[inline(always)]
    fn add(self, mut x: Self::Word, y: Self::Word) -> Self::Word {
        for (x, &y) in x.as_flattened_mut().iter_mut().zip(y.as_flattened()) {
            *x = InWords(self.0).add(*x, y);
        }
        x
    }

    #[inline(always)]
    fn subtract(self, mut x: Self::Word, y: Self::Word) -> Self::Word {
        for (x, &y) in x.as_flattened_mut().iter_mut().zip(y.as_flattened()) {
            *x = InWords(self.0).subtract(*x, y);
        }
        x
    }

    #[inline(always)]
    fn rotate(self, mut x: Self::Word, by: &Rotation) -> Self::Word {
        for x in x.as_flattened_mut() {
            *x = InWords(self.0).rotate(*x, by);
        }
        x
    }

    #[inline(always)]
    fn look_up(self, table: &WordTable, x: Self::Word, byte: usize) -> Self::Word {
        let mut bytes = [x[0][0]; G];
        for (byte_of, words) in bytes.iter_mut().zip(x) {
            *byte_of = self.restore(words)[byte];
        }
        let mut found = self.0.look_up_planes(table, bytes);
        for found in &mut found {
            *found = self.arrange(*found);
        }
        found
    }
}

impl<P: Words, const G: usize> Groups<P, G> for InFourWords<P, G> {
    #[inline(always)]
    fn arrange(self, planes: [P::Vector; 4]) -> [P::Vector; 4] {
        self.0.to_words(planes)
    }

    #[inline(always)]
    fn restore(self, words: [P::Vector; 4]) -> [P::Vector; 4] {
        const { assert!(!P::TURNS, "planes would have another order of blocks") };
        self.0.to_planes(words)
    }
}
