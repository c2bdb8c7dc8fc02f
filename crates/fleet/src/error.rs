//! The errors of places for trials, and their remedies.

use object_store::Error as Refusal;
use parquet::errors::ParquetError;
use std::io;
use std::path::PathBuf;

/// Trials that cannot be exported or reported on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// A URL of a kind that is not known.
    #[error("{place} cannot hold trials")]
    NoPlace {
        /// As the user wrote it, without secrets.
        place: String,
    },
    /// The environment says too little or nonsense about an object store.
    #[error("cannot use {place}")]
    Setting {
        /// The place.
        place: String,
        /// The missing or wrong setting.
        source: Refusal,
    },
    /// A folder cannot be made or is none.
    #[error("cannot use the folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Wrong or expired credentials, or no right to do it.
    #[error("{place} refuses access to this user")]
    Credentials {
        /// The place.
        place: String,
        /// The error of the place.
        source: Refusal,
    },
    /// There is no such bucket, container or folder.
    #[error("{place} does not exist")]
    Absent {
        /// The place.
        place: String,
        /// The error of the place.
        source: Refusal,
    },
    /// It cannot be reached, is full, or failed.
    #[error("{place} failed")]
    Failed {
        /// The place.
        place: String,
        /// The error of the place.
        source: Refusal,
    },
    /// A run cannot be written as Parquet.
    #[error("cannot write run {run} as Parquet")]
    Unwritable {
        /// Id of the run.
        run: String,
        /// Why.
        source: ParquetError,
    },
    /// The runtime that object stores need could not start.
    #[error("cannot start the runtime for network access")]
    Runtime {
        /// The error of the system.
        source: io::Error,
    },
    /// No trial is there.
    #[cfg(feature = "report")]
    #[error("{place} has no trials to report on")]
    Empty {
        /// The place.
        place: String,
    },
    /// A Parquet file there is of another program, or damaged.
    #[cfg(feature = "report")]
    #[error("{object} in {place} was not exported by cryptmark, or is damaged")]
    Foreign {
        /// The place.
        place: String,
        /// The object.
        object: String,
    },
    /// Trials there were exported by a newer version.
    #[cfg(feature = "report")]
    #[error("{place} has trials of table version {found}; this program knows up to {known}")]
    Newer {
        /// The place.
        place: String,
        /// The newest version found.
        found: u64,
        /// The newest version that this program reads.
        known: u64,
    },
    /// A query failed.
    #[cfg(feature = "report")]
    #[error("cannot report on {place}")]
    Query {
        /// The place.
        place: String,
        /// Why.
        source: Box<datafusion::error::DataFusionError>,
    },
}

impl FleetError {
    /// The error for a refusal by `place`.
    pub(crate) fn of(place: &str, source: Refusal) -> Self {
        let place = place.to_owned();
        // Stores say 400 for what has expired, and name it only in their words.
        const WORDS: [&str; 4] = [
            "ExpiredToken",
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "AuthenticationFailed",
        ];
        let words = source.to_string();
        match source {
            Refusal::PermissionDenied { .. } | Refusal::Unauthenticated { .. } => {
                Self::Credentials { place, source }
            }
            _ if WORDS.iter().any(|word| words.contains(word)) => {
                Self::Credentials { place, source }
            }
            Refusal::NotFound { .. } => Self::Absent { place, source },
            _ if words.contains("NoSuchBucket") || words.contains("ContainerNotFound") => {
                Self::Absent { place, source }
            }
            source => Self::Failed { place, source },
        }
    }

    /// The remedy, as one line.
    pub fn remedy(&self) -> String {
        match self {
            Self::NoPlace { .. } => {
                "Name a folder, or a URL: s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH."
                    .into()
            }
            Self::Setting { .. } => {
                "Set the missing variables in the environment: AWS_…, GOOGLE_… or AZURE_…. \
                 docs/PARQUET.md lists the names."
                    .into()
            }
            Self::Folder { .. } => "Name a folder that you own, or that you may create.".into(),
            Self::Credentials { .. } => {
                "Renew the credentials in the environment (AWS_…, GOOGLE_…, AZURE_…), or ask for \
                 permission to read and write there."
                    .into()
            }
            Self::Absent { .. } => "Check the name. Buckets, containers and folders must exist \
                                    before you read from them."
                .into(),
            Self::Failed { .. } => {
                "Check the address, the network and the free space, then run the command again. \
                 Files already written are complete and are overwritten."
                    .into()
            }
            Self::Unwritable { run, .. } => {
                format!("Report this with `cryptmark show {run} --json`.")
            }
            Self::Runtime { .. } => "Check the limits on threads and open files.".into(),
            #[cfg(feature = "report")]
            Self::Empty { .. } => "Measure first with `cryptmark run`, or export trials to that \
                                   place with `cryptmark export --parquet`."
                .into(),
            #[cfg(feature = "report")]
            Self::Foreign { .. } => "Move it elsewhere, or name a folder to which only `cryptmark \
                                     export` writes."
                .into(),
            #[cfg(feature = "report")]
            Self::Newer { .. } => "Install the newest cryptmark on this machine too.".into(),
            #[cfg(feature = "report")]
            Self::Query { .. } => "Check the free space of the folder for temporary files. \
                                   Otherwise report this."
                .into(),
        }
    }
}
