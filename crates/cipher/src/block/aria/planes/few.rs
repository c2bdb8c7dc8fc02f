//! ARIA over a few blocks: two registers, each with two *columns* of blocks,
//! which are what has the same place in every word of the state.
//!
//! ```text
//! first     column 0 of blocks x, y │ column 1 of x, y       a column is four
//! second    column 2 of blocks x, y │ column 3 of x, y       bytes of a block
//! ```
//!
//! The bytes of a column have the same S-box, and a register has two, so that
//! each half of it has a map of its own. Of A, `within` adds up columns, and the
//! first `words` is inside of them:
//!
//! ```text
//! x + (sum of x) = x⋘8 + x⋘16 + x⋘24
//! ```
//!
//! is `words`, but for an exchange of bytes that is left to what follows:
//! `bytes` and the second `words` together, as a sum of three bytes each.

use super::{InBytes, MOST_KEYS, Planes, diffuse};
use crate::block::planes::NOTHING;
use crate::block::planes::few::Few;
use crate::block::planes::linear::IDENTITY;

/// The columns of a round key, each twice: for the first register, and for the
/// second.
pub(super) type FewKey = [[u32; 4]; 2];

/// The first `keys` round keys of [`InBytes`], arranged as the blocks.
///
/// All but the first and the last are added inside of A, while its shuffles are
/// waited for. A is its own inverse, and so is `within`: A and `within` of a key
/// are what becomes the key again. They are added to each register on its way to
/// the other one, so the two change places.
pub(super) fn arrange(round_keys: &[[u32; 16]; MOST_KEYS], keys: usize) -> [FewKey; MOST_KEYS] {
    std::array::from_fn(|nth| {
        let bytes = round_keys[nth].map(|byte| byte as u8);
        let mut words = *bytes.as_chunks::<4>().0.first_chunk().expect("four words");
        let inside = (1..keys - 1).contains(&nth);
        if inside {
            words = diffuse(words.map(u32::from_be_bytes)).map(|word| {
                (word.rotate_left(8) ^ word.rotate_left(16) ^ word.rotate_left(24)).to_be_bytes()
            });
        }
        let column = |j: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| words[i][j]));
        let [a, b, c, d] = [column(0), column(1), column(2), column(3)];
        let (first, second) = ([a, a, b, b], [c, c, d, d]);
        match inside {
            true => [second, first],
            false => [first, second],
        }
    })
}

/// Rows to columns, and back.
const TRANSPOSE: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

/// The other column of a register.
const OTHER: [u8; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7];

/// Where a byte comes from: a word before the first exchange, and whether from
/// the other column of its register.
type Source = Option<(usize, bool)>;

/// Word k of the state is byte `EXCHANGED[k]` of a column after the sum.
const EXCHANGED: [u8; 4] = [3, 1, 2, 0];

/// The same four sources in every column.
const fn sources(words: [Source; 4]) -> [u8; 16] {
    let mut from = [NOTHING; 16];
    let mut at = 0;
    while at < 16 {
        if let Some((word, other)) = words[at % 4] {
            let start = at - at % 4;
            let start = if other { start ^ 8 } else { start };
            from[at] = start as u8 + EXCHANGED[word];
        }
        at += 1;
    }
    from
}

/// Word 0 of `bytes` is as it was; word 1 comes from the other column of a
/// register, word 2 from the same of the other register, and word 3 from the
/// other of the other. The second `words` adds three of them.
const OWN: [[u8; 16]; 2] = [
    sources([
        Some((0, false)),
        Some((0, false)),
        Some((0, false)),
        Some((1, true)),
    ]),
    sources([Some((1, true)), None, Some((1, true)), None]),
];
const FROM_OTHER: [[u8; 16]; 2] = [
    sources([
        Some((2, false)),
        Some((2, false)),
        Some((3, true)),
        Some((2, false)),
    ]),
    sources([None, Some((3, true)), None, Some((3, true))]),
];

/// Of every two registers of blocks, two of columns.
impl<P: Planes, const ROWS: usize> Few<P, ROWS> for InBytes<P> {
    #[inline(always)]
    fn arrange(&self, planes: P, mut rows: [P::Vector; ROWS]) -> [P::Vector; ROWS] {
        for pair in rows.as_chunks_mut::<2>().0 {
            for x in &mut *pair {
                *x = planes.shuffle(*x, &TRANSPOSE);
            }
            *pair = planes.interleave_words(pair[0], pair[1]);
            if P::FROM_AES_FIELD != IDENTITY {
                for x in pair {
                    *x = planes.linear(&self.maps.into, *x);
                }
            }
        }
        rows
    }

