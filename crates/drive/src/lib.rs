//! Drives that are not here: HDD, SSHD, SSD and flash, simulated in virtual
//! time and deterministic from a seed.

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
