//! [`ShardNumber`].

use super::ShardError;
use std::fmt;
use std::str::FromStr;

/// The number of a shard and the number of all shards, `3/40`. If the starter
/// counts from zero, as Kubernetes does, it is `2+1/40`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardNumber {
    /// From 1.
    pub index: u32,
    /// How many.
    pub of: u32,
}

impl FromStr for ShardNumber {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let parse = || {
            let (index, of) = text.split_once('/')?;
            let (index, more) = match index.strip_suffix("+1") {
                Some(index) => (index, 1),
                None => (index, 0),
            };
            let number = |text: &str| {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse::<u32>().ok().filter(|_| digits)
            };
            Some(Self {
                index: number(index)?.checked_add(more)?,
                of: number(of)?,
            })
        };
        let number = parse().ok_or_else(|| ShardError::Number(text.to_owned()))?;
        match number.index {
            index if index >= 1 && index <= number.of => Ok(number),
            _ => Err(ShardError::OutOfRange {
                number,
                of: number.of,
            }),
        }
    }
}

impl fmt::Display for ShardNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}
