//! AES by the CPU's AES instructions: one, two or four blocks a register.
//!
//! The kernels are written once, over an [`Engine`]: the operations of one
//! register width, as methods of the proof that the CPU has them. They keep
//! [`BATCH`] registers in flight, because a round takes three to five cycles
//! and one or two can start in each:
//!
//! ```text
//! VAES-512   zmm0 = blocks 0 1 2 3    zmm1 = blocks 4 5 6 7    …   32 blocks
//! VAES-256   ymm0 = blocks 0 1        ymm1 = blocks 2 3        …   16 blocks
//! AES-NI     xmm0 = block 0           xmm1 = block 1           …    8 blocks
//! Armv8      v0 = block 0             v1 = block 1             …    8 blocks
//! ```
//!
//! 15 round keys, 8 registers of data and 8 of tweaks fill the 32 registers of
//! AVX-512 and Armv8; the others read round keys from memory.

mod blocks;
mod cbc;
mod ctr;
mod engine;
#[cfg(test)]
mod tests;
mod xts;

#[cfg(target_arch = "aarch64")]
pub(crate) use self::engine::AesCe;
#[cfg(target_arch = "x86_64")]
pub(crate) use self::engine::{AesNi, Vaes256, Vaes512};

use crate::block::aes::Schedule;
use crate::block::{Block, BlockCipher};
use crate::work::Work;

/// Registers in flight.
const BATCH: usize = 8;

/// Most blocks in a register of any engine.
const MOST_LANES: usize = 4;

/// Bytes of a cache line, which lines of data are cut into.
const LINE: usize = 64;

/// Byte offsets of cache lines in the data, as many of them used as an engine
/// has blocks in a register.
type Lines = [usize; MOST_LANES];

/// The operations of one register width: a proof that the CPU has them.
///
/// Every method is inlined into a function that [`enter`](Self::enter) calls,
/// where the operation is one instruction.
pub(crate) trait Engine: Copy + Send + Sync + 'static {
    /// Blocks in a register.
    const LANES: usize;

    /// XTS: whether the tweaks of the next batch are best made between the rounds of
    /// this one, and not before them.
    const TWEAKS_BETWEEN_ROUNDS: bool = true;

    /// Rounds in one loop, at most. Compilers unroll a loop if its body is small enough.
    const ROUNDS_IN_A_LOOP: usize = 13;

    /// A register.
    type Vector: Copy;

    /// Does `work` in a function compiled for these instructions.
    fn enter<W: Work<Self>>(self, work: W);

    /// The first [`LANES`](Self::LANES) of `blocks`.
    fn load(self, blocks: &[Block]) -> Self::Vector;

    /// Writes the first [`LANES`](Self::LANES) of `blocks`.
    fn store(self, x: Self::Vector, blocks: &mut [Block]);

    /// Writes the block in lane 0.
    fn store_one(self, x: Self::Vector, block: &mut Block);

    /// `block` in every lane.
    fn splat(self, block: &Block) -> Self::Vector;

    /// The bitwise sum.
    fn add(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// ShiftRows, SubBytes, MixColumns, then the sum with `key`.
    fn round(self, x: Self::Vector, key: Self::Vector) -> Self::Vector;

    /// ShiftRows, SubBytes, then the sum with `key`.
    fn last_round(self, x: Self::Vector, key: Self::Vector) -> Self::Vector;

    /// InvShiftRows, InvSubBytes, InvMixColumns, then the sum with `key`.
    fn inverse_round(self, x: Self::Vector, key: Self::Vector) -> Self::Vector;

    /// InvShiftRows, InvSubBytes, then the sum with `key`.
    fn last_inverse_round(self, x: Self::Vector, key: Self::Vector) -> Self::Vector;

    /// InvMixColumns of one block.
    fn unmix(self, block: &mut Block);

    /// XTS: `tweak`·xⁱ in lane i.
    fn spread(self, tweak: &Block) -> Self::Vector;

    /// XTS: every lane times x to the power of [`LANES`](Self::LANES).
    fn times_x_lanes(self, tweaks: Self::Vector) -> Self::Vector;

    /// XTS: every lane times x⁸.
    fn times_x8(self, tweaks: Self::Vector) -> Self::Vector;

    /// XTS: the tweaks of the next batch that are in the place of `tweaks`, which are
    /// those times x to the power of [`BATCH`]·[`LANES`](Self::LANES), and the ones
    /// in `before` times x to that of `LANES`.
    fn next_tweaks(self, tweaks: Self::Vector, before: Self::Vector) -> Self::Vector;

    /// CTR: the sum of every 32-bit word, modulo 2³².
    fn sum_words(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;

    /// CTR: `x`, or `y` where the words of `nth` are above those of `limit`; in a
    /// lane of either all words are the same, and they lie less than 2³¹ apart.
    fn choose_above(
        self,
        x: Self::Vector,
        y: Self::Vector,
        nth: Self::Vector,
        limit: Self::Vector,
    ) -> Self::Vector;

    /// CBC: the blocks of `current` one lane up, and the last of `previous`
    /// in lane 0.
    fn shift_in(self, previous: Self::Vector, current: Self::Vector) -> Self::Vector;

    /// CBC: one line from each of [`LANES`](Self::LANES) sectors, transposed:
    /// result j has block j of every line.
    fn load_lines(self, data: &[u8], lines: &Lines) -> [Self::Vector; 4];

    /// CBC: writes what [`load_lines`](Self::load_lines) reads, to the first
    /// `count` lines only.
    fn store_lines(self, x: [Self::Vector; 4], data: &mut [u8], lines: &Lines, count: usize);
}

/// AES by `E`'s instructions.
pub(crate) struct Aes<E> {
    engine: E,
    encryption: Schedule,
    decryption: Schedule,
}

impl<E: Engine> Aes<E> {
    /// The cipher under a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8], engine: E) -> Self {
        let encryption = Schedule::new(key);
        let decryption = encryption.inverse(|key| engine.unmix(key));
        Self {
            engine,
            encryption,
            decryption,
        }
    }
}

