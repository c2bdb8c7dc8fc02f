//! The portable Serpent, compiled for AVX2 and for AVX-512.
//!
//! Its loops over lanes become vectors of 8 or 16 words. With AVX-512 a
//! rotation is one instruction, and so are any two gates in a row that
//! `vpternlogd` can take together.

use super::{Avx2, Avx512};
use crate::Backend;
use crate::block::Block;
use crate::block::serpent::{Cpu, RoundKeys, decrypt, encrypt};

/// Two vectors of each word: measured against four and eight, the fastest.
const AVX2_LANES: usize = 16;

/// A 512-byte sector.
const AVX512_LANES: usize = 32;

impl Cpu for Avx2 {
    const BACKEND: Backend = Backend::Avx2;

    fn encrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX2.
        unsafe { encrypt_avx2(keys, blocks) }
    }

    fn decrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX2.
        unsafe { decrypt_avx2(keys, blocks) }
    }
}

impl Cpu for Avx512 {
    const BACKEND: Backend = Backend::Avx512;

    fn encrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX-512 F and VL.
        unsafe { encrypt_avx512(keys, blocks) }
    }

    fn decrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX-512 F and VL.
        unsafe { decrypt_avx512(keys, blocks) }
    }
}

#[target_feature(enable = "avx2")]
fn encrypt_avx2(keys: &RoundKeys, blocks: &mut [Block]) {
    encrypt::<AVX2_LANES>(keys, blocks);
}

#[target_feature(enable = "avx2")]
fn decrypt_avx2(keys: &RoundKeys, blocks: &mut [Block]) {
    decrypt::<AVX2_LANES>(keys, blocks);
}

#[target_feature(enable = "avx512f,avx512vl")]
fn encrypt_avx512(keys: &RoundKeys, blocks: &mut [Block]) {
    encrypt::<AVX512_LANES>(keys, blocks);
}

#[target_feature(enable = "avx512f,avx512vl")]
fn decrypt_avx512(keys: &RoundKeys, blocks: &mut [Block]) {
    decrypt::<AVX512_LANES>(keys, blocks);
}
