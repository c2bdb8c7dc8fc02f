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

use zeroize::{Zeroize, optimization_barrier};

use super::Block;
use super::registers::{MOST_LANES, Registers};

/// Bytes of a ChaCha block.
const BYTES: usize = 64;

/// Groups of registers side by side.
const GROUPS: usize = 4;

/// "expand 32-byte k".
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// A row.
type Words = [u32; 4];

/// A key, and how many rounds there are; wipes itself when dropped.
pub(crate) struct Key {
    rows: [Words; 2],
    rounds: usize,
}

impl Key {
    /// The key `bytes`, for 12 or 20 rounds.
    pub(crate) fn new(bytes: &[u8; 32], rounds: usize) -> Self {
        let [first, second] = bytes.as_chunks().0 else {
            unreachable!("a key is two rows");
        };
        let rows = [words(first), words(second)];
        Self { rows, rounds }
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.rows.zeroize();
    }
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
pub(crate) fn add_xchacha<R: Registers>(
    cpu: R,
    key: &Key,
    nonces: &[Block],
    nonce_end: [u32; 2],
    units: Units,
    data: &mut [u8],
) {
    let at_once = GROUPS * R::LANES;
    let groups = data.chunks_mut(at_once * units.stride);
    for (nonces, group) in nonces.chunks(at_once).zip(groups) {
        let mut subkeys = match nonces.len() > R::LANES {
            true => hchacha::<R, GROUPS>(cpu, key, nonces),
            false => hchacha::<R, 1>(cpu, key, nonces),
        };
        let all = Stretches {
            keys: &subkeys,
            rounds: key.rounds,
            nonce_end,
            units,
            width: R::LANES * BYTES,
            in_unit: units.bytes.div_ceil(R::LANES * BYTES),
        };
        add_streams(cpu, &all, nonces.len(), group);
        // Whole registers of zeros: `zeroize` would write byte by byte.
        subkeys = [[[0; 16]; GROUPS * MOST_LANES]; 2];
        optimization_barrier(&subkeys);
    }
}

/// The first halves of as many keys as [`hchacha`] makes, then the second ones.
type Subkeys = [[Block; GROUPS * MOST_LANES]; 2];

/// Adds ChaCha's stream to each of `count` units, under the key of the unit. The
/// counter has 32 bits: at most as many blocks.
#[inline(always)]
fn add_streams<R: Registers>(cpu: R, all: &Stretches, count: usize, data: &mut [u8]) {
    let mut next = Stretch {
        unit: 0,
        register: 0,
    };
    let mut left = count * all.in_unit;
    while left > 0 {
        left -= match left {
            GROUPS.. => add_blocks::<R, GROUPS>(cpu, all, &mut next, data),
            2.. => add_blocks::<R, 2>(cpu, all, &mut next, data),
            _ => add_blocks::<R, 1>(cpu, all, &mut next, data),
        };
    }
}

/// All units, cut into what one register's blocks are added to.
struct Stretches<'a> {
    keys: &'a Subkeys,
    rounds: usize,
    nonce_end: [u32; 2],
    units: Units,
    /// Bytes of a register's blocks.
    width: usize,
    /// Stretches in a unit.
    in_unit: usize,
}

/// One of them.
#[derive(Clone, Copy)]
struct Stretch {
    unit: usize,
    register: usize,
}

impl Stretches<'_> {
    /// The stretch, and the one after it in its place.
    #[inline(always)]
    fn take(&self, next: &mut Stretch) -> Stretch {
        let taken = *next;
        next.register += 1;
        if next.register == self.in_unit {
            (next.unit, next.register) = (next.unit + 1, 0);
        }
        taken
    }

    /// The key, and the counter of the first block and the nonce.
    #[inline(always)]
    fn start(&self, of: Stretch) -> ([Words; 2], Words) {
        let counter = of.register * (self.width / BYTES);
        let [e, f] = self.nonce_end;
        let [first, second] = self.keys;
        let key = [words(&first[of.unit]), words(&second[of.unit])];
        (key, [counter as u32, 0, e, f])
    }

    /// The part of `data`, which has all units.
    #[inline(always)]
    fn part<'d>(&self, of: Stretch, data: &'d mut [u8]) -> &'d mut [u8] {
        let offset = of.register * self.width;
        let bytes = (self.units.bytes - offset).min(self.width);
        &mut data[of.unit * self.units.stride + offset..][..bytes]
    }
}

