//! Where runs are kept: SQLite by default, PostgreSQL with the feature `postgres`.
//!
//! A trial is stored as soon as it is measured, in a transaction of its own:
//! the next one may fail. Several processes may write at the same time. What a
//! PostgreSQL server that is away cannot take waits in files of this machine
//! ([`Spool`]), if the store was opened with [`Store::open_to_write`]. The
//! database is driven by a private runtime, so callers see blocking calls;
//! they must not be inside an async runtime themselves.

mod entry;
mod error;
mod location;
mod pages;
#[cfg(feature = "postgres")]
mod postgres;
mod query;
pub mod schema;
#[cfg(feature = "postgres")]
mod server_away;
mod settings;
mod shards;
#[cfg(feature = "postgres")]
mod spool;
mod sqlite;
mod take_over;
mod transact;
mod waiting;

pub use error::StoreError;
pub use location::Location;
pub use settings::Settings;
pub use shards::{Progress, ShardState};
pub use take_over::TakenOver;
pub use waiting::{HandedOver, Spool};

use crate::record::{self, Run, SCHEMA, Trial};
use entry::Entry;
use std::sync::Mutex;
use tokio::runtime::{Builder, Runtime};
use transact::transact;

/// The word that [`Store::load`] takes for the newest run.
pub const LATEST: &str = "latest";

/// An open store of runs.
pub struct Store {
    location: Location,
    open: Mutex<Open>,
    /// What waits for a server that is away; nothing where nobody wants it to.
    #[cfg(feature = "postgres")]
    waiting: Option<server_away::Waiting>,
}

struct Open {
    runtime: Runtime,
    /// `None` only while the store is dropped.
    connection: Option<Connection>,
}

impl Drop for Open {
    // Closed here and not in the background: SQLite then moves the write-ahead
    // log into the file, and somebody who copies the file has it all.
    fn drop(&mut self) {
        use sqlx::Connection as _;
        let closed = match self.connection.take() {
            Some(Connection::Sqlite(connection)) => self.runtime.block_on(connection.close()),
            #[cfg(feature = "postgres")]
            Some(Connection::Postgres(_)) => Ok(()),
            None => Ok(()),
        };
        // Every transaction is committed already: nothing is lost if this fails.
        drop(closed);
    }
}

enum Connection {
    Sqlite(sqlx::SqliteConnection),
    #[cfg(feature = "postgres")]
    Postgres(Box<postgres::Server>),
}

/// What a list shows of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Id of the run.
    pub run: String,
    /// Name of its plan.
    pub plan: String,
    /// Start, RFC 3339.
    pub started: String,
    /// True when the run was interrupted, failed or is still under way.
    pub partial: bool,
    /// Number of trials stored so far.
    pub trials: u32,
    /// [`crate::record::Host::key`] of the machine.
    pub host: String,
    /// Names under which the run is a baseline, sorted.
    pub baselines: Vec<String>,
}

/// Why a transaction was given up: the engine failed, or we refused.
#[derive(Debug)]
enum Fault {
    Sql(sqlx::Error),
    Refused(StoreError),
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl Fault {
    /// Whether the same may succeed a moment later.
    #[cfg(feature = "postgres")]
    fn passes(&self) -> bool {
        matches!(self, Self::Sql(error) if postgres::passes(error))
    }

    fn at(self, location: &Location) -> StoreError {
        match self {
            Self::Sql(error) => StoreError::from_sql(location, error),
            Self::Refused(error) => error,
        }
    }
}

impl Store {
    /// Opens the store at `location` and creates it when there is none.
    ///
    /// A new file has mode 0600, its new directories 0700. What is not a store
    /// of this program, is damaged, or comes from a newer version is refused
    /// and left as it is.
    pub fn open(location: &Location) -> Result<Self, StoreError> {
        let store = Self::new(location)?;
        #[cfg(feature = "postgres")]
        store.reach()?;
        Ok(store)
    }

    /// The same without a server's answer.
    fn new(location: &Location) -> Result<Self, StoreError> {
        let runtime = runtime()?;
        let connection = match location {
            Location::Sqlite(path) => runtime.block_on(sqlite::open(path)).map(Connection::Sqlite),
            #[cfg(feature = "postgres")]
            Location::Postgres(url) => postgres::Server::new(url)
                .map(Box::new)
                .map(Connection::Postgres),
            #[cfg(not(feature = "postgres"))]
            Location::Postgres(_) => Err(no_postgres(location).into()),
        }
        .map_err(|fault| fault.at(location))?;
        Ok(Self {
            location: location.clone(),
            open: Mutex::new(Open {
                runtime,
                connection: Some(connection),
            }),
            #[cfg(feature = "postgres")]
            waiting: None,
        })
    }