    /// Section 2.3.
    #[inline(always)]
    fn encrypt(&self, planes: P, mut state: [P::Vector; ROWS]) -> [P::Vector; ROWS] {
        let keys = &self.few_encryption[..self.keys];
        let (first, keys) = keys.split_first().expect("a key before the first round");
        let (pairs, _) = keys.as_chunks::<2>();
        let (final_pair, pairs) = pairs.split_last().expect("12 rounds at least");
        let (columns, _) = state.as_chunks_mut::<2>();
        for columns in &mut *columns {
            self.add_few(planes, columns, first);
        }
        for pair in pairs {
            for columns in &mut *columns {
                self.substitute_odd_few(planes, columns);
                self.diffuse_few(planes, columns, &pair[0]);
            }
            for columns in &mut *columns {
                self.substitute_even_few(planes, columns);
                self.diffuse_few(planes, columns, &pair[1]);
            }
        }
        for columns in columns {
            self.substitute_odd_few(planes, columns);
            self.diffuse_few(planes, columns, &final_pair[0]);
            self.substitute_even_few(planes, columns);
            self.add_few(planes, columns, &final_pair[1]);
        }
        state
    }

    #[inline(always)]
    fn restore(&self, planes: P, mut state: [P::Vector; ROWS]) -> [P::Vector; ROWS] {
        for pair in state.as_chunks_mut::<2>().0 {
            if P::FROM_AES_FIELD != IDENTITY {
                for x in &mut *pair {
                    *x = planes.linear(&self.maps.out_of, *x);
                }
            }
            let [even, odd] = planes.interleave_words(pair[0], pair[1]);
            *pair = planes.interleave_words(even, odd);
            for x in pair {
                *x = planes.shuffle(*x, &TRANSPOSE);
            }
        }
        state
    }
}

/// Two columns of blocks, and the other two.
type Columns<P> = [<P as Planes>::Vector; 2];

impl<P: Planes> InBytes<P> {
    #[inline(always)]
    fn add_few(&self, planes: P, [x, y]: &mut Columns<P>, [a, b]: &FewKey) {
        *x = planes.xor(*x, planes.splat_words(*a));
        *y = planes.xor(*y, planes.splat_words(*b));
    }

    /// SL1 of section 2.4.2.
    #[inline(always)]
    fn substitute_odd_few(&self, planes: P, [x, y]: &mut Columns<P>) {
        *x = self.forward_few(planes, *x);
        *y = self.backward_few(planes, *y);
    }

    /// SL2.
    #[inline(always)]
    fn substitute_even_few(&self, planes: P, [x, y]: &mut Columns<P>) {
        *x = self.backward_few(planes, *x);
        *y = self.forward_few(planes, *y);
    }

    /// SB1 of one column and SB2 of the other.
    #[inline(always)]
    fn forward_few(&self, planes: P, x: P::Vector) -> P::Vector {
        planes.invert_by_half(&self.maps.after, x)
    }

    /// SB3 of one column and SB4 of the other.
    #[inline(always)]
    fn backward_few(&self, planes: P, x: P::Vector) -> P::Vector {
        let x = planes.linear_by_half(&self.maps.before, x);
        planes.invert(&self.maps.inverse, x)
    }

    /// A of section 2.4.3, with a sum inside of it.
    #[inline(always)]
    fn diffuse_few(&self, planes: P, columns: &mut Columns<P>, key: &FewKey) {
        let other_x = planes.shuffle(columns[0], &OTHER);
        let other_y = planes.shuffle(columns[1], &OTHER);
        self.add_few(planes, columns, key);
        let [x, y] = *columns;
        let x_after = self.words_few(planes, planes.xor3(other_x, y, other_y));
        let y_after = self.words_few(planes, planes.xor3(other_y, x, other_x));
        *columns = [
            self.spread_few(planes, x_after, y_after),
            self.spread_few(planes, y_after, x_after),
        ];
    }

    /// The first `words`, but for an exchange.
    #[inline(always)]
    fn words_few(&self, planes: P, x: P::Vector) -> P::Vector {
        planes.xor3(
            planes.rotate_words(x, 8),
            planes.rotate_words(x, 16),
            planes.rotate_words(x, 24),
        )
    }

    /// The exchange, `bytes` and `words`: what becomes of `own` beside `other`.
    #[inline(always)]
    fn spread_few(&self, planes: P, own: P::Vector, other: P::Vector) -> P::Vector {
        let three = planes.xor3(
            planes.shuffle(own, &OWN[0]),
            planes.shuffle(other, &FROM_OTHER[0]),
            planes.shuffle(own, &OWN[1]),
        );
        planes.xor(three, planes.shuffle(other, &FROM_OTHER[1]))
    }
}
