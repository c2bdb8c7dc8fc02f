//! Encrypted volumes: their headers, their mappings, and the device that encrypts and decrypts.
//!
//! A [`Mapping`] is plain data, like a line of `dmsetup table`. [`CryptDevice`] executes any
//! mapping over any [`block::BlockDevice`]. It is the only place where user data is encrypted or
//! decrypted, with one exception: [`SealedMapping`] and [`SealedDevice`] serve volumes whose
//! sectors have authentication tags. A [`Kdf`] makes a key from a passphrase, within [`Limits`].
//!
//! The order of work is header → key slot → volume key → mapping → device → sectors. The crate uses
//! ciphers and block devices; it opens no files, reads no clock and exports no devices.

#![forbid(unsafe_code)]

mod af;
mod allocation;
pub mod bestcrypt;
pub mod bitlk;
mod calibrate;
mod crc;
mod crypt;
pub mod cryptoloop;
mod damage;
mod draft;
mod error;
mod fields;
mod format;
pub mod fvault2;
mod hash;
mod integrity;
mod kdf;
mod keyslot;
pub mod loopaes;
mod luks;
pub mod luks1;
pub mod luks2;
mod luks_header;
mod mapping;
mod opening;
pub mod parts;
pub mod plain;
pub mod recall;
mod rest;
mod secret;
pub mod tcrypt;
mod unaligned;

pub use allocation::Allocation;
pub use calibrate::{KdfKind, Machine};
pub use crypt::CryptDevice;
pub use damage::Damage;
pub use draft::Draft;
pub use error::{Finisher, Instead, Untried, Verdict, VolumeError};
pub use fields::HeaderText;
pub use format::Format;
pub use hash::Hash;
pub use integrity::{SealedDevice, SealedMapping, SealedSpec};
pub use kdf::{Argon2Variant, Kdf, Limits};
pub use luks::checked_uuid;
pub use luks_header::{Loss, LuksHeader, Own};
pub use mapping::{Mapping, has_equal_halves};
pub use opening::{Access, Opened, Opening, Row, Storage};
pub use secret::{Given, Secret, Unlocked};
