//! BitLocker, of Windows Vista to 11, and BitLocker To Go.
//!
//! ```text
//! boot sector ─▶ metadata, three copies ─▶ protector ─▶ volume master key ─▶ key of the data
//! ```
//!
//! The plaintext is as long as the volume. Byte n of it is the decrypted byte n of the volume, with
//! three exceptions. The first sectors are stored elsewhere, because BitLocker's boot sector takes
//! their place. The metadata read as zeros. During a conversion, a part is not encrypted.
//!
//! Source: Metz, BitLocker Drive Encryption (BDE) format specification (libbde); cryptsetup,
//! `lib/bitlk`; dissect.fve, `bde`, for encrypt-on-write.

mod boot;
mod bytes;
mod conversion;
mod device;
mod header;
mod map;
mod protector;
mod queue;
mod recovery;
mod unlock;

pub use boot::Generation;
pub use conversion::{Conversion, ConversionState};
pub use device::{BitlkDevice, BitlkMapping};
pub use header::{CopyState, Header, Method};
pub use protector::{Protector, ProtectorKind};
pub use recovery::{RecoveryDamage, is_recovery_text};

pub(crate) use boot::has_signature;

use crate::{Damage, Format, VolumeError};

fn damaged(damage: Damage) -> VolumeError {
    VolumeError::damaged(Format::Bitlk, damage)
}

fn unsupported(feature: impl Into<Box<str>>) -> VolumeError {
    VolumeError::unsupported(Format::Bitlk, feature)
}