    /// Brings the tables at `location` to version `to`, up or down, and returns
    /// the version that they had, 0 for none.
    ///
    /// Refuses versions that this program does not know. Older tables are brought
    /// up by [`Store::open`] as well; the way down is for an older program.
    pub fn migrate(location: &Location, to: i64) -> Result<i64, StoreError> {
        if !(schema::OLDEST..=schema::VERSION).contains(&to) {
            return Err(StoreError::NoSuchVersion { version: to });
        }
        let runtime = runtime()?;
        let migrated = match location {
            Location::Sqlite(path) => runtime.block_on(sqlite::migrate_to(path, to)),
            #[cfg(feature = "postgres")]
            Location::Postgres(url) => {
                runtime.block_on(async { postgres::Server::new(url)?.migrate_to(to).await })
            }
            #[cfg(not(feature = "postgres"))]
            Location::Postgres(_) => Err(no_postgres(location).into()),
        };
        migrated.map_err(|fault| fault.at(location))
    }

    /// Where this store is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Stores the header of a run that starts now, marked partial; its
    /// `trials` are not looked at.
    ///
    /// Refuses an id that is stored already; and of a shard, an experiment that
    /// measures something else under the same name, and a shard that is stored.
    pub fn begin(&self, run: &Run) -> Result<(), StoreError> {
        self.write(Entry::begin(run)?)
    }

    /// Stores trials at their positions in a run, each in place of one that is
    /// stored there: all of them or, on an error, none.
    ///
    /// Refuses a run that was never begun, and a record with a number that is
    /// not finite.
    pub fn put_trials(&self, run: &str, trials: &[(u32, &Trial)]) -> Result<(), StoreError> {
        self.write(Entry::trials(run, trials)?)
    }

    /// Replaces the header of a run that was begun by its final state,
    /// `partial` included; its `trials` are not looked at.
    ///
    /// A shard that is whole is then stored, and what other runs have left of it
    /// is dropped; where another run was first, this one is, and
    /// [`StoreError::ShardStored`] says so.
    pub fn finish(&self, run: &Run) -> Result<(), StoreError> {
        self.write(Entry::finish(run)?)
    }

    /// All runs in the order of their ids, oldest first.
    pub fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        let (mut runs, mut baselines) = transact!(self, read, tx => {
            let runs: Vec<(String, String, String, bool, String, i64)> =
                sqlx::query_as(query::LIST_RUNS).fetch_all(&mut *tx).await?;
            let baselines: Vec<(String, String)> =
                sqlx::query_as(query::BASELINES).fetch_all(&mut *tx).await?;
            (runs, baselines)
        })?;
        // Sorted here: the collations of databases differ.
        runs.sort();
        baselines.sort();
        Ok(runs
            .into_iter()
            .map(|(run, plan, started, partial, host, trials)| RunSummary {
                baselines: baselines
                    .iter()
                    .filter(|(_, of)| *of == run)
                    .map(|(name, _)| name.clone())
                    .collect(),
                trials: u32::try_from(trials).unwrap_or(u32::MAX),
                run,
                plan,
                started,
                partial,
                host,
            })
            .collect())
    }

    /// The run called `which`: the name of a baseline, an id, the beginning of
    /// an id that fits one run alone, [`LATEST`], or the name of an experiment whose
    /// shards are one run.
    pub fn load(&self, which: &str) -> Result<Run, StoreError> {
        match self.load_run(which) {
            Err(missing @ StoreError::NoSuchRun { .. }) => match self.load_experiment(which) {
                Err(StoreError::NoSuchExperiment { .. }) => Err(missing),
                outcome => outcome,
            },
            outcome => outcome,
        }
    }

    fn load_run(&self, which: &str) -> Result<Run, StoreError> {
        let (id, header, trials) = transact!(self, read, tx => {
            let ids: Vec<(String,)> = sqlx::query_as(query::IDS).fetch_all(&mut *tx).await?;
            let baselines: Vec<(String, String)> =
                sqlx::query_as(query::BASELINES).fetch_all(&mut *tx).await?;
            let id = resolve(which, &ids, &baselines, &self.location)?;
            let (header,): (String,) = sqlx::query_as(query::HEADER)
                .bind(&id)
                .fetch_one(&mut *tx)
                .await?;
            let trials: Vec<(i64, String)> = sqlx::query_as(query::TRIALS)
                .bind(&id)
                .fetch_all(&mut *tx)
                .await?;
            (id, header, trials)
        })?;
        assemble(id, &header, &trials)
    }

