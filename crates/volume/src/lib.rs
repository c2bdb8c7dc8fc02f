//! Encrypted volumes: their headers, their mappings, and the device that encrypts and decrypts.
//!
//! A [`Volume`] opens the volume at a path, and reads and writes like a file. [`operate`] makes
//! volumes, changes their keys, reencrypts, converts and resizes them. [`info`] says what headers
//! say, and [`judge`] whether something may be written.
//!
//! A [`Mapping`] is plain data, like a line of `dmsetup table`. [`CryptDevice`] executes any
//! mapping over any [`block::BlockDevice`]. A [`Kdf`] makes a key from a passphrase, within
//! [`Limits`]. The crate reads no clock and exports no devices.
//!
//! The modules of other formats serve the program `cryptmark` and are hidden from this
//! documentation. They change in any version. User data is encrypted and decrypted only in
//! [`CryptDevice`], and in `SealedDevice` for sectors with authentication tags.
//!
//! # Example
//!
//! ```
//! # use cryptmark_volume::luks2::{Creation, Header};
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
//! # let first = Key::from_slice(b"correct horse");
//! # Header::create(&disk, &Creation::new(kdf), &Key::random(64)?, &first)?;
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

#[macro_use]
mod named;

mod af;
mod allocation;
mod beside;
#[doc(hidden)]
pub mod bestcrypt;
#[doc(hidden)]
pub mod bitlk;
mod calibrate;
mod crc;
mod crypt;
#[doc(hidden)]
pub mod cryptoloop;
mod damage;
mod draft;
mod error;
mod fields;
mod format;
#[doc(hidden)]
pub mod fvault2;
mod hash;
pub mod info;
mod integrity;
pub mod judge;
mod kdf;
mod key_text;
mod keyslot;
mod locked;
#[doc(hidden)]
pub mod loopaes;
mod luks;
#[doc(hidden)]
pub mod luks1;
pub mod luks2;
mod luks_header;
mod mapping;
mod opening;
pub mod operate;
mod parameters;
#[doc(hidden)]
pub mod parts;
mod place;
#[doc(hidden)]
pub mod plain;
#[doc(hidden)]
pub mod recall;
#[doc(hidden)]
pub mod request;
mod rest;
mod secret;
mod steady;
#[doc(hidden)]
pub mod tcrypt;
mod unaligned;
mod unfinished;
mod volume;
mod warning;

pub use calibrate::{KdfKind, Machine};
pub use crypt::CryptDevice;
pub use damage::Damage;
pub use error::{Instead, Untried, Verdict, VolumeError};
pub use format::Format;
pub use hash::Hash;
pub use kdf::{Argon2Variant, Kdf, Limits, Stop};
pub use mapping::Mapping;
pub use opening::Access;
pub use parameters::Parameters;
pub use place::{Files, Opener, Place, Site};
pub use secret::{Given, Secret, Unlocked};
#[doc(hidden)]
pub use secret::{check_secret_source, open_secret, read_key};
pub use tcrypt::{Keyfiles, Watch};
pub use unfinished::{Unfinished, unfinished};
pub use volume::{OpenOptions, Volume};
pub use warning::Warning;

// For the program.
#[doc(hidden)]
pub use allocation::Allocation;
#[doc(hidden)]
pub use beside::{Meanwhile, check_beside, check_new_name, side_header};
#[doc(hidden)]
pub use draft::Draft;
#[doc(hidden)]
pub use fields::HeaderText;
#[doc(hidden)]
pub use format::is_unsupported;
#[doc(hidden)]
pub use integrity::{SealedDevice, SealedMapping, SealedSpec};
#[doc(hidden)]
pub use locked::Locked;
#[doc(hidden)]
pub use luks::checked_uuid;
#[doc(hidden)]
pub use luks_header::{Loss, LuksHeader, Own};
#[doc(hidden)]
pub use opening::{Opened, Opening, Row, Storage, Terms};
#[doc(hidden)]
pub use place::{HEADER_FILE, NewFile, check_opened, check_settled, open_file};
#[doc(hidden)]
pub use volume::{check_searched, detect, wrapped};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/rust-and-c.md")]
struct HowTo;
