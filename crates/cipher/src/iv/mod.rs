//! IV generators: from a sector's number to the IV of its mode, and what some
//! of them do to the data besides.

mod counted;
mod elephant;
mod essiv;
mod lmk;
mod tcw;

use std::fmt;

pub(crate) use self::counted::Counted;
pub(crate) use self::elephant::Elephant;
pub(crate) use self::essiv::Essiv;
pub(crate) use self::lmk::{Lmk, SEED_BYTES};
pub(crate) use self::tcw::{Tcw, WHITENING_BYTES};

use crate::hash::EssivHash;
use crate::{IvSector, SectorLayout};

/// How a sector's number n becomes an IV; dm-crypt's `ivmode`.
///
/// Numbers are little endian from the IV's first byte on, the rest zeros,
/// unless said otherwise.
///
/// Source: Linux, Documentation/admin-guide/device-mapper/dm-crypt.rst and
/// drivers/md/dm-crypt.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IvGenerator {
    /// Zeros for every sector: `null`.
    Null,
    /// n modulo 2³²: `plain`.
    Plain,
    /// n, 64 bits: `plain64`.
    Plain64,
    /// n, 64 bits, big endian in the last 8 bytes: `plain64be`.
    Plain64Be,
    /// n, 64 bits, encrypted under the hash of the key: `essiv:HASH`.
    Essiv(EssivHash),
    /// The number of the sector's first block, counted from 1, 64 bits, big
    /// endian in the last 8 bytes: `benbi`.
    Benbi,
    /// n times the sector size, as the data cipher encrypts a block of zeros
    /// under that IV: `eboiv`.
    Eboiv,
    /// As `eboiv`, after BitLocker's diffusers over the sector: `elephant`.
    Elephant,
    /// loop-AES: the MD5 state after the sector from its 17th byte on: `lmk`.
    Lmk,
    /// TrueCrypt's CBC: n added to a secret, and whitened ciphertext: `tcw`.
    Tcw,
}

impl IvGenerator {
    /// Every generator, `essiv` with its usual hash.
    pub const ALL: [Self; 10] = [
        Self::Plain64,
        Self::Plain,
        Self::Plain64Be,
        Self::Essiv(EssivHash::Sha256),
        Self::Benbi,
        Self::Null,
        Self::Eboiv,
        Self::Elephant,
        Self::Lmk,
        Self::Tcw,
    ];

    /// dm-crypt's name, without the parameter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Plain => "plain",
            Self::Plain64 => "plain64",
            Self::Plain64Be => "plain64be",
            Self::Essiv(_) => "essiv",
            Self::Benbi => "benbi",
            Self::Eboiv => "eboiv",
            Self::Elephant => "elephant",
            Self::Lmk => "lmk",
            Self::Tcw => "tcw",
        }
    }

    /// Whether no load or branch depends on the key or the data, as far as it
    /// is the generator's.
    pub(crate) const fn is_constant_time(self) -> bool {
        match self {
            Self::Essiv(hash) => hash.is_constant_time(),
            _ => true,
        }
    }

    /// Whether the IV can be computed without a key.
    pub(crate) const fn is_public(self) -> bool {
        matches!(
            self,
            Self::Null | Self::Plain | Self::Plain64 | Self::Plain64Be | Self::Benbi
        )
    }
}

impl fmt::Display for IvGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Essiv(hash) => f.pad(&format!("essiv:{hash}")),
            _ => f.pad(self.name()),
        }
    }
}

/// A keyed IV generator for a mode whose IVs have `N` bytes.
///
/// `data` are the sectors from `first` on, as many as there are `ivs`. Most
/// generators only fill; the others see, and may change, the data before and
/// after the mode does.
pub(crate) trait Ivs<const N: usize>: Send + Sync {
    /// Writes the IV of each sector from `first` on.
    fn fill(&self, first: IvSector, ivs: &mut [[u8; N]]);

    /// Whether the IV is what the mode makes of a block of zeros under
    /// [`fill`](Self::fill)'s.
    fn through_mode(&self) -> bool {
        false
    }

    /// Fills and prepares plaintext.
    fn before_encryption(&self, first: IvSector, _data: &mut [u8], ivs: &mut [[u8; N]]) {
        self.fill(first, ivs);
    }

    /// Finishes ciphertext.
    fn after_encryption(&self, _first: IvSector, _data: &mut [u8]) {}

    /// Fills and prepares ciphertext.
    fn before_decryption(&self, first: IvSector, _data: &mut [u8], ivs: &mut [[u8; N]]) {
        self.fill(first, ivs);
    }

    /// Finishes plaintext.
    fn after_decryption(&self, _first: IvSector, _data: &mut [u8]) {}
}

/// The sectors of `data` and their numbers.
fn numbered(
    first: IvSector,
    layout: SectorLayout,
    data: &mut [u8],
) -> impl Iterator<Item = (u64, &mut [u8])> {
    data.chunks_exact_mut(layout.size.bytes())
        .enumerate()
        .map(move |(nth, sector)| (first.advance(nth as u64, layout).get(), sector))
}
