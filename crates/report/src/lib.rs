//! Presents runs to readers: pure functions of records.
//!
//! Nothing here measures, judges, opens files or prints. Every function takes [`lab::record::Run`]
//! values, a [`lifetime::Lifetime`] or a [`fleet::FleetReport`], and returns text. Each section of
//! a report is written once, as a part of a document. `render` shows any document on a terminal, as
//! Markdown and as a page. A value that a record does not know (`None`, or not a number) is shown
//! as a dash, never as zero. Text from records is escaped for its output.
//!
//! # Example
//!
//! ```
//! use cryptmark_report::text::{Style, table};
//! use lab::record::{Interval, Run, Trial};
//!
//! // A run of one cell. The other fields say that nothing is known.
//! let trial = Trial {
//!     system: "none".into(),
//!     workload: "seq-1m-read".into(),
//!     op: "read".into(),
//!     block_bytes: Some(1 << 20),
//!     queue_depth: Some(8),
//!     throughput_mb_s: Interval { median: 520.0, low: 514.0, high: 527.0, n: 10 },
//!     ..Trial::default()
//! };
//! let run = Run { plan: "quick".into(), trials: vec![trial], ..Run::default() };
//! let text = table(&run, &Style::default());
//! assert!(text.contains("seq-1m-read") && text.contains("520 MB/s"));
//! ```

#![forbid(unsafe_code)]

pub mod advice;
pub mod columns;
pub mod compare;
pub mod csv;
pub mod fleet;
pub mod html;
pub mod json;
pub mod lifetime;
pub mod markdown;
pub mod proposal;
pub mod text;
pub mod window;

mod benchmark;
mod beside;
mod chart;
mod ciphers;
mod document;
mod energy;
mod exposure;
mod figure;
mod file_systems;
mod group;
mod kdf;
mod marks;
mod render;
mod run;
mod steady;
mod sweep;
