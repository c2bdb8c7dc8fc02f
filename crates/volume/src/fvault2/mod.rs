//! FileVault 2 on Core Storage, of Mac OS X 10.7 to macOS 10.12.
//!
//! ```text
//! physical volume's header ─▶ disk label ─▶ encrypted metadata: extents, name, size, keys
//! passphrase or recovery key ─▶ key-encrypting key ─▶ volume key
//! ```
//!
//! The metadata are encrypted with a key that is stored next to them. For a start disk, the wrapped
//! keys are in a file on another partition (`EncryptedRoot.plist.wipekey`). Such a volume opens
//! only with its volume key.
//!
//! Source: Metz, FileVault Drive Encryption (FVDE) (libfvde); cryptsetup, `lib/fvault2`.

mod context;
mod header;
mod metadata;
mod unlock;

pub use context::User;
pub use header::{Extent, Header};

pub(crate) use metadata::has_signature;

use crate::{Damage, Format, VolumeError};

fn damaged(damage: Damage) -> VolumeError {
    VolumeError::damaged(Format::Fvault2, damage)
}

fn unsupported(feature: impl Into<Box<str>>) -> VolumeError {
    VolumeError::unsupported(Format::Fvault2, feature)
}
