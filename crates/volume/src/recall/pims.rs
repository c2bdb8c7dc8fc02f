//! [`Pims`]: one of VeraCrypt's multipliers, or a range of them.

use std::str::FromStr;

/// PIMs one after the other, both ends included: `485`, or `400..600`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pims {
    first: u32,
    last: u32,
}

/// The error of a text that is not a PIM or a range of PIMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give a whole number, or a range from smaller to larger such as 400..600")]
pub struct UnknownPims;

impl Pims {
    /// The smallest.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// The largest.
    pub const fn last(self) -> u32 {
        self.last
    }

    /// The only PIM, if the range has just one.
    pub const fn only(self) -> Option<u32> {
        match self.first == self.last {
            true => Some(self.first),
            false => None,
        }
    }

    /// How many there are.
    pub(super) const fn count(self) -> u64 {
        (self.last - self.first) as u64 + 1
    }

    /// The one with this number, from 0.
    pub(super) const fn nth(self, number: u64) -> u32 {
        self.first + number as u32
    }
}

impl From<u32> for Pims {
    fn from(pim: u32) -> Self {
        Self {
            first: pim,
            last: pim,
        }
    }
}

impl FromStr for Pims {
    type Err = UnknownPims;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse().map_err(|_| UnknownPims);
        let (first, last) = match text.split_once("..") {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(text)?, number(text)?),
        };
        match first <= last {
            true => Ok(Self { first, last }),
            false => Err(UnknownPims),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges() {
        let range: Pims = "400..600".parse().unwrap();
        assert_eq!((range.count(), range.nth(200)), (201, 600));
        assert_eq!(range.only(), None);
        let one: Pims = "7".parse().unwrap();
        assert_eq!((one.only(), one.count()), (Some(7), 1));
        assert_eq!("3..3".parse::<Pims>().unwrap().only(), Some(3));
        for text in ["", "..", "5..4", "5..", "-1", "1..2..3", "4294967296", "a"] {
            assert_eq!(text.parse::<Pims>(), Err(UnknownPims), "{text}");
        }
    }
}
