//! Serpent (Anderson, Biham, Knudsen 1998), bit-sliced and constant-time.
//!
//! The bit-slice form of section 3.2 of the paper: a block is four words, an
//! S-box a circuit over them, and no bit is ever permuted. On top, `LANES`
//! blocks are worked on together: word j of every block stands side by side,
//!
//! ```text
//! lanes[j] = [word j of block 0, word j of block 1, …]
//! ```
//!
//! and a round is one loop over lanes with no dependence from one to the next,
//! which the compiler turns into vector instructions of any width.

mod sbox;

use zeroize::Zeroize;

use self::sbox::{COMPLEMENTS, Words, forward, inverse};
use super::{Block, BlockCipher};
use crate::Backend;

const ROUNDS: usize = 32;

/// Lanes for what is left below `LANES` blocks, which is for each CPU to choose.
const FEW_LANES: usize = 8;

/// K₀ … K₃₂, each with the complements that the S-box before it left.
pub(crate) type RoundKeys = [Words; ROUNDS + 1];

/// Who compiles [`encrypt`] and [`decrypt`], for which CPU.
pub(crate) trait Cpu: Copy + Send + Sync + 'static {
    /// What does the work.
    const BACKEND: Backend;

    /// Does [`encrypt`].
    fn encrypt(self, keys: &RoundKeys, blocks: &mut [Block]);

    /// Does [`decrypt`].
    fn decrypt(self, keys: &RoundKeys, blocks: &mut [Block]);
}

/// Any CPU that the build is for.
#[derive(Clone, Copy)]
pub(crate) struct AnyCpu;

impl AnyCpu {
    /// A 512-byte sector.
    const LANES: usize = 32;
}

impl Cpu for AnyCpu {
    const BACKEND: Backend = Backend::Portable;

    fn encrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        encrypt::<{ Self::LANES }>(keys, blocks);
    }

    fn decrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        decrypt::<{ Self::LANES }>(keys, blocks);
    }
}

/// Serpent with a key of 128, 192 or 256 bits.
pub(crate) struct Serpent<C> {
    cpu: C,
    round_keys: RoundKeys,
}

impl<C: Cpu> Serpent<C> {
    /// The cipher under a key of 16, 24 or 32 bytes, section 4 of the paper.
    pub(crate) fn new(key: &[u8], cpu: C) -> Self {
        let mut padded = [0; 32];
        padded[..key.len()].copy_from_slice(key);
        if key.len() < padded.len() {
            padded[key.len()] = 1;
        }
        // The last eight words of the prekey, the oldest first.
        let mut recent: [u32; 8] =
            std::array::from_fn(|i| u32::from_le_bytes(padded.as_chunks().0[i]));
        let mut round_keys = [[0; 4]; ROUNDS + 1];
        for (i, word) in round_keys.as_flattened_mut().iter_mut().enumerate() {
            let sum = recent[0] ^ recent[3] ^ recent[5] ^ recent[7];
            *word = (sum ^ 0x9e37_79b9 ^ i as u32).rotate_left(11);
            recent.rotate_left(1);
            recent[7] = *word;
        }
        for (i, words) in round_keys.iter_mut().enumerate() {
            *words = substitute((ROUNDS + 3 - i) % 8, *words);
        }
        for i in 1..=ROUNDS {
            let left = COMPLEMENTS[(i - 1) % 8];
            let left = if i == ROUNDS { left } else { mix(left) };
            round_keys[i] = add(round_keys[i], left);
        }
        padded.zeroize();
        recent.zeroize();
        Self { cpu, round_keys }
    }
}

impl<C: Cpu> BlockCipher<16> for Serpent<C> {
    const BACKEND: Backend = C::BACKEND;
    const CONSTANT_TIME: bool = true;

    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        self.cpu.encrypt(&self.round_keys, blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        self.cpu.decrypt(&self.round_keys, blocks);
    }
}

impl<C> Drop for Serpent<C> {
    fn drop(&mut self) {
        self.round_keys.zeroize();
    }
}

/// Encrypts every block, `LANES` at a time, with the vectors of the function it is inlined in.
#[inline(always)]
pub(crate) fn encrypt<const LANES: usize>(keys: &RoundKeys, blocks: &mut [Block]) {
    in_lanes::<true, LANES>(keys, blocks);
}

/// Decrypts every block, `LANES` at a time, with the vectors of the function it is inlined in.
#[inline(always)]
pub(crate) fn decrypt<const LANES: usize>(keys: &RoundKeys, blocks: &mut [Block]) {
    in_lanes::<false, LANES>(keys, blocks);
}

/// S-box `i`, true to the paper.
fn substitute(i: usize, x: Words) -> Words {
    let y = match i {
        0 => forward::<0>(x),
        1 => forward::<1>(x),
        2 => forward::<2>(x),
        3 => forward::<3>(x),
        4 => forward::<4>(x),
        5 => forward::<5>(x),
        6 => forward::<6>(x),
        _ => forward::<7>(x),
    };
    add(y, COMPLEMENTS[i])
}

/// Cuts `blocks` into groups of `LANES`, then [`FEW_LANES`], the last one
/// filled up with zeros. No closures here: they would be compiled for the CPU
/// of the build instead of the caller's.
#[inline(always)]
fn in_lanes<const ENCRYPT: bool, const LANES: usize>(keys: &RoundKeys, blocks: &mut [Block]) {
    let (groups, rest) = blocks.as_chunks_mut::<LANES>();
    for group in groups {
        crypt_lanes::<ENCRYPT, LANES>(keys, group);
    }
    for group in rest.chunks_mut(FEW_LANES) {
        let mut padded = [[0; 16]; FEW_LANES];
        padded[..group.len()].copy_from_slice(group);
        crypt_lanes::<ENCRYPT, FEW_LANES>(keys, &mut padded);
        group.copy_from_slice(&padded[..group.len()]);
    }
}

