//! DES bit-sliced: all blocks of a pass side by side in one register a bit.
//!
//! ```text
//! plane i = word 0 [bit i of block 0, of block W,     of block 2W, …]
//!           word 1 [bit i of block 1, of block W + 1, …] …  word W − 1
//! ```
//!
//! The permutations IP, E and P are then mere names of planes, an S-box is a
//! circuit of gates over registers, and the W words of a register are worked on
//! as one.

use super::{Block, ROUNDS, RoundKey, Rounds, sbox};

/// A register of [`WORDS`](Self::WORDS) words, made by the CPU that has it.
///
/// Every method is inlined into a function compiled for that CPU, where it is
/// an instruction or two.
pub(crate) trait Plane: Copy {
    /// Words of 64 bits.
    const WORDS: usize;

    /// The bitwise sum.
    fn add(self, other: Self) -> Self;

    /// S-box `S`, from 0: the first word in and out is the bit that the
    /// standard writes first.
    fn substitute<const S: usize>(x: [Self; 6]) -> [Self; 4];

    /// Exchanges the upper of every two groups of `WIDTH` bits of `x` with the
    /// lower ones of `y`; bytes where [`spread`](Self::spread) has put those of a word side by side.
    fn exchange<const WIDTH: u32>(x: Self, y: Self) -> [Self; 2];

    /// The same on the way back, where both may leave blocks in another order.
    #[inline(always)]
    fn exchange_back<const WIDTH: u32>(x: Self, y: Self) -> [Self; 2] {
        Self::exchange::<WIDTH>(x, y)
    }

    /// The first halving, of rows as they were loaded.
    #[inline(always)]
    fn spread(x: Self, y: Self) -> [Self; 2] {
        Self::exchange::<32>(x, y)
    }

    /// The last halving, to rows as they are stored.
    #[inline(always)]
    fn gather(x: Self, y: Self) -> [Self; 2] {
        Self::exchange::<32>(x, y)
    }
}

/// A CPU's registers for planes.
pub(crate) trait Planes: Copy {
    /// A register.
    type Plane: Plane;

    /// What a row's number differs by from that of the plane that it becomes.
    const MIRRORED: usize = 0;

    /// The first [`WORDS`](Plane::WORDS) of `blocks`, a row to transpose.
    fn load(self, blocks: &[Block]) -> Self::Plane;

    /// Writes the first [`WORDS`](Plane::WORDS) of `blocks` from a row.
    fn store(self, x: Self::Plane, blocks: &mut [Block]);

    /// `word` in every word.
    fn splat(self, word: u64) -> Self::Plane;
}

/// Blocks in the longest pass.
const MOST_BLOCKS: usize = 512;

/// Calls `pass` for all blocks, `lanes` at a time; what is missing from the last is made up.
pub(crate) fn passes(lanes: usize, blocks: &mut [Block], pass: impl Fn(&mut [Block])) {
    let (whole, rest) = blocks.split_at_mut(blocks.len() / lanes * lanes);
    for group in whole.chunks_exact_mut(lanes) {
        pass(group);
    }
    if !rest.is_empty() {
        let mut padded = [[0; 8]; MOST_BLOCKS];
        padded[..rest.len()].copy_from_slice(rest);
        pass(&mut padded[..lanes]);
        rest.copy_from_slice(&padded[..rest.len()]);
    }
}

/// The planes of a pass, and as many rows on their way to them and back. They serve one
/// pass after another, because to fill them costs what a round does.
pub(crate) struct Work<P> {
    planes: [P; 64],
    rows: [P; 64],
}

impl<P: Plane> Work<P> {
    /// Zeros.
    #[inline(always)]
    pub(crate) fn new<C: Planes<Plane = P>>(cpu: C) -> Self {
        Self {
            planes: [cpu.splat(0); 64],
            rows: [cpu.splat(0); 64],
        }
    }
}

/// Encrypts or decrypts as many blocks as there are lanes, with the vectors of the
/// function it is inlined in. No closures here: they would be compiled for the CPU of
/// the build instead of the caller's.
#[inline(always)]
pub(crate) fn pass<C: Planes>(cpu: C, rounds: Rounds<'_>, blocks: &mut [Block]) {
    let mut work = Work::new(cpu);
    load::<false, C>(cpu, blocks, &mut work);
    all_rounds(cpu, rounds, &mut work.planes);
    store(cpu, &mut work, blocks);
}

/// [`pass`] of `from`, to `to`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn pass_between<C: Planes>(
    cpu: C,
    rounds: Rounds<'_>,
    work: &mut Work<C::Plane>,
    from: &[Block],
    to: &mut [Block],
) {
    load::<false, C>(cpu, from, work);
    all_rounds(cpu, rounds, &mut work.planes);
    store(cpu, work, to);
}

/// [`pass`] of the sums of `blocks` and what the pass before it in `work` gave; those of
/// zeros in a new one.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn pass_chained<C: Planes>(
    cpu: C,
    rounds: Rounds<'_>,
    work: &mut Work<C::Plane>,
    blocks: &mut [Block],
) {
    load::<true, C>(cpu, blocks, work);
    all_rounds(cpu, rounds, &mut work.planes);
    store(cpu, work, blocks);
}

