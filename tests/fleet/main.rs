//! Fleets as users meet them: shards, a store for many hosts, Slurm, Kubernetes.
#![cfg(feature = "fleet")]

mod away;
mod manifests;
mod objects;
mod parquet;
#[path = "../../crates/lab/tests/postgres_server/mod.rs"]
mod postgres_server;
#[cfg(feature = "fleet-report")]
mod reports;
#[path = "../../crates/report/tests/sample/mod.rs"]
mod sample;
mod shards;
mod slurm;
#[allow(dead_code)] // `cargo bench --features fleet-report --bench fleet` uses all of it.
mod synthetic;
mod tables;

use postgres_server::Server;
use std::path::Path;
use testkit::{Expect as _, Sandbox};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// Eight simulated drives and five workloads: 40 portions, of which each takes a
/// moment.
const DRIVES: &str = r#"
title = "drives that are not here"
size = "64 MiB"
repetitions = 3
systems = [
    "drive:hdd-desktop-2003", "drive:hdd-laptop-2003", "drive:hdd-wd", "drive:sshd-seagate",
    "drive:mlc-128g", "drive:tlc-1t", "drive:ssd-x25m-160g", "drive:flash-key-128m",
]
ciphers = ["aes-xts-plain64", "serpent-xts-plain64"]
cpu = { aes = "145MB/s", serpent = "60MB/s" }

[[workload]]
name = "rand-4k-read"
pattern = "random"
op = "read"
block_size = "4 KiB"
bytes = "1 MiB"

[[workload]]
name = "rand-4k-write"
pattern = "random"
op = "write"
block_size = "4 KiB"
queue_depth = 4
bytes = "1 MiB"

[[workload]]
name = "rand-64k-mixed"
pattern = "random"
op = "mixed"
block_size = "64 KiB"
bytes = "4 MiB"

[[workload]]
name = "seq-64k-read"
pattern = "sequential"
op = "read"
block_size = "64 KiB"
bytes = "8 MiB"

[[workload]]
name = "seq-64k-write"
pattern = "sequential"
op = "write"
block_size = "64 KiB"
bytes = "8 MiB"
"#;

/// A sandbox with the plan; its programs run on `host`, where the folder of this name has all data.
fn sandbox() -> Sandbox {
    Sandbox::new(PROGRAM)
        .with_path("XDG_DATA_HOME", "host")
        .with_path("XDG_CONFIG_HOME", "host")
        .with_file("drives.toml", DRIVES)
}

/// Runs what must succeed on another host; its standard output.
#[track_caller]
fn on(sandbox: &Sandbox, host: &str, arguments: &[&str]) -> String {
    let mut command = sandbox.cryptmark(arguments);
    command.env("XDG_DATA_HOME", sandbox.path(host));
    command.env("XDG_CONFIG_HOME", sandbox.path(host));
    String::from_utf8(command.succeeds().stdout).unwrap()
}

/// A server with an empty database `runs`, or the reason why there is none, which
/// is told.
fn server() -> Option<Server> {
    match Server::start() {
        Ok(server) => {
            server.sql("postgres", "CREATE DATABASE runs");
            Some(server)
        }
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

/// The cells of a report without what no two runs share: their names, when they were
/// made, and how fast this machine's clock was found to be.
fn rows(csv: &str) -> Vec<Vec<String>> {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    // What every host has of its own.
    const OWN: [&str; 4] = ["run", "started", "clock_hz", "load_average"];
    let kept = |column: &str| !OWN.contains(&column);
    assert_eq!(
        head.iter().filter(|column| !kept(column)).count(),
        OWN.len(),
        "{head:?}"
    );
    lines
        .map(|cells| {
            assert_eq!(cells.len(), head.len());
            let cells = head.iter().zip(cells).filter(|(column, _)| kept(column));
            cells.map(|(_, cell)| cell.to_owned()).collect()
        })
        .collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
