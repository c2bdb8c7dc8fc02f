//! BestCrypt 8 and 9 containers (`.jbc`).
//!
//! Jetico publishes no specification. The header, key slots and key derivation are known from its
//! former Linux source release. The numbering of the data's sectors is not known, and is guessed
//! here. The guess is trusted only if a known file system shows, and the data are never written.
//!
//! Source: openwall's bestcrypt2john and its format, for facts.

mod header;
mod pkcs12;
mod unlock;

pub use header::{Header, Keyslot, KeyslotKind};

pub(crate) use header::has_signature;