    /// Removes a run, named as for [`Store::load`], with all its trials, and
    /// returns its id.
    ///
    /// Refuses a run that is a baseline.
    pub fn delete(&self, which: &str) -> Result<String, StoreError> {
        transact!(self, write, tx => {
            let ids: Vec<(String,)> = sqlx::query_as(query::IDS).fetch_all(&mut *tx).await?;
            let baselines: Vec<(String, String)> =
                sqlx::query_as(query::BASELINES).fetch_all(&mut *tx).await?;
            let run = resolve(which, &ids, &baselines, &self.location)?;
            let names: Vec<String> = baselines
                .into_iter()
                .filter(|(_, of)| *of == run)
                .map(|(name, _)| name)
                .collect();
            if !names.is_empty() {
                return Err(StoreError::IsBaseline { run, names }.into());
            }
            sqlx::query(query::DELETE_RUN).bind(&run).execute(&mut *tx).await?;
            run
        })
    }

    /// Gives a run, named as for [`Store::load`], the name `name`, taken from
    /// another run where need be, and returns the id of the run.
    ///
    /// Refuses an empty name, [`LATEST`] and the id of a run.
    pub fn set_baseline(&self, name: &str, which: &str) -> Result<String, StoreError> {
        transact!(self, write, tx => {
            let ids: Vec<(String,)> = sqlx::query_as(query::IDS).fetch_all(&mut *tx).await?;
            if name.trim().is_empty() || name == LATEST || ids.iter().any(|(id,)| id == name) {
                let name = name.to_owned();
                return Err(StoreError::BaselineName { name }.into());
            }
            let baselines: Vec<(String, String)> =
                sqlx::query_as(query::BASELINES).fetch_all(&mut *tx).await?;
            let run = resolve(which, &ids, &baselines, &self.location)?;
            sqlx::query(query::SET_BASELINE)
                .bind(name)
                .bind(&run)
                .execute(&mut *tx)
                .await?;
            run
        })
    }

    /// Every baseline as (name, id of its run), sorted by name.
    pub fn baselines(&self) -> Result<Vec<(String, String)>, StoreError> {
        let mut baselines: Vec<(String, String)> = transact!(self, read, tx => {
            sqlx::query_as(query::BASELINES).fetch_all(&mut *tx).await?
        })?;
        baselines.sort();
        Ok(baselines)
    }

    /// Forgets the name of a baseline; its run stays.
    pub fn remove_baseline(&self, name: &str) -> Result<(), StoreError> {
        transact!(self, write, tx => {
            let removed = sqlx::query(query::REMOVE_BASELINE)
                .bind(name)
                .execute(&mut *tx)
                .await?
                .rows_affected();
            if removed == 0 {
                let name = name.to_owned();
                return Err(StoreError::NoSuchBaseline { name }.into());
            }
        })
    }
}

fn no_such_run(which: &str) -> StoreError {
    StoreError::NoSuchRun {
        which: which.to_owned(),
    }
}

fn resolve(
    which: &str,
    ids: &[(String,)],
    baselines: &[(String, String)],
    location: &Location,
) -> Result<String, StoreError> {
    if which == LATEST {
        return ids
            .iter()
            .max()
            .map(|(id,)| id.clone())
            .ok_or_else(|| StoreError::Empty {
                location: location.clone(),
            });
    }
    if let Some((_, run)) = baselines.iter().find(|(name, _)| name == which) {
        return Ok(run.clone());
    }
    if ids.iter().any(|(id,)| id == which) {
        return Ok(which.to_owned());
    }
    let mut matches: Vec<String> = ids
        .iter()
        .filter(|(id,)| !which.is_empty() && id.starts_with(which))
        .map(|(id,)| id.clone())
        .collect();
    match matches.len() {
        0 => Err(no_such_run(which)),
        1 => Ok(matches.remove(0)),
        _ => Err(StoreError::Ambiguous {
            which: which.to_owned(),
            matches,
        }),
    }
}

fn runtime() -> Result<Runtime, StoreError> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| StoreError::Runtime { source })
}

#[cfg(not(feature = "postgres"))]
fn no_postgres(location: &Location) -> StoreError {
    StoreError::NoPostgres {
        location: location.clone(),
    }
}

fn assemble(id: String, header: &str, trials: &[(i64, String)]) -> Result<Run, StoreError> {
    // Read first: a record of another schema need not fit the fields of this one.
    #[derive(serde::Deserialize)]
    struct Envelope {
        schema: String,
    }
    let broken = |ordinal| {
        let run = id.clone();
        move |source| StoreError::Record {
            run,
            ordinal,
            source,
        }
    };
    let envelope: Envelope = serde_json::from_str(header).map_err(broken(None))?;
    if !record::reads(&envelope.schema) {
        return Err(StoreError::Schema {
            run: id,
            found: envelope.schema,
            known: SCHEMA,
        });
    }
    let mut run: Run = serde_json::from_str(header).map_err(broken(None))?;
    for (ordinal, record) in trials {
        let ordinal = u32::try_from(*ordinal).unwrap_or(u32::MAX);
        run.trials
            .push(serde_json::from_str(record).map_err(broken(Some(ordinal)))?);
    }
    Ok(run)
}
