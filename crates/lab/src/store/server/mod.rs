//! [`Server`]: a PostgreSQL store. Its tables live in a schema of their own.
//!
//! A connection lives for one transaction: a thousand hosts that measure for
//! minutes between two trials would otherwise hold a thousand connections.

mod files;
mod hand_over;
mod parameters;
mod put;
mod query;
mod records;
mod tls;

use super::{Location, StoreError};
use parameters::Parameters;
use postgres::error::SqlState;
use postgres::{Client, IsolationLevel, NoTls, Transaction};
use std::error::Error;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::time::{Duration, Instant};

/// Key of the advisory lock under which the tables are created.
const LOCK: i64 = 0x636d_726b;

/// How long to wait for a connection.
const CONNECTING: Duration = Duration::from_secs(10);

/// Maximum time for a statement, or for a packet without an answer. A longer silence means that the
/// server is gone.
const SILENCE: Duration = Duration::from_secs(120);

/// Time for which an unavailable server is asked again, unless an option sets another.
const PATIENCE: Duration = Duration::from_secs(5);

/// Pauses between attempts: they double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// A database.
pub(super) struct Server {
    parameters: Parameters,
    location: Location,
    /// The place where runs wait for the server; `None` if it was opened to read.
    waiting: Option<hand_over::Waiting>,
}

/// Why a transaction was given up: the server failed, or we refused.
#[derive(Debug)]
enum Fault {
    Sql(postgres::Error),
    Refused(StoreError),
}

impl From<postgres::Error> for Fault {
    fn from(error: postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl Fault {
    /// Whether the same may succeed a moment later: the server was away, had no
    /// connection left, or another transaction was in the way.
    fn passes(&self) -> bool {
        const IN_THE_WAY: [SqlState; 3] = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::LOCK_NOT_AVAILABLE,
        ];
        match self {
            Self::Refused(_) => false,
            Self::Sql(error) => {
                let code = error.code();
                is_absence(error) || code.is_some_and(|code| IN_THE_WAY.contains(code))
            }
        }
    }

    fn at(self, location: &Location) -> StoreError {
        let error = match self {
            Self::Sql(error) => error,
            Self::Refused(error) => return error,
        };
        let location = location.clone();
        let is_refusal = error
            .code()
            .is_some_and(|code| code.code().starts_with("28"));
        let is_absence = is_absence(&error);
        let source = Box::new(error);
        match (is_absence, is_refusal) {
            (true, _) => StoreError::Unreachable { location, source },
            (_, true) => StoreError::Credentials { location, source },
            _ => StoreError::Database { location, source },
        }
    }
}

/// Whether the error means that the server is unavailable.
fn is_absence(error: &postgres::Error) -> bool {
    if let Some(code) = error.code() {
        // Connection exceptions, an operator's intervention, no connection left, and a
        // statement that took too long.
        return code.code().starts_with("08")
            || code.code().starts_with("57P")
            || [SqlState::TOO_MANY_CONNECTIONS, SqlState::QUERY_CANCELED].contains(code);
    }
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>());
    // A bad certificate is reported as invalid data.
    error.is_closed() || cause.is_some_and(|cause| cause.kind() != io::ErrorKind::InvalidData)
}

/// The kind of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
}

impl Server {
    /// Parses `url` without connecting to the server.
    ///
    /// # Errors
    /// The URL or the certificates cannot be read.
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        let location = Location::Postgres(url.to_owned());
        let parameters = Parameters::of(url).map_err(|source| StoreError::Database {
            location: location.clone(),
            source,
        })?;
        Ok(Self {
            parameters,
            location,
            waiting: None,
        })
    }

    /// Asks the server for an answer.
    pub(super) fn reach(&self) -> Result<(), StoreError> {
        self.transact(Mode::Read, PATIENCE, |_| Ok(()))
    }

    /// Does `work` as one transaction with a connection of its own. If the server was unavailable
    /// or another transaction interfered, it tries again for as long as `patience` allows.
    fn transact<T>(
        &self,
        mode: Mode,
        patience: Duration,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let mut patience = Patience {
            until: Instant::now() + patience,
            pause: FIRST_PAUSE,
        };
        let mut attempt = || {
            let mut client = self.connect()?;
            let transaction = client.build_transaction();
            let mut transaction = match mode {
                Mode::Read => transaction.isolation_level(IsolationLevel::RepeatableRead),
                Mode::Write => transaction,
            }
            .start()?;
            let value = work(&mut transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        loop {
            match attempt() {
                Err(fault) if Fault::passes(&fault) && patience.wait() => {}
                outcome => return outcome.map_err(|fault| fault.at(&self.location)),
            }
        }
    }

    fn read<T>(
        &self,
        work: impl FnMut(&mut Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.transact(Mode::Read, PATIENCE, work)
    }

    /// A connection to tables of this program's version. Missing tables are created.
    fn connect(&self) -> Result<Client, Fault> {
        let config = &self.parameters.config;
        let mut client = match &self.parameters.tls {
            Some(tls) => config.connect(tls.clone())?,
            None => config.connect(NoTls)?,
        };
        let found = match version(&mut client)? {
            Some(found) => found,
            None => self.create(&mut client)?,
        };
        if found != query::VERSION {
            return Err(StoreError::OtherVersion {
                location: self.location.clone(),
                found,
                known: query::VERSION,
            }
            .into());
        }
        client.batch_execute(&format!(
            "SET search_path TO cryptmark; SET statement_timeout TO '{}s'",
            SILENCE.as_secs()
        ))?;
        Ok(client)
    }

    /// Creates the tables, and returns their version.
    fn create(&self, client: &mut Client) -> Result<i64, Fault> {
        let mut tx = client.transaction()?;
        // Of several that find no tables only one creates them.
        tx.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])?;
        // Asked first: the name of a table may be looked up in a cache from before the lock, which
        // reading the catalogue itself brings up to date.
        let exists = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'cryptmark')";
        let exists: bool = tx.query_one(exists, &[])?.get(0);
        if let Some(found) = version(&mut tx)? {
            return Ok(found);
        }
        if exists {
            let location = self.location.clone();
            return Err(StoreError::Foreign { location }.into());
        }
        tx.batch_execute(query::TABLES)?;
        tx.execute("INSERT INTO schema_version VALUES ($1)", &[&query::VERSION])?;
        tx.commit()?;
        Ok(query::VERSION)
    }
}

/// The version of the tables; `None` if there are none.
fn version(client: &mut impl postgres::GenericClient) -> Result<Option<i64>, Fault> {
    let ours = "SELECT to_regclass('cryptmark.schema_version') IS NOT NULL";
    let ours: bool = client.query_one(ours, &[])?.get(0);
    if !ours {
        return Ok(None);
    }
    let version = "SELECT version FROM cryptmark.schema_version";
    Ok(Some(client.query_one(version, &[])?.get(0)))
}

/// When to ask again.
struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    /// Waits for the next attempt. Returns false if no time is left.
    fn wait(&mut self) -> bool {
        // Thousands of clients that lost the server at the same time must not return at the same
        // time. The pause is therefore drawn from half to all of its length.
        let share = RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64;
        let pause = self.pause.mul_f64(0.5 + share / 2.0);
        if Instant::now() + pause > self.until {
            return false;
        }
        std::thread::sleep(pause);
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        true
    }
}
