//! Inputs out of a corpus, spoilt in a few places: without knowledge of the
//! code that they reach, but of what headers are made of.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Edges of numbers, as headers and as JSON write them.
const NUMBERS: [u64; 16] = [
    0,
    1,
    7,
    31,
    32,
    511,
    513,
    4096,
    16_384,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_fe00,
    0xffff_ffff_ffff_ffff,
];

/// Words of the formats.
const WORDS: [&str; 39] = [
    "{}",
    "[]",
    "\"\"",
    "null",
    "true",
    "-1",
    "1e9",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\u0000",
    "\"dynamic\"",
    "\"linear\"",
    "\"crypt\"",
    "\"pbkdf2\"",
    "\"argon2id\"",
    "\"luks2\"",
    "\"keyslots\":",
    "\"segments\":",
    "\"offset\":",
    "\"size\":",
    "\"0\"",
    "\"1\"",
    "\"flags\":",
    "\"backup-final\"",
    "\"mandatory\":",
    "\"cryptmark-reencrypt\"",
    "\"requirements\":",
    "\"priority\":",
    "aes",
    "-cbc",
    "-essiv:sha256",
    "capi:",
    "sha512",
    "\n",
];

/// The longest input: a second copy of a LUKS2 header begins within.
const LONGEST: usize = 20_000;

/// Makes inputs.
pub struct Mutation<'a> {
    corpus: &'a [Vec<u8>],
    random: Xoshiro256PlusPlus,
}

impl<'a> Mutation<'a> {
    /// Out of `corpus`, which is not empty; the same for the same `seed`.
    pub fn new(corpus: &'a [Vec<u8>], seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { corpus, random }
    }

    /// Another input, in `input`.
    pub fn next(&mut self, input: &mut Vec<u8>) {
        input.clear();
        let corpus = self.corpus;
        input.extend_from_slice(&corpus[self.below(corpus.len())]);
        for _ in 0..=self.below(4) {
            self.spoil(input);
        }
        input.truncate(LONGEST);
    }

    fn below(&mut self, most: usize) -> usize {
        (self.random.next_u64() % most.max(1) as u64) as usize
    }

    fn range(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let from = self.below(input.len() + 1);
        let length = 1 << self.below(8);
        from..(from + self.below(length)).min(input.len())
    }

    fn spoil(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len());
        let number = NUMBERS[self.below(NUMBERS.len())];
        match self.below(11) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = self.random.next_u64() as u8;
                }
            }
            2 => {
                // Big endian, in 2, 4 or 8 bytes, where numbers are: at even places.
                let length = 2 << self.below(3);
                if let Some(field) = input.get_mut(at & !1..(at & !1) + length) {
                    field.copy_from_slice(&number.to_be_bytes()[8 - length..]);
                }
            }
            3 | 4 => {
                let range = self.digits(input, at);
                input.splice(range, number.to_string().into_bytes());
            }
            5 | 6 => {
                let word = WORDS[self.below(WORDS.len())].bytes();
                let range = match self.below(3) {
                    0 => at..at,
                    _ => self.word(input, at),
                };
                input.splice(range, word);
            }
            7 => {
                let range = self.range(input);
                input.drain(range);
            }
            8 => {
                let range = self.range(input);
                let piece = input[range].to_vec();
                input.splice(at..at, piece);
            }
            9 => {
                // The same again and again: deep nesting, long lists.
                let range = self.range(input);
                let most = LONGEST / range.len().max(1);
                let piece = input[range].repeat(self.below(most + 1));
                input.splice(at..at, piece);
            }
            _ => {
                let other = &self.corpus[self.below(self.corpus.len())];
                let range = self.range(other);
                let own = at..(at + range.len()).min(input.len());
                input.splice(own, other[range].iter().copied());
            }
        }
    }

    /// The next digits behind `at`.
    fn digits(&mut self, input: &[u8], at: usize) -> std::ops::Range<usize> {
        run(input, at, |byte| byte.is_ascii_digit())
    }

    /// The next string or word behind `at`.
    fn word(&mut self, input: &[u8], at: usize) -> std::ops::Range<usize> {
        run(input, at, |byte| !b"{}[],:".contains(&byte))
    }
}

/// The first run of bytes that are `wanted` behind `at`.
fn run(input: &[u8], at: usize, wanted: impl Fn(u8) -> bool) -> std::ops::Range<usize> {
    let rest = &input[at..];
    let from = rest.iter().position(|&byte| wanted(byte));
    let from = at + from.unwrap_or(rest.len());
    let length = input[from..].iter().position(|&byte| !wanted(byte));
    from..from + length.unwrap_or(input.len() - from)
}
