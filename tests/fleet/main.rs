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
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

/// A folder with the plan, and data directories of hosts.
struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("drives.toml"), DRIVES).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program on `host`, whose data are its own.
    fn command(&self, host: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("XDG_DATA_HOME", self.path(host))
            .env("XDG_CONFIG_HOME", self.path(host))
            .env_remove("CRYPTMARK_STORE")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, host: &str, arguments: &[&str]) -> Output {
        self.command(host, arguments).output().unwrap()
    }

    /// Runs what must succeed; its standard output.
    fn ok(&self, host: &str, arguments: &[&str]) -> String {
        let output = self.run(host, arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs what must fail with `code` and two lines; those.
    fn fails(&self, host: &str, arguments: &[&str], code: i32) -> String {
        let output = self.run(host, arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.starts_with("error: "), "{arguments:?}: {told}");
        assert_eq!(told.trim_end().lines().count(), 2, "{arguments:?}: {told}");
        told
    }
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
