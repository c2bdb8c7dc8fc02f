//! ChaCha (Bernstein 2008; RFC 8439) with 12 or 20 rounds, and XChaCha
//! (draft-irtf-cfrg-xchacha-03), as streams to add to data.
//!
//! ```text
//! row a = constants    row b = key words 0 to 3    row c = key words 4 to 7
//! row d = block counter, nonce
//! ```
//!
//! A register holds one row of as many blocks as it has lanes: blocks of one
//! stream that follow each other. Four such groups of registers go side by side,
//! of one stream or of several, because the steps of one wait for each other.
//! XChaCha's subkeys are made a stream a lane.

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

/// Where XChaCha's streams go: units of `bytes` that lie `stride` apart.
#[derive(Clone, Copy)]
pub(crate) struct Units {
    pub(crate) stride: usize,
    pub(crate) bytes: usize,
}

/// Adds XChaCha's stream from its beginning to every unit of `data`: that of
/// the nonce of the unit, 16 bytes of which are in `nonces`, and of
/// `nonce_end`.
#[inline(always)]
pub(crate) fn add_xchacha<L: Lanes, const ROUNDS: usize>(
    lanes: L,
    key: &Key,
    nonces: &[Block],
    nonce_end: [u32; 2],
    units: Units,
    data: &mut [u8],
) {
    let mut subkeys = [[[0; 4]; 2]; GROUPS * MOST_WIDE];
    let at_once = GROUPS * L::WIDE;
    let groups = data.chunks_mut(at_once * units.stride);
    for (nonces, group) in nonces.chunks(at_once).zip(groups) {
        let subkeys: &mut [Key] = &mut subkeys[..nonces.len()];
        if nonces.len() > L::WIDE {
            hchacha::<L, ROUNDS, GROUPS>(lanes, key, nonces, subkeys);
        } else {
            hchacha::<L, ROUNDS, 1>(lanes, key, nonces, subkeys);
        }
        add_streams::<L, ROUNDS>(lanes, subkeys, nonce_end, units, group);
        subkeys.as_flattened_mut().as_flattened_mut().zeroize();
    }
}

/// Adds ChaCha's stream to every unit, under the key of the unit. The counter
/// has 32 bits: at most as many blocks.
#[inline(always)]
fn add_streams<L: Lanes, const ROUNDS: usize>(
    lanes: L,
    keys: &[Key],
    nonce_end: [u32; 2],
    units: Units,
    data: &mut [u8],
) {
    let registers = units.bytes.div_ceil(L::WIDE * BYTES);
    let nth = |nth: usize| {
        let (unit, register) = (nth / registers, nth % registers);
        let offset = register * L::WIDE * BYTES;
        let start = unit * units.stride + offset;
        Stretch {
            key: &keys[unit],
            row: [(register * L::WIDE) as u32, 0, nonce_end[0], nonce_end[1]],
            start,
            end: start + (units.bytes - offset).min(L::WIDE * BYTES),
        }
    };
    let (mut done, all) = (0, keys.len() * registers);
    while done < all {
        let from = done;
        done += match all - done {
            GROUPS.. => add_blocks::<L, ROUNDS, GROUPS>(lanes, |i| nth(from + i), data),
            2.. => add_blocks::<L, ROUNDS, 2>(lanes, |i| nth(from + i), data),
            _ => add_blocks::<L, ROUNDS, 1>(lanes, |i| nth(from + i), data),
        };
    }
}

/// What one register's blocks are added to.
struct Stretch<'a> {
    key: &'a Key,
    /// The counter of the first block, and the nonce.
    row: Words,
    /// Offset of the first byte.
    start: usize,
    /// Offset of the byte after the last.
    end: usize,
}

/// The four rows of one register's blocks.
type Rows<L> = [<L as Lanes>::Vector; 4];

/// Adds the blocks of `N` registers, and returns `N`.
#[inline(always)]
fn add_blocks<'a, L: Lanes, const ROUNDS: usize, const N: usize>(
    lanes: L,
    stretch: impl Fn(usize) -> Stretch<'a>,
    data: &mut [u8],
) -> usize {
    let mut counters = [[0; 16]; MOST_WIDE];
    for (i, counter) in counters.iter_mut().enumerate() {
        counter[0] = i as u8;
    }
    let counters = lanes.load(&counters);
    let start: [Rows<L>; N] = std::array::from_fn(|n| {
        let Stretch { key, row, .. } = stretch(n);
        [
            lanes.splat(CONSTANTS),
            lanes.splat(key[0]),
            lanes.splat(key[1]),
            lanes.add_words(lanes.splat(row), counters),
        ]
    });
    let mut state = start;
    rounds::<L, ROUNDS, N>(lanes, &mut state);
    for n in 0..N {
        let mut stream = [[0; 16]; 4 * MOST_WIDE];
        for (x, y) in state[n].iter_mut().zip(start[n]) {
            *x = lanes.add_words(*x, y);
        }
        lanes.store_columns(state[n], &mut stream);
        let Stretch { start, end, .. } = stretch(n);
        let (data, stream) = (&mut data[start..end], &stream[..4 * L::WIDE]);
        if let (blocks, []) = data.as_chunks_mut()
            && blocks.len() == stream.len()
        {
            let registers = blocks.chunks_exact_mut(L::WIDE);
            for (blocks, stream) in registers.zip(stream.chunks_exact(L::WIDE)) {
                let sum = lanes.xor(lanes.load(blocks), lanes.load(stream));
                lanes.store(sum, blocks);
            }
        } else {
            for (byte, stream) in data.iter_mut().zip(stream.as_flattened()) {
                *byte ^= stream;
            }
        }
    }
    N
}

