//! The errors of a store, and their remedies.

use super::Location;
use std::error::Error;
use std::io;
use std::path::PathBuf;

/// A store that cannot be opened, or a request that it cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No location of the store was given, and the user has no home directory.
    #[error("there is no home directory in which to store runs")]
    NoDataDirectory {
        /// Why no home directory was found.
        source: etcetera::HomeDirError,
    },
    /// The location is an empty string.
    #[error("the location of the store is empty")]
    EmptyLocation,
    /// This build has no PostgreSQL support.
    #[error("{location} is a PostgreSQL database, which this build cannot open")]
    NoPostgres {
        /// The database asked for.
        location: Location,
    },
    /// The file or its directory cannot be created or read.
    #[error("cannot open the store {}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path is a file, not a folder.
    #[error("{} is not a store of runs: it is not a folder", path.display())]
    NotAStore {
        /// The file, left as it is.
        path: PathBuf,
    },
    /// The folder or database belongs to another program.
    #[error("{location} is not empty and isn't a store of runs")]
    Foreign {
        /// The folder or database, left as it is.
        location: Location,
    },
    /// The store was made by another version of this program.
    #[error("{location} has store version {found}; this program knows version {known}")]
    OtherVersion {
        /// The store, left as it is.
        location: Location,
        /// The version found.
        found: i64,
        /// The version that this program reads and writes.
        known: i64,
    },
    /// Bytes are missing from a run's file.
    #[error("{} is damaged: its end is missing", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Another process writes it.
    #[error("{} is in use by another process", path.display())]
    Busy {
        /// The run's file, or the folder.
        path: PathBuf,
    },
    /// The server cannot be reached, or has no connection left.
    #[error("the store {location} cannot be reached")]
    Unreachable {
        /// The database.
        location: Location,
        /// The error of the last attempt.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server does not know the user, or rejects the password.
    #[error("the store {location} refuses access to this user")]
    Credentials {
        /// The database.
        location: Location,
        /// The server's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Runs are to be written to a server that was opened to read.
    #[error("the store {location} was opened for reading only")]
    ToRead {
        /// The database.
        location: Location,
    },
    /// As many bytes wait for the server as may.
    #[error("{} is full: at most {} of runs may wait there for the store", folder.display(), bytesize::ByteSize(*limit))]
    SpoolFull {
        /// The folder in which the runs wait.
        folder: PathBuf,
        /// Maximum number of waiting bytes.
        limit: u64,
    },
    /// The configuration cannot be read.
    #[error("cannot use {}", path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others can read the configuration, and it has a password.
    #[error("{} contains a password, and other users can read it", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// An experiment of this name measures something else.
    #[error("another experiment is stored as {experiment}")]
    OtherExperiment {
        /// The name.
        experiment: String,
    },
    /// The shard is stored already.
    #[error("shard {shard} of {experiment} is stored already, as run {run}")]
    ShardStored {
        /// The experiment.
        experiment: String,
        /// Number of the shard, from 1.
        shard: i64,
        /// Id of the run that it is.
        run: String,
    },
    /// Nothing is stored of an experiment of this name.
    #[error("no experiment is stored as `{name}`")]
    NoSuchExperiment {
        /// The name asked for.
        name: String,
    },
    /// The shards of an experiment are runs of their own.
    #[error("{experiment} consists of {runs} runs, not of one")]
    NotOneRun {
        /// The experiment.
        experiment: String,
        /// How many.
        runs: usize,
    },
    /// The database refused a request.
    #[error("the store {location} failed")]
    Database {
        /// The database.
        location: Location,
        /// The database engine's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A stored record is not what this program writes.
    #[error("the record of run {run}{} cannot be read", part(*ordinal))]
    Record {
        /// Id of the run.
        run: String,
        /// Position of the trial; `None` for the header of the run.
        ordinal: Option<u32>,
        /// Why it cannot be read.
        source: serde_json::Error,
    },
    /// A stored record has another schema.
    #[error("run {run} has schema {found}; this program reads {known}")]
    Schema {
        /// Id of the run.
        run: String,
        /// The schema found.
        found: String,
        /// The schema that this program reads.
        known: &'static str,
    },
    /// A record holds a number that JSON cannot express: infinite, or none at all.
    #[error("run {run}{} has a number that cannot be stored", part(*ordinal))]
    Unstorable {
        /// Id of the run.
        run: String,
        /// Position of the trial; `None` for the header of the run.
        ordinal: Option<u32>,
        /// The parser's error, with its position in the record.
        source: serde_json::Error,
    },
    /// A run of this id is stored already.
    #[error("run {run} is stored already")]
    RunExists {
        /// Id of the run.
        run: String,
    },
    /// The store holds no run at all.
    #[error("the store {location} holds no runs")]
    Empty {
        /// The database.
        location: Location,
    },
    /// No run or baseline has this name.
    #[error("no stored run or baseline is called `{which}`")]
    NoSuchRun {
        /// The name asked for.
        which: String,
    },
    /// The prefix fits several runs.
    #[error("`{which}` matches {} runs: {}", matches.len(), some(matches))]
    Ambiguous {
        /// The prefix asked for.
        which: String,
        /// The ids that it fits.
        matches: Vec<String>,
    },
    /// No baseline has this name.
    #[error("there is no baseline `{name}`")]
    NoSuchBaseline {
        /// The name asked for.
        name: String,
    },
    /// The name would hide a run.
    #[error("`{name}` cannot name a baseline")]
    BaselineName {
        /// The name refused.
        name: String,
    },
    /// The run to delete is a baseline.
    #[error("run {run} is the baseline {}", names.join(", "))]
    IsBaseline {
        /// Id of the run.
        run: String,
        /// The baselines that point to it.
        names: Vec<String>,
    },
}

/// The newest of many ids, which a terminal has room for.
fn some(ids: &[String]) -> String {
    const SHOWN: usize = 3;
    match ids.len() > SHOWN {
        true => format!("{} and others", ids[ids.len() - SHOWN..].join(", ")),
        false => ids.join(", "),
    }
}

impl StoreError {
    /// The remedy, as one line for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::NoDataDirectory { .. } => {
                "Set HOME or XDG_DATA_HOME, or name a folder for the store.".into()
            }
            Self::EmptyLocation => {
                "Name a folder, or a database as postgres://user@host/database.".into()
            }
            Self::NoPostgres { .. } => {
                "Install a build with the feature `postgres`, or name a folder.".into()
            }
            Self::Io { path, .. } => format!(
                "Check the free space and the permissions of {}, or name another folder.",
                path.display()
            ),
            Self::NotAStore { path } => {
                format!("Name a folder. {} was not changed.", path.display())
            }
            Self::Foreign { location } => {
                format!("Name another or a new folder or database. {location} was not changed.")
            }
            Self::OtherVersion { .. } => {
                "Use the version of cryptmark that made it, or name another store.".into()
            }
            Self::Damaged { path } => {
                format!("Restore {} from a backup, or move it away.", path.display())
            }
            Self::Busy { .. } => {
                "Wait until the other process has finished, then try again.".into()
            }
            Self::Unreachable { .. } => {
                "Check the address, the network and that the server is running. Then try again."
                    .into()
            }
            Self::Credentials { .. } => {
                "Update the password in the URL, the configuration or ~/.pgpass. Runs that wait in \
                 the spool are kept."
                    .into()
            }
            Self::ToRead { .. } => "Open it to write.".into(),
            Self::SpoolFull { .. } => {
                "Restart the server and run `cryptmark store hand-over`, or raise spool_size in \
                 the configuration."
                    .into()
            }
            Self::Configuration { .. } => {
                "The file may have `store`, `spool` (a folder) and `spool_size` (such as \"256 \
                 MiB\")."
                    .into()
            }
            Self::Exposed { path } => {
                format!("Let only yourself read it: chmod 600 {}.", path.display())
            }
            Self::OtherExperiment { .. } => {
                "Give this one another name: `cryptmark fleet plan --name NAME`.".into()
            }
            Self::ShardStored { run, .. } => format!("Show it with `cryptmark show {run}`."),
            Self::NoSuchExperiment { .. } => {
                "Give the name that `cryptmark fleet plan` printed.".into()
            }
            Self::NotOneRun { experiment, .. } => {
                format!("Choose one of them: `cryptmark fleet status {experiment}`.")
            }
            Self::Database { .. } => {
                "Check that the server runs and that the user may create and write tables.".into()
            }
            Self::Record { run, .. } => {
                format!(
                    "Restore the record from a backup, or delete run {run} with all of its trials."
                )
            }
            Self::Schema { .. } => {
                "Measure again with this version, or read the run with the version of cryptmark \
                 that wrote it."
                    .into()
            }
            Self::Unstorable { .. } => {
                "Please report this as a bug of cryptmark: a measurement must never yield such a \
                 number."
                    .into()
            }
            Self::RunExists { run } => format!("Show the stored run with `cryptmark show {run}`."),
            Self::Empty { .. } => "Measure first, with `cryptmark run`.".into(),
            Self::NoSuchRun { .. } => "`cryptmark list` shows the stored runs.".into(),
            Self::Ambiguous { .. } => "Give more characters of the id.".into(),
            Self::NoSuchBaseline { .. } => "`cryptmark baseline list` shows the baselines.".into(),
            Self::BaselineName { .. } => {
                "Choose a name that is not empty, not `latest` and not the id of a run.".into()
            }
            Self::IsBaseline { names, .. } => format!(
                "Remove the baseline first: cryptmark baseline rm {}.",
                names.join(" ")
            ),
        }
    }

    /// Whether to try again later is of no use.
    #[cfg(feature = "postgres")]
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::RunExists { .. }
                | Self::NoSuchRun { .. }
                | Self::OtherExperiment { .. }
                | Self::Unstorable { .. }
                | Self::Record { .. }
                | Self::Schema { .. }
                | Self::Damaged { .. }
        )
    }
}

fn part(ordinal: Option<u32>) -> String {
    ordinal.map_or_else(String::new, |ordinal| format!(", trial {ordinal},"))
}
