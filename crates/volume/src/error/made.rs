//! How errors of headers and keyslots are made.

use super::{Untried, VolumeError};
use crate::damage::printable;
use crate::{Damage, Format, Given, Secret};

/// The keyslots that were not tried, behind another sentence.
pub(super) fn also(untried: &[Untried]) -> String {
    const MOST: usize = 3;
    let named = |untried: &Untried| match &*untried.why {
        VolumeError::UnusableKeyslot { slot, damage } => format!("; keyslot {slot}: {damage}"),
        named @ (VolumeError::IgnoredKeyslot { .. } | VolumeError::NullKeyslot { .. }) => {
            format!("; {named}")
        }
        why => format!("; keyslot {}: {why}", untried.slot),
    };
    let mut text: String = untried.iter().take(MOST).map(named).collect();
    if untried.len() > MOST {
        text += &format!("; and {} more", untried.len() - MOST);
    }
    text
}

impl VolumeError {
    /// A header of `format` that cannot be used because of `damage`. It is damaged or cut off, or
    /// of a kind that is unknown here.
    pub(crate) fn damaged(format: Format, damage: Damage) -> Self {
        match damage {
            Damage::Short { needed, got } => Self::Cut {
                format,
                needed,
                got,
            },
            Damage::Unknown { field, value } => Self::Unsupported {
                format,
                feature: format!("`{}` as its `{field}`", printable(&value)).into(),
            },
            damage => Self::Header { format, damage },
        }
    }

    /// The error of writing a header or its copy.
    pub(crate) fn rewritten(error: Self) -> Self {
        Self::Rewritten {
            error: Box::new(error),
        }
    }

    /// No keyslot opened, of those that were tried if any were.
    pub(crate) fn none_fits(
        format: Format,
        secret: &Secret,
        tried: bool,
        mut untried: Vec<Untried>,
    ) -> Self {
        match (tried, untried.len()) {
            (true, 0) => Self::NoKeyslotFits {
                given: Given::of(secret),
            },
            (true, _) => Self::KeyslotsUntried { untried },
            (false, 0) => Self::NoKeyslot { format },
            (false, 1) => *untried.remove(0).why,
            (false, _) => Self::NoUsableKeyslot { untried },
        }
    }
}
