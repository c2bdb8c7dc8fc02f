//! What encryption costs: workloads, targets, trials, statistics, records.
//!
//! A [`plan::Plan`] names systems and workloads; a [`session::Session`] opens
//! the systems as [`target::Target`]s over one extent and drives
//! [`trial::run`], the only timed code, which prints nothing; [`stats`] and
//! [`summary`] judge as pure functions; the outcome is a [`record::Run`],
//! kept by the [`store`]. Printing is `report`'s business. The other crates of
//! the house, apart from `block`, are imported only in [`target`] and where a
//! plan names ciphers.

#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod clock;
pub mod estimate;
pub mod file_system;
pub mod import;
#[cfg(target_os = "linux")]
pub mod kernel;
pub mod plan;
pub mod probe;
pub mod published;
pub mod record;
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
