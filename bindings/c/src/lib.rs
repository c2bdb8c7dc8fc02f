//! `libcryptmark`: encrypted volumes for programs in C.
//!
//! `include/cryptmark.h` is made from this crate by cbindgen.
//!
//! # Safety
//!
//! This crate is a room for unsafe code, because pointers come from C. The header says at its
//! beginning what they have to be, and a function says what else it needs. That cannot be checked
//! here. What can be checked is: a null pointer is refused. Objects are boxes that were given away by `Box::into_raw`, and
//! come back once, in the function that frees them. Buffers are used during the call alone. A panic
//! becomes an error at the edge, in [`error::guarded`].

#![allow(non_camel_case_types, reason = "these are names of C")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the header says it in words for C"
)]

mod error;
mod operate;
mod options;
#[cfg(target_os = "linux")]
mod server;
mod text;
mod volume;

pub use error::*;
pub use operate::*;
pub use options::*;
#[cfg(target_os = "linux")]
pub use server::*;
pub use text::*;
pub use volume::*;
