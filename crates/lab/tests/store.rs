//! The store on SQLite: the suite, several processes at once, and files that are not ours.

mod store_suite;

use cryptmark_lab::store::{LATEST, Location, Store, StoreError};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn location(directory: &tempfile::TempDir) -> (PathBuf, Location) {
    let path = directory.path().join("a/b/runs.db");
    (path.clone(), Location::Sqlite(path))
}

/// Runs SQL behind the store's back.
fn sql(path: &Path, statements: &'static str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut connection: SqliteConnection = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .foreign_keys(false)
            .connect()
            .await
            .unwrap();
        sqlx::raw_sql(statements)
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
    });
}

/// Opens a store that must be refused, and checks that its file stays as it is.
fn refused(path: &Path) -> StoreError {
    let before = fs::read(path).unwrap();
    let error = Store::open(&Location::Sqlite(path.to_owned()))
        .err()
        .expect("must be refused");
    assert_eq!(
        before,
        fs::read(path).unwrap(),
        "a refused file was modified"
    );
    assert!(
        error.to_string().contains(path.to_str().unwrap()),
        "{error} does not name the file"
    );
    assert!(!error.remedy().is_empty());
    error
}

#[test]
fn suite() {
    let directory = tempfile::tempdir().unwrap();
    store_suite::all(&location(&directory).1);
}

#[test]
fn tables_go_down_and_up() {
    let directory = tempfile::tempdir().unwrap();
    store_suite::migrations(&location(&directory).1);
}

#[test]
fn a_store_that_is_full_takes_none_of_several_runs() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let store = Store::open(&location).unwrap();
    let runs = [store_suite::run("2026-a", 2), store_suite::run("2026-b", 2)];
    sql(
        &path,
        "CREATE TRIGGER full BEFORE INSERT ON trials WHEN NEW.run = '2026-b' AND NEW.ordinal = 1
         BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END",
    );
    assert!(store.take_over(&runs).is_err());
    assert_eq!(store.list().unwrap(), []);
    sql(&path, "DROP TRIGGER full");
    store.take_over(&runs).unwrap();
    assert_eq!(store.load("2026-b").unwrap(), runs[1]);
}

#[test]
fn only_the_owner_may_read() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let store = Store::open(&location).unwrap();
    store.begin(&store_suite::run("2026", 0)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600, "the WAL, too");
    }
}

#[test]
fn threads_write_at_the_same_time() {
    let directory = tempfile::tempdir().unwrap();
    let location = location(&directory).1;
    // Nobody created the store before: they race for that as well.
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let location = &location;
            scope.spawn(move || store_suite::write_as(location, writer));
        }
    });
    store_suite::nothing_lost(&location, 4);
}

#[test]
fn processes_write_at_the_same_time() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let children: Vec<_> = (0..4)
        .map(|writer: u32| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "one_writer_of_several", "--ignored"])
                .env("STORE_UNDER_TEST", &path)
                .env("WRITER", writer.to_string())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    store_suite::nothing_lost(&location, 4);
}

#[test]
#[ignore = "a child process of processes_write_at_the_same_time"]
fn one_writer_of_several() {
    let (Ok(path), Ok(writer)) = (std::env::var("STORE_UNDER_TEST"), std::env::var("WRITER"))
    else {
        return;
    };
    store_suite::write_as(&Location::Sqlite(path.into()), writer.parse().unwrap());
}

#[test]
fn a_killed_process_leaves_what_it_stored() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "one_writer_without_end",
            "--ignored",
            "--nocapture",
        ])
        .env("STORE_UNDER_TEST", &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let stored: Vec<String> = lines
        .map_while(Result::ok)
        .filter(|line| line.starts_with("stored"))
        .take(25)
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(stored.len(), 25);
    let run = Store::open(&location).unwrap().load(LATEST).unwrap();
    assert!(run.partial);
    assert!(run.trials.len() >= 25, "{} of 25", run.trials.len());
    for (ordinal, trial) in (0..).zip(&run.trials) {
        assert_eq!(*trial, store_suite::trial(ordinal));
    }
}

#[test]
#[ignore = "a child process of a_killed_process_leaves_what_it_stored"]
fn one_writer_without_end() {
    let Ok(path) = std::env::var("STORE_UNDER_TEST") else {
        return;
    };
    let store = Store::open(&Location::Sqlite(path.into())).unwrap();
    store.begin(&store_suite::run("killed", 0)).unwrap();
    for ordinal in 0.. {
        let trial = store_suite::trial(ordinal);
        store.put_trials("killed", &[(ordinal, &trial)]).unwrap();
        println!("\nstored {ordinal}");
    }
}

