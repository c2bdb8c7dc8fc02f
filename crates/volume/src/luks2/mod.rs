//! LUKS version 2: two copies of a binary header, each followed by JSON.
//!
//! Source: LUKS2 On-Disk Format Specification 1.1.x.

mod binary;
mod borrowed;
mod convert;
mod create;
mod json;
mod keyslots;
mod metadata;
mod numbers;
mod read;
mod recover;
mod recovery_key;
mod reencrypt;
mod rules;
mod to_luks1;
mod tokens;
mod unlock;
mod write;

pub use binary::{Binary, Place};
pub use borrowed::KeptHeader;
pub use create::{Creation, DataCipher};
pub use keyslots::KeyslotOptions;
pub use metadata::{
    Af, Config, Digest, Integrity, Keyslot, Metadata, PassphraseKeyslot, Priority, Segment,
    SegmentKind, SegmentSize, Verifier,
};
pub use read::{Header, Recovered};
pub use recover::{Certainty, Rebuilt};
pub use reencrypt::{Keys, Room, Target};
pub use to_luks1::wipe_copies;
pub use tokens::Token;

pub(crate) use read::has_second_copy;
