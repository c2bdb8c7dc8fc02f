//! BYTES → BYTES. Knows sectors and keys; no files, no clocks.
//!
//! A [`CipherSpec`], parsed from dm-crypt's notation, is the only way to a cipher. With a [`Key`]
//! and a [`SectorLayout`] it gives a [`KeyedCipher`], which encrypts and decrypts runs of sectors
//! in place.
//!
//! # Example
//!
//! ```
//! use cryptmark_cipher::{CipherSpec, IvSector, Key, SectorCipher, SectorLayout};
//!
//! let spec: CipherSpec = "aes-xts-plain64".parse()?;
//! let key = Key::random(spec.default_key_size())?;
//! let cipher = spec.cipher(&key, SectorLayout::default(), None)?;
//!
//! // Two equal sectors, from number 8 of the device on.
//! let mut sectors = [7; 2 * 512];
//! cipher.encrypt(IvSector::new(8), &mut sectors);
//! assert_ne!(sectors[..512], sectors[512..]);
//! cipher.decrypt(IvSector::new(8), &mut sectors);
//! assert_eq!(sectors, [7; 2 * 512]);
//! # Ok::<(), cryptmark_cipher::CipherError>(())
//! ```

#![deny(unsafe_code)]

mod algorithm;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[allow(unsafe_code)]
mod arch;
mod assembly;
mod backend;
mod block;
mod cascade;
#[cfg(target_arch = "x86_64")]
mod choice;
mod error;
mod hash;
mod iv;
mod key;
mod mode;
mod multikey;
mod notation;
mod parallel;
#[cfg(any(test, feature = "reference"))]
#[doc(hidden)]
pub mod reference;
mod sector;
mod spec;
mod stack;
mod weakness;
mod work;

pub use algorithm::Algorithm;
pub use backend::Backend;
pub use error::CipherError;
pub use hash::EssivHash;
pub use iv::IvGenerator;
pub use key::Key;
pub use mode::{Mode, StreamCipher};
pub use parallel::Sharing;
#[doc(hidden)]
pub use parallel::in_threads;
pub use sector::{IvSector, KeyedCipher, SectorCipher, SectorLayout, SectorSize};
pub use spec::CipherSpec;
pub use weakness::Weakness;
