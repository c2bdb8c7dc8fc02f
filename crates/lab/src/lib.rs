//! What encryption costs: workloads, targets, trials, statistics, records.
//!
//! The only timed code is [`trial`], and it prints nothing. Statistics are
//! pure functions. Other crates of the house are imported only in [`target`].

pub mod record;
