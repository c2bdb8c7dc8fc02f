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

use super::{Block, ROUNDS, RoundKey, Rounds, gates, sbox};
use crate::block::gates::Gate;
use crate::block::registers::{Register, Registers};

/// How a CPU transposes planes: every method is inlined into a function compiled for it.
pub(crate) trait Planes: Copy {
    /// Its registers.
    type Registers: Registers;

    /// The difference, by XOR, between a row's number and that of the plane that it becomes.
    const MIRRORED: usize = 0;

    /// The registers.
    fn registers(self) -> Self::Registers;

    /// Exchanges the upper of every two groups of `WIDTH` bits of `x` with the
    /// lower ones of `y`; bytes where [`spread`](Self::spread) has put those of a word side by side.
    #[inline(always)]
    fn exchange<const WIDTH: u32>(self, x: Plane<Self>, y: Plane<Self>) -> [Plane<Self>; 2] {
        exchange_bits::<WIDTH, Self::Registers>(x, y)
    }

    /// The same on the way back, where both may leave blocks in another order.
    #[inline(always)]
    fn exchange_back<const WIDTH: u32>(self, x: Plane<Self>, y: Plane<Self>) -> [Plane<Self>; 2] {
        self.exchange::<WIDTH>(x, y)
    }

    /// The first halving, of rows as they were loaded.
    #[inline(always)]
    fn spread(self, x: Plane<Self>, y: Plane<Self>) -> [Plane<Self>; 2] {
        self.exchange::<32>(x, y)
    }

    /// The last halving, to rows as they are stored.
    #[inline(always)]
    fn gather(self, x: Plane<Self>, y: Plane<Self>) -> [Plane<Self>; 2] {
        self.exchange::<32>(x, y)
    }
}

/// A bit of every block of a pass.
pub(crate) type Plane<C> = Register<<C as Planes>::Registers>;

impl<R: Registers> Planes for R {
    type Registers = R;

    fn registers(self) -> R {
        self
    }
}

#[inline(always)]
fn exchange_bits<const WIDTH: u32, R: Registers>(
    x: Register<R>,
    y: Register<R>,
) -> [Register<R>; 2] {
    /// The third where the second has a one, else the first.
    const CHOOSE: i32 = 0b1011_1000;
    let cpu = x.cpu;
    let low = Register::splat_pair(cpu, lower(WIDTH));
    let down = x.with(cpu.shift_pairs_right::<WIDTH>(x.x));
    if R::TERNARY {
        let high = Register::splat_pair(cpu, lower(WIDTH) << WIDTH);
        let up = y.with(cpu.shift_pairs_left::<WIDTH>(y.x));
        return [
            Register::gate::<CHOOSE>(x, high, up),
            Register::gate::<CHOOSE>(y, low, down),
        ];
    }
    let difference = (down ^ y) & low;
    let up = x.with(cpu.shift_pairs_left::<WIDTH>(difference.x));
    [x ^ up, y ^ difference]
}

/// The lower of every two groups of `width` bits.
const fn lower(width: u32) -> u64 {
    u64::MAX / ((1 << width) + 1)
}

