//! Any bytes as results of other programs, stored runs, plans, presets and traces: what the fuzzer
//! and a test with random bytes drive. All of it must be read or refused.

use drive::preset::Preset;
use drive::trace::{Format, Reader, Writer};
use lab::experiment::Experiment;
use lab::import::{self, Imported, Results};
use lab::record::Run;
use lab::shard::{FleetPlan, ShardNumber};
use lab::store::{Location, Store};
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use tempfile::TempDir;

/// A parser that takes any bytes.
pub type Target = fn(&[u8]);

/// The parsers by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("import", import),
    ("stored_run", stored_run),
    ("plan", plan),
    ("fleet_plan", fleet_plan),
    ("preset", preset),
    ("trace", trace),
];

/// Checks what the user would be told.
fn tell<T>(outcome: Result<T, impl std::error::Error>) {
    if let Err(error) = outcome {
        let _ = error.to_string();
    }
}

/// Whether a run can be stored and read again. JSON has no infinity: such a run is refused there.
fn keep(run: &Run) {
    let text = serde_json::to_string(run).unwrap();
    if let Ok(again) = serde_json::from_str::<Run>(&text) {
        assert_eq!(again.trials.len(), run.trials.len());
    }
}

/// Results of fio, DiskSpd, CrystalDiskMark, KDiskMark, hyperfine and cryptsetup, and records.
pub fn import(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let made = |results: Results| {
        let both = [results.clone(), results];
        let id = "20260101-000000-0000000000".to_owned();
        import::run(id, "builtin", "2026-01-01T00:00:00Z".into(), &both)
    };
    let runs = import::read(&text).and_then(|imported| match imported {
        Imported::Runs(runs) => Ok(runs),
        Imported::Results(results) => Ok(vec![made(results)?]),
    });
    match runs {
        Ok(runs) => runs.iter().for_each(keep),
        Err(error) => {
            let told = error.to_string() + error.remedy();
            assert!(!told.contains(char::is_control), "{told:?}");
        }
    }
}

/// A store's file of a run, which other hosts may have written.
pub fn stored_run(input: &[u8]) {
    const ID: &str = "2026-01-01T000000Z-0000";
    static STORE: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
        // In memory where there is such a folder.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.unwrap();
        let path = folder.path().join("store");
        Store::open(&Location::Folder(path.clone())).unwrap();
        (folder, path)
    });
    let (_, path) = &*STORE;
    fs::write(path.join("runs").join(format!("{ID}.jsonl")), input).unwrap();
    let store = Store::open(&Location::Folder(path.clone())).unwrap();
    tell(store.list());
    match store.load(ID) {
        Ok(run) => keep(&run),
        refused => tell(refused),
    }
}

/// Plans of all kinds, and descriptions of machines, in TOML.
pub fn plan(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    tell(Experiment::parse("a plan", &text));
    tell(lab::estimate::Target::parse("a machine", &text));
}

/// A plan that many hosts share. What is read is written in a form that is read as the same.
pub fn fleet_plan(input: &[u8]) {
    let fleet = match FleetPlan::parse("a plan", &String::from_utf8_lossy(input)) {
        Ok(fleet) => fleet,
        refused => return tell(refused),
    };
    let again = FleetPlan::parse("a plan", &fleet.to_toml()).unwrap();
    let of = fleet.shards();
    assert!(of > 0 && of == again.shards());
    for index in [1, of] {
        let number = ShardNumber { index, of };
        let [one, other] = [&fleet, &again].map(|fleet| fleet.shard(number).unwrap().shard);
        assert_eq!(one, other);
    }
}

/// A simulated drive in TOML.
pub fn preset(input: &[u8]) {
    tell(Preset::parse(&String::from_utf8_lossy(input)));
}

/// A trace. All requests that are read can be written by some format, and read again as they were.
pub fn trace(input: &[u8]) {
    let format = Format::Fio { version: 2 };
    let mut writer = Writer::new(Vec::new(), format).unwrap();
    let mut entries = Vec::new();
    for entry in Reader::new(input) {
        match entry {
            Ok(entry) => {
                writer.write(&entry).unwrap();
                entries.push((entry.action, entry.offset, entry.bytes));
            }
            refused => {
                tell(refused);
                break;
            }
        }
    }
    let written = writer.finish().unwrap();
    let again = Reader::new(&written[..]).map_while(Result::ok);
    let again = again.map(|entry| (entry.action, entry.offset, entry.bytes));
    assert!(again.eq(entries));
}
