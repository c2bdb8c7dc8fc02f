//! How others see a device: over NBD, as a file by FUSE, as a disk by ublk.
//!
//! An [`Export`] is any [`BlockDevice`](block::BlockDevice), byte by byte, with
//! what the protocols promise of it. Nothing here knows of encryption.

#![deny(unsafe_code)]

mod export;
mod flushes;
pub mod fuse;
pub mod nbd;
#[cfg(all(feature = "ublk", target_os = "linux"))]
pub mod ublk;

pub use block::Extent;
pub use export::{Access, Export, Failures, Lane, Zeros};
