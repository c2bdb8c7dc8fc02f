//! `essiv`: the sector's number, encrypted under a hash of the key.

use super::{Counted, Ivs};
use crate::block::BlockCipher;
use crate::hash::EssivHash;
use crate::{IvSector, SectorLayout};

/// E[H(key)](n), n 64 bits, little endian, zero padded.
///
/// Source: Fruhwirth, New Methods in Hard Disk Encryption, 2005, section 2.4.4.
pub(crate) struct Essiv<C> {
    numbers: Counted,
    cipher: C,
}

impl<C> Essiv<C> {
    /// `keyed` makes the cipher from a key of the digest's length; `key` is
    /// the whole key of the data's mode.
    pub(crate) fn new(
        keyed: impl Fn(&[u8]) -> C,
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

impl<C: BlockCipher<N>, const N: usize> Ivs<N> for Essiv<C> {
    fn fill(&self, first: IvSector, ivs: &mut [[u8; N]]) {
        self.numbers.fill(first, ivs);
        self.cipher.encrypt_blocks(ivs);
    }
}
