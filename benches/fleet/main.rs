//! Many trials: `cargo bench --features fleet-report --bench fleet -- [TRIALS WRITERS]`.
//!
//! Synthetic trials of many hosts go into a PostgreSQL server of its own through the
//! store, as `cryptmark import` stores them: a run with its 980 trials is a transaction. Then the
//! program reports on the store, exports it and reports on the Parquet files; DuckDB
//! answers the same queries on these. Peak memory is the process's (`VmHWM`).
//!
//! The server does not wait for the disk (`fsync=off`).

#[path = "../../crates/lab/tests/postgres_server/mod.rs"]
mod postgres_server;
#[path = "../../crates/report/tests/sample/mod.rs"]
mod sample;
#[path = "../../tests/fleet/synthetic.rs"]
mod synthetic;

use lab::store::{Location, Store};
use postgres_server::Server;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let numbers = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"));
    let numbers: Option<Vec<u64>> = numbers.map(|word| word.parse().ok()).collect();
    let (trials, writers) = match numbers.as_deref() {
        Some([]) => (1_000_000, 2),
        Some([trials]) => (*trials, 2),
        Some([trials, writers]) => (*trials, *writers),
        _ => {
            eprintln!("fleet [TRIALS WRITERS]");
            return ExitCode::from(2);
        }
    };
    let server = match Server::start() {
        Ok(server) => server,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return ExitCode::FAILURE;
        }
    };
    server.sql("postgres", "CREATE DATABASE runs");
    let location: Location = server.url("runs").parse().expect("a URL");
    let runs = trials.div_ceil(synthetic::TRIALS as u64).max(1);
    insert(&location, runs, writers.max(1));
    let size = server.sql("runs", "SELECT pg_database_size('runs')");
    let size: f64 = size.parse().unwrap_or(f64::NAN);
    let stored = runs * synthetic::TRIALS as u64;
    println!(
        "PostgreSQL: {:.2} GB, {:.0} bytes a trial",
        size / 1e9,
        size / stored as f64
    );

    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let trials = folder.path().join("trials");
    let url = server.url("runs");
    let export = ["export", "--parquet", &trials.to_string_lossy()].map(str::to_owned);
    timed("export to Parquet", ours(&url, folder.path()).args(export));
    let bytes = size_below(&trials);
    println!(
        "Parquet: {:.2} GB, {:.0} bytes a trial, {runs} files",
        bytes as f64 / 1e9,
        bytes as f64 / stored as f64
    );
    let report = ["fleet", "report", "--json"];
    let of_parquet = timed(
        "report from Parquet (DataFusion)",
        ours(&url, folder.path()).args(report).arg(&trials),
    );
    if let Some(python) = python() {
        duckdb(&python, folder.path());
    }
    let of_store = timed(
        "report from the store",
        ours(&url, folder.path()).args(report),
    );
    let same = of_store.lines().skip(2).eq(of_parquet.lines().skip(2));
    println!("both reports are the same: {same}");
    ExitCode::from(u8::from(!same))
}

/// The program with a store and a home of its own.
fn ours(url: &str, home: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .env("CRYPTMARK_STORE", url)
        .env("XDG_DATA_HOME", home)
        .env("XDG_CONFIG_HOME", home);
    command
}

fn insert(location: &Location, runs: u64, writers: u64) {
    let next = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..writers {
            scope.spawn(|| {
                let store = Store::open(location).expect("the server's store");
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= runs {
                        break;
                    }
                    synthetic::put(&store, &synthetic::run(number, runs));
                }
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let trials = runs * synthetic::TRIALS as u64;
    println!(
        "{writers} writers, a transaction a run: {trials} trials of {runs} runs in {seconds:.0} s, {:.0} trials/s",
        trials as f64 / seconds
    );
}

/// Runs a command to its end, prints how long that took and its peak memory; its
/// output.
fn timed(what: &str, command: &mut Command) -> String {
    let start = Instant::now();
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut stdout = child.stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || std::io::read_to_string(&mut stdout));
    let mut peak = 0;
    let status = loop {
        peak = peak_kib(child.id()).unwrap_or(peak);
        match child.try_wait().expect("a child") {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{what}: {seconds:.1} s, peak memory {:.2} GB",
        peak as f64 * 1024.0 / 1e9
    );
    assert!(status.success(), "{what}: {status}");
    reader.join().expect("a reader").expect("output")
}

/// The most memory that a process has had, KiB.
fn peak_kib(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn size_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size_below(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Python with DuckDB, where `cargo xtask` puts it.
fn python() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/tools/tables/bin/python");
    if !python.is_file() {
        println!("skipped: DuckDB is not installed (PyPI: duckdb)");
        return None;
    }
    Some(python)
}

/// The report's queries on the same files.
fn duckdb(python: &Path, folder: &Path) {
    let script = "
import duckdb, json
con = duckdb.connect()
con.execute(\"CREATE VIEW trials AS SELECT * FROM read_parquet('trials/**/*.parquet')\")
for sql in json.load(open('queries.json')):
    con.execute(sql).fetchall()";
    let queries = serde_json::to_string(&fleet::report::statements()).expect("text");
    fs::write(folder.join("queries.json"), queries).expect("written");
    let mut command = Command::new(python);
    command.args(["-c", script]).current_dir(folder);
    timed("the same queries by DuckDB", &mut command);
}
