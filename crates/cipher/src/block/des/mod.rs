//! DES and Triple DES (FIPS 46-3), bit-sliced and constant-time.
//!
//! Bit i of 64 blocks stands in one word, and `N` such words side by side are
//! worked on together:
//!
//! ```text
//! plane[i][n] = [bit i of block n, bit i of block N + n, bit i of block 2N + n, …]
//! ```
//!
//! The permutations IP, E and P are then mere names of planes, an S-box is a
//! circuit of gates over words, and a round is loops over `n` that the compiler
//! turns into vector instructions of any width. A pass over 64·N blocks costs
//! the same however few of them are asked for.
//!
//! DES keys can be found by trying them all, and 64-bit blocks repeat after
//! 2³² of them: both ciphers are here to read old data, not to protect new.

mod sbox;

use zeroize::Zeroize;

use super::BlockCipher;
use crate::Backend;

/// One block of DES.
pub(crate) type Block = [u8; 8];

/// Rounds of one DES.
const ROUNDS: usize = 16;

/// The 48 bits that a round adds, each as a word of equal bits.
pub(crate) type RoundKey = [u64; 48];

/// Who compiles [`encrypt`] and [`decrypt`], for which CPU.
pub(crate) trait Cpu: Copy + Send + Sync + 'static {
    /// What does the work.
    const BACKEND: Backend;

    /// Does [`encrypt`].
    fn encrypt(self, keys: &[RoundKey], blocks: &mut [Block]);

    /// Does [`decrypt`].
    fn decrypt(self, keys: &[RoundKey], blocks: &mut [Block]);
}

/// Any CPU that the build is for.
#[derive(Clone, Copy)]
pub(crate) struct AnyCpu;

impl AnyCpu {
    /// Two vectors of SSE2 or NEON: loops of only two words the compiler leaves
    /// without vectors.
    const WORDS: usize = 4;
}

impl Cpu for AnyCpu {
    const BACKEND: Backend = Backend::Portable;

    fn encrypt(self, keys: &[RoundKey], blocks: &mut [Block]) {
        encrypt::<{ Self::WORDS }>(keys, blocks);
    }

    fn decrypt(self, keys: &[RoundKey], blocks: &mut [Block]) {
        decrypt::<{ Self::WORDS }>(keys, blocks);
    }
}

/// DES with a key of 64 bits, of which it uses 56.
pub(crate) struct Des<C> {
    cpu: C,
    round_keys: Box<[RoundKey; ROUNDS]>,
}

impl<C: Cpu> Des<C> {
    /// The cipher under a key of 8 bytes, whose parity bits are ignored.
    pub(crate) fn new(key: &[u8], cpu: C) -> Self {
        let mut round_keys = Box::new([[0; 48]; ROUNDS]);
        schedule(key, &mut round_keys[..]);
        Self { cpu, round_keys }
    }
}

impl<C: Cpu> BlockCipher<8> for Des<C> {
    const BACKEND: Backend = C::BACKEND;
    const CONSTANT_TIME: bool = true;
    const SIDE_BY_SIDE: usize = 512;

    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        self.cpu.encrypt(&self.round_keys[..], blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        self.cpu.decrypt(&self.round_keys[..], blocks);
    }
}

impl<C> Drop for Des<C> {
    fn drop(&mut self) {
        self.round_keys.as_flattened_mut().zeroize();
    }
}

/// Triple DES with two or three keys: encryption, decryption and encryption.
pub(crate) struct TripleDes<C> {
    cpu: C,
    round_keys: Box<[RoundKey; 3 * ROUNDS]>,
}

impl<C: Cpu> TripleDes<C> {
    /// The cipher under a key of 24 bytes, or of 16 where the third key of DES
    /// is the first once more; parity bits are ignored.
    pub(crate) fn new(key: &[u8], cpu: C) -> Self {
        let mut round_keys = Box::new([[0; 48]; 3 * ROUNDS]);
        let third = if key.len() == 16 { 0 } else { 16 };
        for (des, first_byte) in [0, 8, third].into_iter().enumerate() {
            let rounds = &mut round_keys[des * ROUNDS..][..ROUNDS];
            schedule(&key[first_byte..][..8], rounds);
            if des == 1 {
                rounds.reverse();
            }
        }
        Self { cpu, round_keys }
    }
}

impl<C: Cpu> BlockCipher<8> for TripleDes<C> {
    const BACKEND: Backend = C::BACKEND;
    const CONSTANT_TIME: bool = true;
    const SIDE_BY_SIDE: usize = 512;

    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        self.cpu.encrypt(&self.round_keys[..], blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        self.cpu.decrypt(&self.round_keys[..], blocks);
    }
}

impl<C> Drop for TripleDes<C> {
    fn drop(&mut self) {
        self.round_keys.as_flattened_mut().zeroize();
    }
}

/// Encrypts every block, 64·`N` at a time, with the vectors of the function it
/// is inlined in; `keys` are those of DES three times for Triple DES.
#[inline(always)]
pub(crate) fn encrypt<const N: usize>(keys: &[RoundKey], blocks: &mut [Block]) {
    in_passes::<true, N>(keys, blocks);
}

