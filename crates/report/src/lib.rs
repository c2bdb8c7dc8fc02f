//! Presents runs to readers: pure functions of records.
//!
//! Nothing here measures, judges, opens files or prints. Every function takes [`lab::record::Run`]
//! values, a [`lifetime::Lifetime`] or a [`fleet::FleetReport`], and returns text. Each section of
//! a report is written once, as a part of a document. `render` shows any document on a terminal, as
//! Markdown and as a page. A value that a record does not know (`None`, or not a number) is shown
//! as a dash, never as zero. Text from records is escaped for its output.

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
mod figure;
mod file_systems;
mod group;
mod kdf;
mod marks;
mod render;
mod run;
mod steady;
mod sweep;
