//! Byte planes: a register holds one byte of each of many blocks. Ciphers made of tables of bytes
//! are written over planes, once for every CPU.
//!
//! ```text
//! plane 0   byte 0 of block 0, of block 1, of block 2, …
//! plane 1   byte 1 of block 0, of block 1, of block 2, …
//! ```
//!
//! A table of 256 bytes fits in a few registers, where one or two instructions look up all bytes of
//! a plane at once. That takes constant time, because the index is never an address. Linear maps of
//! a byte are one instruction or two, and sums of bytes go by whole planes.
//!
//! Ciphers that add and rotate words turn four planes into four registers of
//! 32-bit words and back, with [`to_words`](Planes::to_words) and
//! [`to_planes`](Planes::to_planes).

pub(crate) mod few;
pub(crate) mod linear;
pub(crate) mod sectors;
pub(crate) mod tower;
pub(crate) mod words;

use zeroize::Zeroize;

use self::linear::Linear;
use crate::block::Block;
use crate::work::Work;

/// The operations of one register width: a proof that the CPU has them.
///
/// Every method is inlined into a function that [`enter`](Self::enter) calls,
/// where the operation is an instruction or a few. None takes longer for one
/// value than for another.
pub(crate) trait Planes: Copy + Send + Sync + 'static {
    /// Bytes in a register, so blocks that are worked on together.
    const WIDE: usize;

    /// From the field of AES to how [`invert`](Self::invert) takes its elements.
    const FROM_AES_FIELD: Linear;

    /// Whether [`invert_moving`](Self::invert_moving) moves bytes, which then saves
    /// time, and takes elements in another way than
    /// [`invert_back`](Self::invert_back).
    const MOVES: bool = false;

    /// [`FROM_AES_FIELD`](Self::FROM_AES_FIELD) for
    /// [`invert_back`](Self::invert_back), but for [`BACK_ADDS`](Self::BACK_ADDS).
    const FROM_AES_FIELD_BACK: Linear = Self::FROM_AES_FIELD;

    /// The constant to add to the result of [`FROM_AES_FIELD_BACK`](Self::FROM_AES_FIELD_BACK).
    const BACK_ADDS: u8 = 0;

    /// Whether [`invert`](Self::invert) is one instruction, so that a cipher made
    /// of it is fast on one block too.
    const INVERTS_AT_ONCE: bool;

    /// Whether words that go to planes and back change places: word j of
    /// register i with word i of register j, in every 16 bytes.
    const TURNS: bool = false;

    /// A register.
    type Vector: Copy;

    /// A table of 256 bytes, made for look-ups; wipes itself when dropped.
    type Table: Send + Sync;

    /// A linear map of bytes, made for use.
    type Map: Copy + Zeroize + Send + Sync;

    /// A linear map of inverses, made for use.
    type InverseMap: Copy + Zeroize + Send + Sync;

    /// Makes a table.
    fn table(bytes: &[u8; 256]) -> Self::Table;

    /// Makes a map.
    fn map(map: &Linear) -> Self::Map;

    /// Makes a map from the field of AES for [`invert`](Self::invert).
    fn inverse_map(map: &Linear) -> Self::InverseMap;

    /// The same for [`invert_back`](Self::invert_back).
    fn inverse_map_back(map: &Linear) -> Self::InverseMap {
        Self::inverse_map(map)
    }

    /// Does `work` in a function compiled for this CPU, apart from its caller.
    fn enter<W: Work<Self>>(self, work: W);

    /// The first [`WIDE`](Self::WIDE) of `bytes`.
    fn load(self, bytes: &[u8]) -> Self::Vector;

    /// Writes the first [`WIDE`](Self::WIDE) of `bytes`.
    fn store(self, x: Self::Vector, bytes: &mut [u8]);

    /// `word` in every word; for a byte in every byte, [`four`] of it.
    fn splat(self, word: u32) -> Self::Vector;

    /// `words` in every 16 bytes.
    fn splat_words(self, words: [u32; 4]) -> Self::Vector;

    /// The bitwise sum.
    fn xor(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// The bitwise sum of three.
    fn xor3(self, x: Self::Vector, y: Self::Vector, z: Self::Vector) -> Self::Vector;

    /// The bitwise product.
    fn and(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// Every bit that is in `y` and not in `x`.
    fn and_not(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// Every bit that is in one or the other.
    fn or(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// The entry of `table` for every byte.
    fn look_up(self, table: &Self::Table, x: Self::Vector) -> Self::Vector;

    /// The entry of `table` for every byte, all below 16.
    fn look_up_nibble(self, table: &[u8; 16], x: Self::Vector) -> Self::Vector;

    /// The upper nibble of every byte, as a number below 16.
    fn upper_nibble(self, x: Self::Vector) -> Self::Vector;

    /// The lower nibble of every byte.
    fn lower_nibble(self, x: Self::Vector) -> Self::Vector;

    /// `map` of every byte.
    fn linear(self, map: &Self::Map, x: Self::Vector) -> Self::Vector;

    /// `map` of the inverse of every byte, zero for zero. The bytes have come
    /// through [`FROM_AES_FIELD`](Self::FROM_AES_FIELD).
    fn invert(self, map: &Self::InverseMap, x: Self::Vector) -> Self::Vector;

    /// The same where the order of the bytes does not matter: the result is
    /// [`moved`](Self::moved).
    #[inline(always)]
    fn invert_moving(self, map: &Self::InverseMap, x: Self::Vector) -> Self::Vector {
        self.invert(map, x)
    }

    /// The same for what is moved: the result is in order. The bytes have come
    /// through [`FROM_AES_FIELD_BACK`](Self::FROM_AES_FIELD_BACK) and
    /// [`BACK_ADDS`](Self::BACK_ADDS), and the map is from
    /// [`inverse_map_back`](Self::inverse_map_back).
    #[inline(always)]
    fn invert_back(self, map: &Self::InverseMap, x: Self::Vector) -> Self::Vector {
        self.invert(map, x)
    }

    /// The bytes in the order in which [`invert_moving`](Self::invert_moving)
    /// leaves them.
    #[inline(always)]
    fn moved(self, x: Self::Vector) -> Self::Vector {
        x
    }

    /// Inverse of [`moved`](Self::moved), a permutation of order 5.
    #[inline(always)]
    fn in_order(self, x: Self::Vector) -> Self::Vector {
        x
    }

    /// The first of `maps` of the lower half of every 16 bytes, and the second
    /// of the upper half.
    #[inline(always)]
    fn linear_by_half(self, maps: &[Self::Map; 2], x: Self::Vector) -> Self::Vector {
        let lower = self.splat_words([u32::MAX, u32::MAX, 0, 0]);
        let [a, b] = [self.linear(&maps[0], x), self.linear(&maps[1], x)];
        self.or(self.and(lower, a), self.and_not(lower, b))
    }

    /// The same with maps of inverses, as [`invert`](Self::invert).
    #[inline(always)]
    fn invert_by_half(self, maps: &[Self::InverseMap; 2], x: Self::Vector) -> Self::Vector {
        let lower = self.splat_words([u32::MAX, u32::MAX, 0, 0]);
        let [a, b] = [self.invert(&maps[0], x), self.invert(&maps[1], x)];
        self.or(self.and(lower, a), self.and_not(lower, b))
    }

    /// Sums of words modulo 2³².
    fn add_words(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// Words rotated left, each by a number from 0 to 31 of its own.
    fn rotate_each_word(self, x: Self::Vector, by: Self::Vector) -> Self::Vector;

    /// Words rotated left by a number from 0 to 31, in a time that does not
    /// depend on it.
    #[inline(always)]
    fn rotate_words(self, x: Self::Vector, by: u32) -> Self::Vector {
        self.rotate_each_word(x, self.splat(by))
    }

    /// In every 16 bytes, those of the lower half of `x` and of `y` in turn;
    /// then those of the upper half.
    fn interleave_bytes(self, x: Self::Vector, y: Self::Vector) -> [Self::Vector; 2];

    /// The same with pairs of bytes.
    fn interleave_pairs(self, x: Self::Vector, y: Self::Vector) -> [Self::Vector; 2];

    /// The same with words.
    fn interleave_words(self, x: Self::Vector, y: Self::Vector) -> [Self::Vector; 2];

    /// The same with pairs of words.
    fn interleave_halves(self, x: Self::Vector, y: Self::Vector) -> [Self::Vector; 2];

    /// In every 16 bytes, byte `from[i]` to byte i, and zero where that is
    /// [`NOTHING`].
    fn shuffle(self, x: Self::Vector, from: &[u8; 16]) -> Self::Vector;

    /// XTS: `tweak`·xⁱ for block i of eight registers.
    fn first_tweaks(self, tweak: &Block) -> [Self::Vector; 8];

    /// XTS: those of the eight registers after them.
    fn next_tweaks(self, tweaks: [Self::Vector; 8]) -> [Self::Vector; 8];

    /// CBC: a line of [`LINE`] bytes from each of as many sectors as a register
    /// has blocks, transposed: result j has block j of every line.
    fn load_lines(self, data: &[u8], lines: &Lines) -> [Self::Vector; 4];

    /// CBC: writes what [`load_lines`](Self::load_lines) reads, to the first
    /// `count` lines only.
    fn store_lines(self, x: [Self::Vector; 4], data: &mut [u8], lines: &Lines, count: usize);

    /// Blocks of 16 bytes to planes and back. In every 16 bytes, byte i of
    /// register j to byte j of register i.
    #[inline(always)]
    fn transpose(self, x: [Self::Vector; 16]) -> [Self::Vector; 16] {
        // One by one: a loop would turn the array in memory.
        let x = self.turn_bytes(x);
        let x = self.turn_bytes(x);
        let x = self.turn_bytes(x);
        self.turn_bytes(x)
    }

    /// A quarter of the way of [`transpose`](Self::transpose).
    #[inline(always)]
    fn turn_bytes(self, x: [Self::Vector; 16]) -> [Self::Vector; 16] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = x;
        let [a, i] = self.interleave_bytes(a, i);
        let [b, j] = self.interleave_bytes(b, j);
        let [c, k] = self.interleave_bytes(c, k);
        let [d, l] = self.interleave_bytes(d, l);
        let [e, m] = self.interleave_bytes(e, m);
        let [f, n] = self.interleave_bytes(f, n);
        let [g, o] = self.interleave_bytes(g, o);
        let [h, p] = self.interleave_bytes(h, p);
        [a, i, b, j, c, k, d, l, e, m, f, n, g, o, h, p]
    }

    /// Blocks of 16 bytes to words. In every 16 bytes, word k of register
    /// 4·i + j to word j of register i of result k, where
    /// [`to_planes`](Self::to_planes) finds a plane of the same order of blocks
    /// as [`transpose`](Self::transpose).
    #[inline(always)]
    fn rows_to_words(self, rows: [Self::Vector; 16]) -> [[Self::Vector; 4]; 4] {
        let mut words = [[rows[0]; 4]; 4];
        let mut i = 0;
        while i < 4 {
            let rows = [
                rows[4 * i],
                rows[4 * i + 1],
                rows[4 * i + 2],
                rows[4 * i + 3],
            ];
            let columns = self.transpose_squares(rows);
            let mut k = 0;
            while k < 4 {
                words[k][i] = columns[k];
                k += 1;
            }
            i += 1;
        }
        words
    }

    /// The same words as they are after planes: [`TURNS`](Self::TURNS).
    #[inline(always)]
    fn rows_to_turned_words(self, rows: [Self::Vector; 16]) -> [[Self::Vector; 4]; 4] {
        let mut turned = rows;
        if Self::TURNS {
            let mut i = 0;
            while i < 16 {
                turned[i] = rows[4 * (i % 4) + i / 4];
                i += 1;
            }
        }
        self.rows_to_words(turned)
    }

    /// Inverse of [`rows_to_words`](Self::rows_to_words).
    #[inline(always)]
    fn words_to_rows(self, words: [[Self::Vector; 4]; 4]) -> [Self::Vector; 16] {
        let mut rows = [words[0][0]; 16];
        let mut i = 0;
        while i < 4 {
            let columns = [words[0][i], words[1][i], words[2][i], words[3][i]];
            rows[4 * i..4 * i + 4].copy_from_slice(&self.transpose_squares(columns));
            i += 1;
        }
        rows
    }

    /// Inverse of both, each for half of the words. The first two words are as after planes, the
    /// others as [`rows_to_words`](Self::rows_to_words) gives them.
    #[inline(always)]
    fn half_turned_words_to_rows(self, words: [[Self::Vector; 4]; 4]) -> [Self::Vector; 16] {
        self.words_to_rows(words)
    }

    /// In every 16 bytes, word i of register j to word j of register i.
    #[inline(always)]
    fn transpose_squares(self, [p, q, r, s]: [Self::Vector; 4]) -> [Self::Vector; 4] {
        let [pr, pr_upper] = self.interleave_words(p, r);
        let [qs, qs_upper] = self.interleave_words(q, s);
        let [a, b] = self.interleave_words(pr, qs);
        let [c, d] = self.interleave_words(pr_upper, qs_upper);
        [a, b, c, d]
    }

    /// Blocks of 8 bytes to planes. In every 16 bytes of register j, byte
    /// 8·i + k to byte 2·j + i of plane k.
    #[inline(always)]
    fn halves_to_planes(self, mut x: [Self::Vector; 8]) -> [Self::Vector; 8] {
        let mut i = 0;
        while i < 8 {
            x[i] = self.shuffle(x[i], &INTERLEAVE_HALVES);
            i += 1;
        }
        self.transpose_pairs(x)
    }

    /// Inverse of [`halves_to_planes`](Self::halves_to_planes).
    #[inline(always)]
    fn planes_to_halves(self, x: [Self::Vector; 8]) -> [Self::Vector; 8] {
        let mut x = self.transpose_pairs(x);
        let mut i = 0;
        while i < 8 {
            x[i] = self.shuffle(x[i], &SEPARATE_HALVES);
            i += 1;
        }
        x
    }

    /// In every 16 bytes, pair i of register j to pair j of register i.
    #[inline(always)]
    fn transpose_pairs(self, x: [Self::Vector; 8]) -> [Self::Vector; 8] {
        let x = self.turn_pairs(x);
        let x = self.turn_pairs(x);
        self.turn_pairs(x)
    }

    /// A third of the way of [`transpose_pairs`](Self::transpose_pairs).
    #[inline(always)]
    fn turn_pairs(self, [a, b, c, d, e, f, g, h]: [Self::Vector; 8]) -> [Self::Vector; 8] {
        let [a, e] = self.interleave_pairs(a, e);
        let [b, f] = self.interleave_pairs(b, f);
        let [c, g] = self.interleave_pairs(c, g);
        let [d, h] = self.interleave_pairs(d, h);
        [a, e, b, f, c, g, d, h]
    }

    /// Four planes, the least significant first, to words: in every 16 bytes,
    /// byte 4·i + j of plane k to byte 4·j + k of register i.
    #[inline(always)]
    fn to_words(self, [a, b, c, d]: [Self::Vector; 4]) -> [Self::Vector; 4] {
        let [ab, ab_upper] = self.interleave_bytes(a, b);
        let [cd, cd_upper] = self.interleave_bytes(c, d);
        let [p, q] = self.interleave_pairs(ab, cd);
        let [r, s] = self.interleave_pairs(ab_upper, cd_upper);
        [p, q, r, s]
    }

    /// Inverse of [`to_words`](Self::to_words), but for [`TURNS`](Self::TURNS).
    #[inline(always)]
    fn to_planes(self, mut x: [Self::Vector; 4]) -> [Self::Vector; 4] {
        let mut i = 0;
        while i < 4 {
            x[i] = self.shuffle(x[i], &TRANSPOSE_WORDS);
            i += 1;
        }
        self.transpose_squares(x)
    }
}

/// Planes of a CPU that multiplies bytes.
#[cfg(target_arch = "x86_64")]
pub(crate) trait Products: Planes {
    /// The products in the field of AES.
    fn multiply(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;
}

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Byte offsets of cache lines in the data, as many of them used as a register
/// has blocks.
pub(crate) type Lines = [usize; 4];

/// For [`Planes::shuffle`]: a number that selects no byte, so the result is zero.
pub(crate) const NOTHING: u8 = 0x80;

/// Byte 4·i + j to 4·j + i.
const TRANSPOSE_WORDS: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

/// Byte 8·i + j to 2·j + i.
const INTERLEAVE_HALVES: [u8; 16] = [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15];

/// Byte 2·j + i to 8·i + j.
const SEPARATE_HALVES: [u8; 16] = [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15];

/// `byte` in every byte of a word.
pub(crate) const fn four(byte: u8) -> u32 {
    u32::from_ne_bytes([byte; 4])
}
