//! The store in a folder: the suite, several processes at once, and files that are not ours.

mod store_suite;

use cryptmark_lab::store::{LATEST, Location, Store, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

fn location(directory: &tempfile::TempDir) -> (PathBuf, Location) {
    let path = directory.path().join("a/b/runs");
    (path.clone(), Location::Folder(path))
}

/// Opens a store that must be refused, and checks that it stays as it is.
fn refused(path: &Path) -> StoreError {
    let before = fingerprint(path);
    let error = Store::open(&Location::Folder(path.to_owned()))
        .err()
        .expect("must be refused");
    assert_eq!(before, fingerprint(path), "what is refused was modified");
    assert!(
        error.to_string().contains(path.to_str().unwrap()),
        "{error} does not name it"
    );
    assert!(!error.remedy().is_empty());
    error
}

/// Every file at a path with its bytes.
fn fingerprint(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    if path.is_file() {
        return vec![(path.to_owned(), fs::read(path).unwrap())];
    }
    let entries = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.flat_map(|path| fingerprint(&path)).collect();
    found.sort();
    found
}

fn file(path: &Path, run: &str) -> PathBuf {
    path.join(format!("runs/{run}.jsonl"))
}

/// Another process of this program, which runs one of its ignored tests. Its progress is not part
/// of ours.
fn child(test: &str, store: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("STORE_UNDER_TEST", store)
        .stdout(Stdio::null());
    command
}

fn store_under_test() -> Option<Location> {
    let path = std::env::var("STORE_UNDER_TEST").ok()?;
    Some(Location::Folder(path.into()))
}

#[test]
fn suite() {
    let directory = tempfile::tempdir().unwrap();
    store_suite::all(&location(&directory).1);
}

/// The disk is full for every writer of more than some kilobytes.
#[test]
fn a_store_that_is_full_takes_none_of_several_runs() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let store = Store::open(&location).unwrap();
    let before = fingerprint(&path.join("runs"));
    let script = r#"trap '' XFSZ; ulimit -f 8; exec "$0" --exact takes_two_runs --ignored"#;
    let full = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env("STORE_UNDER_TEST", &path)
        .env("MUST_FAIL", "1")
        // Not our own: it may be a file that is larger than that already.
        .output();
    assert!(full.unwrap().status.success());
    assert_eq!(store.list().unwrap(), []);
    assert_eq!(fingerprint(&path.join("runs")), before);
    assert!(child("takes_two_runs", &path).status().unwrap().success());
    assert_eq!(
        store.load("2026-b").unwrap(),
        store_suite::run("2026-b", 40)
    );
}

#[test]
#[ignore = "a child process of a_store_that_is_full_takes_none_of_several_runs"]
fn takes_two_runs() {
    let Some(location) = store_under_test() else {
        return;
    };
    let runs = [
        store_suite::run("2026-a", 2),
        store_suite::run("2026-b", 40),
    ];
    let taken = Store::open(&location).unwrap().take_over(&runs);
    assert_eq!(taken.is_err(), std::env::var_os("MUST_FAIL").is_some());
}

#[test]
fn only_the_owner_may_read() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let store = Store::open(&location).unwrap();
    store_suite::put(&store, &store_suite::run("2026", 1));
    store
        .begin(&store_suite::attempt("2027", "spring", 1, "f"))
        .unwrap();
    store.set_baseline("plain", "2026").unwrap();
    fn check(path: &Path) {
        let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            mode,
            if path.is_dir() { 0o700 } else { 0o600 },
            "{}",
            path.display()
        );
        if path.is_dir() {
            let entries = fs::read_dir(path).unwrap();
            entries.for_each(|entry| check(&entry.unwrap().path()));
        }
    }
    check(&path);
}

#[test]
fn threads_write_at_the_same_time() {
    let directory = tempfile::tempdir().unwrap();
    let location = location(&directory).1;
    // The store does not exist yet, so the writers race to create it as well.
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
            child("one_writer_of_several", &path)
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
    let (Some(location), Ok(writer)) = (store_under_test(), std::env::var("WRITER")) else {
        return;
    };
    store_suite::write_as(&location, writer.parse().unwrap());
}

/// Writers at the same time.
const WRITERS: u32 = 10;

