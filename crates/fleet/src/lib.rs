//! Many hosts: what engines that people already run take to run an experiment, and
//! what programs that people already have take to analyse its results.
//!
//! The experiment and its shards are [`lab::shard`]'s, what is stored is
//! [`lab::store`]'s; here are the scripts and manifests. An engine starts shards,
//! tries those again that failed, and moves those whose host is gone: a shard that
//! runs twice is stored once. Results leave as Parquet ([`export`]), and reports on
//! many hosts are queries over that (`report`).

#![forbid(unsafe_code)]

pub mod columns;
mod error;
pub mod export;
pub mod kubernetes;
#[cfg(feature = "report")]
pub mod report;
pub mod slurm;
mod storage;

pub use error::FleetError;
pub use storage::{Storage, is_url};
