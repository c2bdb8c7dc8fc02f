//! Serpent (Anderson, Biham, Knudsen 1998), bit-sliced and constant-time.
//!
//! The bit-slice form of section 3.2 of the paper: a block is four words, an
//! S-box a circuit over them, and no bit is ever permuted. On top, many blocks
//! are worked on together, each in a lane of its own.

mod gates;
mod sbox;
mod shallow;
mod vectors;
mod words;

use zeroize::Zeroize;

use self::sbox::{COMPLEMENTS, Words, forward};
use self::vectors::{Blocks, DecryptCbc, EncryptCbc, Xts};
use self::words::{add, mix};
use super::registers::Registers;
use super::{Block, BlockCipher};
use crate::mode::cbc::encrypt_few;

const ROUNDS: usize = 32;

/// K₀ … K₃₂, each with the complements that the S-box before it leaves.
type RoundKeys = [Words; ROUNDS + 1];

/// Blocks that are better off in [narrow](Registers::Narrow) registers.
const FEW: usize = 4;

/// Serpent with a key of 128, 192 or 256 bits.
pub(crate) struct Serpent<R> {
    cpu: R,
    round_keys: RoundKeys,
}

impl<R: Registers> Serpent<R> {
    /// The cipher under a key of 16, 24 or 32 bytes, section 4 of the paper.
    pub(crate) fn new(key: &[u8], cpu: R) -> Self {
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
        for (round, words) in round_keys[1..].iter_mut().enumerate() {
            let left = match R::TERNARY {
                true => [0; 4],
                false => COMPLEMENTS[round % 8],
            };
            let last = round == ROUNDS - 1;
            *words = add(*words, if last { left } else { mix(left) });
        }
        padded.zeroize();
        recent.zeroize();
        Self { cpu, round_keys }
    }
}

impl<R: Registers> Serpent<R> {
    fn crypt<const ENCRYPT: bool>(&self, blocks: &mut [Block]) {
        let keys = &self.round_keys;
        let few = blocks.len() <= FEW;
        match blocks {
            // A rotation by two shifts takes longer than a block's own words do.
            [block] if !R::TERNARY => words::one::<ENCRYPT>(keys, block),
            _ if few => self.cpu.narrow().enter(Blocks::<ENCRYPT> { keys, blocks }),
            _ => self.cpu.enter(Blocks::<ENCRYPT> { keys, blocks }),
        }
    }
}

impl<R: Registers> BlockCipher<16> for Serpent<R> {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        self.crypt::<true>(blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        self.crypt::<false>(blocks);
    }

    fn encrypt_xts(&self, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.cpu.enter(Xts::<true> {
            keys: &self.round_keys,
            starts,
            sector_bytes,
            data,
        });
    }

    fn decrypt_xts(&self, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.cpu.enter(Xts::<false> {
            keys: &self.round_keys,
            starts,
            sector_bytes,
            data,
        });
    }

    fn encrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        let keys = &self.round_keys;
        let work = EncryptCbc {
            keys,
            ivs,
            sector_bytes,
            data,
        };
        match ivs {
            [iv] if !R::TERNARY => {
                encrypt_few(&[*iv], work.data, |[block]| words::one::<true>(keys, block));
            }
            few if few.len() <= FEW => self.cpu.narrow().enter(work),
            _ => self.cpu.enter(work),
        }
    }

    fn decrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.cpu.enter(DecryptCbc {
            keys: &self.round_keys,
            ivs,
            sector_bytes,
            data,
        });
    }
}

impl<R> Drop for Serpent<R> {
    fn drop(&mut self) {
        self.round_keys.zeroize();
    }
}

/// S-box `i`, true to the paper.
fn substitute(i: usize, x: Words) -> Words {
    let y = match i {
        0 => forward::<0, u32>(x),
        1 => forward::<1, u32>(x),
        2 => forward::<2, u32>(x),
        3 => forward::<3, u32>(x),
        4 => forward::<4, u32>(x),
        5 => forward::<5, u32>(x),
        6 => forward::<6, u32>(x),
        _ => forward::<7, u32>(x),
    };
    add(y, COMPLEMENTS[i])
}