/// The four rows of one register's blocks.
type Rows<R> = [<R as Registers>::Vector; 4];

/// Adds the blocks of `N` registers from `next` on, and returns `N`.
#[inline(always)]
fn add_blocks<R: Registers, const N: usize>(
    cpu: R,
    all: &Stretches,
    next: &mut Stretch,
    data: &mut [u8],
) -> usize {
    let mut counters = [[0; 16]; MOST_LANES];
    for (i, counter) in counters.iter_mut().enumerate() {
        counter[0] = i as u8;
    }
    let counters = cpu.load(counters.as_flattened());
    let mut start: [Rows<R>; N] = [[cpu.splat(CONSTANTS); 4]; N];
    let mut stretches = [*next; N];
    for (stretch, [_, b, c, d]) in stretches.iter_mut().zip(&mut start) {
        *stretch = all.take(next);
        let (key, row) = all.start(*stretch);
        (*b, *c) = (cpu.splat(key[0]), cpu.splat(key[1]));
        *d = cpu.add_words(cpu.splat(row), counters);
    }
    let mut state = start;
    rounds(cpu, all.rounds, &mut state);
    for n in 0..N {
        let ([a, b, c, d], [e, f, g, h]) = (state[n], start[n]);
        let stream = cpu.columns([
            cpu.add_words(a, e),
            cpu.add_words(b, f),
            cpu.add_words(c, g),
            cpu.add_words(d, h),
        ]);
        add(cpu, stream, all.part(stretches[n], data));
    }
    N
}

/// Adds one register's blocks to `data`, which may be shorter.
#[inline(always)]
fn add<R: Registers>(cpu: R, stream: Rows<R>, data: &mut [u8]) {
    let mut registers = data.chunks_exact_mut(16 * R::LANES);
    let mut whole = 0;
    for register in &mut registers {
        cpu.store(cpu.xor(cpu.load(register), stream[whole]), register);
        whole += 1;
    }
    let rest = registers.into_remainder();
    if !rest.is_empty() {
        let mut stored = [[0; 16]; MOST_LANES];
        cpu.store(stream[whole], stored.as_flattened_mut());
        for (byte, stream) in rest.iter_mut().zip(stored.as_flattened()) {
            *byte ^= stream;
        }
    }
}

#[inline(always)]
fn rounds<R: Registers, const N: usize>(cpu: R, rounds: usize, state: &mut [Rows<R>; N]) {
    for _ in 0..rounds / 2 {
        quarter_rounds::<R, N>(cpu, state);
        for [_, b, c, d] in &mut *state {
            (*b, *c, *d) = (cpu.turn::<1>(*b), cpu.turn::<2>(*c), cpu.turn::<3>(*d));
        }
        quarter_rounds::<R, N>(cpu, state);
        for [_, b, c, d] in &mut *state {
            (*b, *c, *d) = (cpu.turn::<3>(*b), cpu.turn::<2>(*c), cpu.turn::<1>(*d));
        }
    }
}

/// A quarter round in every column of every block.
#[inline(always)]
fn quarter_rounds<R: Registers, const N: usize>(cpu: R, state: &mut [Rows<R>; N]) {
    for [a, b, _, d] in &mut *state {
        *a = cpu.add_words(*a, *b);
        *d = cpu.rotate::<16>(cpu.xor(*d, *a));
    }
    for [_, b, c, d] in &mut *state {
        *c = cpu.add_words(*c, *d);
        *b = cpu.rotate::<12>(cpu.xor(*b, *c));
    }
    for [a, b, _, d] in &mut *state {
        *a = cpu.add_words(*a, *b);
        *d = cpu.rotate::<8>(cpu.xor(*d, *a));
    }
    for [_, b, c, d] in &mut *state {
        *c = cpu.add_words(*c, *d);
        *b = cpu.rotate::<7>(cpu.xor(*b, *c));
    }
}

