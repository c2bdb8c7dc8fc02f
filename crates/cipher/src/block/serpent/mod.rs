//! Serpent (Anderson, Biham, Knudsen 1998), bit-sliced and constant-time.
//!
//! The bit-slice form of section 3.2 of the paper: a block is four words, an
//! S-box a circuit over them, and no bit is ever permuted. On top, many blocks
//! are worked on together, each in a lane of its own.

#[cfg(target_arch = "x86_64")]
pub(crate) mod gates;
mod portable;
pub(crate) mod sbox;
#[cfg(target_arch = "x86_64")]
pub(crate) mod shallow;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vectors;
pub(crate) mod words;

use zeroize::Zeroize;

#[cfg(target_arch = "x86_64")]
pub(crate) use self::portable::one;
pub(crate) use self::portable::{decrypt, encrypt};
pub(crate) use self::sbox::Words;
use self::sbox::{COMPLEMENTS, forward};
use self::words::{add, mix};
use super::{Block, BlockCipher};
use crate::mode::{cbc, xts};

const ROUNDS: usize = 32;

/// K₀ … K₃₂, each with the complements that the S-box before it leaves.
pub(crate) type RoundKeys = [Words; ROUNDS + 1];

/// Who encrypts and decrypts, on which CPU.
pub(crate) trait Cpu: Copy + Send + Sync + 'static {
    /// What the circuits add to the true output of each S-box.
    const COMPLEMENTS: [Words; 8] = COMPLEMENTS;

    /// Encrypts every block in place.
    fn encrypt(self, keys: &RoundKeys, blocks: &mut [Block]);

    /// Decrypts every block in place.
    fn decrypt(self, keys: &RoundKeys, blocks: &mut [Block]);

    /// Does [`BlockCipher::encrypt_xts`].
    fn encrypt_xts(self, keys: &RoundKeys, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        xts::run(starts, sector_bytes, data, &|blocks| {
            self.encrypt(keys, blocks);
        });
    }

    /// Does [`BlockCipher::decrypt_xts`].
    fn decrypt_xts(self, keys: &RoundKeys, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        xts::run(starts, sector_bytes, data, &|blocks| {
            self.decrypt(keys, blocks);
        });
    }

    /// Does [`BlockCipher::encrypt_cbc`].
    fn encrypt_cbc(self, keys: &RoundKeys, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        cbc::encrypt(ivs, sector_bytes, data, &|blocks| {
            self.encrypt(keys, blocks);
        });
    }

    /// Does [`BlockCipher::decrypt_cbc`].
    fn decrypt_cbc(self, keys: &RoundKeys, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        cbc::decrypt(ivs, sector_bytes, data, &|blocks| {
            self.decrypt(keys, blocks);
        });
    }
}

/// Any CPU that the build is for.
#[derive(Clone, Copy)]
pub(crate) struct AnyCpu;

impl AnyCpu {
    /// A 512-byte sector.
    const LANES: usize = 32;
}

impl Cpu for AnyCpu {
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
        for (round, words) in round_keys[1..].iter_mut().enumerate() {
            let left = C::COMPLEMENTS[round % 8];
            let last = round == ROUNDS - 1;
            *words = add(*words, if last { left } else { mix(left) });
        }
        padded.zeroize();
        recent.zeroize();
        Self { cpu, round_keys }
    }
}

impl<C: Cpu> BlockCipher<16> for Serpent<C> {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        self.cpu.encrypt(&self.round_keys, blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        self.cpu.decrypt(&self.round_keys, blocks);
    }

    fn encrypt_xts(&self, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        let keys = &self.round_keys;
        self.cpu.encrypt_xts(keys, starts, sector_bytes, data);
    }

    fn decrypt_xts(&self, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        let keys = &self.round_keys;
        self.cpu.decrypt_xts(keys, starts, sector_bytes, data);
    }

    fn encrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        let keys = &self.round_keys;
        self.cpu.encrypt_cbc(keys, ivs, sector_bytes, data);
    }

    fn decrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        let keys = &self.round_keys;
        self.cpu.decrypt_cbc(keys, ivs, sector_bytes, data);
    }
}

impl<C> Drop for Serpent<C> {
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