/// Ten processes write runs and name them. One of them is killed again and again, as often as
/// `STORE_KILLS` says. Every acknowledged write must be there afterwards, and every stored run must
/// be whole.
#[test]
fn killed_processes_lose_nothing_and_leave_nothing_half() {
    let kills = std::env::var("STORE_KILLS").map_or(10, |kills| kills.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let spawn = |number: u32| {
        let mut process = child("one_writer_to_be_killed", &path)
            .env("WRITER", number.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = process.stdout.take().unwrap();
        let told = std::thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            lines
                .filter(|line| line.starts_with("told "))
                .collect::<Vec<_>>()
        });
        (process, told)
    };
    let mut living: VecDeque<_> = (0..WRITERS).map(spawn).collect();
    let mut told = Vec::new();
    for kill in 0..kills {
        // At another moment each time.
        std::thread::sleep(Duration::from_millis(40 + u64::from(kill) * 7 % 60));
        let (mut process, lines) = living.pop_front().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        told.extend(lines.join().unwrap());
        living.push_back(spawn(WRITERS + kill));
        // A reader sees whole runs only, at any time.
        let store = Store::open(&location).unwrap();
        for run in store.list().unwrap() {
            assert_ne!(run.plan, "unreadable", "{run:?}");
        }
    }
    for (mut process, lines) in living {
        process.kill().unwrap();
        process.wait().unwrap();
        told.extend(lines.join().unwrap());
    }
    let store = Store::open(&location).unwrap();
    let baselines: BTreeMap<_, _> = store.baselines().unwrap().into_iter().collect();
    assert!(told.len() > kills as usize, "{} lines", told.len());
    for line in &told {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, what, id, rest @ ..] = &words[..] else {
            panic!("{line}")
        };
        let run = store.load(id).unwrap();
        match (*what, rest) {
            ("begun", _) => {}
            ("put", [trials]) => assert!(run.trials.len() >= trials.parse().unwrap(), "{line}"),
            ("finished", _) => assert_eq!(run, store_suite::run(id, 4)),
            ("named", [name]) => assert_eq!(baselines[*name], *id),
            _ => panic!("{line}"),
        }
    }
    for summary in store.list().unwrap() {
        let run = store.load(&summary.run).unwrap();
        assert_eq!(summary.trials as usize, run.trials.len());
        for (ordinal, trial) in (0..).zip(&run.trials) {
            assert_eq!(*trial, store_suite::trial(ordinal), "{}", run.run);
        }
    }
}

#[test]
#[ignore = "a child process of killed_processes_lose_nothing_and_leave_nothing_half"]
fn one_writer_to_be_killed() {
    let (Some(location), Ok(writer)) = (store_under_test(), std::env::var("WRITER")) else {
        return;
    };
    let store = Store::open(&location).unwrap();
    for number in 0.. {
        let run = store_suite::run(&format!("w{writer}-{number}"), 4);
        let id = &run.run;
        store.begin(&run).unwrap();
        println!("\ntold begun {id}");
        for (ordinal, trial) in (0..).zip(&run.trials) {
            store.put_trials(id, &[(ordinal, trial)]).unwrap();
            println!("\ntold put {id} {}", ordinal + 1);
        }
        store.finish(&run).unwrap();
        println!("\ntold finished {id}");
        let name = format!("of-{id}");
        store.set_baseline(&name, id).unwrap();
        println!("\ntold named {id} {name}");
    }
}

/// A run under way whose file ends anywhere: every confirmed write is there, and the run is
/// continued.
#[test]
fn a_torn_end_is_left_out_wherever_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let run = store_suite::run("torn", 5);
    let log = file(&path, "torn");
    let length = || fs::metadata(&log).unwrap().len() as usize;
    let store = Store::open(&location).unwrap();
    store.begin(&run).unwrap();
    let mut ends = vec![length()];
    store.put_trials("torn", &[(0, &run.trials[0])]).unwrap();
    ends.push(length());
    // Three at once are there together or not at all.
    let batch: Vec<_> = (1..4).zip(&run.trials[1..]).collect();
    store.put_trials("torn", &batch).unwrap();
    ends.push(length());
    drop(store);
    let whole = fs::read(&log).unwrap();
    for end in ends[0]..=whole.len() {
        fs::write(&log, &whole[..end]).unwrap();
        let safe = [0, 1, 4][ends.iter().filter(|safe| **safe <= end).count() - 1];
        let store = Store::open(&location).unwrap();
        let found = store.load("torn").unwrap();
        assert!(found.partial);
        assert_eq!(found.trials, run.trials[..safe], "{end} bytes");
        // To go on takes a sync each time: at the ends of lines, and at some other places.
        if !ends.iter().any(|at| at.abs_diff(end) < 3) && end % 97 != 0 {
            continue;
        }
        assert_eq!(store.list().unwrap()[0].trials as usize, safe);
        let next = &run.trials[safe];
        store.put_trials("torn", &[(safe as u32, next)]).unwrap();
        let found = store.load("torn").unwrap();
        assert_eq!(found.trials, run.trials[..=safe], "{end} bytes");
    }
}

