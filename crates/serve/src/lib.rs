//! How others see a device: over NBD, as a file by FUSE, as a disk by ublk.
//!
//! An [`Export`] is any [`BlockDevice`](block::BlockDevice), byte by byte, with
//! what the protocols promise of it. Nothing here knows of encryption.
//!
//! # Example
//!
//! ```
//! use block::{BlockDevice, RamDevice};
//! use serve::nbd::{Named, NbdDevice, Place, Server};
//! use serve::{Access, Export};
//! use std::sync::Arc;
//! use std::thread;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let export = Arc::new(Export::new(Arc::new(RamDevice::new(1 << 20)), Access::Write));
//! let disk = Named { name: "disk".into(), description: String::new(), export };
//! let place = Place::Unix(folder.path().join("socket"));
//! let server = Server::listen(place.clone(), vec![disk], 4)?;
//! let end = server.end();
//! let serving = thread::spawn(move || server.run());
//!
//! let client = NbdDevice::connect(&place, "disk")?;
//! client.write_at(0, &[7; 512])?;
//! // The server answers what it has received, and flushes the device.
//! end.now();
//! serving.join().expect("it does not panic")?;
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod disk;
mod export;
mod flushes;
pub mod fuse;
pub mod nbd;
#[cfg(target_os = "linux")]
pub mod service;
#[cfg(all(feature = "ublk", target_os = "linux"))]
pub mod ublk;

pub use block::Extent;
pub use export::{Access, Export, Failures, Lane, Zeros};
