//! The portable Serpent, compiled for NEON.

use super::Neon;
use crate::block::Block;
use crate::block::serpent::{Cpu, RoundKeys, decrypt, encrypt};

/// Two vectors of each word.
const LANES: usize = 8;

impl Cpu for Neon {
    fn encrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        // SAFETY: `self` proves NEON.
        unsafe { encrypt_neon(keys, blocks) }
    }

    fn decrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        // SAFETY: `self` proves NEON.
        unsafe { decrypt_neon(keys, blocks) }
    }
}

#[target_feature(enable = "neon")]
fn encrypt_neon(keys: &RoundKeys, blocks: &mut [Block]) {
    encrypt::<LANES>(keys, blocks);
}

#[target_feature(enable = "neon")]
fn decrypt_neon(keys: &RoundKeys, blocks: &mut [Block]) {
    decrypt::<LANES>(keys, blocks);
}