/// A whole run whose file was cut is damaged, and is never shown as a smaller one.
#[test]
fn a_whole_run_that_was_cut_is_refused_wherever_it_was_cut() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let run = store_suite::run("cut", 3);
    let store = Store::open(&location).unwrap();
    store_suite::put(&store, &run);
    let file = file(&path, "cut");
    let whole = fs::read(&file).unwrap();
    assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 4);
    for end in 0..whole.len() {
        fs::write(&file, &whole[..end]).unwrap();
        let error = store.load("cut").err().unwrap();
        assert!(
            matches!(error, StoreError::Damaged { .. }),
            "{end} bytes: {error}"
        );
        assert!(store.list().unwrap()[0].partial);
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(store.load("cut").unwrap(), run);
}

#[test]
fn who_writes_a_run_is_its_only_writer() {
    let directory = tempfile::tempdir().unwrap();
    let location = location(&directory).1;
    let run = store_suite::run("held", 2);
    let (first, second) = (
        Store::open(&location).unwrap(),
        Store::open(&location).unwrap(),
    );
    first.begin(&run).unwrap();
    let put = |store: &Store| store.put_trials("held", &[(0, &run.trials[0])]);
    assert!(matches!(put(&second), Err(StoreError::Busy { .. })));
    drop(first);
    put(&second).unwrap();
    // Deleted under its writer, it is gone.
    let third = Store::open(&location).unwrap();
    third.delete("held").unwrap();
    assert!(matches!(put(&second), Err(StoreError::NoSuchRun { .. })));
    assert!(matches!(
        second.finish(&run),
        Err(StoreError::NoSuchRun { .. })
    ));
    assert_eq!(third.list().unwrap(), []);
}

/// The index may be wrong in any way, or not be there.
#[test]
fn the_index_is_never_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let store = Store::open(&location).unwrap();
    for id in ["2026-a", "2026-b"] {
        store_suite::put(&store, &store_suite::run(id, 2));
    }
    let age = |run: &str| {
        let old = SystemTime::now() - Duration::from_secs(3600);
        let opened = fs::File::options()
            .append(true)
            .open(file(&path, run))
            .unwrap();
        opened.set_modified(old).unwrap();
    };
    let index = path.join("index.json");
    store.list().unwrap();
    assert_eq!(
        fs::read_to_string(&index).unwrap_or("{}".into()),
        "{}",
        "too new to be kept"
    );
    ["2026-a", "2026-b"].into_iter().for_each(age);
    let list = store.list().unwrap();
    let kept = fs::read_to_string(&index).unwrap();
    assert!(kept.contains("2026-a") && kept.contains("2026-b"));
    // The index is read if it fits.
    fs::write(&index, kept.replace("\"quick\"", "\"other\"")).unwrap();
    assert_eq!(store.list().unwrap()[0].plan, "other");
    for spoilt in [
        "",
        "{",
        "[]",
        &kept[..kept.len() / 2],
        "{\"2026-a.jsonl\":7}",
    ] {
        fs::write(&index, spoilt).unwrap();
        assert_eq!(store.list().unwrap(), list, "{spoilt}");
        assert!(
            fs::read_to_string(&index).unwrap().contains("2026-b"),
            "{spoilt}"
        );
    }
    fs::remove_file(&index).unwrap();
    assert_eq!(store.list().unwrap(), list);

    // Another file under the same name, as old and as long as the one before.
    let other = fs::read_to_string(file(&path, "2026-a"))
        .unwrap()
        .replace("quick", "sharp");
    fs::write(path.join("runs/new"), other).unwrap();
    fs::rename(path.join("runs/new"), file(&path, "2026-a")).unwrap();
    age("2026-a");
    assert_eq!(store.list().unwrap()[0].plan, "sharp");
    fs::remove_file(file(&path, "2026-b")).unwrap();
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn refuses_what_is_no_folder() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs");
    for bytes in [&b""[..], b"x", b"SQLite format 3\0", b"plan = \"quick\"\n"] {
        fs::write(&path, bytes).unwrap();
        assert!(matches!(
            refused(&path),
            StoreError::NotAStore { path: named } if named == path
        ));
    }
    assert!(matches!(
        Store::open(&Location::Folder(path.join("below-a-file/runs"))),
        Err(StoreError::Io { .. })
    ));
}

#[test]
fn refuses_the_folder_of_another_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("theirs");
    fs::create_dir(&path).unwrap();
    for (name, text) in [
        ("notes", "x"),
        ("version", "7"),
        ("version", "cryptmark runs one"),
    ] {
        fs::write(path.join(name), text).unwrap();
        assert!(
            matches!(refused(&path), StoreError::Foreign { .. }),
            "{name}"
        );
        fs::remove_file(path.join(name)).unwrap();
    }
    // An empty folder becomes a store, even if its maker was killed.
    fs::create_dir(path.join("runs")).unwrap();
    let store = Store::open(&Location::Folder(path)).unwrap();
    assert_eq!(store.list().unwrap(), []);
}

