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
//! A [`Volume`] is all of this in one: it opens the volume at a path, and reads and writes like a
//! file.
//!
//! # Example
//!
//! ```
//! # use cipher::SectorSize;
//! # use cryptmark_volume::luks2::{Creation, DataCipher, Header, KeyslotOptions};
//! # use cryptmark_volume::{Hash, Kdf};
//! use cipher::Key;
//! use cryptmark_volume::{Access, OpenOptions, Secret, Volume};
//! use std::io::{Read, Seek, SeekFrom, Write};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = &folder.path().join("disk.img");
//! # std::fs::File::create(path)?.set_len(17 << 20)?;
//! # let options = block::FileOptions { write: true, ..block::FileOptions::default() };
//! # let disk = block::FileDevice::open(path, &options)?;
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
//! # drop(disk);
//! let secret = Secret::Passphrase(Key::from_slice(b"correct horse"));
//! let options = OpenOptions { access: Access::Write, ..OpenOptions::default() };
//! let mut volume = Volume::open(path, Some(&secret), &options)?;
//! assert_eq!(volume.info()["format"], "luks2");
//!
//! volume.seek(SeekFrom::Start(1000))?;
//! volume.write_all(b"any bytes at any place")?;
//! volume.flush()?;
//!
//! let mut bytes = [0; 9];
//! volume.read_at(1000, &mut bytes)?;
//! assert_eq!(&bytes, b"any bytes");
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
pub mod info;
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
mod parameters;
pub mod parts;
pub mod plain;
pub mod recall;
mod rest;
mod secret;
pub mod tcrypt;
mod unaligned;
mod volume;

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
pub use parameters::{EARLIER_PLAIN, Parameters};
pub use secret::{Given, Secret, Unlocked};
pub use volume::{OpenOptions, Volume, side_header};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/rust-and-c.md")]
struct HowTo;
