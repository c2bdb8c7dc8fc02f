//! The store on PostgreSQL: the suite against a private server that lives as
//! long as the test, and what happens when that is away.
#![cfg(feature = "postgres")]

mod postgres_server;
mod store_suite;

use cryptmark_lab::store::{Location, Spool, Store, StoreError};
use postgres_server::Server;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A server, or `None` after printing why there is none.
fn server() -> Option<Server> {
    match Server::start() {
        Ok(server) => Some(server),
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

#[test]
fn on_a_private_server() {
    let Some(server) = server() else { return };
    for database in ["suite", "writers", "strangers", "other"] {
        server.sql("postgres", &format!("CREATE DATABASE {database}"));
    }

    store_suite::all(&at(&server, "suite"));

    let writers = at(&server, "writers");
    // The tables do not exist yet, so the writers race to create them as well.
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let writers = &writers;
            scope.spawn(move || store_suite::write_as(writers, writer));
        }
    });
    store_suite::nothing_lost(&writers, 4);

    server.sql(
        "strangers",
        "CREATE SCHEMA cryptmark CREATE TABLE notes (text TEXT)",
    );
    assert!(matches!(
        Store::open(&at(&server, "strangers")),
        Err(StoreError::Foreign { .. })
    ));

    drop(Store::open(&at(&server, "other")).unwrap());
    for other in [1, 99] {
        let version = format!("UPDATE cryptmark.schema_version SET version = {other}");
        server.sql("other", &version);
        assert!(matches!(
            Store::open(&at(&server, "other")),
            Err(StoreError::OtherVersion { found, .. }) if found == other
        ));
    }

    server.sql(
        "suite",
        "UPDATE cryptmark.runs SET header = 'no JSON' WHERE run = '2026-b'",
    );
    let store = Store::open(&at(&server, "suite")).unwrap();
    assert!(matches!(
        store.load("2026-b"),
        Err(StoreError::Record { ordinal: None, .. })
    ));

    assert!(matches!(
        Store::open(&at(&server, "absent")),
        Err(StoreError::Database { .. })
    ));
}

fn at(server: &Server, database: &str) -> Location {
    Location::Postgres(server.url(database))
}

/// A folder for what waits, with room for `limit` bytes.
fn spool(folder: &Path, limit: u64) -> Spool {
    Spool {
        folder: folder.to_owned(),
        limit,
    }
}

/// Files that wait in a spool.
fn waiting(folder: &Path) -> Vec<PathBuf> {
    let list = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    list(folder)
        .flat_map(|store| list(&store.path().join("runs")))
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect()
}

