//! Runs of an earlier version: `earlier/runs.db.zst` is its store, made by commit a27e72a
//! in a virtual machine, and `earlier/shown.json.zst` is what it has printed of both runs.

use std::path::Path;
use testkit::{Sandbox, two_lines};

fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli/earlier")
        .join(name);
    zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap()
}

/// The lines of a record without its verdicts, which each version judges anew.
#[cfg(feature = "sqlite")]
fn figures(record: &str) -> impl Iterator<Item = &str> {
    record
        .lines()
        .filter(|line| !line.contains("\"verdict\": "))
}

/// A user's folder with the store of an earlier version.
fn sandbox() -> Sandbox {
    super::sandbox()
        .with_directory("data/cryptmark")
        .with_file("data/cryptmark/runs.db", sample("runs.db.zst"))
}

#[test]
fn a_store_of_an_earlier_version_is_told_and_left_alone() {
    let sandbox = sandbox();
    let output = sandbox.run(&["list"]);
    assert!(output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(
        told.contains("runs.db") && told.contains("store take-over"),
        "{told}"
    );
    let named = sandbox.run(&["list", "--store", "data/cryptmark/runs.db"]);
    assert!(two_lines(&named, 2, "a file").contains("store take-over"));
    let file = sandbox.read("data/cryptmark/runs.db");
    assert_eq!(file, sample("runs.db.zst"));
}

#[cfg(feature = "sqlite")]
#[test]
fn a_store_of_an_earlier_version_is_taken_over_run_by_run() {
    let sandbox = sandbox();
    let take = ["store", "take-over", "data/cryptmark/runs.db"];
    let said = sandbox.ok(&take);
    assert!(said.starts_with("2 run(s) and 1 baseline(s) of "), "{said}");
    let output = sandbox.run(&["list"]);
    assert!(output.stderr.is_empty(), "it is told once");
    assert!(String::from_utf8_lossy(&output.stdout).contains("baseline before"));
    let shown = sandbox.ok(&["show", "20261126-130509", "--json"])
        + &sandbox.ok(&["show", "before", "--json"]);
    let before = String::from_utf8(sample("shown.json.zst")).unwrap();
    assert!(figures(&shown).eq(figures(&before)), "{shown}");
    assert!(
        sandbox
            .ok(&take)
            .starts_with("2 run(s) and 0 baseline(s) of ")
    );
    let file = sandbox.read("data/cryptmark/runs.db");
    assert_eq!(file, sample("runs.db.zst"));
    let wrong = sandbox.fails(2, &["store", "take-over", "tiny.toml"]);
    assert!(
        wrong.contains("not a store of an earlier version"),
        "{wrong}"
    );
}
