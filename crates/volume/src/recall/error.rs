//! [`RecallError`]: a search that cannot begin.

use super::pattern::UnknownSet;
use super::{Layout, MOST_CANDIDATES};
use crate::Format;

/// Why there is nothing to search for. No message has a part of the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecallError {
    /// The format cannot tell a right secret from a wrong one.
    #[error("{} cannot tell a right passphrase or key file from a wrong one", .0.title())]
    Unchecked(Format),
    /// The secret is a volume key, not a passphrase or key file.
    #[error("a volume key is not a passphrase or a key file")]
    VolumeKey,
    /// The pattern is not text.
    #[error("the pattern is not one line of UTF-8 text")]
    NotText,
    /// A key file that is not text has no keys of a keyboard.
    #[error("the key file is not text, so it was not typed on a keyboard")]
    NotTyped,
    /// A backslash stands before something else than `?`, `[`, `]` and another backslash.
    #[error("character {at} of the pattern is a backslash before an ordinary character")]
    Escape {
        /// Its number, from 1.
        at: usize,
    },
    /// A set has no end.
    #[error("the set that begins at character {at} of the pattern has no end")]
    Unclosed {
        /// Its number, from 1.
        at: usize,
    },
    /// A set cannot be read.
    #[error("character {at} of the pattern begins a set that cannot be read: {why}")]
    Set {
        /// Its number, from 1.
        at: usize,
        /// The mistake in it.
        why: UnknownSet,
    },
    /// A layout needs AltGr for a character, or has no such key.
    #[error(
        "a character of the passphrase needs AltGr or a key that {} or {} keyboard lacks",
        meant.title(),
        typed_on.title()
    )]
    NoKey {
        /// The layout that was meant.
        meant: Layout,
        /// The layout that was there.
        typed_on: Layout,
    },
    /// There are more candidates than may be tried.
    #[error("there are {} candidates, and the maximum is 2^40", told(*.0))]
    Many(u128),
    /// The characters beyond ASCII combine in too many ways.
    #[error("the pattern has too many places for characters beyond ASCII")]
    Tangled,
}

/// A count that may have reached the end of its type.
fn told(count: u128) -> String {
    match count {
        u128::MAX => "more than 10^38".to_owned(),
        count => {
            debug_assert!(count > u128::from(MOST_CANDIDATES));
            count.to_string()
        }
    }
}

impl RecallError {
    /// The remedy, in one sentence.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Unchecked(_) => {
                "Open it with each passphrase or key file in turn, and look at what it holds."
            }
            Self::VolumeKey => "Give a passphrase, or a key file with `key_file`.",
            Self::NotText => "Type the pattern, or save the file as UTF-8.",
            Self::NotTyped => "Omit `typed_on` and `meant`.",
            Self::Escape { .. } => "Write two backslashes for one backslash.",
            Self::Unclosed { .. } => "Close it with ], or write \\[ for a bracket.",
            Self::Set { .. } => "Write a set as [abc] or [a-c]. For a bracket, write \\[.",
            Self::NoKey { .. } => {
                "Check both layouts. `meant` is the layout that types the passphrase as you give it."
            }
            Self::Many(_) => {
                "Give more of the passphrase, or fewer `characters`, or a smaller range of PIMs."
            }
            Self::Tangled => "Use fewer characters beyond ASCII in sets.",
        }
    }
}
