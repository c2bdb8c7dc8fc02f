//! DuckDB, pandas and a server that speaks S3: what reads and keeps tables elsewhere.

use lab::store::{Location, Store};
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use testkit::Sandbox;

/// Python with duckdb, pandas, pyarrow and moto, where the tests' tools are; or word
/// that it is not there.
pub fn python() -> Option<PathBuf> {
    tool(
        "tables/bin/python",
        "DuckDB, pandas and moto are not installed (PyPI: duckdb, pandas, pyarrow, moto)",
    )
}

/// What `cargo xtask` has put into the tests' folder of tools; or word that it is not there.
pub fn tool(path: &str, missing: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let tool = root.join("target/tools").join(path);
    if tool.is_file() {
        return Some(tool);
    }
    println!("skipped: {missing}");
    None
}

/// What a script prints as JSON, run in the sandbox's folder with `input` as `given`.
pub fn ask(python: &PathBuf, sandbox: &Sandbox, script: &str, input: &Value) -> Value {
    let script = format!("import json, sys\ngiven = json.load(sys.stdin)\n{script}");
    let mut child = Command::new(python)
        .args(["-c", &script])
        .current_dir(sandbox.directory())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)))
}

/// The store of a host.
pub fn store(sandbox: &Sandbox, host: &str) -> Store {
    let path = sandbox.path(host).join("cryptmark/runs");
    Store::open(&Location::Folder(path)).unwrap()
}

/// All files below a folder of the sandbox, sorted, as paths from there.
pub fn files(sandbox: &Sandbox, folder: &str) -> Vec<String> {
    let root = sandbox.path(folder);
    let (mut found, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => found.push(
                    path.strip_prefix(&root)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                ),
            }
        }
    }
    found.sort();
    found
}
