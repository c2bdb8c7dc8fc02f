//! How others see a device: over NBD, as a file by FUSE, as a disk by ublk.
//!
//! An [`Export`] is any [`BlockDevice`](block::BlockDevice), byte by byte, with
//! what the protocols promise of it. Nothing here knows of encryption.

#![forbid(unsafe_code)]

mod export;
pub mod fuse;
pub mod nbd;

pub use export::{Access, Export, Extent, Lane, Zeros};