/// Blocks that a register has a word of.
pub(crate) const fn row<C: Planes>() -> usize {
    2 * C::Registers::LANES
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
pub(crate) struct Planar<C: Planes> {
    planes: [Plane<C>; 64],
    rows: [Plane<C>; 64],
}

impl<C: Planes> Planar<C> {
    /// Zeros.
    #[inline(always)]
    pub(crate) fn new(cpu: C) -> Self {
        let zeros = [Register::splat_pair(cpu.registers(), 0); 64];
        Self {
            planes: zeros,
            rows: zeros,
        }
    }
}

/// Encrypts or decrypts as many blocks as there are lanes, with the vectors of the
/// function it is inlined in. No closures here: they would be compiled for the CPU of
/// the build instead of the caller's.
#[inline(always)]
pub(crate) fn pass<C: Planes>(cpu: C, rounds: Rounds<'_>, blocks: &mut [Block]) {
    let mut work = Planar::new(cpu);
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
    work: &mut Planar<C>,
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
    work: &mut Planar<C>,
    blocks: &mut [Block],
) {
    load::<true, C>(cpu, blocks, work);
    all_rounds(cpu, rounds, &mut work.planes);
    store(cpu, work, blocks);
}

/// Every round, which leaves left and right exchanged.
#[inline(always)]
fn all_rounds<C: Planes>(cpu: C, rounds: Rounds<'_>, planes: &mut [Plane<C>; 64]) {
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
fn load<const CHAINED: bool, C: Planes>(cpu: C, blocks: &[Block], work: &mut Planar<C>) {
    let blocks = &blocks[..64 * row::<C>()];
    for first in 0..8 {
        let mut x = [work.rows[first]; 8];
        for (i, x) in x.iter_mut().enumerate() {
            *x = Register::load(cpu.registers(), &blocks[(first + 8 * i) * row::<C>()..]);
        }
        for i in 0..4 {
            [x[i], x[i + 4]] = cpu.spread(x[i], x[i + 4]);
        }
        halve::<16, 8, true, C>(cpu, &mut x);
        for (i, x) in x.into_iter().enumerate() {
            work.rows[first + 8 * i] = x;
        }
    }
    let rows = work.rows.as_chunks::<8>().0;
    for (planes, rows) in work.planes.as_chunks_mut::<8>().0.iter_mut().zip(rows) {
        let mut x = *rows;
        for i in 0..4 {
            [x[i], x[i + 4]] = cpu.exchange::<4>(x[i], x[i + 4]);
        }
        halve::<2, 1, true, C>(cpu, &mut x);
        if CHAINED {
            for i in 0..8 {
                x[i] ^= planes[i ^ 1];
            }
        }
        *planes = x;
    }
}

/// Undoes [`load`] after the rounds, and leaves the planes.
#[inline(always)]
fn store<C: Planes>(cpu: C, work: &mut Planar<C>, blocks: &mut [Block]) {
    let blocks = &mut blocks[..64 * row::<C>()];
    let rows = work.rows.as_chunks_mut().0;
    for (x, rows) in work.planes.as_chunks::<8>().0.iter().zip(rows) {
        let mut x = [x[1], x[0], x[3], x[2], x[5], x[4], x[7], x[6]];
        for i in 0..4 {
            [x[i], x[i + 4]] = cpu.exchange_back::<4>(x[i], x[i + 4]);
        }
        halve::<2, 1, false, C>(cpu, &mut x);
        *rows = x;
    }
    for first in 0..8 {
        let mut x = [work.rows[first]; 8];
        for (i, x) in x.iter_mut().enumerate() {
            *x = work.rows[first + 8 * i];
        }
        halve::<16, 8, false, C>(cpu, &mut x);
        for i in 0..4 {
            [x[i], x[i + 4]] = cpu.gather(x[i], x[i + 4]);
        }
        for (i, x) in x.into_iter().enumerate() {
            x.store(&mut blocks[(first + 8 * i) * row::<C>()..]);
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
fn round<C: Planes>(cpu: C, planes: &mut [Plane<C>; 64], left: usize, key: &RoundKey) {
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
    planes: &mut [Plane<C>; 64],
    left: usize,
    key: &RoundKey,
) {
    let right = left & 1 ^ 1;
    let x = [
        plane(
            cpu,
            planes[const { pair::<C>((4 * S + 31) % 32) } + right],
            key[6 * S],
        ),
        plane(
            cpu,
            planes[const { pair::<C>(4 * S) } + right],
            key[6 * S + 1],
        ),
        plane(
            cpu,
            planes[const { pair::<C>(4 * S + 1) } + right],
            key[6 * S + 2],
        ),
        plane(
            cpu,
            planes[const { pair::<C>(4 * S + 2) } + right],
            key[6 * S + 3],
        ),
        plane(
            cpu,
            planes[const { pair::<C>(4 * S + 3) } + right],
            key[6 * S + 4],
        ),
        plane(
            cpu,
            planes[const { pair::<C>((4 * S + 4) % 32) } + right],
            key[6 * S + 5],
        ),
    ];
    let y = match C::Registers::TERNARY {
        true => gates::substitute::<S, _>(x),
        false => sbox::substitute::<S, _>(x),
    };
    for (target, y) in TARGETS[S].into_iter().zip(y) {
        planes[pair::<C>(target) + (left & 1)] ^= y;
    }
}

/// The sum of a plane and a bit of the key.
#[inline(always)]
fn plane<C: Planes>(cpu: C, plane: Plane<C>, bit: u64) -> Plane<C> {
    plane ^ Register::splat_pair(cpu.registers(), bit)
}

/// The second and third halving of eight rows on the way `THERE`, or back.
#[inline(always)]
fn halve<const HALF: u32, const QUARTER: u32, const THERE: bool, C: Planes>(
    cpu: C,
    x: &mut [Plane<C>; 8],
) {
    for i in [0, 1, 4, 5] {
        [x[i], x[i + 2]] = exchange::<HALF, THERE, C>(cpu, x[i], x[i + 2]);
    }
    for i in [0, 2, 4, 6] {
        [x[i], x[i + 1]] = exchange::<QUARTER, THERE, C>(cpu, x[i], x[i + 1]);
    }
}

#[inline(always)]
fn exchange<const WIDTH: u32, const THERE: bool, C: Planes>(
    cpu: C,
    x: Plane<C>,
    y: Plane<C>,
) -> [Plane<C>; 2] {
    match THERE {
        true => cpu.exchange::<WIDTH>(x, y),
        false => cpu.exchange_back::<WIDTH>(x, y),
    }
}

#[cfg(test)]
mod tests {
    use super::{Planar, load, store};
    use crate::block::registers::integers::Integers;

    #[test]
    fn planes_are_bits() {
        for (block, bit) in [(0, 0), (0, 63), (5, 40), (40, 5), (127, 1)] {
            let mut blocks = [[0; 8]; 128];
            blocks[block] = (1_u64 << bit).to_le_bytes();
            let mut work = Planar::new(Integers);
            load::<false, _>(Integers, &blocks, &mut work);
            for (plane, row) in work.planes.iter().enumerate() {
                let expected = match plane == bit {
                    true => 1 << (64 * (block % 2) + block / 2),
                    false => 0_u128,
                };
                assert_eq!(row.x, expected);
            }
            let before = blocks;
            for pair in work.planes.as_chunks_mut::<2>().0 {
                pair.reverse();
            }
            store(Integers, &mut work, &mut blocks);
            assert_eq!(blocks, before);
        }
    }
}