/// Every round, which leaves left and right exchanged.
#[inline(always)]
fn all_rounds<C: Planes>(cpu: C, rounds: Rounds<'_>, planes: &mut [C::Plane; 64]) {
    let mut left = LEFT ^ C::MIRRORED & 1;
    for nth in 0..rounds.keys.len() {
        round(cpu, planes, left, rounds.key(nth));
        // DES does not swap its halves at the end; what IP⁻¹ does then, IP of
        // the next DES undoes.
        if nth % ROUNDS != ROUNDS - 1 {
            left ^= 1;
        }
    }
}

/// Bit `i` of word `j` becomes bit `j` of plane `i`: three of the six halvings at a time,
/// with eight rows in registers. `CHAINED` adds them to the planes that the rounds left.
#[inline(always)]
fn load<const CHAINED: bool, C: Planes>(cpu: C, blocks: &[Block], work: &mut Work<C::Plane>) {
    let blocks = &blocks[..64 * C::Plane::WORDS];
    for first in 0..8 {
        let mut x = [work.rows[first]; 8];
        for (i, x) in x.iter_mut().enumerate() {
            *x = cpu.load(&blocks[(first + 8 * i) * C::Plane::WORDS..]);
        }
        for i in 0..4 {
            [x[i], x[i + 4]] = C::Plane::spread(x[i], x[i + 4]);
        }
        halve::<16, 8, true, _>(&mut x);
        for (i, x) in x.into_iter().enumerate() {
            work.rows[first + 8 * i] = x;
        }
    }
    let rows = work.rows.as_chunks::<8>().0;
    for (planes, rows) in work.planes.as_chunks_mut::<8>().0.iter_mut().zip(rows) {
        let mut x = *rows;
        for i in 0..4 {
            [x[i], x[i + 4]] = C::Plane::exchange::<4>(x[i], x[i + 4]);
        }
        halve::<2, 1, true, _>(&mut x);
        if CHAINED {
            for i in 0..8 {
                x[i] = x[i].add(planes[i ^ 1]);
            }
        }
        *planes = x;
    }
}

/// Undoes [`load`] after the rounds, and leaves the planes.
#[inline(always)]
fn store<C: Planes>(cpu: C, work: &mut Work<C::Plane>, blocks: &mut [Block]) {
    let blocks = &mut blocks[..64 * C::Plane::WORDS];
    let rows = work.rows.as_chunks_mut().0;
    for (x, rows) in work.planes.as_chunks::<8>().0.iter().zip(rows) {
        let mut x = [x[1], x[0], x[3], x[2], x[5], x[4], x[7], x[6]];
        for i in 0..4 {
            [x[i], x[i + 4]] = C::Plane::exchange_back::<4>(x[i], x[i + 4]);
        }
        halve::<2, 1, false, _>(&mut x);
        *rows = x;
    }
    for first in 0..8 {
        let mut x = [work.rows[first]; 8];
        for (i, x) in x.iter_mut().enumerate() {
            *x = work.rows[first + 8 * i];
        }
        halve::<16, 8, false, _>(&mut x);
        for i in 0..4 {
            [x[i], x[i + 4]] = C::Plane::gather(x[i], x[i + 4]);
        }
        for (i, x) in x.into_iter().enumerate() {
            cpu.store(x, &mut blocks[(first + 8 * i) * C::Plane::WORDS..]);
        }
    }
}

/// The lower row of the two that have bit `i` of the left half and of the right one.
const fn pair<C: Planes>(i: usize) -> usize {
    (INITIAL[i] ^ C::MIRRORED) & !1
}

/// Which of the two is the left half's at first.
const LEFT: usize = INITIAL[0] & 1;

/// All bits of the left half are in planes of one kind, those of the right in the others.
const _: () = {
    let mut i = 0;
    while i < 32 {
        assert!(INITIAL[i] & 1 == LEFT && INITIAL[i] ^ 1 == INITIAL[32 + i]);
        i += 1;
    }
};

