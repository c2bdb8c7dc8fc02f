//! [`Server`]: a PostgreSQL store. Its tables live in a schema of their own.
//!
//! A connection lives for one transaction: a thousand hosts that measure for
//! minutes between two trials would otherwise hold a thousand connections.

use super::schema::{self, Dialect};
use super::{Fault, Location, StoreError};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions, Connection, PgConnection};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Key of the advisory lock under which the tables are created and changed.
const LOCK: i64 = 0x636d_726b;

/// How long to wait for a connection.
const CONNECTING: Duration = Duration::from_secs(10);

/// How long a transaction may take, connection included: longer means that nobody
/// is there any more.
const TRANSACTION: Duration = Duration::from_secs(120);

/// How long to ask again where the server is away, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(5);

/// Pauses between attempts: they double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// A database, and how long to wait for it.
pub(super) struct Server {
    options: PgConnectOptions,
    location: Location,
    patience: Duration,
}

/// Whether the user says which `sslmode` is meant, in the URL or as for libpq.
fn says_how_to_secure(url: &str) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut names = query.split('&').filter_map(|pair| pair.split('=').next());
    names.any(|name| matches!(name, "sslmode" | "ssl-mode"))
        || std::env::var_os("PGSSLMODE").is_some()
}

impl Server {
    pub(super) fn new(url: &str) -> Result<Self, Fault> {
        let mut options = PgConnectOptions::from_str(url)?
            .application_name("cryptmark")
            .disable_statement_logging();
        if options.get_socket().is_none() && !says_how_to_secure(url) {
            // libpq's `prefer` sends the password to whoever answers without TLS.
            options = options.ssl_mode(PgSslMode::VerifyFull);
        }
        Ok(Self {
            options,
            location: Location::Postgres(url.to_owned()),
            patience: PATIENCE,
        })
    }

    /// What tells it from other databases, without who asks.
    pub(super) fn identity(&self) -> String {
        let options = &self.options;
        format!(
            "{} {} {} {}",
            options
                .get_socket()
                .map_or_else(|| PathBuf::from(options.get_host()), Clone::clone)
                .display(),
            options.get_port(),
            options.get_database().unwrap_or_default(),
            options.get_options().unwrap_or_default(),
        )
    }

    /// How long to ask again from now on.
    pub(super) fn be_patient(&mut self, patience: Option<Duration>) {
        self.patience = patience.unwrap_or(PATIENCE);
    }

    pub(super) fn patience(&self) -> Patience {
        Patience {
            until: Instant::now() + self.patience,
            pause: FIRST_PAUSE,
        }
    }

    /// `work`, unless it takes so long that the server must be gone.
    pub(super) async fn limited<T>(
        &self,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        match timeout(TRANSACTION, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(silence(TRANSACTION)),
        }
    }

    /// A connection to tables of this program's version, which are created or
    /// brought up to it where they are older.
    pub(super) async fn connect(&self) -> Result<PgConnection, Fault> {
        let mut connection = self.connect_to_any().await?;
        if version(&mut connection).await? != Some(schema::VERSION) {
            self.migrate(&mut connection, schema::VERSION, Way::Up)
                .await?;
        }
        sqlx::query("SET search_path TO cryptmark")
            .execute(&mut connection)
            .await?;
        Ok(connection)
    }

    /// Brings the tables to version `to`, up or down; the version they had, 0 for
    /// none.
    pub(super) async fn migrate_to(&self, to: i64) -> Result<i64, Fault> {
        let mut connection = self.connect_to_any().await?;
        let from = self.migrate(&mut connection, to, Way::UpOrDown).await?;
        connection.close().await?;
        Ok(from)
    }

    /// A connection to tables of any version.
    async fn connect_to_any(&self) -> Result<PgConnection, Fault> {
        match timeout(CONNECTING, self.options.connect()).await {
            Ok(connection) => Ok(connection?),
            Err(_) => Err(silence(CONNECTING)),
        }
    }