#[test]
fn refuses_a_newer_version() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    drop(Store::open(&location).unwrap());
    fs::write(path.join("version"), "cryptmark runs 99\n").unwrap();
    assert!(matches!(
        refused(&path),
        StoreError::OtherVersion { found: 99, .. }
    ));
}

#[test]
fn names_a_broken_record() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    store_suite::write_as(&location, 0);
    let spoil = |run: &str, from: &str, to: &str| {
        let text = fs::read_to_string(file(&path, run)).unwrap();
        assert!(text.contains(from));
        fs::write(file(&path, run), text.replacen(from, to, 1)).unwrap();
    };
    spoil(
        "w0-0",
        "\"at\":3,\"record\":{\"tier\":",
        "\"at\":3,\"record\":{\"tier\";",
    );
    spoil("w0-1", "\"record\":{\"schema\"", "\"record\":(\"schema\"");
    spoil("w0-2", "cryptmark/2", "cryptmark/1");
    spoil("w0-3", "\"cores\":4", "\"cores\":x");
    let store = Store::open(&location).unwrap();
    assert!(matches!(
        store.load("w0-0"),
        Err(StoreError::Record { run, ordinal: Some(3), .. }) if run == "w0-0"
    ));
    for run in ["w0-1", "w0-3"] {
        let error = store.load(run).err().unwrap();
        assert!(
            matches!(error, StoreError::Record { ordinal: None, .. }),
            "{error:?}"
        );
    }
    assert!(matches!(store.load("w0-2"), Err(StoreError::Schema { .. })));
    assert!(
        store.load("w0-4").is_ok(),
        "the others are still to be read"
    );
    let list = store.list().unwrap();
    assert_eq!(list.len(), 5);
    assert_eq!(
        (list[1].run.as_str(), list[1].plan.as_str()),
        ("w0-1", "unreadable")
    );
    assert_eq!(store.delete("w0-1").unwrap(), "w0-1");
}

/// Runs are files that any program reads: one line each for the run and for every trial.
#[test]
fn lines_are_records_as_they_are_printed() {
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let run = store_suite::run("2026", 3);
    store_suite::put(&Store::open(&location).unwrap(), &run);
    let text = fs::read_to_string(file(&path, "2026")).unwrap();
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut record = serde_json::to_value(&run).unwrap();
    let trials = record["trials"].take();
    record["trials"] = serde_json::json!([]);
    let first = lines.next().unwrap();
    assert_eq!(first["run"]["record"], record);
    assert_eq!(first["run"]["trials"], 3);
    for (at, line) in lines.enumerate() {
        assert_eq!(line["trial"]["record"], trials[at]);
        assert_eq!(
            (&line["trial"]["at"], &line["trial"]["run"]),
            (&at.into(), &"2026".into())
        );
    }
}

/// The time to list, to find and to add runs in a store of 10,000 runs.
#[test]
#[ignore = "a measurement: `cargo test-all --test store -- --ignored ten_thousand`"]
fn ten_thousand_runs() {
    const RUNS: u32 = 10_000;
    let directory = tempfile::tempdir().unwrap();
    let (path, location) = location(&directory);
    let store = Store::open(&location).unwrap();
    let timed = |what: &str, act: &mut dyn FnMut()| {
        let started = Instant::now();
        act();
        println!("{what}: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    };
    let runs: Vec<_> = (0..RUNS)
        .map(|n| store_suite::run(&format!("2026-{n:05}"), 10))
        .collect();
    for some in runs.chunks(500) {
        store.take_over(some).unwrap();
    }
    drop(runs);
    std::thread::sleep(Duration::from_secs(3));
    timed("list without an index", &mut || {
        assert_eq!(store.list().unwrap().len(), 10_000)
    });
    timed("list", &mut || {
        assert_eq!(store.list().unwrap().len(), 10_000)
    });
    timed("show", &mut || drop(store.load("2026-07777").unwrap()));
    timed("show the latest", &mut || drop(store.load(LATEST).unwrap()));
    timed("begin, ten trials, finish", &mut || {
        store_suite::put(&store, &store_suite::run("2027", 10));
    });
    timed("list with one that is new", &mut || {
        assert_eq!(store.list().unwrap().len(), 10_001)
    });
    let index = fs::metadata(path.join("index.json")).unwrap().len();
    println!("the index has {:.1} MB", index as f64 / 1e6);
    if let Ok(kept) = std::env::var("STORE_KEPT") {
        fs::rename(&path, kept).unwrap();
    }
}

#[cfg(not(feature = "postgres"))]
#[test]
fn says_when_postgres_is_not_built_in() {
    let location: Location = "postgres://me:s3cret@host/db".parse().unwrap();
    let error = Store::open(&location).err().unwrap();
    assert!(matches!(error, StoreError::NoPostgres { .. }));
    assert!(!format!("{error} {error:?}").contains("s3cret"));
}