#[test]
fn what_a_server_misses_waits_and_is_stored_once() {
    let Some(server) = server() else { return };
    server.sql("postgres", "CREATE DATABASE runs");
    let folder = tempfile::tempdir().unwrap();
    let location = at(&server, "runs");
    let open =
        || Store::open_to_write(&location, &spool(folder.path(), store_suite::ROOM)).unwrap();

    // Away for the second half of a run.
    let store = open();
    let half = store_suite::run("half", 4);
    store.begin(&half).unwrap();
    store.put_trials("half", &[(0, &half.trials[0])]).unwrap();
    assert_eq!(store.absence(), None);
    server.stop("immediate").unwrap();
    for ordinal in 1..4 {
        let trial = &half.trials[ordinal as usize];
        store.put_trials("half", &[(ordinal, trial)]).unwrap();
    }
    // Corrected while it waits: the last word counts.
    store.put_trials("half", &[(0, &half.trials[3])]).unwrap();
    store.put_trials("half", &[(0, &half.trials[0])]).unwrap();
    store.finish(&half).unwrap();
    assert!(store.absence().is_some());

    // The server is away from the beginning: a reader gets an error, a writer goes on.
    assert!(matches!(
        Store::open(&location),
        Err(StoreError::Unreachable { .. })
    ));
    let whole = store_suite::run("whole", 3);
    let other = open();
    assert!(other.absence().is_some());
    store_suite::put(&other, &whole);
    assert_eq!(other.waiting().unwrap().unwrap().0, 2);

    server.go().unwrap();
    // The file of a live writer is its own, so no other process hands it over.
    drop(other);
    let third = open();
    let handed = third.hand_over(None).unwrap();
    assert_eq!((handed.stored, handed.superseded), (1, 0));
    assert_eq!(third.load("whole").unwrap(), whole);
    assert!(third.load("half").unwrap().partial);

    // Handed over, and killed before the file was removed: it is handed over again.
    let kept: Vec<(PathBuf, Vec<u8>)> = waiting(folder.path())
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(store.hand_over(None).unwrap().stored, 1);
    assert_eq!(store.absence(), None);
    assert_eq!(third.load("half").unwrap(), half);
    assert!(waiting(folder.path()).is_empty());
    for (path, bytes) in kept {
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(third.hand_over(None).unwrap().stored, 1);
    assert_eq!(third.load("half").unwrap(), half);
    assert_eq!(
        server.sql("runs", "SELECT count(*) FROM cryptmark.trials"),
        "7"
    );

    // A damaged file is put aside and reported.
    server.stop("fast").unwrap();
    let store = open();
    store_suite::put(&store, &store_suite::run("damaged", 1));
    drop(store);
    let path = waiting(folder.path()).remove(0);
    fs::write(&path, b"{\"begin\":7}\n").unwrap();
    server.go().unwrap();
    let handed = third.hand_over(None).unwrap();
    assert_eq!((handed.stored, handed.refused.len()), (0, 1));
    assert!(handed.refused[0].1.exists() && !path.exists());

    // Half a line, which its writer never heard to be safe, is not there.
    server.stop("fast").unwrap();
    let store = open();
    let torn = store_suite::run("torn", 2);
    store.begin(&torn).unwrap();
    store.put_trials("torn", &[(0, &torn.trials[0])]).unwrap();
    drop(store);
    let path = waiting(folder.path()).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"trial\":{\"run\":\"to");
    fs::write(&path, bytes).unwrap();
    server.go().unwrap();
    assert_eq!(third.hand_over(None).unwrap().stored, 1);
    assert_eq!(third.load("torn").unwrap().trials, torn.trials[..1]);
}

#[test]
fn whatever_keeps_a_server_from_taking_it_nothing_is_lost() {
    let Some(server) = server() else { return };
    server.sql("postgres", "CREATE DATABASE runs");
    let folder = tempfile::tempdir().unwrap();

    // No run begins while too much waits; one that has begun is kept whole.
    let full = store_suite::run("full", 40);
    let store = Store::open_to_write(&at(&server, "runs"), &spool(folder.path(), 20_000));
    let store = store.unwrap();
    server.stop("fast").unwrap();
    store_suite::put(&store, &full);
    let next = store_suite::run("next", 1);
    let refused = store.begin(&next).unwrap_err();
    assert!(
        matches!(refused, StoreError::SpoolFull { limit: 20_000, .. }),
        "{refused:?}"
    );
    server.go().unwrap();
    assert_eq!(store.hand_over(None).unwrap().stored, 1);
    assert_eq!(store.load("full").unwrap(), full);
    store_suite::put(&store, &next);
    assert_eq!(store.load("next").unwrap(), next);

    // Another user's newer program changes the tables meanwhile.
    let store = Store::open_to_write(
        &at(&server, "runs"),
        &spool(folder.path(), store_suite::ROOM),
    );
    let store = store.unwrap();
    let run = store_suite::run("newer", 2);
    store.begin(&run).unwrap();
    server.sql("runs", "UPDATE cryptmark.schema_version SET version = 99");
    store_suite::finish(&store, &run);
    assert!(store.absence().unwrap().contains("version 99"));
    assert!(matches!(
        Store::open_to_write(
            &at(&server, "runs"),
            &spool(folder.path(), store_suite::ROOM)
        ),
        Err(StoreError::OtherVersion { found: 99, .. })
    ));
    server.sql("runs", "UPDATE cryptmark.schema_version SET version = 2");
    assert_eq!(store.hand_over(None).unwrap().stored, 1);
    assert_eq!(store.load("newer").unwrap(), run);

    // A password that is good until the run has begun.
    server.sql(
        "runs",
        "CREATE ROLE guest LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA cryptmark TO guest;
         GRANT ALL ON ALL TABLES IN SCHEMA cryptmark TO guest",
    );
    let guest = Location::Postgres(server.url_of("guest:secret", "runs"));
    let store = Store::open_to_write(&guest, &spool(folder.path(), store_suite::ROOM)).unwrap();
    let run = store_suite::run("expired", 2);
    store.begin(&run).unwrap();
    server.sql("runs", "ALTER ROLE guest VALID UNTIL '2020-01-01'");
    store_suite::finish(&store, &run);
    let told = Store::open_to_write(&guest, &spool(folder.path(), store_suite::ROOM));
    let told = told.err().expect("must be refused");
    assert!(matches!(told, StoreError::Credentials { .. }), "{told:?}");
    assert!(!format!("{told} {}", told.remedy()).contains("secret"));
    server.sql("runs", "ALTER ROLE guest VALID UNTIL 'infinity'");
    assert_eq!(store.hand_over(None).unwrap().stored, 1);
    assert_eq!(store.load("expired").unwrap(), run);
    assert!(waiting(folder.path()).is_empty());

    // While a shard waits, another process stores another experiment under the same name.
    let store = Store::open_to_write(
        &at(&server, "runs"),
        &spool(folder.path(), store_suite::ROOM),
    );
    let store = store.unwrap();
    server.stop("fast").unwrap();
    let shard = store_suite::attempt("later", "spring", 1, "f");
    store_suite::put(&store, &shard);
    server.go().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let other = store_suite::open(&at(&server, "runs"), elsewhere.path());
    let sooner = store_suite::attempt("sooner", "spring", 1, "g");
    store_suite::put(&other, &sooner);
    let handed = store.hand_over(None).unwrap();
    assert_eq!((handed.stored, handed.refused.len()), (0, 1));
    let (why, kept) = &handed.refused[0];
    assert!(matches!(why, StoreError::OtherExperiment { .. }), "{why}");
    let kept = fs::read_to_string(kept).unwrap();
    // Its beginning, both of its trials and its end.
    assert_eq!(kept.lines().filter(|l| l.contains("later")).count(), 4);
    assert_eq!(other.load("sooner").unwrap(), sooner);
    assert!(waiting(folder.path()).is_empty());
}

