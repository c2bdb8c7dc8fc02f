//! BestCrypt 8 and 9 containers (`.jbc`).
//!
//! Jetico publishes no specification. Header, keyslots and key derivation are
//! known from its former Linux source release; how sectors of the data are
//! numbered is not, and is guessed here: what comes of it is believed only where
//! a known file system shows, and never written.
//!
//! Source: openwall's bestcrypt2john and its format, for facts.

mod header;
mod pkcs12;
mod unlock;

pub use header::{Header, Keyslot, KeyslotKind};

pub(crate) use header::has_signature;
