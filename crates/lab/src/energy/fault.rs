//! [`Fault`]: why there is no figure.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a sensor gives no figure.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Fault {
    /// Its file belongs to root.
    #[error("only root may read {path}")]
    Denied {
        /// The file.
        path: PathBuf,
    },
    /// Its file has disappeared.
    #[error("{path} is gone")]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// Its file cannot be read for another reason.
    #[error("{path} cannot be read: {kind}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        kind: io::ErrorKind,
    },
    /// Its file does not hold a number.
    #[error("{path} does not hold a number")]
    NotANumber {
        /// The file.
        path: PathBuf,
    },
    /// It went back, and not because it began again at zero.
    #[error("the sensor {part} went backwards")]
    Backwards {
        /// The domain or the sensor.
        part: String,
    },
    /// It advanced by more than a machine can take.
    #[error("the sensor {part} jumped: {watts:.0} W are not possible")]
    Jump {
        /// The domain or the sensor.
        part: String,
        /// The power that this would have been, watts.
        watts: f64,
    },
    /// It was not read for so long that it may have begun again at zero more than once.
    #[error(
        "the sensor {part} was not read for {seconds:.0} s and may have wrapped more than once"
    )]
    Unwatched {
        /// The domain or the sensor.
        part: String,
        /// The time between two readings, seconds.
        seconds: f64,
    },
    /// It stood still while the machine worked.
    #[error("the sensor {part} stood still while the machine worked")]
    Stalled {
        /// The domain or the sensor.
        part: String,
    },
    /// No sensor has the name that was asked for.
    #[error("there is no energy sensor {name}")]
    Absent {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The battery is not the machine's source of power.
    #[error("the battery {part} is not discharging")]
    NotDischarging {
        /// The battery.
        part: String,
    },
    /// The stretch is too short for this sensor.
    #[error("the sensor needs {needed:.1} s for a figure, and the visit took less")]
    TooShort {
        /// The shortest stretch with a figure, seconds.
        needed: f64,
    },
    /// The sensor was not read at that time.
    #[error("the sensor was not read at that time")]
    Unread,
    /// Most of the stretch was not the timed part.
    #[error("most of a visit was preparation")]
    Untimed,
}

impl Fault {
    /// The fault of a file that could not be read.
    pub(super) fn reading(path: PathBuf, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied { path },
            // A sensor whose driver was unloaded answers with ENODEV.
            io::ErrorKind::NotFound => Self::Gone { path },
            kind => Self::Unreadable { path, kind },
        }
    }

    /// The remedy, as one sentence for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::Denied { path } => {
                format!("As root, run `chmod a+r {}`.", all_like(path).display())
            }
            Self::Gone { .. } | Self::Unreadable { .. } | Self::NotANumber { .. } => {
                "Load the sensor's driver again, or use another sensor.".to_owned()
            }
            Self::Absent { known, .. } if known.is_empty() => {
                "This machine has none, so use none.".to_owned()
            }
            Self::Absent { known, .. } => format!("Use one of: none, {}.", known.join(", ")),
            Self::NotDischarging { .. } => "Unplug the charger.".to_owned(),
            Self::TooShort { needed } => {
                format!("Use a plan whose repetitions take at least {needed:.0} s.")
            }
            Self::Unwatched { .. } | Self::Unread => {
                "Measure when the machine is less busy.".to_owned()
            }
            Self::Untimed => "Use a plan with longer repetitions.".to_owned(),
            Self::Backwards { .. } | Self::Jump { .. } | Self::Stalled { .. } => {
                "Use another sensor, because this one cannot be trusted.".to_owned()
            }
        }
    }
}

/// All counters of powercap if `path` is one of them, since a sum needs more than one.
fn all_like(path: &Path) -> PathBuf {
    match (path.file_name(), path.parent().and_then(Path::parent)) {
        (Some(file), Some(zones)) if file == "energy_uj" => zones.join("intel-rapl:*").join(file),
        _ => path.to_owned(),
    }
}
