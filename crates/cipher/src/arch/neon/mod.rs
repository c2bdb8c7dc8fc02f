//! NEON, which nearly every aarch64 CPU has, and PMULL.
//!
//! Words and bytes of a register are taken to lie in memory as they count, so
//! the proofs are for little-endian builds only.

use std::arch::is_aarch64_feature_detected;

mod polyval;
mod registers;
mod tweaks;

/// Proof that this CPU has NEON.
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let has = cfg!(target_endian = "little") && is_aarch64_feature_detected!("neon");
        has.then_some(Self(()))
    }
}
