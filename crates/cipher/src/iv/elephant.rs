//! `elephant`: BitLocker's CBC, which mixes the whole sector before it is
//! encrypted.
//!
//! ```text
//! sector key = E[K](s) E[K](s′)     s the byte offset, 64 bits, little endian,
//!                                   s′ the same with 128 as its last byte
//! data       = B(A(plaintext ⊕ sector key, repeated))
//! ```
//!
//! Undone, diffuser A is `dᵢ += dᵢ₋₂ ⊕ (dᵢ₋₅ <<< Aᵢ)` for every word in turn,
//! five times over, and B is `dᵢ += dᵢ₊₂ ⊕ (dᵢ₊₅ <<< Bᵢ)`, three times; indices
//! modulo the number of words, rotations modulo 4.
//!
//! A register has the same word of as many sectors as it has words.
//!
//! Done, the diffusers subtract, from the last word to the first. Subtracting
//! from a word is adding to its complement, and the sum `x ⊕ (y <<< n)` of two
//! complements is that of the words. So the words of a sector that is encrypted
//! are complemented and in reverse, and both ways add.
//!
//! Source: Ferguson, AES-CBC + Elephant diffuser, 2006, section 4.

use super::{Counted, Ivs};
use crate::block::registers::{MOST_LANES, Register, Registers};
use crate::block::{Block, Keyed};
use crate::work::Work;
use crate::{IvSector, SectorLayout};

/// Sectors whose keys are made at once: their blocks fill the slices of AES.
const KEYED: usize = 64;

/// Words of the largest sector.
const MOST_WORDS: usize = 4096 / 4;

/// Words of a sector in most volumes. Clearing room for the largest would take
/// a small request longer than its own.
const FEW_WORDS: usize = 512 / 4;

/// IVs of `eboiv`, with the Elephant diffuser.
pub(crate) struct Elephant<R> {
    offsets: Counted,
    sector_key: Keyed<16>,
    layout: SectorLayout,
    cpu: R,
}

impl<R: Registers> Elephant<R> {
    /// `sector_key` is AES under the diffuser's key.
    pub(crate) fn new(sector_key: Keyed<16>, layout: SectorLayout, cpu: R) -> Self {
        Self {
            offsets: Counted::eboiv(layout),
            sector_key,
            layout,
            cpu,
        }
    }

    fn diffuse<const ENCRYPT: bool>(&self, mut first: IvSector, data: &mut [u8]) {
        let sector_bytes = self.layout.size.bytes();
        for data in data.chunks_mut(KEYED * sector_bytes) {
            let sectors = data.len() / sector_bytes;
            let mut keys = [[[0; 16]; 2]; KEYED];
            let keys = &mut keys[..sectors];
            for (nth, [even, odd]) in keys.iter_mut().enumerate() {
                let n = first.advance(nth as u64, self.layout).get();
                let offset = n.wrapping_mul(sector_bytes as u64).to_le_bytes();
                even[..8].copy_from_slice(&offset);
                odd[..8].copy_from_slice(&offset);
                odd[15] = 0x80;
            }
            self.sector_key.encrypt_blocks(keys.as_flattened_mut());
            let words = sector_bytes / 4;
            if words <= FEW_WORDS {
                self.cpu
                    .enter(Diffuse::<ENCRYPT, FEW_WORDS> { words, keys, data });
            } else {
                self.cpu
                    .enter(Diffuse::<ENCRYPT, MOST_WORDS> { words, keys, data });
            }
            first = first.advance(sectors as u64, self.layout);
        }
    }
}

impl<R: Registers, const N: usize> Ivs<N> for Elephant<R> {
    fn fill(&self, first: IvSector, ivs: &mut [[u8; N]]) {
        self.offsets.fill(first, ivs);
    }

    fn through_mode(&self) -> bool {
        true
    }

    fn before_encryption(&self, first: IvSector, data: &mut [u8], ivs: &mut [[u8; N]]) {
        self.diffuse::<true>(first, data);
        self.offsets.fill(first, ivs);
    }

    fn after_decryption(&self, first: IvSector, data: &mut [u8]) {
        self.diffuse::<false>(first, data);
    }
}

/// Mixes or unmixes whole sectors of `words` words, `ROOM` at most; `keys` has
/// the key of each.
struct Diffuse<'a, const ENCRYPT: bool, const ROOM: usize> {
    words: usize,
    keys: &'a [[Block; 2]],
    data: &'a mut [u8],
}

/// The same word of every sector: a register, or four words before they are
/// transposed.
type Word = [Block; MOST_LANES];

/// Words of several sectors.
#[repr(align(64))]
struct Room<const WORDS: usize>([Word; WORDS]);

impl<R: Registers, const ENCRYPT: bool, const ROOM: usize> Work<R> for Diffuse<'_, ENCRYPT, ROOM> {
    #[inline(always)]
    fn run(self, cpu: R) {
        let mut room = Room([[[0; 16]; MOST_LANES]; ROOM]);
        let words = &mut room.0[..self.words];
        let sector_bytes = self.words * 4;
        let sectors = 4 * R::LANES;
        for (data, keys) in self
            .data
            .chunks_mut(sectors * sector_bytes)
            .zip(self.keys.chunks(sectors))
        {
            for (nth, (sector, key)) in data.chunks_exact(sector_bytes).zip(keys).enumerate() {
                let key = key.map(u128::from_ne_bytes);
                let mask = if ENCRYPT {
                    key.map(|half| !half)
                } else {
                    [0; 2]
                };
                gather::<ENCRYPT>(words, nth, sector, mask);
            }
            transpose::<R, false, ENCRYPT>(cpu, words);
            if ENCRYPT {
                (0..5).for_each(|_| ahead::<R, 13, 9>(cpu, words));
                (0..3).for_each(|_| behind::<R, 25, 10>(cpu, words));
            } else {
                (0..3).for_each(|_| ahead::<R, 10, 25>(cpu, words));
                (0..5).for_each(|_| behind::<R, 9, 13>(cpu, words));
            }
            transpose::<R, ENCRYPT, false>(cpu, words);
            for (nth, (sector, key)) in data.chunks_exact_mut(sector_bytes).zip(keys).enumerate() {
                let key = key.map(u128::from_ne_bytes);
                let mask = if ENCRYPT { [!0; 2] } else { key };
                scatter::<ENCRYPT>(words, nth, sector, mask);
            }
        }
    }
}

