//! LUKS version 1.
//!
//! Source: LUKS1 On-Disk Format Specification 1.2.3.

mod header;
mod unlock;

pub use header::{Header, Keyslot};