/// XChaCha's subkeys: rows a and d after the rounds, by `N` registers.
#[inline(always)]
fn hchacha<R: Registers, const N: usize>(cpu: R, key: &Key, nonces: &[Block]) -> Subkeys {
    let mut rows = [[0; 16]; GROUPS * MOST_LANES];
    rows[..nonces.len()].copy_from_slice(nonces);
    let (a, b, c) = (CONSTANTS, key.rows[0], key.rows[1]);
    let mut state = [[cpu.splat(a), cpu.splat(b), cpu.splat(c), cpu.splat(a)]; N];
    for (n, row) in state.iter_mut().enumerate() {
        row[3] = cpu.load(rows[n * R::LANES..].as_flattened());
    }
    rounds(cpu, key.rounds, &mut state);
    let mut subkeys = [[[0; 16]; GROUPS * MOST_LANES]; 2];
    for (n, [a, _, _, d]) in state.into_iter().enumerate() {
        cpu.store(a, subkeys[0][n * R::LANES..].as_flattened_mut());
        cpu.store(d, subkeys[1][n * R::LANES..].as_flattened_mut());
    }
    subkeys
}

/// A row that lies in memory.
#[inline(always)]
const fn words(block: &Block) -> Words {
    let number = u128::from_le_bytes(*block);
    [
        number as u32,
        (number >> 32) as u32,
        (number >> 64) as u32,
        (number >> 96) as u32,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "aarch64")]
    use crate::arch::Neon;
    #[cfg(target_arch = "x86_64")]
    use crate::arch::{Avx2, Avx512};
    use crate::block::registers::AnyCpu;
    use crate::reference;
    use crate::work::Work;

    struct Add<'a> {
        rounds: usize,
        nonces: &'a [Block],
        units: Units,
        data: &'a mut [u8],
    }

    const KEY: [u8; 32] = *b"ChaCha needs a key of 32 bytes!!";

    impl<R: Registers> Work<R> for Add<'_> {
        #[inline(always)]
        fn run(self, cpu: R) {
            let end = [5, 6];
            let key = Key::new(&KEY, self.rounds);
            add_xchacha(cpu, &key, self.nonces, end, self.units, self.data);
        }
    }

    /// Units of any length, alone and in groups, equal the reference's, and
    /// what lies between them stays.
    fn equals_the_reference(cpu: impl Registers, rounds: usize) {
        for bytes in [1, 15, 16, 63, 64, 65, 255, 256, 257, 496, 1008, 1100, 4080] {
            for count in [1, 2, 3, 4, 5, 15, 16, 17, 33] {
                let stride = bytes + 16;
                let nonces: Vec<Block> =
                    (0..count).map(|i: u128| (i << 77).to_le_bytes()).collect();
                let plain: Vec<u8> = (0..nonces.len() * stride)
                    .map(|i| (i.wrapping_mul(i) >> 3) as u8)
                    .collect();
                let mut expected = plain.clone();
                for (nonce, unit) in nonces.iter().zip(expected.chunks_mut(stride)) {
                    let mut iv = [0; 32];
                    iv[..16].copy_from_slice(nonce);
                    (iv[16], iv[20]) = (5, 6);
                    reference::add_xchacha(rounds, &KEY, &iv, &mut unit[..bytes]);
                }
                let mut data = plain;
                cpu.enter(Add {
                    rounds,
                    nonces: &nonces,
                    units: Units { stride, bytes },
                    data: &mut data,
                });
                assert!(data == expected, "{count} × {bytes}");
            }
        }
    }

    fn check(cpu: Option<impl Registers>, name: &str) {
        let Some(cpu) = cpu else {
            println!("skipped: this CPU has no {name}");
            return;
        };
        equals_the_reference(cpu, 12);
        equals_the_reference(cpu, 20);
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

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn neon() {
        check(Neon::detect(), "NEON");
    }
}
