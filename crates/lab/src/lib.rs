//! Measures the cost of encryption: workloads, targets, trials, statistics,
//! records.
//!
//! A [`plan::Plan`] names systems and workloads. A [`session::Session`] opens
//! the systems as [`target::Target`]s over one extent and drives
//! [`trial::run`], the only timed code, which prints nothing. [`stats`] and
//! [`summary`] are pure functions that judge the samples. The outcome is a
//! [`record::Run`], which the [`store`] keeps. The crate `report` does the
//! printing. The project's other crates, apart from `block`, are imported only
//! in [`target`] and in code that parses the ciphers of a plan.

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
