//! The portable DES and Triple DES, compiled for AVX2 and for AVX-512: a bit
//! of 256 or 512 blocks in one vector, and with AVX-512 any two gates in a row
//! that `vpternlogq` can take together in one instruction.

use super::{Avx2, Avx512};
use crate::Backend;
use crate::block::des::{Block, Cpu, RoundKey, decrypt, encrypt};

impl Cpu for Avx2 {
    const BACKEND: Backend = Backend::Avx2;

    fn encrypt(self, keys: &[RoundKey], blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX2.
        unsafe { encrypt_avx2(keys, blocks) }
    }

    fn decrypt(self, keys: &[RoundKey], blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX2.
        unsafe { decrypt_avx2(keys, blocks) }
    }
}

impl Cpu for Avx512 {
    const BACKEND: Backend = Backend::Avx512;

    fn encrypt(self, keys: &[RoundKey], blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX-512 F and VL.
        unsafe { encrypt_avx512(keys, blocks) }
    }

    fn decrypt(self, keys: &[RoundKey], blocks: &mut [Block]) {
        // SAFETY: `self` proves AVX-512 F and VL.
        unsafe { decrypt_avx512(keys, blocks) }
    }
}

#[target_feature(enable = "avx2")]
fn encrypt_avx2(keys: &[RoundKey], blocks: &mut [Block]) {
    encrypt::<4>(keys, blocks);
}

#[target_feature(enable = "avx2")]
fn decrypt_avx2(keys: &[RoundKey], blocks: &mut [Block]) {
    decrypt::<4>(keys, blocks);
}

#[target_feature(enable = "avx512f,avx512vl")]
fn encrypt_avx512(keys: &[RoundKey], blocks: &mut [Block]) {
    encrypt::<8>(keys, blocks);
}

#[target_feature(enable = "avx512f,avx512vl")]
fn decrypt_avx512(keys: &[RoundKey], blocks: &mut [Block]) {
    decrypt::<8>(keys, blocks);
}
