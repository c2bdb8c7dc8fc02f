//! Opening a PostgreSQL store: its tables live in a schema of their own.

use super::{Fault, Location, StoreError, schema};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use std::str::FromStr;

/// Key of the advisory lock under which the tables are created.
const LOCK: i64 = 0x636d_726b;

pub(super) async fn open(url: &str) -> Result<PgConnection, Fault> {
    let mut connection = PgConnectOptions::from_str(url)?
        .application_name("cryptmark")
        .disable_statement_logging()
        .connect()
        .await?;
    prepare(&mut connection, url).await?;
    sqlx::query("SET search_path TO cryptmark")
        .execute(&mut connection)
        .await?;
    Ok(connection)
}

async fn prepare(connection: &mut PgConnection, url: &str) -> Result<(), Fault> {
    let location = Location::Postgres(url.to_owned());
    let mut tx = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *tx)
        .await?;
    let (exists, ours): (bool, bool) = sqlx::query_as(
        "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'cryptmark'),
                to_regclass('cryptmark.schema_version') IS NOT NULL",
    )
    .fetch_one(&mut *tx)
    .await?;
    if exists {
        if !ours {
            return Err(StoreError::Foreign { location }.into());
        }
        let (found,): (i64,) = sqlx::query_as("SELECT version FROM cryptmark.schema_version")
            .fetch_one(&mut *tx)
            .await?;
        if found > schema::VERSION {
            let known = schema::VERSION;
            return Err(StoreError::Newer {
                location,
                found,
                known,
            }
            .into());
        }
        return Ok(());
    }
    for statement in [
        "CREATE SCHEMA cryptmark",
        "SET LOCAL search_path TO cryptmark",
        "CREATE TABLE schema_version (version BIGINT NOT NULL)",
    ]
    .into_iter()
    .chain(schema::TABLES)
    {
        sqlx::query(statement).execute(&mut *tx).await?;
    }
    sqlx::query("INSERT INTO schema_version (version) VALUES ($1)")
        .bind(schema::VERSION)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(())
}
