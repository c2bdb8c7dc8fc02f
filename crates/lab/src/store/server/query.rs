//! The tables and the queries.
//!
//! A record is kept as the JSON that `--json` prints. The other columns serve to list and to find:
//!
//! ```text
//! runs         run · plan · started · partial · host_key · header (the run without its trials)
//! trials       run · ordinal · record
//! baselines    name · run
//! experiments  name · fingerprint (of what is measured) · shards (their number)
//! attempts     run · experiment · shard: every run that has begun a shard, also one that was dropped
//! shards       experiment · shard · run: the one run that is the shard
//! ```

/// Version of the tables.
pub(super) const VERSION: i64 = 2;

/// Creates the tables. The second index finds the shard that goes with a deleted run.
pub(super) const TABLES: &str = "CREATE SCHEMA cryptmark;
     SET LOCAL search_path TO cryptmark;
     CREATE TABLE schema_version (version BIGINT NOT NULL);
     CREATE TABLE runs (
        run TEXT PRIMARY KEY NOT NULL,
        plan TEXT NOT NULL,
        started TEXT NOT NULL,
        partial BOOLEAN NOT NULL,
        host_key TEXT NOT NULL,
        header TEXT NOT NULL);
     CREATE TABLE trials (
        run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
        ordinal BIGINT NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (run, ordinal));
     CREATE TABLE baselines (
        name TEXT PRIMARY KEY NOT NULL,
        run TEXT NOT NULL REFERENCES runs (run));
     CREATE TABLE experiments (
        name TEXT PRIMARY KEY NOT NULL,
        fingerprint TEXT NOT NULL,
        shards BIGINT NOT NULL);
     CREATE TABLE attempts (
        run TEXT PRIMARY KEY NOT NULL,
        experiment TEXT NOT NULL REFERENCES experiments (name),
        shard BIGINT NOT NULL);
     CREATE INDEX attempts_of_shards ON attempts (experiment, shard);
     CREATE TABLE shards (
        experiment TEXT NOT NULL REFERENCES experiments (name),
        shard BIGINT NOT NULL,
        run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
        PRIMARY KEY (experiment, shard));
     CREATE INDEX shards_by_run ON shards (run)";

pub(super) const ADD_RUN: &str = "INSERT INTO runs (run, plan, started, partial, host_key, header)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (run) DO NOTHING";

pub(super) const REPLACE_RUN: &str = "UPDATE runs
     SET plan = $2, started = $3, partial = $4, host_key = $5, header = $6 WHERE run = $1";

/// Puts trials of the run $1 at the positions $2, each of which is there once.
pub(super) const PUT_TRIALS: &str = "INSERT INTO trials (run, ordinal, record)
     SELECT $1, * FROM unnest($2::bigint[], $3::text[])
     ON CONFLICT (run, ordinal) DO UPDATE SET record = excluded.record";

pub(super) const LIST_RUNS: &str = "SELECT run, plan, started, partial, host_key,
            (SELECT COUNT(*) FROM trials WHERE trials.run = runs.run)
     FROM runs";

pub(super) const IDS: &str = "SELECT run FROM runs";

pub(super) const HEADER: &str = "SELECT header FROM runs WHERE run = $1";

/// The headers of the runs behind $1, in the order in which the database sorts ids.
pub(super) const HEADERS_AFTER: &str =
    "SELECT run, header FROM runs WHERE run > $1 ORDER BY run LIMIT $2";

pub(super) const TRIALS: &str =
    "SELECT ordinal, record FROM trials WHERE run = $1 ORDER BY ordinal";

pub(super) const DELETE_RUN: &str = "DELETE FROM runs WHERE run = $1";

pub(super) const SET_BASELINE: &str = "INSERT INTO baselines (name, run) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET run = excluded.run";

pub(super) const BASELINES: &str = "SELECT name, run FROM baselines ORDER BY name";

pub(super) const REMOVE_BASELINE: &str = "DELETE FROM baselines WHERE name = $1";

pub(super) const ADD_EXPERIMENT: &str = "INSERT INTO experiments (name, fingerprint, shards)
     VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";

pub(super) const EXPERIMENT: &str = "SELECT fingerprint, shards FROM experiments WHERE name = $1";

pub(super) const ADD_ATTEMPT: &str = "INSERT INTO attempts (run, experiment, shard)
     VALUES ($1, $2, $3) ON CONFLICT (run) DO NOTHING";

pub(super) const ADD_SHARD: &str = "INSERT INTO shards (experiment, shard, run)
     VALUES ($1, $2, $3) ON CONFLICT (experiment, shard) DO NOTHING";

pub(super) const SHARD_IS: &str = "SELECT run FROM shards WHERE experiment = $1 AND shard = $2";

/// Deletes the runs that other attempts have left of a shard that is stored now.
pub(super) const DROP_OTHER_ATTEMPTS: &str = "DELETE FROM runs
     WHERE run IN (SELECT run FROM attempts WHERE experiment = $1 AND shard = $2)
       AND run <> $3 AND run NOT IN (SELECT run FROM baselines)";

pub(super) const SHARDS: &str = "SELECT shard, run FROM shards WHERE experiment = $1";

pub(super) const ATTEMPTS: &str = "SELECT shard, COUNT(*) FROM attempts
     WHERE experiment = $1 GROUP BY shard";

/// Runs that began a shard which another run is, and of which nothing is stored.
pub(super) const DROPPED_ATTEMPTS: &str = "SELECT attempts.run FROM attempts JOIN shards
       ON shards.experiment = attempts.experiment AND shards.shard = attempts.shard
     WHERE attempts.run NOT IN (SELECT run FROM runs)";
