//! Drives that are not here: HDD, SSHD, SSD and flash, simulated in virtual
//! time and deterministic from a seed.
//!
//! # Example
//!
//! ```
//! use block::{BlockDevice, RamDevice};
//! use cryptmark_drive::preset::Preset;
//! use cryptmark_drive::{SimulatedDevice, time};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! const SIZE: u64 = 16 << 20;
//! let disk = Preset::named("hdd-laptop-2003")?.drive(SIZE, 1)?;
//! let device = SimulatedDevice::new(disk, RamDevice::new(SIZE), None)?;
//!
//! device.write_at(SIZE / 2, &[7; 4096])?;
//! device.flush()?;
//! let mut read = [0; 4096];
//! device.read_at(SIZE / 2, &mut read)?;
//! assert_eq!(read, [7; 4096]);
//! // The disk's time has passed, and no time of this machine. It is counted in nanoseconds.
//! assert!(time::now() > 1_000_000);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod aged;
pub mod analytic;
pub mod demand;
mod device;
mod error;
mod filter;
pub mod flash;
pub mod fragmented;
pub mod ftl;
pub mod hdd;
pub mod host;
pub mod lifetime;
pub mod preset;
mod processor;
pub mod replay;
pub mod ssd;
pub mod time;
pub mod trace;
mod tune;
pub mod uniform;
pub mod workload;

pub use device::SimulatedDevice;
pub use error::DriveError;
pub use processor::{Driver, Processor};
