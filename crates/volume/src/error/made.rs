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

/// What was chosen is not possible: what, and a sentence on what to choose instead.
pub(crate) fn impossible(what: impl Into<String>, instead: impl Into<String>) -> VolumeError {
    VolumeError::Impossible {
        what: what.into(),
        instead: instead.into(),
    }
}

/// Something that is there must be finished or moved away first: what, and a sentence on that.
pub(crate) fn standing(what: impl Into<String>, instead: impl Into<String>) -> VolumeError {
    VolumeError::Standing {
        what: what.into(),
        instead: instead.into(),
    }
}

/// The remedy for a key derivation that is too much work.
pub(crate) const TOO_MUCH: &str = "Do not open another person's volume that needs so much. If the \
                                   volume is yours, change the key slot with the program that \
                                   made it.";

/// The header of another version, and the key material with it, do not fit before the data.
pub(crate) fn conversion_room() -> VolumeError {
    impossible(
        "there is no room before the data for the LUKS2 header and the key material after it",
        "Remove a keyslot that you don't need any more. Or make a LUKS2 volume and copy the data with \
         `cryptmark volume export` and `cryptmark volume import`.",
    )
}

/// The data would begin in the header, or in its key material.
pub(crate) fn data_upon_header(format: Format) -> VolumeError {
    impossible(
        format!(
            "the data of this {} volume would overlap its own header",
            format.title()
        ),
        "If this is a detached header, name the file with the data as the volume, and this file with \
         `header`.",
    )
}

/// The keyslot that was named is none that a volume of this format has.
pub(crate) fn no_such_keyslot(slot: u32, last: u32) -> VolumeError {
    impossible(
        format!("there is no keyslot {slot}: the highest number for this format is {last}"),
        "Choose another `new_key_slot`, or omit it.",
    )
}

/// The keyslot holds a key that belongs to no data.
pub(crate) fn unbound_keyslot(slot: u32) -> VolumeError {
    impossible(
        format!("keyslot {slot} is unbound: its key does not belong to the data"),
        "Omit `key_slot`, or name a keyslot that is bound to the data.",
    )
}

/// A copy of the header would be written over something else, which has this name.
pub(crate) fn in_place_of_copy(name: String) -> VolumeError {
    standing(
        format!("the place for a copy of the header holds {name}"),
        "Nothing was changed. If that may be overwritten, first run `cryptmark volume header repair \
         --yes`.",
    )
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

    /// A volume of `format` that uses a `feature` which is not built in.
    pub(crate) fn unsupported(format: Format, feature: impl Into<Box<str>>) -> Self {
        let feature = feature.into();
        Self::Unsupported { format, feature }
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