#[test]
fn a_killed_writer_leaves_what_waits() {
    let Some(server) = server() else { return };
    server.sql("postgres", "CREATE DATABASE runs");
    server.stop("fast").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "one_writer_whose_server_is_away",
            "--ignored",
            "--nocapture",
        ])
        .env("STORE_UNDER_TEST", server.url("runs"))
        .env("SPOOL_UNDER_TEST", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let safe = lines
        .map_while(Result::ok)
        .filter(|line| line.starts_with("safe"))
        .take(25)
        .count();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(safe, 25);
    server.go().unwrap();
    let store = Store::open_to_write(
        &at(&server, "runs"),
        &spool(folder.path(), store_suite::ROOM),
    );
    let store = store.unwrap();
    assert_eq!(store.hand_over(None).unwrap().stored, 1);
    let run = store.load("killed").unwrap();
    assert!(run.trials.len() >= 25, "{} of 25", run.trials.len());
    for (ordinal, trial) in (0..).zip(&run.trials) {
        assert_eq!(*trial, store_suite::trial(ordinal));
    }
}

#[test]
#[ignore = "a child process of a_killed_writer_leaves_what_waits"]
fn one_writer_whose_server_is_away() {
    let (Ok(url), Ok(folder)) = (
        std::env::var("STORE_UNDER_TEST"),
        std::env::var("SPOOL_UNDER_TEST"),
    ) else {
        return;
    };
    let location = url.parse().unwrap();
    let store =
        Store::open_to_write(&location, &spool(Path::new(&folder), store_suite::ROOM)).unwrap();
    store.begin(&store_suite::run("killed", 0)).unwrap();
    for ordinal in 0.. {
        let trial = store_suite::trial(ordinal);
        store.put_trials("killed", &[(ordinal, &trial)]).unwrap();
        println!("\nsafe {ordinal}");
    }
}

