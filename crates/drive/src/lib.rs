//! Drives that are not here: HDD, SSHD, SSD and flash, simulated in virtual
//! time and deterministic from a seed.

#![forbid(unsafe_code)]

pub mod analytic;
pub mod closed_loop;
pub mod demand;
mod error;
pub mod filter;
pub mod fragmented;
pub mod ftl;
pub mod hdd;
pub mod host;
pub mod lifetime;
pub mod preset;
pub mod replay;
pub mod ssd;
pub mod trace;
pub mod uniform;
pub mod workload;

pub use error::DriveError;
