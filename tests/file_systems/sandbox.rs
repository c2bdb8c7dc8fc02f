//! A sandbox to measure file systems in, and a look at what is left behind.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::Sandbox;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// A plan of what takes milliseconds.
pub const PLAN: &str = r#"
title = "a test"
tier = "fs"
size = "32 MiB"
repetitions = 2
file_systems = ["ext2"]
systems = ["builtin-fuse"]
ciphers = ["aes-cbc-plain"]
key_size = 256

[[operation]]
name = "mkfs"
op = "mkfs"

[[operation]]
name = "mount"
op = "mount"
files = 2
file_size = ["10 kB", "1 MB"]

[[operation]]
name = "write"
op = "write"
file_size = "3 MB"

[[operation]]
name = "read"
op = "read"
file_size = "3 MB"

[[operation]]
name = "copy"
op = "copy"
file_size = "3 MB"

[[operation]]
name = "remove"
op = "remove"
file_size = "3 MB"

[[operation]]
name = "stat"
op = "stat"
files = 20
file_size = "4 KiB"

[[operation]]
name = "own"
op = "command"
command = "touch a && sleep 0.05"
"#;

/// A sandbox; nothing, and a word about it, where nothing can be mounted.
pub fn sandbox() -> Option<Sandbox> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: file systems: they need root");
        return None;
    }
    for node in ["/dev/fuse", "/dev/loop-control"] {
        if let Err(error) = fs::File::open(node) {
            println!("skipped: file systems: {node}: {error}");
            return None;
        }
    }
    for program in ["mkfs.ext2", "unshare"] {
        if Command::new(program).arg("-V").output().is_err() {
            println!("skipped: file systems: there is no {program}");
            return None;
        }
    }
    let sandbox = Sandbox::new(PROGRAM)
        .with_directory("at")
        .with_directory("tmp")
        .with_path("TMPDIR", "tmp")
        .with_path("CRYPTMARK_STORE", "store");
    Some(sandbox)
}

/// `cryptmark run` with a plan of this text.
pub fn measure(sandbox: &Sandbox, plan: &str) -> Command {
    sandbox.write("plan.toml", plan);
    // By the path of the store its processes are told from others'.
    let store = sandbox.path("store");
    let mut command = sandbox.cryptmark(&["--store".as_ref(), store.as_os_str()]);
    command.arg("run").arg(sandbox.path("plan.toml"));
    // Systems in the lab kernel take no place, so it is not named.
    command.arg("--no-progress").current_dir(sandbox.path("at"));
    command
}

/// What is left of runs in this folder: nothing, given a moment.
pub fn is_clean(sandbox: &Sandbox) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        match left(sandbox) {
            None => return Ok(()),
            Some(left) if begun.elapsed() > Duration::from_secs(90) => return Err(left),
            Some(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn left(sandbox: &Sandbox) -> Option<String> {
    let folder = sandbox.directory().to_str().unwrap();
    let processes = processes(&[folder]);
    if !processes.is_empty() {
        return Some(format!("processes {processes:?}"));
    }
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        let backing = entry.path().join("loop/backing_file");
        let backing = fs::read_to_string(backing).unwrap_or_default();
        if backing.contains(folder) || backing.contains("/engine") {
            return Some(format!("{}: {backing}", entry.path().display()));
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    if let Some(mount) = mounts.lines().find(|line| line.contains(folder)) {
        return Some(mount.to_owned());
    }
    let files = fs::read_dir(sandbox.path("at")).unwrap().flatten();
    files.map(|entry| entry.path().display().to_string()).next()
}

/// What runs have left in the folder for temporary files.
pub fn temporary(sandbox: &Sandbox) -> usize {
    fs::read_dir(sandbox.path("tmp")).unwrap().count()
}

/// Processes whose command line holds all of `words`.
pub fn processes(words: &[&str]) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let process = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(process) = process.filter(|_| words.iter().all(|word| line.contains(word))) {
            found.push(process);
        }
    }
    found
}

/// Whether the kernel has a file system.
pub fn kernel_has(file_system: &str) -> bool {
    let known = fs::read_to_string("/proc/filesystems").unwrap();
    known.lines().any(|line| line.ends_with(file_system))
}