impl<E: Engine> BlockCipher<16> for Aes<E> {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        let keys = self.encryption.keys();
        self.engine.enter(blocks::Blocks::<true> { keys, blocks });
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        let keys = self.decryption.keys();
        self.engine.enter(blocks::Blocks::<false> { keys, blocks });
    }

    fn encrypt_xts(&self, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.engine.enter(xts::Xts::<true> {
            keys: self.encryption.keys(),
            starts,
            sector_bytes,
            data,
        });
    }

    fn decrypt_xts(&self, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.engine.enter(xts::Xts::<false> {
            keys: self.decryption.keys(),
            starts,
            sector_bytes,
            data,
        });
    }

    fn encrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.engine.enter(cbc::Encrypt {
            keys: self.encryption.keys(),
            ivs,
            sector_bytes,
            data,
        });
    }

    fn decrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.engine.enter(cbc::Decrypt {
            keys: self.decryption.keys(),
            ivs,
            sector_bytes,
            data,
        });
    }

    fn crypt_ctr(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.engine.enter(ctr::Ctr {
            keys: self.encryption.keys(),
            ivs,
            sector_bytes,
            data,
        });
    }
}

/// A kernel once the number of round keys is a constant.
trait Keyed {
    /// Does the work.
    fn run<E: Engine, const KEYS: usize>(self, engine: E, keys: &[Block; KEYS]);
}

/// Runs `work` for the number of `keys`.
#[inline(always)]
fn with_keys<E: Engine>(engine: E, keys: &[Block], work: impl Keyed) {
    const CHECKED: &str = "a schedule has 11, 13 or 15 keys";
    match keys.len() {
        11 => work.run::<E, 11>(engine, keys.first_chunk().expect(CHECKED)),
        13 => work.run::<E, 13>(engine, keys.first_chunk().expect(CHECKED)),
        _ => work.run::<E, 15>(engine, keys.first_chunk().expect(CHECKED)),
    }
}

/// All rounds but the first key and the last round, over `N` registers.
#[inline(always)]
fn inner_rounds<E: Engine, const ENCRYPT: bool, const KEYS: usize, const N: usize>(
    engine: E,
    keys: &[Block; KEYS],
    batch: &mut [E::Vector; N],
) {
    let (early, late) = inner_keys::<E, KEYS>(keys);
    rounds::<E, ENCRYPT, N>(engine, early, batch);
    rounds::<E, ENCRYPT, N>(engine, late, batch);
}

/// A round for each key.
#[inline(always)]
fn rounds<E: Engine, const ENCRYPT: bool, const N: usize>(
    engine: E,
    keys: &[Block],
    batch: &mut [E::Vector; N],
) {
    for key in keys {
        let key = engine.splat(key);
        for x in &mut *batch {
            *x = round::<E, ENCRYPT>(engine, *x, key);
        }
    }
}

/// The keys of the inner rounds, in one part for each loop.
#[inline(always)]
fn inner_keys<E: Engine, const KEYS: usize>(keys: &[Block; KEYS]) -> (&[Block], &[Block]) {
    let keys = &keys[1..KEYS - 1];
    keys.split_at(keys.len().min(E::ROUNDS_IN_A_LOOP))
}

/// A round between the first key and the last round.
#[inline(always)]
fn round<E: Engine, const ENCRYPT: bool>(engine: E, x: E::Vector, key: E::Vector) -> E::Vector {
    if ENCRYPT {
        engine.round(x, key)
    } else {
        engine.inverse_round(x, key)
    }
}

/// The last round, with `key` or what is to be added after it.
#[inline(always)]
fn last_round<E: Engine, const ENCRYPT: bool>(
    engine: E,
    x: E::Vector,
    key: E::Vector,
) -> E::Vector {
    if ENCRYPT {
        engine.last_round(x, key)
    } else {
        engine.last_inverse_round(x, key)
    }
}
