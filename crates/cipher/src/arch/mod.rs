//! UNSAFE ROOM: code for CPUs that have more than the build asks for.
//!
//! # Safety case
//!
//! `unsafe` does two things here.
//!
//! It calls functions with `#[target_feature]`, intrinsics among them, from
//! code without. Such a call is undefined behaviour on a CPU without the
//! feature, and harmless on any other, because what is called is safe Rust:
//! it takes values, slices and references.
//!
//! That the CPU has the feature is proven by a value: `Avx2`, `Avx512`, `Avx512Bytes`, `ByGfni`,
//! `AesNi`, `Vaes256` and `Vaes512` on x86-64, `Neon` and `AesCe` on aarch64 have no bytes and a
//! private field, so only their `detect` makes them, after asking the CPU and the operating system;
//! `Avx2Planes`, `Avx512Bytes<true>`, `Narrow` and DES's `Turned` are made of them. A kernel is a
//! method of that value, so a caller always holds the proof. Features do not vanish while a program
//! runs, so a proof may be copied and kept.
//!
//! And it loads and stores vectors through pointers, each made in the same
//! line from a borrowed array of the vector's size, or from a shorter one with a
//! mask that has no more than it, by instructions that ask for no alignment.
//! SSE2, which every x86-64 has, needs no proof.

mod aes;
#[cfg(target_arch = "x86_64")]
mod camellia;
#[cfg(target_arch = "x86_64")]
mod des;
mod instructions;
#[cfg(target_arch = "aarch64")]
mod neon;
mod planes;
#[cfg(target_arch = "x86_64")]
mod polyval;
#[cfg(target_arch = "x86_64")]
mod registers;
#[cfg(target_arch = "x86_64")]
mod store;

pub(crate) use self::aes::{Aes, Engine as AesEngine};
#[cfg(target_arch = "aarch64")]
pub(crate) use self::{aes::AesCe, neon::Neon};
#[cfg(target_arch = "x86_64")]
pub(crate) use self::{
    aes::{AesNi, Vaes256, Vaes512},
    camellia::{Keys as CamelliaKeys, Layer as CamelliaLayer, Serial as CamelliaSerial},
    planes::{Avx2Planes, Avx512Bytes, ByAes, ByGfni, ByNibbles},
    registers::Sse2,
    store::store_block,
};

/// Proof that this CPU has AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

/// Proof that this CPU has AVX-512 with its foundation (F) and the shorter
/// vector lengths (VL).
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
        has.then_some(Self(()))
    }
}
