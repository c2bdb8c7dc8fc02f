//! [`DriveError`]: drives that cannot be.

use thiserror::Error;

/// Why a drive cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DriveError {
    /// A number outside of what makes sense.
    #[error("{name} = {value} is not possible: it must be {possible}")]
    OutOfRange {
        /// The parameter, as the user names it.
        name: &'static str,
        /// The given value.
        value: String,
        /// The possible values.
        possible: &'static str,
    },
    /// More is asked for than the drive holds.
    #[error("the drive holds {capacity} bytes, but {needed} are needed")]
    TooSmall {
        /// Bytes of the drive.
        capacity: u64,
        /// Bytes that it should hold.
        needed: u64,
    },
    /// Too few spare pages to write anything a second time.
    #[error("{spare} spare pages are too few: cleaning needs {needed}")]
    NoSpare {
        /// Physical pages beyond the logical ones.
        spare: u64,
        /// The fewest that work.
        needed: u64,
    },
    /// The map of so large a flash does not fit this machine's memory.
    #[error("there is not enough memory for the map of {pages} pages, which takes {} MB", bytes / 1_000_000)]
    Memory {
        /// Physical pages.
        pages: u64,
        /// Bytes of the map.
        bytes: u64,
    },
    /// A description of a drive that cannot be read.
    #[error("{}{message}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Toml {
        /// Line from 1, where it is known.
        line: Option<usize>,
        /// The fault, as a sentence.
        message: String,
    },
    /// A name of no drive.
    #[error("unknown drive {name:?}")]
    NoPreset {
        /// The given name.
        name: String,
    },
    /// A word that names nothing.
    #[error("unknown {what} {given:?}; possible values: {known}")]
    Unknown {
        /// The kind of the name, such as `driver`.
        what: &'static str,
        /// The given value.
        given: String,
        /// The possible values.
        known: &'static str,
    },
}

impl DriveError {
    /// Nothing where the number that the user calls `name` `fits`.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] where it does not.
    pub(crate) fn require(
        fits: bool,
        name: &'static str,
        value: impl ToString,
        possible: &'static str,
    ) -> Result<(), Self> {
        let value = value.to_string();
        match fits {
            true => Ok(()),
            false => Err(Self::OutOfRange {
                name,
                value,
                possible,
            }),
        }
    }

    /// The remedy, as one sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::OutOfRange { .. } => "Choose a number in that range.",
            Self::TooSmall { .. } => {
                "Choose a larger drive, or a plan or `size` that needs less space."
            }
            Self::NoSpare { .. } => {
                "Give the drive more `over_provisioning`, or more and smaller blocks."
            }
            Self::Memory { .. } => {
                "Simulate fewer or larger pages; write amplification does not depend on their number."
            }
            Self::Unknown { .. } => "Choose one of these values.",
            Self::NoPreset { .. } => {
                "Choose one of the names in `cryptmark drive list`, or a file that ends in .toml."
            }
            Self::Toml { .. } => {
                "`cryptmark drive show mlc-128g` prints a valid description to copy and edit."
            }
        }
    }
}
