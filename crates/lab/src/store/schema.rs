//! The tables, in SQL that SQLite and PostgreSQL both read.
//!
//! A record is kept as the JSON that `--json` prints; the columns beside it
//! exist to list and to find. Version 1 of the schema:
//!
//! ```text
//! runs       run · plan · started · partial · host_key · header (the run without its trials)
//! trials     run · ordinal · record
//! baselines  name · run
//! ```

/// Version of the tables below.
pub(super) const VERSION: i64 = 1;

pub(super) const TABLES: [&str; 3] = [
    "CREATE TABLE runs (
        run TEXT PRIMARY KEY NOT NULL,
        plan TEXT NOT NULL,
        started TEXT NOT NULL,
        partial BOOLEAN NOT NULL,
        host_key TEXT NOT NULL,
        header TEXT NOT NULL)",
    "CREATE TABLE trials (
        run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
        ordinal BIGINT NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (run, ordinal))",
    "CREATE TABLE baselines (
        name TEXT PRIMARY KEY NOT NULL,
        run TEXT NOT NULL REFERENCES runs (run))",
];
