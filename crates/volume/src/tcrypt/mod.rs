//! TrueCrypt and VeraCrypt: a header of 512 bytes that looks like noise, whose
//! cipher and key derivation are found by trying.
//!
//! ```text
//! version 4 and 5      0 header    65536 hidden header    131072 data …
//!                      … end − 131072 header's copy    end − 65536 hidden header's copy
//! version 1 to 3       0 header    512 data …    end − 1536 hidden header
//! system encryption    31744 header, on the disk that the partition is on
//! ```
//!
//! Source: VeraCrypt, "Volume Format Specification" and "Header Key
//! Derivation"; TrueCrypt 3.1a to 7.1a for what came before.

mod create;
mod header;
mod keyfiles;
mod layers;
mod prf;
mod rekey;
mod rewrite;
mod seal;
mod search;
#[cfg(test)]
mod tests;
mod unlock;

pub use create::Creation;
pub use header::Header;
pub use keyfiles::Keyfiles;
pub use layers::specs;
pub use prf::Prf;
pub use rekey::Rekeyed;
pub(crate) use rewrite::forget;
pub use rewrite::stranger_at_start;
pub use seal::Sealing;
pub use search::Watch;
pub use unlock::{Opening, Unlocked};

use crate::Format;

/// Which of the two programs a volume is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// TrueCrypt, with the magic `TRUE`.
    TrueCrypt,
    /// VeraCrypt, with the magic `VERA`.
    VeraCrypt,
}

impl Family {
    /// The format's name.
    pub const fn format(self) -> Format {
        match self {
            Self::TrueCrypt => Format::Tcrypt,
            Self::VeraCrypt => Format::Veracrypt,
        }
    }

    const fn magic(self) -> &'static [u8; 4] {
        match self {
            Self::TrueCrypt => b"TRUE",
            Self::VeraCrypt => b"VERA",
        }
    }

    /// The longest passphrase, bytes.
    const fn longest_passphrase(self) -> usize {
        match self {
            Self::TrueCrypt => 64,
            Self::VeraCrypt => 128,
        }
    }
}

/// Which header, and so which volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The normal volume's, at the start.
    Normal,
    /// The copy of the normal volume's, near the end.
    NormalBackup,
    /// The hidden volume's: behind the normal one's, or near the end as
    /// TrueCrypt had it before version 6.
    Hidden,
    /// The copy of the hidden volume's, near the end.
    HiddenBackup,
    /// That of an encrypted system, before the first partition of its disk.
    System,
}

/// Length of a header, bytes: the salt, then what is encrypted.
const HEADER_BYTES: u64 = 512;
const SALT_BYTES: usize = 64;

/// The length of the area at either end that holds the headers or their copies, bytes, from version
/// 4 on.
pub const HEADERS_BYTES: u64 = 131_072;
const HIDDEN_AT: u64 = 65_536;
const OLD_HIDDEN_BEFORE_END: u64 = 1536;
const SYSTEM_AT: u64 = 31_744;

/// TrueCrypt's data unit, bytes. It does not depend on the sector size of the volume.
const UNIT: u64 = 512;

impl Place {
    /// Where such a header may begin on a device of `size` bytes.
    fn offsets(self, family: Family, size: u64) -> Vec<u64> {
        let before_end = |bytes| size.checked_sub(bytes);
        let places = match (self, family) {
            (Self::Normal, _) => [Some(0), None],
            (Self::NormalBackup, _) => [before_end(HEADERS_BYTES), None],
            (Self::Hidden, Family::TrueCrypt) => {
                [Some(HIDDEN_AT), before_end(OLD_HIDDEN_BEFORE_END)]
            }
            (Self::Hidden, Family::VeraCrypt) => [Some(HIDDEN_AT), None],
            (Self::HiddenBackup, _) => [before_end(HIDDEN_AT), None],
            (Self::System, _) => [Some(SYSTEM_AT), None],
        };
        places.into_iter().flatten().collect()
    }

    /// Where the copy of such a header is, if there is one.
    pub const fn copy(self) -> Option<Self> {
        match self {
            Self::Normal => Some(Self::NormalBackup),
            Self::Hidden => Some(Self::HiddenBackup),
            Self::NormalBackup | Self::HiddenBackup | Self::System => None,
        }
    }

    /// Whether it is one of a hidden volume.
    pub const fn is_hidden(self) -> bool {
        matches!(self, Self::Hidden | Self::HiddenBackup)
    }
}