#[inline(always)]
fn rounds<L: Lanes, const ROUNDS: usize, const N: usize>(lanes: L, state: &mut [Rows<L>; N]) {
    for _ in 0..ROUNDS / 2 {
        quarter_rounds::<L, N>(lanes, state);
        for [_, b, c, d] in &mut *state {
            (*b, *c, *d) = (lanes.turn_1(*b), lanes.turn_2(*c), lanes.turn_3(*d));
        }
        quarter_rounds::<L, N>(lanes, state);
        for [_, b, c, d] in &mut *state {
            (*b, *c, *d) = (lanes.turn_3(*b), lanes.turn_2(*c), lanes.turn_1(*d));
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

/// XChaCha's subkeys: rows a and d after the rounds, by `N` registers.
#[inline(always)]
fn hchacha<L: Lanes, const ROUNDS: usize, const N: usize>(
    lanes: L,
    key: &Key,
    nonces: &[Block],
    subkeys: &mut [Key],
) {
    let mut rows = [[0; 16]; GROUPS * MOST_WIDE];
    rows[..nonces.len()].copy_from_slice(nonces);
    let mut state: [Rows<L>; N] = std::array::from_fn(|n| {
        [
            lanes.splat(CONSTANTS),
            lanes.splat(key[0]),
            lanes.splat(key[1]),
            lanes.load(&rows[n * L::WIDE..]),
        ]
    });
    rounds::<L, ROUNDS, N>(lanes, &mut state);
    for (half, row) in [(0, 0), (1, 3)] {
        for (n, state) in state.iter().enumerate() {
            lanes.store(state[row], &mut rows[n * L::WIDE..]);
        }
        for (subkey, row) in subkeys.iter_mut().zip(&rows) {
            for (word, bytes) in subkey[half].iter_mut().zip(row.as_chunks().0) {
                *word = u32::from_le_bytes(*bytes);
            }
        }
    }
    rows.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::arch::{Avx2, Avx512};
    use crate::block::lanes::{AnyCpu, Work};
    use crate::reference;

    struct Add<'a, const ROUNDS: usize> {
        nonces: &'a [Block],
        units: Units,
        data: &'a mut [u8],
    }

    const KEY: [u8; 32] = *b"ChaCha needs a key of 32 bytes!!";

    impl<const ROUNDS: usize> Work for Add<'_, ROUNDS> {
        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) {
            let end = [5, 6];
            let key = key(&KEY);
            add_xchacha::<L, ROUNDS>(lanes, &key, self.nonces, end, self.units, self.data);
        }
    }

    /// Units of any length, alone and in groups, equal the reference's, and
    /// what lies between them stays.
    fn equals_the_reference<const ROUNDS: usize>(lanes: impl Lanes) {
        for bytes in [1, 15, 16, 63, 64, 65, 255, 256, 257, 496, 1008, 1100, 4080] {
            for count in [1, 2, 3, 4, 5, 15, 16, 17, 33] {
                let stride = bytes + 16;
                let nonces: Vec<Block> =
                    (0..count).map(|i: u128| (i << 77).to_le_bytes()).collect();
                let plain: Vec<u8> = (0..nonces.len() * stride)
                    .map(|i| ((i * i) >> 3) as u8)
                    .collect();
                let mut expected = plain.clone();
                for (nonce, unit) in nonces.iter().zip(expected.chunks_mut(stride)) {
                    let mut iv = [0; 32];
                    iv[..16].copy_from_slice(nonce);
                    (iv[16], iv[20]) = (5, 6);
                    reference::add_xchacha(ROUNDS, &KEY, &iv, &mut unit[..bytes]);
                }
                let mut data = plain;
                lanes.enter(Add::<ROUNDS> {
                    nonces: &nonces,
                    units: Units { stride, bytes },
                    data: &mut data,
                });
                assert!(data == expected, "{count} × {bytes}");
            }
        }
    }

    fn check(lanes: Option<impl Lanes>, name: &str) {
        let Some(lanes) = lanes else {
            println!("skipped: this CPU has no {name}");
            return;
        };
        equals_the_reference::<12>(lanes);
        equals_the_reference::<20>(lanes);
    }

    #[test]
    fn portable() {
        check(Some(AnyCpu), "portable code");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx2() {
        check(Avx2::detect(), "AVX2");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx512() {
        check(Avx512::detect(), "AVX-512");
    }
}
