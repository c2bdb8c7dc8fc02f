//! Opening a SQLite store. A file that is not ours is recognised from its
//! header, before SQLite may touch it.

use super::schema::{self, Dialect};
use super::{Fault, Location, StoreError};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

/// `cmrk`: marks the file as a store of this program.
const APPLICATION_ID: i64 = 0x636d_726b;

/// How long to wait for other processes: longer than any transaction here
/// takes on a slow disk that is being measured.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn open(path: &Path) -> Result<SqliteConnection, Fault> {
    let mut connection = open_any(path).await?;
    let location = Location::Sqlite(path.to_owned());
    let up = |version: i64| version.max(schema::VERSION);
    prepare(&mut connection, &location, up).await?;
    switch_to_wal(&mut connection).await?;
    Ok(connection)
}

/// Brings the tables to version `to`, up or down; the version they had, 0 for none.
pub(super) async fn migrate_to(path: &Path, to: i64) -> Result<i64, Fault> {
    let mut connection = open_any(path).await?;
    let location = Location::Sqlite(path.to_owned());
    let from = prepare(&mut connection, &location, |_| to).await?;
    connection.close().await?;
    Ok(from)
}

/// A file of ours, or a new one, with tables of any version that is known.
async fn open_any(path: &Path) -> Result<SqliteConnection, Fault> {
    let location = Location::Sqlite(path.to_owned());
    let failed = |source| StoreError::Io {
        path: path.to_owned(),
        source,
    };
    create_private(path).map_err(failed)?;
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(StoreError::NotADatabase { path: path.into() }.into());
    }
    let file = File::open(path).map_err(failed)?;
    let mut header = Vec::new();
    file.take(100).read_to_end(&mut header).map_err(failed)?;
    inspect(&header, &location, path)?;

    let connection = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(PATIENCE)
        .disable_statement_logging()
        .connect()
        .await?;
    Ok(connection)
}

/// Creates what is missing, readable by its owner alone: a run tells which
/// hardware and which volumes somebody has. On Windows what is made in a user's
/// folders inherits their rights, which are the user's alone.
fn create_private(path: &Path) -> io::Result<()> {
    let (mut directories, mut files) = (DirBuilder::new(), OpenOptions::new());
    directories.recursive(true);
    files.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        directories.mode(0o700);
        files.mode(0o600);
    }
    if let Some(directory) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        directories.create(directory)?;
    }
    match files.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Refuses a file whose first 100 bytes are not those of a store.
///
/// Layout (big endian): 0 magic, 60 user version, 68 application id. An empty
/// file is a store that nobody has written to yet, as for SQLite itself.
fn inspect(header: &[u8], location: &Location, path: &Path) -> Result<(), StoreError> {
    if header.is_empty() {
        return Ok(());
    }
    let Some(header) = header
        .first_chunk::<100>()
        .filter(|header| header.starts_with(b"SQLite format 3\0"))
    else {
        return Err(StoreError::NotADatabase { path: path.into() });
    };
    let word = |at: usize| {
        i64::from(i32::from_be_bytes([
            header[at],
            header[at + 1],
            header[at + 2],
            header[at + 3],
        ]))
    };
    judge(word(68), word(60), location)
}

fn judge(application: i64, version: i64, location: &Location) -> Result<(), StoreError> {
    if application != APPLICATION_ID || version < 1 {
        return Err(StoreError::Foreign {
            location: location.clone(),
        });
    }
    if version > schema::VERSION {
        return Err(StoreError::Newer {
            location: location.clone(),
            found: version,
            known: schema::VERSION,
        });
    }
    Ok(())
}

/// Brings the tables from the version they have, 0 in a new file, to what `to` says
/// of it, and returns it; judges any other file by what SQLite sees.
async fn prepare(
    connection: &mut SqliteConnection,
    location: &Location,
    to: impl Fn(i64) -> i64,
) -> Result<i64, Fault> {
    // Immediate, so that of two processes that find an empty file only one
    // creates the tables.
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    let (application,): (i64,) = sqlx::query_as("SELECT application_id FROM pragma_application_id")
        .fetch_one(&mut *tx)
        .await?;
    let (version,): (i64,) = sqlx::query_as("SELECT user_version FROM pragma_user_version")
        .fetch_one(&mut *tx)
        .await?;
    let (objects,): (i64,) = sqlx::query_as("SELECT COUNT(*) FROM sqlite_schema")
        .fetch_one(&mut *tx)
        .await?;
    if (application, version, objects) != (0, 0, 0) {
        judge(application, version, location)?;
    }
    let to = to(version);
    if version == to {
        return Ok(version);
    }
    for statement in schema::statements(version, to, Dialect::Sqlite) {
        sqlx::query(statement).execute(&mut *tx).await?;
    }
    // A pragma takes no parameters.
    let mark = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {to}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(mark))
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(version)
}

/// Lets readers and one writer work at the same time.
async fn switch_to_wal(connection: &mut SqliteConnection) -> Result<(), Fault> {
    let start = Instant::now();
    loop {
        // The switch needs the file alone, and SQLite does not wait for that.
        match sqlx::query("PRAGMA journal_mode = WAL")
            .execute(&mut *connection)
            .await
        {
            Err(sqlx::Error::Database(error))
                if error.code().as_deref() == Some("5") && start.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            result => {
                result?;
                return Ok(());
            }
        }
    }
}
