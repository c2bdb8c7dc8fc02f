//! Encrypted volumes: their headers, their mappings, and the device that encrypts and decrypts.
//!
//! A [`Mapping`] is plain data, like a line of `dmsetup table`. [`CryptDevice`] executes any
//! mapping over any [`block::BlockDevice`]. It is the only place where user data is encrypted or
//! decrypted, with one exception: [`SealedMapping`] and [`SealedDevice`] serve volumes whose
//! sectors have authentication tags. A [`Kdf`] makes a key from a passphrase, within [`Limits`].
//!
//! The order of work is header → key slot → volume key → mapping → device → sectors. The crate uses
//! ciphers and block devices; it opens no files, reads no clock and exports no devices.
//!
//! # Example
//!
//! `disk` is any device with a LUKS2 volume, such as a [`block::FileDevice`].
//!
//! ```
//! # use cipher::{Key, SectorSize};
//! # use cryptmark_volume::luks2::{Creation, DataCipher, Header, KeyslotOptions};
//! # use cryptmark_volume::{Hash, Kdf};
//! use block::BlockDevice;
//! use cryptmark_volume::{Access, Limits, Opening, Secret};
//! use std::ops::ControlFlow;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let disk = block::RamDevice::new(17 << 20);
//! # let kdf = Kdf::Pbkdf2 { hash: Hash::Sha256, iterations: 1000 };
//! # let creation = Creation {
//! #     cipher: DataCipher::Plain("aes-xts-plain64".parse()?),
//! #     key_bytes: 64,
//! #     sector_size: SectorSize::default(),
//! #     keyslot: KeyslotOptions::new(kdf),
//! #     data_offset: None,
//! #     detached: false,
//! #     label: String::new(),
//! #     subsystem: String::new(),
//! #     uuid: None,
//! # };
//! # Header::create(&disk, &creation, &Key::random(64)?, &Key::from_slice(b"correct horse"))?;
//! let passphrase = Secret::Passphrase(Key::from_slice(b"correct horse"));
//! let opening = Opening::Luks2 { slot: None };
//! let (limits, go_on) = (Limits::default(), |_| ControlFlow::Continue(()));
//! // The header is on the same device as the data.
//! let opened = opening.unlock(&disk, &disk, &passphrase, Access::Write, &limits, &go_on)?;
//! let volume = opened.device(&disk, &disk)?;
//!
//! volume.write_at(0, &[7; 512])?;
//! let mut sector = [0; 512];
//! volume.read_at(0, &mut sector)?;
//! assert_eq!(sector, [7; 512]);
//! # Ok(())
//! # }
//! ```

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
