//! Measures the cost of encryption: workloads, targets, trials, statistics,
//! records.
//!
//! A [`plan::Plan`] names systems and workloads. A [`session::Session`] opens
//! the systems as [`target::Target`]s over one extent and drives
//! [`trial::run`], the only timed code, which prints nothing. [`stats`] and
//! [`summary`] are pure functions that judge the samples. The outcome is a
//! [`record::Run`], which the [`store`] keeps. The crate `report` does the
//! printing. A [`run::Request`] does all of this up to the record. The project's
//! other crates, apart from `block`, are imported only in [`target`] and in code
//! that parses the ciphers of a plan.
//!
//! # Example
//!
//! ```
//! use cryptmark_lab::plan::Plan;
//! use cryptmark_lab::record::Verdict;
//! use cryptmark_lab::stats::{noise_floor, paired_ratio, verdict};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let plan = Plan::load("quick")?;
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

#[allow(unsafe_code)]
pub mod clock;
pub mod energy;
pub mod estimate;
pub mod file_system;
pub mod import;
#[cfg(target_os = "linux")]
pub mod kernel;
pub mod plan;
pub mod probe;
pub mod published;
pub mod record;
pub mod run;
pub mod session;
pub mod shard;
pub mod stats;
pub mod store;
pub mod summary;
pub mod sweep;
pub mod target;
pub mod timer_cost;
pub mod trial;
pub mod workload;