#[inline(always)]
fn crypt_lanes<const ENCRYPT: bool, const N: usize>(keys: &RoundKeys, blocks: &mut [Block; N]) {
    if ENCRYPT {
        encrypt_lanes(keys, blocks);
    } else {
        decrypt_lanes(keys, blocks);
    }
}

type Lanes<const N: usize> = [[u32; N]; 4];

#[inline(always)]
fn encrypt_lanes<const N: usize>(keys: &RoundKeys, blocks: &mut [Block; N]) {
    let mut lanes = load(blocks);
    for octet in 0..ROUNDS / 8 {
        let keys: &[Words; 8] = &keys.as_chunks().0[octet];
        round::<0, N>(&mut lanes, keys);
        round::<1, N>(&mut lanes, keys);
        round::<2, N>(&mut lanes, keys);
        round::<3, N>(&mut lanes, keys);
        round::<4, N>(&mut lanes, keys);
        round::<5, N>(&mut lanes, keys);
        round::<6, N>(&mut lanes, keys);
        if octet < ROUNDS / 8 - 1 {
            round::<7, N>(&mut lanes, keys);
        }
    }
    let (before, last) = (keys[ROUNDS - 1], keys[ROUNDS]);
    each(&mut lanes, |x| add(forward::<7>(add(x, before)), last));
    store(&lanes, blocks);
}

#[inline(always)]
fn decrypt_lanes<const N: usize>(keys: &RoundKeys, blocks: &mut [Block; N]) {
    let mut lanes = load(blocks);
    let (before, last) = (keys[ROUNDS - 1], keys[ROUNDS]);
    each(&mut lanes, |x| add(inverse::<7>(add(x, last)), before));
    for octet in (0..ROUNDS / 8).rev() {
        let keys: &[Words; 8] = &keys.as_chunks().0[octet];
        if octet < ROUNDS / 8 - 1 {
            inverse_round::<7, N>(&mut lanes, keys);
        }
        inverse_round::<6, N>(&mut lanes, keys);
        inverse_round::<5, N>(&mut lanes, keys);
        inverse_round::<4, N>(&mut lanes, keys);
        inverse_round::<3, N>(&mut lanes, keys);
        inverse_round::<2, N>(&mut lanes, keys);
        inverse_round::<1, N>(&mut lanes, keys);
        inverse_round::<0, N>(&mut lanes, keys);
    }
    store(&lanes, blocks);
}

#[inline(always)]
fn round<const I: usize, const N: usize>(lanes: &mut Lanes<N>, keys: &[Words; 8]) {
    let key = keys[I];
    each(lanes, |x| mix(forward::<I>(add(x, key))));
}

#[inline(always)]
fn inverse_round<const I: usize, const N: usize>(lanes: &mut Lanes<N>, keys: &[Words; 8]) {
    let key = keys[I];
    each(lanes, |x| add(inverse::<I>(unmix(x)), key));
}

#[inline(always)]
fn each<const N: usize>(lanes: &mut Lanes<N>, map: impl Fn(Words) -> Words) {
    let [a, b, c, d] = lanes;
    for i in 0..N {
        [a[i], b[i], c[i], d[i]] = map([a[i], b[i], c[i], d[i]]);
    }
}

#[inline(always)]
fn add(x: Words, y: Words) -> Words {
    [x[0] ^ y[0], x[1] ^ y[1], x[2] ^ y[2], x[3] ^ y[3]]
}

/// The linear transformation, section 3.2.
#[inline(always)]
fn mix([mut a, mut b, mut c, mut d]: Words) -> Words {
    a = a.rotate_left(13);
    c = c.rotate_left(3);
    b ^= a ^ c;
    d ^= c ^ (a << 3);
    b = b.rotate_left(1);
    d = d.rotate_left(7);
    a ^= b ^ d;
    c ^= d ^ (b << 7);
    a = a.rotate_left(5);
    c = c.rotate_left(22);
    [a, b, c, d]
}

#[inline(always)]
fn unmix([mut a, mut b, mut c, mut d]: Words) -> Words {
    c = c.rotate_right(22);
    a = a.rotate_right(5);
    c ^= d ^ (b << 7);
    a ^= b ^ d;
    d = d.rotate_right(7);
    b = b.rotate_right(1);
    d ^= c ^ (a << 3);
    b ^= a ^ c;
    c = c.rotate_right(3);
    a = a.rotate_right(13);
    [a, b, c, d]
}

#[inline(always)]
fn load<const N: usize>(blocks: &[Block; N]) -> Lanes<N> {
    let mut lanes = [[0; N]; 4];
    for (i, block) in blocks.iter().enumerate() {
        for (j, word) in block.as_chunks().0.iter().enumerate() {
            lanes[j][i] = u32::from_le_bytes(*word);
        }
    }
    lanes
}

#[inline(always)]
fn store<const N: usize>(lanes: &Lanes<N>, blocks: &mut [Block; N]) {
    for (i, block) in blocks.iter_mut().enumerate() {
        for (j, word) in block.as_chunks_mut().0.iter_mut().enumerate() {
            *word = lanes[j][i].to_le_bytes();
        }
    }
}
