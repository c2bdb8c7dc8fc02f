//! [`Policy`]: which block is cleaned next.

use crate::DriveError;
use std::fmt;
use std::str::FromStr;

/// Which block is cleaned next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The one with the fewest valid pages.
    #[default]
    Greedy,
    /// The one that was filled first.
    Fifo,
    /// Any.
    Random,
    /// The one with the fewest valid pages of so many random ones.
    Choices(u32),
    /// The one with the highest age × (1 − u) ÷ 2u, where u is its share of
    /// valid pages (Rosenblum and Ousterhout 1991).
    CostBenefit,
}

const KNOWN: &str = "greedy, fifo, random, d-choices:N and cost-benefit";

impl FromStr for Policy {
    type Err = DriveError;

    fn from_str(given: &str) -> Result<Self, DriveError> {
        let unknown = || DriveError::Unknown {
            what: "cleaning policy",
            given: given.to_owned(),
            known: KNOWN,
        };
        match given {
            "greedy" => Ok(Self::Greedy),
            "fifo" => Ok(Self::Fifo),
            "random" => Ok(Self::Random),
            "cost-benefit" => Ok(Self::CostBenefit),
            _ => {
                let choices = given.strip_prefix("d-choices:").ok_or_else(unknown)?;
                let choices = choices.parse().map_err(|_| unknown())?;
                let fits = (1..=1024).contains(&choices);
                DriveError::require(fits, "d-choices", choices, "1 to 1024")?;
                Ok(Self::Choices(choices))
            }
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Greedy => f.write_str("greedy"),
            Self::Fifo => f.write_str("fifo"),
            Self::Random => f.write_str("random"),
            Self::Choices(choices) => write!(f, "d-choices:{choices}"),
            Self::CostBenefit => f.write_str("cost-benefit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        for word in ["greedy", "fifo", "random", "d-choices:10", "cost-benefit"] {
            let policy: Policy = word.parse().expect(word);
            assert_eq!(policy.to_string(), word);
        }
        for word in [
            "",
            "Greedy",
            "d-choices",
            "d-choices:",
            "d-choices:-1",
            "d-choices:0",
        ] {
            assert!(word.parse::<Policy>().is_err(), "{word}");
        }
    }
}
