//! Measures the cost of encryption: workloads, targets, trials, statistics,
//! records.
//!
//! An [`experiment::Experiment`] names systems and workloads. A [`run::Request`] measures it and gives a
//! [`record::Run`]. [`stats`] judges the samples.
//!
//! The other modules serve the program `cryptmark` and are hidden from this documentation. They
//! change in any version: `session` opens the systems as targets over one extent and drives
//! `trial::run`, the only timed code, which prints nothing; `summary` makes the record's figures;
//! `store` keeps records. The project's other crates, apart from `block`, are imported only in
//! `target` and in code that parses the ciphers of a plan.
//!
//! # Example
//!
//! ```
//! use cryptmark_lab::experiment::Devices;
//! use cryptmark_lab::record::Verdict;
//! use cryptmark_lab::stats::{noise_floor, paired_ratio, verdict};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let plan = Devices::load("quick")?;
//! assert!(plan.ciphers.iter().any(|cipher| cipher == "aes-xts-plain64"));
//!
//! // MB/s of a workload, each pair measured one after the other.
//! let encrypted = [455.0, 461.0, 449.0, 458.0, 452.0, 460.0, 457.0];
//! let plain = [503.0, 512.0, 498.0, 507.0, 501.0, 510.0, 505.0];
//! let ratio = paired_ratio(&encrypted, &plain).ok_or("there is no pair")?;
//! println!("{:.3} of the plain rate, {:.3} to {:.3}", ratio.median, ratio.low, ratio.high);
//! assert_eq!(verdict(ratio, noise_floor(None)), Verdict::Slower);
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]

#[doc(hidden)]
#[allow(unsafe_code)]
pub mod clock;
#[doc(hidden)]
pub mod energy;
mod error;
#[doc(hidden)]
pub mod estimate;
pub mod experiment;
#[doc(hidden)]
pub mod file_system;
#[doc(hidden)]
pub mod import;
#[doc(hidden)]
#[cfg(target_os = "linux")]
pub mod kernel;
#[doc(hidden)]
pub mod probe;
#[doc(hidden)]
pub mod published;
pub mod record;
pub mod run;
#[doc(hidden)]
pub mod session;
#[doc(hidden)]
pub mod shard;
pub mod stats;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub mod summary;
#[doc(hidden)]
pub mod system;
#[doc(hidden)]
pub mod timer_cost;
#[doc(hidden)]
pub mod trial;
#[doc(hidden)]
pub mod workload;

pub use error::{LabError, Verdict};
