//! [`ImportError`]: results that cannot be read.

use thiserror::Error;

/// Why a result of another program is not taken over.
#[derive(Debug, Error)]
pub enum ImportError {
    /// None of the formats that are known.
    #[error("this is neither a run of cryptmark nor a result that cryptmark can read")]
    Unknown,
    /// An output that is recognised and not read.
    #[error("this is an output of {tool}, which cryptmark does not read")]
    Unread {
        /// The program.
        tool: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// Several results of the same work in one text.
    #[error("it has several results of {what}, and does not say whether they are repetitions")]
    Several {
        /// The work.
        what: String,
    },
    /// A text would change the terminal that it is printed to.
    #[error("its text contains control characters")]
    Control,
    /// JSON that is broken, or has other fields than the program writes.
    #[error("its JSON cannot be read")]
    Json(#[from] serde_json::Error),
    /// XML that is broken.
    #[error("its XML cannot be read")]
    Xml(#[from] roxmltree::Error),
    /// A run of another version of this program.
    #[error(
        "the run has schema {found}, and this program reads {}",
        crate::record::SCHEMA
    )]
    Schema {
        /// The schema that the file states.
        found: String,
    },
    /// Numbers that no measurement gives.
    #[error("this cannot have been measured: {what}")]
    Impossible {
        /// Which.
        what: String,
    },
    /// A line with a result that cannot be read.
    #[error("line {number} cannot be read")]
    Line {
        /// From 1.
        number: usize,
    },
    /// fio before version 3 counts in other units.
    #[error("it was written by {version}, whose units differ from those of fio 3")]
    OldFio {
        /// As the file says it.
        version: String,
    },
    /// Nothing was measured to its end.
    #[error("there is no finished measurement in this result of {tool}")]
    Empty {
        /// The program.
        tool: &'static str,
    },
    /// Files of several programs.
    #[error("results of {first} and of {second} cannot be combined into one run")]
    Mixed {
        /// The program of the first file.
        first: &'static str,
        /// The other program.
        second: &'static str,
    },
}

impl ImportError {
    /// The remedy, as one sentence for the user.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unknown => {
                "Give JSON of cryptmark, fio or hyperfine, text of CrystalDiskMark, KDiskMark or cryptsetup benchmark, or XML of DiskSpd (-Rxml)."
            }
            Self::Unread { instead, .. } => instead,
            Self::Several { .. } => {
                "Give each result as a file of its own: of several files of one command, the same work counts as repeated."
            }
            Self::Control
            | Self::Json(_)
            | Self::Xml(_)
            | Self::Impossible { .. }
            | Self::Line { .. } => "Give the file exactly as the program wrote it.",
            Self::Schema { .. } => "Measure again with this version of cryptmark.",
            Self::OldFio { .. } => "Measure with fio 3 or later.",
            Self::Empty { .. } => "Let the measurement finish, then import it.",
            Self::Mixed { .. } => "Import the results of each program separately.",
        }
    }
}