    async fn migrate(
        &self,
        connection: &mut PgConnection,
        to: i64,
        way: Way,
    ) -> Result<i64, Fault> {
        let mut tx = connection.begin().await?;
        // Of several that find old tables only one changes them.
        sqlx::query("SELECT pg_advisory_xact_lock($1)")
            .bind(LOCK)
            .execute(&mut *tx)
            .await?;
        let (exists,): (bool,) = sqlx::query_as(
            "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'cryptmark')",
        )
        .fetch_one(&mut *tx)
        .await?;
        let location = self.location.clone();
        let from = match version(&mut tx).await? {
            Some(version) => version,
            None if exists => return Err(StoreError::Foreign { location }.into()),
            None => 0,
        };
        if from > schema::VERSION || from > to && way == Way::Up {
            return Err(StoreError::Newer {
                location,
                found: from,
                known: schema::VERSION,
            }
            .into());
        }
        if from == 0 {
            for statement in [
                "CREATE SCHEMA cryptmark",
                "CREATE TABLE cryptmark.schema_version (version BIGINT NOT NULL)",
                "INSERT INTO cryptmark.schema_version (version) VALUES (0)",
            ] {
                sqlx::query(statement).execute(&mut *tx).await?;
            }
        }
        sqlx::query("SET LOCAL search_path TO cryptmark")
            .execute(&mut *tx)
            .await?;
        for statement in schema::statements(from, to, Dialect::Postgres) {
            sqlx::query(statement).execute(&mut *tx).await?;
        }
        sqlx::query("UPDATE schema_version SET version = $1")
            .bind(to)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(from)
    }
}

/// Which way a migration may go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    UpOrDown,
}

/// The version of the tables; `None` where there are none.
async fn version(connection: &mut PgConnection) -> Result<Option<i64>, Fault> {
    let (ours,): (bool,) =
        sqlx::query_as("SELECT to_regclass('cryptmark.schema_version') IS NOT NULL")
            .fetch_one(&mut *connection)
            .await?;
    if !ours {
        return Ok(None);
    }
    let (version,): (i64,) = sqlx::query_as("SELECT version FROM cryptmark.schema_version")
        .fetch_one(connection)
        .await?;
    Ok(Some(version))
}

fn silence(after: Duration) -> Fault {
    let said = format!("no answer within {} s", after.as_secs());
    Fault::Sql(io::Error::new(io::ErrorKind::TimedOut, said).into())
}

/// Whether the same may succeed a moment later: the server was away, had no
/// connection left, or another transaction was in the way.
pub(super) fn passes(error: &sqlx::Error) -> bool {
    is_absence(error)
        || matches!(error, sqlx::Error::Database(error)
            if matches!(error.code().as_deref(), Some("40001" | "40P01" | "55P03")))
}

/// Whether nobody could be asked.
pub(super) fn is_absence(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            // Connection exceptions, an operator's intervention, no connection left.
            code.starts_with("08") || code.starts_with("57P") || code == "53300"
        }),
        _ => false,
    }
}

/// Whether the server knows no such user, or not with this password.
pub(super) fn is_refusal_of_user(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error)
        if error.code().is_some_and(|code| code.starts_with("28")))
}

/// When to ask again.
pub(super) struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    /// Waits a while; false where there is no time left to.
    pub(super) async fn wait(&mut self) -> bool {
        // Thousands who lost the server at the same time must not come back at
        // the same time: half to all of the pause.
        let share = RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64;
        let pause = self.pause.mul_f64(0.5 + share / 2.0);
        if Instant::now() + pause > self.until {
            return false;
        }
        tokio::time::sleep(pause).await;
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_verified_unless_the_user_says_otherwise() {
        if std::env::var_os("PGSSLMODE").is_some() {
            return println!("skipped: PGSSLMODE is set");
        }
        let mode = |url: &str| {
            let server = Server::new(url).unwrap();
            format!("{:?}", server.options.get_ssl_mode())
        };
        for url in [
            "postgres://me@db.example.org/runs",
            "postgres://me@localhost/runs",
            "postgres://127.0.0.1:5433/runs?application_name=sslmode",
        ] {
            assert_eq!(mode(url), "VerifyFull", "{url}");
        }
        assert_eq!(mode("postgres://db/runs?sslmode=disable"), "Disable");
        assert_eq!(mode("postgres://db/runs?x=1&sslmode=verify-ca"), "VerifyCa");
        assert_eq!(mode("postgres://db/runs?ssl-mode=require"), "Require");
        // A socket of the file system is nobody else's.
        assert_ne!(
            mode("postgres://me@localhost/runs?host=/run/postgresql"),
            "VerifyFull"
        );
    }
}
