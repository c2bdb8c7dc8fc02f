//! The tables, and the migrations from one version of them to the next and back.
//!
//! A record is kept as the JSON that `--json` prints. The other columns serve to list and to find:
//!
//! ```text
//! version 1
//! runs         run · plan · started · partial · host_key · header (the run without its trials)
//! trials       run · ordinal · record
//! baselines    name · run
//! version 2
//! experiments  name · fingerprint (of what is measured) · shards (their number)
//! attempts     run · experiment · shard: every run that has begun a shard, also one that was dropped
//! shards       experiment · shard · run: the one run that is the shard
//! ```
//!
//! The tables of version 2 repeat the content of run headers. A migration back therefore loses
//! nothing that a migration forward would not find again.

/// Version of the tables that this program works with.
pub const VERSION: i64 = 2;

/// Oldest version that it can go back to.
pub const OLDEST: i64 = 1;

/// The statements that lead from version `from` to version `to`; 0 is an empty
/// database.
pub(super) fn statements(from: i64, to: i64) -> Vec<&'static str> {
    let mut statements = Vec::new();
    if from < 1 && to >= 1 {
        statements.extend(RUNS);
    }
    if from < 2 && to >= 2 {
        statements.extend(SHARDS);
        if from == 1 {
            statements.extend(FIND_SHARDS);
        }
    }
    if from >= 2 && to < 2 {
        statements.extend(DROP_SHARDS);
    }
    statements
}

const RUNS: [&str; 3] = [
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

const SHARDS: [&str; 5] = [
    "CREATE TABLE experiments (
        name TEXT PRIMARY KEY NOT NULL,
        fingerprint TEXT NOT NULL,
        shards BIGINT NOT NULL)",
    "CREATE TABLE attempts (
        run TEXT PRIMARY KEY NOT NULL,
        experiment TEXT NOT NULL REFERENCES experiments (name),
        shard BIGINT NOT NULL)",
    "CREATE INDEX attempts_of_shards ON attempts (experiment, shard)",
    "CREATE TABLE shards (
        experiment TEXT NOT NULL REFERENCES experiments (name),
        shard BIGINT NOT NULL,
        run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
        PRIMARY KEY (experiment, shard))",
    // A run that is deleted takes its row here along, which is found by this.
    "CREATE INDEX shards_by_run ON shards (run)",
];

const DROP_SHARDS: [&str; 3] = [
    "DROP TABLE shards",
    "DROP TABLE attempts",
    "DROP TABLE experiments",
];

const FIND_SHARDS: [&str; 3] = [
    "INSERT INTO experiments (name, fingerprint, shards)
     SELECT header::json #>> '{shard,experiment}', header::json #>> '{shard,fingerprint}',
            (header::json #>> '{shard,of}')::bigint
     FROM runs WHERE header LIKE '%\"shard\":{%' ON CONFLICT DO NOTHING",
    "INSERT INTO attempts (run, experiment, shard)
     SELECT run, header::json #>> '{shard,experiment}', (header::json #>> '{shard,index}')::bigint
     FROM runs WHERE header LIKE '%\"shard\":{%' ON CONFLICT DO NOTHING",
    "INSERT INTO shards (experiment, shard, run)
     SELECT attempts.experiment, attempts.shard, attempts.run
     FROM attempts JOIN runs ON runs.run = attempts.run WHERE NOT runs.partial ON CONFLICT DO NOTHING",
];
