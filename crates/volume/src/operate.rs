//! Changes of volumes, each the same for Rust, C and Python.

mod keys;

pub use keys::{KeyOptions, KeySlotCost, NewKey, add_key, change_key, remove_key};
