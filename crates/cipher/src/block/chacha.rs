//! ChaCha (Bernstein 2008; RFC 8439) with 12 or 20 rounds, and XChaCha
//! (draft-irtf-cfrg-xchacha-03), as streams to add to data.
//!
//! ```text
//! row a = constants    row b = key words 0 to 3    row c = key words 4 to 7
//! row d = block counter, nonce
//! ```
//!
//! A register holds one row of as many blocks as it has lanes. Four groups of
//! registers go side by side, because the steps of one wait for each other.

use zeroize::Zeroize;

use super::Block;
use super::lanes::{Lanes, MOST_WIDE};

/// Bytes of a ChaCha block.
const BYTES: usize = 64;

/// Groups of registers side by side.
const GROUPS: usize = 4;

/// "expand 32-byte k".
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// A row.
type Words = [u32; 4];

/// The two halves of a key; wiping it is the holder's.
pub(crate) type Key = [Words; 2];

/// The key `bytes`.
pub(crate) fn key(bytes: &[u8; 32]) -> Key {
    let mut key = [[0; 4]; 2];
    for (word, bytes) in key.as_flattened_mut().iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    key
}

/// Adds XChaCha's stream from its beginning to `data`.
#[inline(always)]
pub(crate) fn add_xchacha<L: Lanes, const ROUNDS: usize>(
    lanes: L,
    key: &Key,
    nonce: &[u8; 24],
    data: &mut [u8],
) {
    let mut words = [0; 6];
    for (word, bytes) in words.iter_mut().zip(nonce.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let [a, b, c, d, e, f] = words;
    let mut subkey = hchacha::<ROUNDS>(key, [a, b, c, d]);
    add_chacha::<L, ROUNDS>(lanes, &subkey, [0, 0, e, f], data);
    subkey.zeroize();
}

/// Adds ChaCha's stream to `data`, from the block with the counter and nonce
/// in `row`. The counter is the first word: at most 2³² blocks.
#[inline(always)]
fn add_chacha<L: Lanes, const ROUNDS: usize>(lanes: L, key: &Key, row: Words, data: &mut [u8]) {
    let mut row = row;
    let mut groups = data.chunks_exact_mut(GROUPS * L::WIDE * BYTES);
    for group in &mut groups {
        add_blocks::<L, ROUNDS, GROUPS>(lanes, key, row, group.as_chunks_mut().0);
        row[0] = row[0].wrapping_add((GROUPS * L::WIDE) as u32);
    }
    let rest = groups.into_remainder();
    if !rest.is_empty() {
        let mut padded = [[0; 16]; GROUPS * MOST_WIDE * BYTES / 16];
        padded.as_flattened_mut()[..rest.len()].copy_from_slice(rest);
        if rest.len() > L::WIDE * BYTES {
            add_blocks::<L, ROUNDS, GROUPS>(lanes, key, row, &mut padded);
        } else {
            add_blocks::<L, ROUNDS, 1>(lanes, key, row, &mut padded);
        }
        rest.copy_from_slice(&padded.as_flattened()[..rest.len()]);
    }
}

/// The four rows of one register's blocks.
type Rows<L> = [<L as Lanes>::Vector; 4];

#[inline(always)]
fn add_blocks<L: Lanes, const ROUNDS: usize, const N: usize>(
    lanes: L,
    key: &Key,
    row: Words,
    data: &mut [Block],
) {
    let mut counters = [[0; 16]; MOST_WIDE];
    for (i, counter) in counters.iter_mut().enumerate() {
        counter[0] = i as u8;
    }
    let (b, c) = (lanes.splat(key[0]), lanes.splat(key[1]));
    let counters = lanes.add_words(lanes.splat(row), lanes.load(&counters));
    let mut start = [[lanes.splat(CONSTANTS), b, c, counters]; N];
    for n in 1..N {
        let step = lanes.splat([L::WIDE as u32, 0, 0, 0]);
        start[n][3] = lanes.add_words(start[n - 1][3], step);
    }
    let mut state = start;
    for _ in 0..ROUNDS / 2 {
        quarter_rounds::<L, N>(lanes, &mut state);
        for [_, b, c, d] in &mut state {
            (*b, *c, *d) = (lanes.turn_1(*b), lanes.turn_2(*c), lanes.turn_3(*d));
        }
        quarter_rounds::<L, N>(lanes, &mut state);
        for [_, b, c, d] in &mut state {
            (*b, *c, *d) = (lanes.turn_3(*b), lanes.turn_2(*c), lanes.turn_1(*d));
        }
    }
    for n in 0..N {
        let mut stream = [[0; 16]; 4 * MOST_WIDE];
        let mut rows = state[n];
        for (x, y) in rows.iter_mut().zip(start[n]) {
            *x = lanes.add_words(*x, y);
        }
        lanes.store_columns(rows, &mut stream);
        for i in 0..4 {
            let data = &mut data[4 * n * L::WIDE + i * L::WIDE..];
            let sum = lanes.xor(lanes.load(data), lanes.load(&stream[i * L::WIDE..]));
            lanes.store(sum, data);
        }
    }
}

/// A quarter round in every column of every block.
#[inline(always)]
fn quarter_rounds<L: Lanes, const N: usize>(lanes: L, state: &mut [Rows<L>; N]) {
    for [a, b, _, d] in &mut *state {
        *a = lanes.add_words(*a, *b);
        *d = lanes.rotate_16(lanes.xor(*d, *a));
    }
    for [_, b, c, d] in &mut *state {
        *c = lanes.add_words(*c, *d);
        *b = lanes.rotate_12(lanes.xor(*b, *c));
    }
    for [a, b, _, d] in &mut *state {
        *a = lanes.add_words(*a, *b);
        *d = lanes.rotate_8(lanes.xor(*d, *a));
    }
    for [_, b, c, d] in &mut *state {
        *c = lanes.add_words(*c, *d);
        *b = lanes.rotate_7(lanes.xor(*b, *c));
    }
}

/// XChaCha's subkey: rows a and d after the rounds.
fn hchacha<const ROUNDS: usize>(key: &Key, nonce: Words) -> Key {
    let [mut a, mut b, mut c, mut d] = [CONSTANTS, key[0], key[1], nonce];
    for _ in 0..ROUNDS / 2 {
        for turn in [0, 1] {
            for (i, a) in a.iter_mut().enumerate() {
                let (j, k, l) = ((i + turn) % 4, (i + 2 * turn) % 4, (i + 3 * turn) % 4);
                for (first, second) in [(16, 12), (8, 7)] {
                    *a = a.wrapping_add(b[j]);
                    d[l] = (d[l] ^ *a).rotate_left(first);
                    c[k] = c[k].wrapping_add(d[l]);
                    b[j] = (b[j] ^ c[k]).rotate_left(second);
                }
            }
        }
    }
    b.zeroize();
    c.zeroize();
    [a, d]
}