/// Undoes [`encrypt`] with the same keys.
#[inline(always)]
pub(crate) fn decrypt<const N: usize>(keys: &[RoundKey], blocks: &mut [Block]) {
    in_passes::<false, N>(keys, blocks);
}

/// The key schedule of FIPS 46-3, appendix 1, as places in the key: nothing is
/// loaded or decided by its bits.
fn schedule(key: &[u8], round_keys: &mut [RoundKey]) {
    /// Left shifts up to and including each round.
    const SHIFTS: [usize; ROUNDS] = [1, 2, 4, 6, 8, 10, 12, 14, 15, 17, 19, 21, 23, 25, 27, 28];
    #[rustfmt::skip]
    const PC1: [usize; 56] = [
        57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18,
        10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
        63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22,
        14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4,
    ];
    #[rustfmt::skip]
    const PC2: [usize; 48] = [
        14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10,
        23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2,
        41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48,
        44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
    ];
    for (round_key, shifts) in round_keys.iter_mut().zip(SHIFTS) {
        for (word, place) in round_key.iter_mut().zip(PC2) {
            let (half, place) = ((place - 1) / 28, (place - 1) % 28);
            let bit = PC1[28 * half + (place + shifts) % 28] - 1;
            *word = u64::from(key[bit / 8] >> (7 - bit % 8) & 1).wrapping_neg();
        }
    }
}

/// 64 rows of `N` words: blocks before they are transposed, planes after.
type Rows<const N: usize> = [[u64; N]; 64];

/// The planes of half a block.
type Half<const N: usize> = [[u64; N]; 32];

/// No closures here: they would be compiled for the CPU of the build instead
/// of the caller's.
#[inline(always)]
fn in_passes<const ENCRYPT: bool, const N: usize>(keys: &[RoundKey], blocks: &mut [Block]) {
    for group in blocks.chunks_mut(64 * N) {
        let mut padded = [[[0; 8]; N]; 64];
        padded.as_flattened_mut()[..group.len()].copy_from_slice(group);
        pass::<ENCRYPT, N>(keys, &mut padded);
        group.copy_from_slice(&padded.as_flattened()[..group.len()]);
    }
}

#[inline(always)]
fn pass<const ENCRYPT: bool, const N: usize>(keys: &[RoundKey], blocks: &mut [[Block; N]; 64]) {
    let mut rows = [[0; N]; 64];
    for (row, blocks) in rows.iter_mut().zip(&*blocks) {
        for n in 0..N {
            row[n] = u64::from_le_bytes(blocks[n]);
        }
    }
    transpose(&mut rows);
    let (mut left, mut right) = ([[0; N]; 32], [[0; N]; 32]);
    for i in 0..32 {
        left[i] = rows[INITIAL[i]];
        right[i] = rows[INITIAL[32 + i]];
    }
    let (mut this, mut that) = (&mut left, &mut right);
    for des in 0..keys.len() / ROUNDS {
        for pair in 0..ROUNDS / 2 {
            let nth = des * ROUNDS + 2 * pair;
            let last = keys.len() - 1;
            let nths = if ENCRYPT {
                [nth, nth + 1]
            } else {
                [last - nth, last - nth - 1]
            };
            round(this, that, &keys[nths[0]]);
            round(that, this, &keys[nths[1]]);
        }
        // DES swaps its halves at the end; what IP⁻¹ does then, IP of the next
        // DES undoes.
        (this, that) = (that, this);
    }
    for i in 0..32 {
        rows[INITIAL[i]] = this[i];
        rows[INITIAL[32 + i]] = that[i];
    }
    transpose(&mut rows);
    for (row, blocks) in rows.iter().zip(blocks) {
        for n in 0..N {
            blocks[n] = row[n].to_le_bytes();
        }
    }
}

/// Where IP finds its bits, in planes: plane 0 is the last bit of the first byte.
const INITIAL: [usize; 64] = {
    let mut planes = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (half, row, column) = (i / 32, i / 8 % 4, i % 8);
        let bit = 57 - half + 2 * row - 8 * column;
        planes[i] = bit ^ 7;
        i += 1;
    }
    planes
};

/// Where P puts the outputs of the S-boxes.
const TARGETS: [[usize; 4]; 8] = {
    #[rustfmt::skip]
    const P: [usize; 32] = [
        16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10,
        2, 8, 24, 14, 32, 27, 3, 9, 19, 13, 30, 6, 22, 11, 4, 25,
    ];
    let mut targets = [[0; 4]; 8];
    let mut i = 0;
    while i < 32 {
        let output = P[i] - 1;
        targets[output / 4][output % 4] = i;
        i += 1;
    }
    targets
};

