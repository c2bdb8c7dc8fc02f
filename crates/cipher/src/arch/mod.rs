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
//! That the CPU has the feature is proven by a value: [`Avx2`], [`Avx512`],
//! [`Avx512Bytes`], [`AesNi`], [`Vaes256`] and [`Vaes512`] have no bytes and a
//! private field, so only their `detect` makes them, after asking the CPU and the operating
//! system. A kernel is a method of that value; whoever can call it holds the
//! proof. Features do not vanish while a program runs, so a proof may be
//! copied and kept.
//!
//! And it loads and stores vectors through pointers, each made in the same
//! line from a borrowed array of the vector's size, by instructions that ask
//! for no alignment.

mod aes;
mod des;
mod lanes;
mod planes;
mod polyval;
mod registers;
mod serpent;

pub(crate) use self::aes::{Aes, AesNi, Engine as AesEngine, Vaes256, Vaes512};
pub(crate) use self::planes::Avx512Bytes;

/// Proof that this CPU has AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

/// Proof that this CPU has AVX-512 with its foundation (F) and the shorter
/// vector lengths (VL).
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
        has.then_some(Self(()))
    }
}
