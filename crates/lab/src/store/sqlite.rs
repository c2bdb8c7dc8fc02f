//! Runs of earlier versions, which kept them in SQLite. Their file is only read.

use super::entry::assemble;
use super::folder::is_of_earlier;
use super::location::TAKEN_OVER;
use super::{Kept, Location, Store, StoreError, TakenOver};
use crate::record::{Run, Shard};
use rusqlite::{Connection, OpenFlags, Row};
use std::path::Path;

/// The newest version of the tables.
const VERSION: i64 = 2;

/// `cmrk`: marks a file as a store of this program.
const APPLICATION_ID: i64 = 0x636d_726b;

/// The outcome of importing the runs of an earlier version.
#[derive(Debug, Default)]
pub struct FromSqlite {
    /// Runs that are stored now, or were before.
    pub stored: usize,
    /// Names that are given to the same runs now.
    pub baselines: usize,
    /// Runs and names that are left in the file, with the reasons.
    pub left: Vec<StoreError>,
}

impl Store {
    /// Stores all runs of `file`, the store of an earlier version, under the names that they have
    /// there. A second call changes nothing, and the file stays as it is.
    ///
    /// # Errors
    /// The file is not such a store or cannot be read, or this store cannot be written.
    pub fn take_over_sqlite(&self, file: &Path) -> Result<FromSqlite, StoreError> {
        let earlier = Earlier::open(file)?;
        let mut taken = FromSqlite::default();
        for id in earlier.ids()? {
            let outcome = earlier
                .run(&id)?
                .and_then(|run| self.take_over(std::slice::from_ref(&run)));
            match outcome {
                Ok(what)
                    if what
                        .iter()
                        .any(|what| matches!(what, TakenOver::Superseded { .. })) => {}
                Ok(_) => taken.stored += 1,
                Err(
                    error @ (StoreError::Record { .. }
                    | StoreError::Schema { .. }
                    | StoreError::RunExists { .. }
                    | StoreError::OtherExperiment { .. }),
                ) => taken.left.push(error),
                Err(error) => return Err(error),
            }
        }
        let known = self.records().baselines()?;
        for (name, run) in earlier.baselines()? {
            match known.get(&name) {
                Some(other) if *other != run => {
                    taken.left.push(StoreError::BaselineTaken { name });
                }
                Some(_) => {}
                // Its run may be one of those that are left.
                None => match self.set_baseline(&name, &run) {
                    Ok(_) => taken.baselines += 1,
                    Err(error @ StoreError::NoSuchRun { .. }) => taken.left.push(error),
                    Err(error) => return Err(error),
                },
            }
        }
        let folder = match &self.kept {
            Kept::Files(folder) => folder,
            #[cfg(feature = "postgres")]
            Kept::Server(_) => return Ok(taken),
        };
        let turn = folder.turn()?;
        for (run, shard) in earlier.attempts()? {
            match folder.add_attempt(&turn, &shard, &run) {
                Err(error @ StoreError::OtherExperiment { .. }) => taken.left.push(error),
                outcome => outcome?,
            }
        }
        if taken.left.is_empty() {
            let told = file.display().to_string();
            folder.publish_json(&turn, &folder.path.join(TAKEN_OVER), &told)?;
        }
        Ok(taken)
    }
}

/// An open store of an earlier version.
struct Earlier {
    connection: Connection,
    location: Location,
    version: i64,
}

impl Earlier {
    fn open(file: &Path) -> Result<Self, StoreError> {
        let location = Location::Folder(file.to_owned());
        std::fs::metadata(file).map_err(|source| StoreError::Io {
            path: file.to_owned(),
            source,
        })?;
        if !is_of_earlier(file) {
            return Err(StoreError::NotEarlier { path: file.into() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |source| failed(&location, source);
        let connection = Connection::open_with_flags(file, flags).map_err(failed)?;
        let version =
            connection.query_row("SELECT user_version FROM pragma_user_version", [], |row| {
                row.get(0)
            });
        let version: i64 = version.map_err(failed)?;
        let application: i64 = connection
            .query_row(
                "SELECT application_id FROM pragma_application_id",
                [],
                |row| row.get(0),
            )
            .map_err(failed)?;
        if application != APPLICATION_ID {
            return Err(StoreError::NotEarlier { path: file.into() });
        }
        if version > VERSION {
            return Err(StoreError::Newer {
                location,
                found: version,
                known: VERSION,
            });
        }
        Ok(Self {
            connection,
            location,
            version,
        })
    }

    fn all<T>(
        &self,
        query: &str,
        parameters: &[&str],
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let all = || {
            let mut statement = self.connection.prepare(query)?;
            let rows =
                statement.query_map(rusqlite::params_from_iter(parameters), |row| read(row))?;
            rows.collect::<rusqlite::Result<Vec<T>>>()
        };
        all().map_err(|source| failed(&self.location, source))
    }

    fn ids(&self) -> Result<Vec<String>, StoreError> {
        self.all("SELECT run FROM runs ORDER BY run", &[], |row| row.get(0))
    }

    /// A run, or why it cannot be read.
    fn run(&self, id: &str) -> Result<Result<Run, StoreError>, StoreError> {
        let header = "SELECT header FROM runs WHERE run = ?";
        let header: Vec<String> = self.all(header, &[id], |row| row.get(0))?;
        let trials = "SELECT ordinal, record FROM trials WHERE run = ? ORDER BY ordinal";
        let trials: Vec<(u32, String)> =
            self.all(trials, &[id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let trials = trials.iter().map(|(at, record)| (*at, record.as_str()));
        Ok(assemble(id, &header.concat(), trials))
    }

    fn baselines(&self) -> Result<Vec<(String, String)>, StoreError> {
        let query = "SELECT name, run FROM baselines ORDER BY name";
        self.all(query, &[], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Every run that has begun a shard, also those that are not stored any more.
    fn attempts(&self) -> Result<Vec<(String, Shard)>, StoreError> {
        if self.version < 2 {
            return Ok(Vec::new());
        }
        let query = "SELECT run, name, shard, shards, fingerprint
             FROM attempts JOIN experiments ON experiment = name ORDER BY run";
        self.all(query, &[], |row| {
            let shard = Shard {
                experiment: row.get(1)?,
                index: row.get(2)?,
                of: row.get(3)?,
                fingerprint: row.get(4)?,
                portions: Vec::new(),
            };
            Ok((row.get(0)?, shard))
        })
    }
}

fn failed(location: &Location, source: rusqlite::Error) -> StoreError {
    StoreError::Database {
        location: location.clone(),
        source: Box::new(source),
    }
}
