//! LUKS version 2: two copies of a binary header, each followed by JSON.
//!
//! [`Header`] makes volumes, changes their keys and reencrypts them. [`Volume`](crate::Volume)
//! opens them. The caller knows that the device may be changed, and keeps a copy of a header before
//! it changes keys.
//!
//! Source: LUKS2 On-Disk Format Specification 1.1.x.
//!
//! # Example
//!
//! A new volume gets a second passphrase, and then another volume key.
//!
//! ```
//! use cipher::{Key, SectorSize};
//! use cryptmark_volume::luks2::{Creation, Header, Keys, KeyslotOptions, Target};
//! use cryptmark_volume::{Hash, Kdf, Limits, Secret};
//! use std::ops::ControlFlow;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let disk = block::RamDevice::new(17 << 20);
//! // `KdfKind::calibrated` finds the iterations that take this machine two seconds.
//! let kdf = Kdf::Pbkdf2 { hash: Hash::Sha256, iterations: 1000 };
//! let creation = Creation { label: "backup".into(), ..Creation::new(kdf) };
//! let first = Key::from_slice(b"correct horse");
//! let volume_key = Key::random(creation.key_bytes)?;
//! let mut header = Header::create(&disk, &creation, &volume_key, &first)?;
//!
//! let second = Key::from_slice(b"battery staple");
//! let slot = header.add_key(&disk, &volume_key, &second, &creation.keyslot, None)?;
//!
//! let target = Target {
//!     spec: "serpent-xts-plain64".parse()?,
//!     sector_size: SectorSize::default(),
//!     keyslot: KeyslotOptions::new(kdf),
//! };
//! let keys = Keys { old: volume_key, new: Key::random(64)? };
//! // Keyslots that are not named here are lost, if the last argument accepts that.
//! let kept = [(0, &first), (slot, &second)];
//! header.begin_reencryption(&disk, &disk, &target, &keys, &kept, &[])?;
//! // It can be stopped at any time, and goes on with `Header::read` and `unlock_both`.
//! header.reencrypt(&disk, &disk, &keys, &|bytes| {
//!     println!("{bytes} bytes are done");
//!     ControlFlow::Continue(())
//! })?;
//!
//! let secret = Secret::Passphrase(second);
//! let unlocked = header.unlock(&disk, &secret, None, &Limits::default())?;
//! assert_eq!(unlocked.key.as_bytes(), keys.new.as_bytes());
//! # Ok(())
//! # }
//! ```

mod binary;
mod borrowed;
mod convert;
mod create;
mod json;
mod keyslots;
mod metadata;
mod numbers;
mod read;
mod recover;
mod recovery_key;
mod reencrypt;
mod rules;
mod to_luks1;
mod tokens;
mod unlock;
mod write;

pub use create::{Creation, DataCipher};
pub use keyslots::KeyslotOptions;
pub use read::Header;
pub use reencrypt::{Keys, Target};

// What the header says, and repairs of it, for the program.
#[doc(hidden)]
pub use binary::{Binary, Place};
#[doc(hidden)]
pub use borrowed::KeptHeader;
#[doc(hidden)]
pub use metadata::{
    Af, Config, Crypt, Digest, Integrity, Keyslot, Metadata, PassphraseKeyslot, Priority, Segment,
    SegmentKind, Verifier,
};
#[doc(hidden)]
pub use read::Recovered;
#[doc(hidden)]
pub use recover::{Certainty, OtherCopy, Rebuilt};
#[doc(hidden)]
pub use reencrypt::Room;
pub(crate) use to_luks1::own_copies;
#[doc(hidden)]
pub use to_luks1::wipe_copies;
#[doc(hidden)]
pub use tokens::Token;

pub(crate) use convert::document;
pub(crate) use read::has_second_copy;

use crate::{Format, VolumeError};

fn unsupported(feature: impl Into<Box<str>>) -> VolumeError {
    VolumeError::unsupported(Format::Luks2, feature)
}
