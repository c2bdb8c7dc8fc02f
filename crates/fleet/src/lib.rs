//! Many hosts: what engines that people already run take to run an experiment.
//!
//! The experiment and its shards are [`lab::shard`]'s, what is stored is
//! [`lab::store`]'s; here are the scripts and manifests. An engine starts shards,
//! tries those again that failed, and moves those whose host is gone: a shard that
//! runs twice is stored once.

#![forbid(unsafe_code)]

pub mod kubernetes;
pub mod slurm;