#[inline(always)]
fn round<const N: usize>(left: &mut Half<N>, right: &Half<N>, key: &RoundKey) {
    substitute::<0, N>(left, right, key);
    substitute::<1, N>(left, right, key);
    substitute::<2, N>(left, right, key);
    substitute::<3, N>(left, right, key);
    substitute::<4, N>(left, right, key);
    substitute::<5, N>(left, right, key);
    substitute::<6, N>(left, right, key);
    substitute::<7, N>(left, right, key);
}

/// The part of f that goes through S-box `S`.
#[inline(always)]
fn substitute<const S: usize, const N: usize>(left: &mut Half<N>, right: &Half<N>, key: &RoundKey) {
    for n in 0..N {
        let y = sbox::substitute::<S>([
            right[(4 * S + 31) % 32][n] ^ key[6 * S],
            right[4 * S][n] ^ key[6 * S + 1],
            right[4 * S + 1][n] ^ key[6 * S + 2],
            right[4 * S + 2][n] ^ key[6 * S + 3],
            right[4 * S + 3][n] ^ key[6 * S + 4],
            right[(4 * S + 4) % 32][n] ^ key[6 * S + 5],
        ]);
        left[TARGETS[S][0]][n] ^= y[0];
        left[TARGETS[S][1]][n] ^= y[1];
        left[TARGETS[S][2]][n] ^= y[2];
        left[TARGETS[S][3]][n] ^= y[3];
    }
}

/// Exchanges bit `j` of row `i` with bit `i` of row `j`, for each of the `N`
/// words. Three of the six halvings at a time, with eight rows in registers.
#[inline(always)]
fn transpose<const N: usize>(rows: &mut Rows<N>) {
    for first in 0..8 {
        transpose_eight::<8, N>(rows, first);
    }
    for first in 0..8 {
        transpose_eight::<1, N>(rows, 8 * first);
    }
}

/// Halvings of width 4·`STEP`, 2·`STEP` and `STEP` among every `STEP`th row.
#[expect(clippy::needless_range_loop, reason = "eight rows are indexed at once")]
#[inline(always)]
fn transpose_eight<const STEP: usize, const N: usize>(rows: &mut Rows<N>, first: usize) {
    for n in 0..N {
        let mut x = [0; 8];
        for i in 0..8 {
            x[i] = rows[first + i * STEP][n];
        }
        for i in 0..4 {
            [x[i], x[i + 4]] = exchange(x[i], x[i + 4], 4 * STEP);
        }
        for i in [0, 1, 4, 5] {
            [x[i], x[i + 2]] = exchange(x[i], x[i + 2], 2 * STEP);
        }
        for i in [0, 2, 4, 6] {
            [x[i], x[i + 1]] = exchange(x[i], x[i + 1], STEP);
        }
        for i in 0..8 {
            rows[first + i * STEP][n] = x[i];
        }
    }
}

/// Exchanges the upper of every two groups of `width` bits of `x` with the
/// lower ones of `y`.
#[inline(always)]
fn exchange(x: u64, y: u64, width: usize) -> [u64; 2] {
    let lower = u64::MAX / ((1 << width) + 1);
    let difference = (x >> width ^ y) & lower;
    [x ^ difference << width, y ^ difference]
}

#[cfg(test)]
mod tests {
    use super::{AnyCpu, Cpu, Des, TripleDes, transpose};
    use crate::block::tests;
    use crate::reference;

    fn des<C: Cpu>(cpu: C) {
        let keyed = |key: &[u8]| Des::new(key, cpu);
        tests::known_answers::<reference::Des, _, 8>("des", keyed);
        tests::equals_reference::<reference::Des, _, 8>(&[8], keyed);
        tests::agrees_with::<des::Des, _, 8>(&[8], keyed);
    }

    fn triple_des<C: Cpu>(cpu: C) {
        let keyed = |key: &[u8]| TripleDes::new(key, cpu);
        tests::known_answers::<reference::TripleDes, _, 8>("des3_ede", keyed);
        tests::equals_reference::<reference::TripleDes, _, 8>(&[16, 24], keyed);
        tests::agrees_with::<des::TdesEde2, _, 8>(&[16], keyed);
        tests::agrees_with::<des::TdesEde3, _, 8>(&[24], keyed);
    }

    #[test]
    fn portable_des() {
        des(AnyCpu);
    }

    #[test]
    fn portable_triple_des() {
        triple_des(AnyCpu);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx2() {
        let Some(cpu) = crate::arch::Avx2::detect() else {
            println!("skipped: this CPU has no AVX2");
            return;
        };
        des(cpu);
        triple_des(cpu);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx512() {
        let Some(cpu) = crate::arch::Avx512::detect() else {
            println!("skipped: this CPU has no AVX-512");
            return;
        };
        des(cpu);
        triple_des(cpu);
    }

    #[test]
    fn transposes() {
        for (i, j) in [(0, 0), (0, 63), (5, 40), (40, 5), (63, 1)] {
            let mut rows = [[0; 3]; 64];
            rows[i][1] = 1 << j;
            transpose(&mut rows);
            let mut expected = [[0; 3]; 64];
            expected[j][1] = 1 << i;
            assert_eq!(rows, expected);
        }
    }
}
