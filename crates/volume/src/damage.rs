//! [`Damage`]: what is wrong with a header, named so that it can be found.

use std::sync::Arc;
use thiserror::Error;

/// Why a header cannot be used. `field` is the name that the format's
/// specification gives it, in JSON with the way to it: `keyslots.0.area.size`.
#[derive(Clone, Debug, Error)]
pub enum Damage {
    /// The device ends before the header does.
    #[error("it needs {needed} bytes, and has only {got}")]
    Short {
        /// Bytes of the header.
        needed: u64,
        /// Bytes that there are.
        got: u64,
    },
    /// A number that makes no sense.
    #[error("`{field}` is {value}, and {rule}")]
    Number {
        /// Its name.
        field: Box<str>,
        /// Its value.
        value: u64,
        /// The rule for it.
        rule: Box<str>,
    },
    /// Bytes that are too many or too few.
    #[error("`{field}` is {bytes} bytes long, and {rule}")]
    Length {
        /// Their name.
        field: Box<str>,
        /// How many there are.
        bytes: usize,
        /// How many there must be.
        rule: Box<str>,
    },
    /// A text that is none of those that the format has.
    #[error("`{field}` is `{}`, which is not known", printable(.value))]
    Unknown {
        /// Its name.
        field: Box<str>,
        /// The text.
        value: Box<str>,
    },
    /// A value of the wrong kind.
    #[error("`{field}` is not {expected}")]
    Kind {
        /// Its name.
        field: Box<str>,
        /// The expected value, with its article.
        expected: &'static str,
    },
    /// Something that must be there is not.
    #[error("`{field}` is missing")]
    Missing {
        /// Its name.
        field: Box<str>,
    },
    /// Two areas share bytes.
    #[error("{first} and {second} overlap")]
    Overlap {
        /// One of them.
        first: Box<str>,
        /// The other.
        second: Box<str>,
    },
    /// The checksum is not that of the bytes.
    #[error("the checksum of {what} is wrong")]
    Checksum {
        /// The part that the checksum covers, with its article.
        what: &'static str,
    },
    /// The metadata is not JSON, or more of it than a header needs.
    #[error("its metadata is not usable JSON: {0}")]
    Json(#[source] Arc<serde_json::Error>),
}

/// Two are the same if they say the same.
impl PartialEq for Damage {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Damage {}

impl Damage {
    pub(crate) fn number(
        field: impl Into<Box<str>>,
        value: impl Into<u64>,
        rule: impl Into<Box<str>>,
    ) -> Self {
        Self::Number {
            field: field.into(),
            value: value.into(),
            rule: rule.into(),
        }
    }

    pub(crate) fn unknown(field: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        Self::Unknown {
            field: field.into(),
            value: value.into(),
        }
    }

    pub(crate) fn length(
        field: impl Into<Box<str>>,
        bytes: usize,
        rule: impl Into<Box<str>>,
    ) -> Self {
        Self::Length {
            field: field.into(),
            bytes,
            rule: rule.into(),
        }
    }

    pub(crate) fn kind(field: impl Into<Box<str>>, expected: &'static str) -> Self {
        let field = field.into();
        Self::Kind { field, expected }
    }

    pub(crate) fn missing(field: impl Into<Box<str>>) -> Self {
        let field = field.into();
        Self::Missing { field }
    }

    pub(crate) fn overlap(first: impl Into<Box<str>>, second: impl Into<Box<str>>) -> Self {
        let (first, second) = (first.into(), second.into());
        Self::Overlap { first, second }
    }

    pub(crate) const fn checksum(what: &'static str) -> Self {
        Self::Checksum { what }
    }
}

/// The beginning of a text out of a header, with nothing in it that a terminal
/// would obey.
pub(crate) fn printable(text: &str) -> String {
    const LONGEST: usize = 40;
    let shown: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { '·' } else { c })
        .collect();
    match text.chars().nth(LONGEST) {
        Some(_) => shown + "…",
        None => shown,
    }
}
