//! `essiv`: the sector's number, encrypted under a hash of the key.

use super::{Counted, Ivs};
use crate::block::{Keyed, Keying};
use crate::hash::EssivHash;
use crate::{IvSector, SectorLayout};

/// E[H(key)](n), n 64 bits, little endian, zero padded.
///
/// Source: Fruhwirth, New Methods in Hard Disk Encryption, 2005, section 2.4.4.
pub(crate) struct Essiv<const N: usize> {
    numbers: Counted,
    cipher: Keyed<N>,
}

impl<const N: usize> Essiv<N> {
    /// `keyed` makes the cipher from a key of the digest's length; `key` is
    /// the whole key of the data's mode.
    pub(crate) fn new(
        keyed: &Keying<N>,
        hash: EssivHash,
        key: &[u8],
        layout: SectorLayout,
    ) -> Self {
        Self {
            numbers: Counted::plain64(layout),
            cipher: keyed(&hash.digest(key)),
        }
    }
}

impl<const N: usize> Ivs<N> for Essiv<N> {
    fn fill(&self, first: IvSector, ivs: &mut [[u8; N]]) {
        self.numbers.fill(first, ivs);
        self.cipher.encrypt_blocks(ivs);
    }
}