/// Where the four words of block `block` of sector `nth` are before they are
/// transposed, of `blocks`: the row, and the lane.
#[inline(always)]
const fn place<const REVERSE: bool>(nth: usize, block: usize, blocks: usize) -> (usize, usize) {
    let block = if REVERSE { blocks - 1 - block } else { block };
    (4 * block + nth % 4, nth / 4)
}

/// Adds `mask` to the blocks of sector `nth`, and puts them in their places.
#[inline(always)]
fn gather<const REVERSE: bool>(words: &mut [Word], nth: usize, sector: &[u8], mask: [u128; 2]) {
    let (blocks, _) = sector.as_chunks();
    for (i, block) in blocks.iter().enumerate() {
        let (row, lane) = place::<REVERSE>(nth, i, blocks.len());
        words[row][lane] = (u128::from_ne_bytes(*block) ^ mask[i % 2]).to_ne_bytes();
    }
}

/// Takes the blocks of sector `nth` from their places, and adds `mask` to them.
#[inline(always)]
fn scatter<const REVERSE: bool>(words: &[Word], nth: usize, sector: &mut [u8], mask: [u128; 2]) {
    let (blocks, _) = sector.as_chunks_mut();
    let count = blocks.len();
    for (i, block) in blocks.iter_mut().enumerate() {
        let (row, lane) = place::<REVERSE>(nth, i, count);
        *block = (u128::from_ne_bytes(words[row][lane]) ^ mask[i % 2]).to_ne_bytes();
    }
}

/// Exchanges word i of row j with word j of row i, in every four rows and every
/// lane. The rows are taken in reverse with `FROM_LAST`, and left in reverse with
/// `TO_LAST`.
#[inline(always)]
fn transpose<R: Registers, const FROM_LAST: bool, const TO_LAST: bool>(cpu: R, words: &mut [Word]) {
    for rows in words.as_chunks_mut::<4>().0 {
        let nth = |i: usize, reverse| if reverse { 3 - i } else { i };
        let x = std::array::from_fn(|i| cpu.load(rows[nth(i, FROM_LAST)].as_flattened()));
        for (i, x) in cpu.transpose(x).into_iter().enumerate() {
            cpu.store(x, rows[nth(i, TO_LAST)].as_flattened_mut());
        }
    }
}

#[inline(always)]
fn at<R: Registers>(cpu: R, words: &[Word], i: usize) -> Register<R> {
    // A sector's number of words is a power of two, so a mask is the modulus.
    Register::load(cpu, &words[i & (words.len() - 1)])
}

/// Adds `dᵢ₊₂ ⊕ (dᵢ₊₅ <<< n)` to every word in turn, n by `ODD1` and `ODD3` in
/// odd places.
#[inline(always)]
fn ahead<R: Registers, const ODD1: i32, const ODD3: i32>(cpu: R, words: &mut [Word]) {
    let mut d: [_; 4] = std::array::from_fn(|i| at(cpu, words, i));
    for i in (0..words.len()).step_by(4) {
        let next: [_; 4] = std::array::from_fn(|k| at(cpu, words, i + 4 + k));
        let after = at(cpu, words, i + 8);
        put(words, i, d[0], d[2] ^ next[1]);
        put(words, i + 1, d[1], d[3] ^ rotate::<R, ODD1>(next[2]));
        put(words, i + 2, d[2], next[0] ^ next[3]);
        put(words, i + 3, d[3], next[1] ^ rotate::<R, ODD3>(after));
        d = next;
    }
}

/// Adds `dᵢ₋₂ ⊕ (dᵢ₋₅ <<< n)` to every word in turn, n by `EVEN0` and `EVEN2` in
/// even places.
#[inline(always)]
fn behind<R: Registers, const EVEN0: i32, const EVEN2: i32>(cpu: R, words: &mut [Word]) {
    let count = words.len();
    let mut d: [_; 4] = std::array::from_fn(|k| at(cpu, words, count - 4 + k));
    let mut before = at(cpu, words, count - 5);
    for i in (0..count).step_by(4) {
        let now: [_; 4] = std::array::from_fn(|k| at(cpu, words, i + k));
        let first = put(words, i, now[0], d[2] ^ rotate::<R, EVEN0>(before));
        let second = put(words, i + 1, now[1], d[3] ^ d[0]);
        let third = put(words, i + 2, now[2], first ^ rotate::<R, EVEN2>(d[1]));
        let fourth = put(words, i + 3, now[3], second ^ d[2]);
        before = d[3];
        d = [first, second, third, fourth];
    }
}

/// Puts the sum of both into word `i`.
#[inline(always)]
fn put<R: Registers>(
    words: &mut [Word],
    i: usize,
    word: Register<R>,
    other: Register<R>,
) -> Register<R> {
    let sum = word.with(word.cpu.add_words(word.x, other.x));
    sum.store(&mut words[i]);
    sum
}

#[inline(always)]
fn rotate<R: Registers, const BY: i32>(word: Register<R>) -> Register<R> {
    word.with(word.cpu.rotate::<BY>(word.x))
}
