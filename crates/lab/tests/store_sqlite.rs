//! Runs of earlier versions, which kept them in SQLite, come into a folder.
#![cfg(feature = "sqlite")]

#[allow(dead_code, reason = "what is written here is of an earlier version")]
mod store_suite;

use cryptmark_lab::record::Run;
use cryptmark_lab::store::{Location, Store, StoreError};
use rusqlite::{Connection, params};
use std::fs;
use std::path::Path;
use store_suite::{attempt, run};

/// The tables of version 1, and those that version 2 adds.
const TABLES: [&str; 2] = [
    "CREATE TABLE runs (run TEXT PRIMARY KEY NOT NULL, plan TEXT NOT NULL, started TEXT NOT NULL,
        partial BOOLEAN NOT NULL, host_key TEXT NOT NULL, header TEXT NOT NULL);
     CREATE TABLE trials (run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
        ordinal BIGINT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (run, ordinal));
     CREATE TABLE baselines (name TEXT PRIMARY KEY NOT NULL,
        run TEXT NOT NULL REFERENCES runs (run))",
    "CREATE TABLE experiments (name TEXT PRIMARY KEY NOT NULL, fingerprint TEXT NOT NULL,
        shards BIGINT NOT NULL);
     CREATE TABLE attempts (run TEXT PRIMARY KEY NOT NULL,
        experiment TEXT NOT NULL REFERENCES experiments (name), shard BIGINT NOT NULL);
     CREATE TABLE shards (experiment TEXT NOT NULL REFERENCES experiments (name),
        shard BIGINT NOT NULL, run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
        PRIMARY KEY (experiment, shard))",
];

/// A store as version `version` of the tables had it.
fn earlier(path: &Path, version: i64, runs: &[Run]) -> Connection {
    let connection = Connection::open(path).unwrap();
    for tables in &TABLES[..version as usize] {
        connection.execute_batch(tables).unwrap();
    }
    let mark = format!(
        "PRAGMA application_id = {}; PRAGMA user_version = {version}",
        0x636d_726b
    );
    connection.execute_batch(&mark).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = WAL; BEGIN")
        .unwrap();
    for run in runs {
        let header = Run {
            trials: Vec::new(),
            ..run.clone()
        };
        connection
            .execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)",
                params![
                    run.run,
                    run.plan,
                    run.started,
                    run.partial,
                    run.host.key(),
                    serde_json::to_string(&header).unwrap()
                ],
            )
            .unwrap();
        for (ordinal, trial) in run.trials.iter().enumerate() {
            let record = serde_json::to_string(trial).unwrap();
            connection
                .execute(
                    "INSERT INTO trials VALUES (?, ?, ?)",
                    params![run.run, ordinal as i64, record],
                )
                .unwrap();
        }
    }
    connection.execute_batch("COMMIT").unwrap();
    connection
}

fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = paths
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn five_hundred_runs_are_taken_over_with_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let mut runs: Vec<Run> = (0..500)
        .map(|n| run(&format!("2026-{n:03}"), n % 7))
        .collect();
    for partial in runs.iter_mut().step_by(9) {
        partial.partial = true;
    }
    let connection = earlier(&path, 1, &runs);
    connection
        .execute_batch(
            "INSERT INTO baselines VALUES ('plain', '2026-003'), ('release''1', '2026-400')",
        )
        .unwrap();
    drop(connection);
    let location = Location::Folder(folder.path().join("runs"));
    let told = location.earlier().unwrap();
    assert!(
        told.contains("runs.db") && told.contains("store take-over"),
        "{told}"
    );
    let before = fs::read(&path).unwrap();

    let store = Store::open(&location).unwrap();
    let taken = store.take_over_sqlite(&path).unwrap();
    assert_eq!((taken.stored, taken.baselines), (500, 2));
    assert!(taken.left.is_empty(), "{:?}", taken.left);
    assert_eq!(store.list().unwrap().len(), 500);
    for run in &runs {
        assert_eq!(store.load(&run.run).unwrap(), *run);
    }
    assert_eq!(store.load("release'1").unwrap(), runs[400]);
    assert_eq!(store.load("plain").unwrap(), runs[3]);
    assert_eq!(fs::read(&path).unwrap(), before, "the file stays as it is");
    assert_eq!(location.earlier(), None, "it is told once");

    // Once more, after a run was gone on with: nothing changes.
    let kept = files(&folder.path().join("runs/runs"));
    let again = store.take_over_sqlite(&path).unwrap();
    assert_eq!(
        (again.stored, again.baselines, again.left.len()),
        (500, 0, 0)
    );
    assert_eq!(files(&folder.path().join("runs/runs")), kept);
}