/// Where IP finds its bits, in planes: plane 0 is the last bit of the first byte.
pub(crate) const INITIAL: [usize; 64] = {
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
pub(crate) const TARGETS: [[usize; 4]; 8] = {
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
fn round<C: Planes>(cpu: C, planes: &mut [C::Plane; 64], left: usize, key: &RoundKey) {
    substitute::<0, C>(cpu, planes, left, key);
    substitute::<1, C>(cpu, planes, left, key);
    substitute::<2, C>(cpu, planes, left, key);
    substitute::<3, C>(cpu, planes, left, key);
    substitute::<4, C>(cpu, planes, left, key);
    substitute::<5, C>(cpu, planes, left, key);
    substitute::<6, C>(cpu, planes, left, key);
    substitute::<7, C>(cpu, planes, left, key);
}

/// The part of f that goes through S-box `S`.
#[inline(always)]
fn substitute<const S: usize, C: Planes>(
    cpu: C,
    planes: &mut [C::Plane; 64],
    left: usize,
    key: &RoundKey,
) {
    let right = left & 1 ^ 1;
    let y = C::Plane::substitute::<S>([
        planes[const { pair::<C>((4 * S + 31) % 32) } + right].add(cpu.splat(key[6 * S])),
        planes[const { pair::<C>(4 * S) } + right].add(cpu.splat(key[6 * S + 1])),
        planes[const { pair::<C>(4 * S + 1) } + right].add(cpu.splat(key[6 * S + 2])),
        planes[const { pair::<C>(4 * S + 2) } + right].add(cpu.splat(key[6 * S + 3])),
        planes[const { pair::<C>(4 * S + 3) } + right].add(cpu.splat(key[6 * S + 4])),
        planes[const { pair::<C>((4 * S + 4) % 32) } + right].add(cpu.splat(key[6 * S + 5])),
    ]);
    for (target, y) in TARGETS[S].into_iter().zip(y) {
        let target = &mut planes[pair::<C>(target) + (left & 1)];
        *target = target.add(y);
    }
}

/// The second and third halving of eight rows on the way `THERE`, or back.
#[inline(always)]
fn halve<const HALF: u32, const QUARTER: u32, const THERE: bool, P: Plane>(x: &mut [P; 8]) {
    for i in [0, 1, 4, 5] {
        [x[i], x[i + 2]] = exchange::<HALF, THERE, P>(x[i], x[i + 2]);
    }
    for i in [0, 2, 4, 6] {
        [x[i], x[i + 1]] = exchange::<QUARTER, THERE, P>(x[i], x[i + 1]);
    }
}

#[inline(always)]
fn exchange<const WIDTH: u32, const THERE: bool, P: Plane>(x: P, y: P) -> [P; 2] {
    if THERE {
        P::exchange::<WIDTH>(x, y)
    } else {
        P::exchange_back::<WIDTH>(x, y)
    }
}

/// The lower of every two groups of `width` bits.
pub(crate) const fn lower(width: u32) -> u64 {
    u64::MAX / ((1 << width) + 1)
}

/// `N` words, for the compiler to make vectors of.
#[derive(Clone, Copy)]
pub(crate) struct Words<const N: usize>([u64; N]);

/// Any CPU that a function is compiled for, with registers of `N` words.
#[derive(Clone, Copy)]
pub(crate) struct Compiled<const N: usize>;

impl<const N: usize> Planes for Compiled<N> {
    type Plane = Words<N>;

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> Words<N> {
        let mut words = [0; N];
        for (word, block) in words.iter_mut().zip(blocks) {
            *word = u64::from_le_bytes(*block);
        }
        Words(words)
    }

    #[inline(always)]
    fn store(self, x: Words<N>, blocks: &mut [Block]) {
        for (word, block) in x.0.iter().zip(blocks) {
            *block = word.to_le_bytes();
        }
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Words<N> {
        Words([word; N])
    }
}

impl<const N: usize> Plane for Words<N> {
    const WORDS: usize = N;

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x ^= y;
        }
        self
    }

    #[expect(
        clippy::needless_range_loop,
        reason = "ten registers are indexed at once"
    )]
    // A function of its own: the compiler takes long over vectors of words.
    #[inline(never)]
    fn substitute<const S: usize>([a, b, c, d, e, f]: [Self; 6]) -> [Self; 4] {
        let mut y = [[0; N]; 4];
        for n in 0..N {
            let x = [a.0[n], b.0[n], c.0[n], d.0[n], e.0[n], f.0[n]];
            [y[0][n], y[1][n], y[2][n], y[3][n]] = sbox::substitute::<S, u64>(x);
        }
        y.map(Self)
    }

    #[inline(always)]
    fn exchange<const WIDTH: u32>(mut x: Self, mut y: Self) -> [Self; 2] {
        for (x, y) in x.0.iter_mut().zip(&mut y.0) {
            let difference = (*x >> WIDTH ^ *y) & lower(WIDTH);
            *x ^= difference << WIDTH;
            *y ^= difference;
        }
        [x, y]
    }
}

#[cfg(test)]
mod tests {
    use super::{Compiled, Work, load, store};

    #[test]
    fn planes_are_bits() {
        for (block, bit) in [(0, 0), (0, 63), (5, 40), (40, 5), (190, 1)] {
            let mut blocks = [[0; 8]; 192];
            blocks[block] = (1_u64 << bit).to_le_bytes();
            let mut work = Work::new(Compiled::<3>);
            load::<false, _>(Compiled::<3>, &blocks, &mut work);
            for (plane, row) in work.planes.iter().enumerate() {
                let mut expected = [0; 3];
                if plane == bit {
                    expected[block % 3] = 1 << (block / 3);
                }
                assert_eq!(row.0, expected);
            }
            let before = blocks;
            for pair in work.planes.as_chunks_mut::<2>().0 {
                pair.reverse();
            }
            store(Compiled::<3>, &mut work, &mut blocks);
            assert_eq!(blocks, before);
        }
    }
}