/// How fast runs come to a server, on the disk here and there, and what their trials need
/// there. The server and its writers share this machine.
#[test]
#[ignore = "a measurement: `cargo test-all --test store_postgres -- --ignored how_fast`"]
fn how_fast_and_how_large() {
    const RUNS: u32 = 40;
    const TRIALS: u32 = 20;
    let server = match Server::start_with("") {
        Ok(server) => server,
        Err(reason) => return println!("skipped: {reason}"),
    };
    for writers in [1, 4, 16, 40] {
        let database = format!("rate{writers}");
        server.sql("postgres", &format!("CREATE DATABASE {database}"));
        let location = at(&server, &database);
        drop(Store::open(&location).unwrap());
        let started = Instant::now();
        std::thread::scope(|scope| {
            for writer in 0..writers {
                let location = &location;
                scope.spawn(move || {
                    let folder = tempfile::tempdir().unwrap();
                    let store = store_suite::open(location, folder.path());
                    for number in (writer..RUNS).step_by(writers as usize) {
                        let run = store_suite::run(&format!("r{number}"), TRIALS);
                        store_suite::put(&store, &run);
                    }
                });
            }
        });
        let seconds = started.elapsed().as_secs_f64();
        let sql = |what: &str| server.sql(&database, &format!("SELECT {what}"));
        assert_eq!(
            sql("count(*) FROM cryptmark.trials"),
            (RUNS * TRIALS).to_string()
        );
        server.sql(&database, "VACUUM FULL");
        println!(
            "{writers} writers: {:.0} trials/s; a record has {} bytes, and takes {} with its index",
            f64::from(RUNS * TRIALS) / seconds,
            sql("avg(length(record))::int FROM cryptmark.trials"),
            sql("pg_total_relation_size('cryptmark.trials') / count(*) FROM cryptmark.trials"),
        );
    }
}

/// Writers at the same time.
const WRITERS: u32 = 200;
/// Restarts of the server under them.
const RESTARTS: u32 = 3;

/// Writers with connections of their own, on a server that has fewer connections
/// than they are and is restarted under them; `FLEET_RUNS` runs each.
#[test]
fn many_writers_lose_nothing_when_the_server_is_restarted() {
    let Some(server) = server() else { return };
    server.sql("postgres", "CREATE DATABASE runs");
    let runs = std::env::var("FLEET_RUNS").map_or(1, |runs| runs.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let location = at(&server, "runs");
    let (done, spooled) = (AtomicU32::new(0), AtomicU32::new(0));
    let over = AtomicBool::new(false);
    let started = Instant::now();
    let all = WRITERS * runs;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (location, folder, done, spooled) = (&location, &folder, &done, &spooled);
                scope.spawn(move || {
                    let spool = spool(folder.path(), 1 << 30);
                    let store = Store::open_to_write(location, &spool).unwrap();
                    for number in 0..runs {
                        let run = store_suite::run(&format!("w{writer}-{number}"), 4);
                        store_suite::put(&store, &run);
                        done.fetch_add(1, Ordering::Relaxed);
                        spooled.fetch_add(u32::from(store.absence().is_some()), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let restarts = scope.spawn(|| {
            for restart in 1..=RESTARTS {
                // Spread over the work, however long that takes here.
                let due = all * restart / (RESTARTS + 1);
                while done.load(Ordering::Relaxed) < due && !over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                server
                    .stop(["immediate", "fast"][restart as usize % 2])
                    .unwrap();
                std::thread::sleep(Duration::from_millis(500));
                server.go().unwrap();
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        restarts.join().unwrap();
    });
    let seconds = started.elapsed().as_secs_f64();
    let store = Store::open_to_write(&location, &spool(folder.path(), store_suite::ROOM)).unwrap();
    let handed = store.hand_over(None).unwrap();
    println!(
        "{WRITERS} writers, {RESTARTS} restarts: {all} runs of 4 trials in {seconds:.1} s; \
         {} waited at their end, {} were handed over by somebody else",
        spooled.load(Ordering::Relaxed),
        handed.stored
    );
    assert!(handed.refused.is_empty(), "{:?}", handed.refused);
    assert!(waiting(folder.path()).is_empty());
    let count = |what: &str| server.sql("runs", &format!("SELECT count(*) FROM cryptmark.{what}"));
    assert_eq!(count("runs"), all.to_string());
    assert_eq!(count("runs WHERE partial"), "0");
    assert_eq!(count("trials"), (all * 4).to_string());
    // Every row was counted; what is in them is looked at in one of ten runs.
    for writer in (0..WRITERS).step_by(10) {
        for number in 0..runs {
            let id = format!("w{writer}-{number}");
            assert_eq!(store.load(&id).unwrap(), store_suite::run(&id, 4));
        }
    }
}
