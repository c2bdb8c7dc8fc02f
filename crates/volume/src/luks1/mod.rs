//! LUKS version 1.
//!
//! Source: LUKS1 On-Disk Format Specification 1.2.3.

mod header;
mod recover;
mod relocate;
mod unlock;
mod write;

pub use header::{Header, Keyslot, Outline, Texts};
pub use write::Creation;
