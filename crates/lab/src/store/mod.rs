//! Where runs are kept: SQLite by default, PostgreSQL with the feature `postgres`.
//!
//! A trial is stored as soon as it is measured, in a transaction of its own:
//! the next one may fail. Several processes may write at the same time. The
//! database is driven by a private runtime, so callers see blocking calls;
//! they must not be inside an async runtime themselves.

mod error;
mod location;
#[cfg(feature = "postgres")]
mod postgres;
mod query;
mod schema;
mod sqlite;

pub use error::StoreError;
pub use location::Location;

use crate::record::{Run, SCHEMA, Trial};
use std::sync::{Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};

/// The word that [`Store::load`] takes for the newest run.
pub const LATEST: &str = "latest";

/// An open store of runs.
pub struct Store {
    location: Location,
    open: Mutex<Open>,
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
            Some(Connection::Postgres(connection)) => self.runtime.block_on(connection.close()),
            None => Ok(()),
        };
        // Every transaction is committed already: nothing is lost if this fails.
        drop(closed);
    }
}

enum Connection {
    Sqlite(sqlx::SqliteConnection),
    #[cfg(feature = "postgres")]
    Postgres(sqlx::PgConnection),
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
    fn at(self, location: &Location) -> StoreError {
        match self {
            Self::Sql(error) => StoreError::from_sql(location, error),
            Self::Refused(error) => error,
        }
    }
}

/// Runs a block of queries, written once, as one transaction on whichever
/// database is open. SQLite takes the write lock at the start (`write`): a
/// transaction that reads first and then finds another writer would fail
/// instead of waiting.
macro_rules! transact {
    ($store:expr, write, $tx:ident => $body:expr) => {
        transact!($store, "BEGIN IMMEDIATE", "BEGIN", $tx => $body)
    };
    ($store:expr, read, $tx:ident => $body:expr) => {
        transact!($store, "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", $tx => $body)
    };
    ($store:expr, $sqlite:literal, $postgres:literal, $tx:ident => $body:expr) => {{
        use sqlx::Connection as _;
        let mut open = $store.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Open { runtime, connection } = &mut *open;
        let result: Result<_, Fault> = runtime.block_on(async {
            match connection {
                Some(Connection::Sqlite(connection)) => {
                    let mut $tx = connection.begin_with($sqlite).await?;
                    let value = $body;
                    $tx.commit().await?;
                    Ok(value)
                }
                #[cfg(feature = "postgres")]
                Some(Connection::Postgres(connection)) => {
                    let mut $tx = connection.begin_with($postgres).await?;
                    let value = $body;
                    $tx.commit().await?;
                    Ok(value)
                }
                None => Err(Fault::Sql(sqlx::Error::WorkerCrashed)),
            }
        });
        result.map_err(|fault| fault.at(&$store.location))
    }};
}

impl Store {
    /// Opens the store at `location` and creates it when there is none.
    ///
    /// A new file has mode 0600, its new directories 0700. What is not a store
    /// of this program, is damaged, or comes from a newer version is refused
    /// and left as it is.
    pub fn open(location: &Location) -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| StoreError::Runtime { source })?;
        let connection = match location {
            Location::Sqlite(path) => runtime.block_on(sqlite::open(path)).map(Connection::Sqlite),
            #[cfg(feature = "postgres")]
            Location::Postgres(url) => runtime
                .block_on(postgres::open(url))
                .map(Connection::Postgres),
            #[cfg(not(feature = "postgres"))]
            Location::Postgres(_) => Err(Fault::Refused(StoreError::NoPostgres {
                location: location.clone(),
            })),
        }
        .map_err(|fault| fault.at(location))?;
        Ok(Self {
            location: location.clone(),
            open: Mutex::new(Open {
                runtime,
                connection: Some(connection),
            }),
        })
    }

    /// Where this store is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Stores the header of a run that starts now, marked partial; its
    /// `trials` are not looked at.
    ///
    /// Refuses an id that is stored already.
    pub fn begin(&self, run: &Run) -> Result<(), StoreError> {
        let header = header(run, true)?;
        transact!(self, write, tx => {
            let added = sqlx::query(query::ADD_RUN)
                .bind(&run.run)
                .bind(&run.plan)
                .bind(&run.started)
                .bind(true)
                .bind(run.host.key())
                .bind(header)
                .execute(&mut *tx)
                .await?
                .rows_affected();
            if added == 0 {
                let run = run.run.clone();
                return Err(StoreError::RunExists { run }.into());
            }
        })
    }

    /// Stores trials at their positions in a run, each in place of one that is
    /// stored there: all of them or, on an error, none.
    ///
    /// Refuses a run that was never begun, and a record with a number that is
    /// not finite.
    pub fn put_trials(&self, run: &str, trials: &[(u32, &Trial)]) -> Result<(), StoreError> {
        let mut records = Vec::with_capacity(trials.len());
        for (ordinal, trial) in trials {
            let unstorable = |source| StoreError::Unstorable {
                run: run.to_owned(),
                ordinal: Some(*ordinal),
                source,
            };
            let record = serde_json::to_string(trial).map_err(unstorable)?;
            // JSON writes NaN and infinity as null, which no reader would accept.
            serde_json::from_str::<Trial>(&record).map_err(unstorable)?;
            records.push((*ordinal, record));
        }
        transact!(self, write, tx => {
            let known: Option<(String,)> = sqlx::query_as(query::RUN_IS)
                .bind(run)
                .fetch_optional(&mut *tx)
                .await?;
            if known.is_none() {
                return Err(no_such_run(run).into());
            }
            for (ordinal, record) in &records {
                sqlx::query(query::PUT_TRIAL)
                    .bind(run)
                    .bind(i64::from(*ordinal))
                    .bind(record)
                    .execute(&mut *tx)
                    .await?;
            }
        })
    }

    /// Replaces the header of a run that was begun by its final state,
    /// `partial` included; its `trials` are not looked at.
    pub fn finish(&self, run: &Run) -> Result<(), StoreError> {
        let header = header(run, run.partial)?;
        transact!(self, write, tx => {
            let changed = sqlx::query(query::FINISH_RUN)
                .bind(&run.run)
                .bind(&run.plan)
                .bind(&run.started)
                .bind(run.partial)
                .bind(run.host.key())
                .bind(header)
                .execute(&mut *tx)
                .await?
                .rows_affected();
            if changed == 0 {
                return Err(no_such_run(&run.run).into());
            }
        })
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
    /// an id that fits one run alone, or [`LATEST`].
    pub fn load(&self, which: &str) -> Result<Run, StoreError> {
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

/// The JSON of a run without its trials.
fn header(run: &Run, partial: bool) -> Result<String, StoreError> {
    let unstorable = |source| StoreError::Unstorable {
        run: run.run.clone(),
        ordinal: None,
        source,
    };
    let header = Run {
        partial,
        trials: Vec::new(),
        schema: run.schema.clone(),
        run: run.run.clone(),
        plan: run.plan.clone(),
        started: run.started.clone(),
        seed: run.seed,
        host: run.host.clone(),
        noise: run.noise.clone(),
        paper: run.paper.clone(),
        conditioning: run.conditioning.clone(),
        marks: run.marks.clone(),
        warnings: run.warnings.clone(),
    };
    let text = serde_json::to_string(&header).map_err(unstorable)?;
    serde_json::from_str::<Run>(&text).map_err(unstorable)?;
    Ok(text)
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
    if envelope.schema != SCHEMA {
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