#[test]
fn an_empty_file_becomes_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    fs::write(&path, b"").unwrap();
    let store = Store::open(&Location::Sqlite(path)).unwrap();
    assert_eq!(store.list().unwrap(), []);
}

#[test]
fn refuses_what_is_no_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    let noise: Vec<u8> = (0_u32..20_000)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for bytes in [
        &noise[..],
        b"x",
        b"SQLite format 3\0",
        b"plan = \"quick\"\n",
    ] {
        fs::write(&path, bytes).unwrap();
        assert!(matches!(
            refused(&path),
            StoreError::NotADatabase { path: named } if named == path
        ));
    }
    assert!(matches!(
        Store::open(&Location::Sqlite(directory.path().into())),
        Err(StoreError::NotADatabase { .. })
    ));
    assert!(matches!(
        Store::open(&Location::Sqlite(path.join("below-a-file/runs.db"))),
        Err(StoreError::Io { .. })
    ));
}

#[test]
fn refuses_a_damaged_store() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    store_suite::write_as(&location, 0);
    let whole = fs::read(&path).unwrap();
    for keep in [whole.len() / 2, whole.len() - 4096, 4096, 512, 101] {
        fs::write(&path, &whole[..keep]).unwrap();
        let error = refused(&path);
        assert!(
            matches!(error, StoreError::Damaged { .. }),
            "{keep} bytes: {error:?}"
        );
    }
    let mut header_alone = whole[..100].to_vec();
    header_alone.resize(whole.len(), 0xa5);
    fs::write(&path, &header_alone).unwrap();
    assert!(matches!(refused(&path), StoreError::Damaged { .. }));
    fs::write(&path, &whole).unwrap();
    store_suite::nothing_lost(&location, 1);
}

#[test]
fn refuses_the_database_of_another_program() {
    let directory = tempfile::tempdir().unwrap();
    for (name, statements) in [
        ("plain.db", "CREATE TABLE notes (text TEXT)"),
        ("same-tables.db", "CREATE TABLE runs (run TEXT)"),
        (
            "other-id.db",
            "PRAGMA application_id = 1; CREATE TABLE notes (text TEXT)",
        ),
        (
            "wal.db",
            "PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT)",
        ),
        (
            "no-version.db",
            "PRAGMA application_id = 1668117099; CREATE TABLE notes (text TEXT)",
        ),
    ] {
        let path = directory.path().join(name);
        sql(&path, statements);
        assert!(
            matches!(refused(&path), StoreError::Foreign { .. }),
            "{name}"
        );
    }
}

#[test]
fn refuses_a_newer_version() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    drop(Store::open(&location).unwrap());
    sql(&path, "PRAGMA user_version = 99");
    assert!(matches!(
        refused(&path),
        StoreError::Newer { found: 99, .. }
    ));
}

#[test]
fn names_a_broken_record() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    store_suite::write_as(&location, 0);
    sql(
        &path,
        "UPDATE trials SET record = '{\"tier\":' WHERE run = 'w0-0' AND ordinal = 3;
         UPDATE runs SET header = 'no JSON' WHERE run = 'w0-1';
         UPDATE runs SET header = replace(header, 'cryptmark/2', 'cryptmark/3') WHERE run = 'w0-2';
         UPDATE runs SET header = '{\"schema\":\"cryptmark/9\"}' WHERE run = 'w0-3'",
    );
    let store = Store::open(&location).unwrap();
    assert!(matches!(
        store.load("w0-0"),
        Err(StoreError::Record { run, ordinal: Some(3), .. }) if run == "w0-0"
    ));
    assert!(matches!(
        store.load("w0-1"),
        Err(StoreError::Record { ordinal: None, .. })
    ));
    for run in ["w0-2", "w0-3"] {
        assert!(matches!(store.load(run), Err(StoreError::Schema { .. })));
    }
    assert!(
        store.load("w0-4").is_ok(),
        "the others are still to be read"
    );
    assert_eq!(store.list().unwrap().len(), 5);
    assert_eq!(store.delete("w0-1").unwrap(), "w0-1");
}

#[cfg(not(feature = "postgres"))]
#[test]
fn says_when_postgres_is_not_built_in() {
    let location: Location = "postgres://me:s3cret@host/db".parse().unwrap();
    let error = Store::open(&location).err().unwrap();
    assert!(matches!(error, StoreError::NoPostgres { .. }));
    assert!(!format!("{error} {error:?}").contains("s3cret"));
}
