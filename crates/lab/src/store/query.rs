//! The queries, in SQL that SQLite and PostgreSQL both read.

pub(super) const ADD_RUN: &str = "INSERT INTO runs (run, plan, started, partial, host_key, header)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (run) DO NOTHING";

pub(super) const FINISH_RUN: &str = "UPDATE runs
     SET plan = $2, started = $3, partial = $4, host_key = $5, header = $6 WHERE run = $1";

pub(super) const RUN_IS: &str = "SELECT run FROM runs WHERE run = $1";

pub(super) const PUT_TRIAL: &str = "INSERT INTO trials (run, ordinal, record) VALUES ($1, $2, $3)
     ON CONFLICT (run, ordinal) DO UPDATE SET record = excluded.record";

pub(super) const LIST_RUNS: &str = "SELECT run, plan, started, partial, host_key,
            (SELECT COUNT(*) FROM trials WHERE trials.run = runs.run)
     FROM runs";

pub(super) const IDS: &str = "SELECT run FROM runs";

pub(super) const HEADER: &str = "SELECT header FROM runs WHERE run = $1";

pub(super) const TRIALS: &str =
    "SELECT ordinal, record FROM trials WHERE run = $1 ORDER BY ordinal";

pub(super) const DELETE_RUN: &str = "DELETE FROM runs WHERE run = $1";

pub(super) const SET_BASELINE: &str = "INSERT INTO baselines (name, run) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET run = excluded.run";

pub(super) const BASELINES: &str = "SELECT name, run FROM baselines ORDER BY name";

pub(super) const REMOVE_BASELINE: &str = "DELETE FROM baselines WHERE name = $1";