/// The last writes are still in the write-ahead log: its writer was killed.
#[test]
fn what_stands_in_the_log_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let live = earlier(&path, 2, &[run("2026-a", 2), run("2026-b", 1)]);
    let copy = tempfile::tempdir().unwrap();
    for file in ["runs.db", "runs.db-wal"] {
        fs::copy(folder.path().join(file), copy.path().join(file)).unwrap();
    }
    assert!(fs::metadata(copy.path().join("runs.db-wal")).unwrap().len() > 0);
    drop(live);
    let store = Store::open(&Location::Folder(copy.path().join("runs"))).unwrap();
    let taken = store.take_over_sqlite(&copy.path().join("runs.db"));
    assert_eq!(taken.unwrap().stored, 2);
    assert_eq!(store.load("2026-a").unwrap(), run("2026-a", 2));
}

#[test]
fn shards_stay_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let runs = [attempt("2026-b", "spring", 1, "f"), {
        let mut begun = attempt("2026-c", "spring", 3, "f");
        begun.partial = true;
        begun
    }];
    earlier(&path, 2, &runs)
        .execute_batch(
            "INSERT INTO experiments VALUES ('spring', 'f', 3);
             INSERT INTO attempts VALUES ('2026-a', 'spring', 1), ('2026-b', 'spring', 1),
                ('2026-c', 'spring', 3);
             INSERT INTO shards VALUES ('spring', 1, '2026-b')",
        )
        .unwrap();
    let store = Store::open(&Location::Folder(folder.path().join("runs"))).unwrap();
    let taken = store.take_over_sqlite(&path).unwrap();
    assert!(taken.left.is_empty(), "{:?}", taken.left);
    let shards = store.progress("spring").unwrap().shards;
    let shards: Vec<_> = shards
        .iter()
        .map(|shard| (shard.run.as_deref(), shard.attempts))
        .collect();
    assert_eq!(shards, [(Some("2026-b"), 2), (None, 0), (None, 1)]);
    assert_eq!(store.dropped_attempts().unwrap(), ["2026-a"]);
}

#[test]
fn what_cannot_be_taken_over_is_told_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let runs = ["2026-a", "2026-b", "2026-c", "2026-d"].map(|id| run(id, 2));
    let connection = earlier(&path, 2, &runs);
    connection
        .execute_batch(
            "UPDATE trials SET record = '{' WHERE run = '2026-a' AND ordinal = 1;
             UPDATE runs SET header = replace(header, 'cryptmark/2', 'cryptmark/9')
                WHERE run = '2026-b';
             INSERT INTO baselines VALUES ('a', '2026-a'), ('c', '2026-c'), ('d', '2026-d')",
        )
        .unwrap();
    let location = Location::Folder(folder.path().join("runs"));
    let store = Store::open(&location).unwrap();
    let mut other = run("2026-c", 2);
    other.started = "2026-11-22T12:00:00+01:00".into();
    store.take_over(&[other.clone(), run("2027", 1)]).unwrap();
    store.set_baseline("d", "2027").unwrap();

    let taken = store.take_over_sqlite(&path).unwrap();
    assert_eq!((taken.stored, taken.baselines), (1, 1));
    let left: Vec<String> = taken.left.iter().map(ToString::to_string).collect();
    for (why, words) in left
        .iter()
        .zip(["2026-a", "cryptmark/9", "2026-c", "`2026-a`", "`d`"])
    {
        assert!(why.contains(words), "{left:?}");
    }
    assert_eq!(left.len(), 5, "{left:?}");
    assert_eq!(store.load("2026-c").unwrap(), other);
    assert_eq!(store.load("d").unwrap().run, "2027");
    assert!(
        location.earlier().is_some(),
        "it is told until all is taken over"
    );

    let refused = |error: StoreError| assert!(error.to_string().contains("runs.db"), "{error}");
    connection.execute_batch("PRAGMA user_version = 3").unwrap();
    let newer = store.take_over_sqlite(&path).unwrap_err();
    assert!(matches!(newer, StoreError::Newer { found: 3, .. }));
    refused(newer);
    connection
        .execute_batch("PRAGMA application_id = 7")
        .unwrap();
    let foreign = store.take_over_sqlite(&path).unwrap_err();
    assert!(matches!(foreign, StoreError::NotEarlier { .. }));
    refused(foreign);
}

/// A file of an earlier version in place of a folder is refused, and left as it is.
#[test]
fn the_file_is_no_store_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    drop(earlier(&path, 2, &[run("2026", 1)]));
    let before = fs::read(&path).unwrap();
    let error = Store::open(&Location::Folder(path.clone())).err().unwrap();
    assert!(matches!(error, StoreError::Earlier { .. }), "{error:?}");
    assert!(error.remedy().contains("store take-over"));
    assert_eq!(fs::read(&path).unwrap(), before);
}
