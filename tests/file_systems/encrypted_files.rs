//! Systems that encrypt files: each works, shows no more of files than it should, and leaves
//! nothing behind.

use crate::record;
use crate::sandbox::{PROGRAM, is_clean, measure, processes, sandbox, temporary};
use lab::kernel::{Lab, Version};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use testkit::{Sandbox, wait_until};

/// Every operation that has a state of its own, with as few bytes as show it.
fn plan(systems: &str) -> String {
    format!(
        r#"
title = "a test"
tier = "fs"
size = "64 MiB"
repetitions = 1
file_systems = ["ext4"]
systems = [{systems}]
ciphers = ["aes-xts-plain64"]
key_size = 512

[[operation]]
name = "mount"
op = "mount"
files = 3
file_size = "10 kB"

[[operation]]
name = "tree"
op = "write"
files = 250
file_size = ["1 kB", "0 B"]
layout = "tree"
names = "long"

[[operation]]
name = "list"
op = "list"
files = 250
file_size = ["1 kB", "0 B"]
layout = "tree"
names = "long"

[[operation]]
name = "rename"
op = "rename"
files = 250
file_size = ["1 kB", "0 B"]
layout = "tree"
names = "long"

[[operation]]
name = "random"
op = "random-read"
files = 2
file_size = "300 kB"
buffer = "4 KiB"

[[operation]]
name = "append"
op = "append"
files = 2
file_size = "30 kB"
buffer = "999 B"

[[operation]]
name = "sparse"
op = "sparse"
file_size = "3 MB"
buffer = "10 kB"

[[operation]]
name = "remove"
op = "remove"
files = 25
file_size = "1 kB"
layout = "tree"
"#
    )
}

/// The first two operations of the plan.
fn short(systems: &str) -> String {
    let plan = plan(systems);
    let (third, _) = plan.match_indices("[[operation]]").nth(2).unwrap();
    plan[..third].to_owned()
}

/// What is seen of contents, names, sizes, times, the number of files and the tree, by system.
fn seen(run: &Value) -> BTreeMap<String, [Value; 6]> {
    let exposures = run["exposures"].as_array().unwrap().iter();
    let parts = ["contents", "names", "sizes", "times", "count", "tree"];
    exposures
        .map(|seen| {
            let system = seen["system"].as_str().unwrap().to_owned();
            (system, parts.map(|part| seen[part].clone()))
        })
        .collect()
}

fn words(words: [&str; 6]) -> [Value; 6] {
    words.map(Value::from)
}

/// What a system shows that stores each file in one of its own, under another name.
const FILE_BY_FILE: [&str; 6] = ["hidden", "hidden", "exact", "exact", "exact", "exact"];
const NOTHING: [&str; 6] = ["hidden"; 6];

fn have_programs() -> bool {
    let all = ["gocryptfs", "encfs", "cryfs", "securefs"];
    let missing = all.iter().find(|name| !block::program::is_there(name));
    if let Some(name) = missing {
        println!("skipped: file systems: there is no {name}");
    }
    missing.is_none()
}

#[test]
fn every_operation_is_done_through_a_program() {
    let Some(sandbox) = sandbox() else { return };
    if !have_programs() {
        return;
    }
    let plan = plan(r#""gocryptfs", "builtin-fuse""#);
    let run = record(
        &measure(&sandbox, &plan)
            .args(["--json", "-"])
            .output()
            .unwrap(),
    );
    assert_eq!(is_clean(&sandbox), Ok(()));
    assert_eq!(temporary(&sandbox), 0);
    assert!(!run["warnings"].to_string().contains("absent"), "{run}");
    let seen = seen(&run);
    assert_eq!(seen["none"], words(["exact"; 6]));
    assert_eq!(seen["builtin-fuse"], words(NOTHING));
    assert_eq!(seen["gocryptfs"], words(FILE_BY_FILE));
    let trials = run["trials"].as_array().unwrap();
    // Plain twice, gocryptfs with two ciphers, and the engine.
    assert_eq!(trials.len(), 5 * 8);
    for trial in trials {
        let wall = trial["time_s"]["wall"].as_f64().unwrap();
        assert!(wall > 0.0, "{trial}");
        let is_program = trial["system"] == "gocryptfs";
        assert!(!is_program || trial["time_s"]["cpu"].is_number(), "{trial}");
    }
    assert_eq!(space(&run, "none")[..2], [1024, 102_400]);
    // Its format: 18 bytes a file, 32 a block of 4096. The second cipher's is other.
    let of_gocryptfs = space(&run, "gocryptfs");
    assert_eq!(of_gocryptfs[..2], [1024 + 18 + 32, 102_400 + 18 + 25 * 32]);
}

/// CryFS derives its key for seconds whenever it mounts.
#[test]
fn programs_show_what_their_formats_say() {
    let Some(sandbox) = sandbox() else { return };
    if !have_programs() {
        return;
    }
    let mut run = measure(&sandbox, &short(r#""encfs", "securefs", "cryfs""#));
    let run = record(&run.args(["--json", "-"]).output().unwrap());
    assert_eq!(is_clean(&sandbox), Ok(()));
    let seen = seen(&run);
    for system in ["encfs", "securefs"] {
        assert_eq!(seen[system], words(FILE_BY_FILE), "{system}");
    }
    assert_eq!(seen["cryfs"], words(NOTHING));
    // A header of 8 bytes.
    assert_eq!(space(&run, "encfs")[..2], [1032, 102_408]);
    assert_eq!(space(&run, "cryfs")[0], 16_384);
}

/// The bytes that `system` stores for a file of each size.
fn space(run: &Value, system: &str) -> Vec<u64> {
    let exposures = run["exposures"].as_array().unwrap();
    let of = exposures.iter().find(|seen| seen["system"] == system);
    let space = of.unwrap()["space"].as_array().unwrap();
    let bytes = space
        .iter()
        .map(|space| space["stored_bytes"].as_u64().unwrap());
    bytes.collect()
}

#[test]
fn a_user_measures_programs_in_a_directory() {
    let Some(sandbox) = sandbox() else { return };
    if !have_programs() {
        return;
    }
    sandbox.write("plan.toml", plan(r#""gocryptfs", "dm-crypt""#));
    let everybody = fs::Permissions::from_mode(0o777);
    for path in ["", "tmp", "at"] {
        fs::set_permissions(sandbox.path(path), everybody.clone()).unwrap();
    }
    let Some(output) = as_user(&sandbox, &["--json", "-"]) else {
        return;
    };
    let run = record(&output);
    assert_eq!(is_clean(&sandbox), Ok(()));
    assert!(run["warnings"].to_string().contains("needs root"), "{run}");
    assert_eq!(seen(&run)["gocryptfs"], words(FILE_BY_FILE));
    for trial in run["trials"].as_array().unwrap() {
        assert_eq!(trial["operation"]["fs"], "directory");
        assert_ne!(trial["op"], "mount");
    }
}

/// Whoever is killed, and whenever: no mount, no process, no file and no key stays.
#[test]
fn nothing_stays_of_encrypted_files_when_a_run_is_killed() {
    let Some(sandbox) = sandbox() else { return };
    if !have_programs() {
        return;
    }
    let plan = plan(r#""gocryptfs", "fscrypt", "ecryptfs""#);
    let victims: [&[&str]; 3] = [&["run", "plan.toml"], &["unshare"], &["gocryptfs", "-fg"]];
    for (step, victim) in victims.iter().cycle().take(6).enumerate() {
        let mut run = measure(&sandbox, &plan);
        run.args(["--repeat", "1000"]);
        run.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = run.spawn().unwrap();
        let folder = sandbox.directory().to_str().unwrap().to_owned();
        let served = [folder.as_str(), "gocryptfs", "-fg"];
        wait_until("nothing is served", || !processes(&served).is_empty());
        std::thread::sleep(Duration::from_millis(150 * step as u64));
        let kill = |victim: &[&str]| {
            let words = [&[folder.as_str()], victim].concat();
            for process in processes(&words) {
                let process = Pid::from_raw(process).unwrap();
                // It may have ended by itself just now.
                let _ = kill_process(process, Signal::KILL);
            }
        };
        kill(victim);
        // A program that is killed before it has worked is absent, and the run goes on.
        std::thread::sleep(Duration::from_millis(300));
        kill(victims[0]);
        wait_until("it does not end", || child.try_wait().unwrap().is_some());
        assert_eq!(is_clean(&sandbox), Ok(()), "{victim:?} at step {step}");
        // The kernel collects keys a moment after the last keyring with them has gone.
        wait_until("a key stays", || {
            let keys = fs::read_to_string("/proc/keys").unwrap_or_default();
            !keys.contains("63727970746d6172")
        });
    }
}

#[test]
fn the_lab_kernels_encrypt_files() {
    let kernels: [(Version, &str, &[&str]); 2] = [
        (Version::V5_10, "lab", &["adiantum", "aes-256-xts"]),
        (
            Version::V6_1,
            "lab-6.1",
            &["adiantum", "aes-256-xts", "aes-256-xts-hctr2"],
        ),
    ];
    for (version, lab, ciphers) in kernels {
        let Some(sandbox) = sandbox() else { return };
        if let Err(error) = Lab::find(version) {
            match version {
                Version::V5_10 => println!(
                    "skipped: file systems in the lab kernel: {error} (cargo xtask install lab-kernel)"
                ),
                Version::V6_1 => println!(
                    "skipped: the lab kernel 6.1 is not built (cargo xtask install lab-kernel)"
                ),
            }
            continue;
        }
        let plan = plan(&format!(r#""{lab}:fscrypt", "{lab}:ecryptfs""#));
        let mut run = measure(&sandbox, &plan);
        let run = record(&run.args(["--json", "-"]).output().unwrap());
        assert_eq!(is_clean(&sandbox), Ok(()));
        let mut of_fscrypt: Vec<&str> = run["exposures"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|seen| seen["system"] == format!("{lab}:fscrypt"))
            .filter_map(|seen| seen["cipher"].as_str())
            .collect();
        of_fscrypt.sort_unstable();
        assert_eq!(of_fscrypt, ciphers);
        let seen = seen(&run);
        assert_eq!(seen[&format!("{lab}:none")], words(["exact"; 6]));
        assert_eq!(seen[&format!("{lab}:fscrypt")], words(FILE_BY_FILE));
        let ecryptfs = &seen[&format!("{lab}:ecryptfs")];
        assert_eq!(ecryptfs[2]["within"], 4095, "{ecryptfs:?}");
        assert_eq!(ecryptfs[..2], words(FILE_BY_FILE)[..2]);
    }
}

/// A directory that a killed run has left is removed by the next one, and a look-alike stays.
#[test]
fn a_directory_of_a_killed_run_is_removed() {
    let Some(sandbox) = sandbox() else { return };
    if !have_programs() {
        return;
    }
    let left = sandbox.path("at/.cryptmark-files-4194399-0-x");
    let precious = sandbox.path("at/.cryptmark-files-mine");
    for directory in [&left, &precious] {
        fs::create_dir_all(directory.join("stored")).unwrap();
    }
    chown(
        &sandbox,
        &["", "tmp", "at", "at/.cryptmark-files-4194399-0-x"],
    );
    sandbox.write("plan.toml", short(r#""gocryptfs""#));
    let Some(output) = as_user(&sandbox, &[]) else {
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(!left.exists() && precious.join("stored").exists());
}

/// `cryptmark run plan.toml` as nobody; nothing if nobody may have a user namespace.
fn as_user(sandbox: &Sandbox, arguments: &[&str]) -> Option<Output> {
    let mut user = Command::new("setpriv");
    user.args(["--reuid=65534", "--regid=65534", "--clear-groups", PROGRAM]);
    user.arg("--store").arg(sandbox.path("tmp/store"));
    user.args(["run", "plan.toml", "--no-progress", "--at", "at"]);
    let mut user = sandbox.prepare(user);
    let output = user
        .args(arguments)
        .env("HOME", sandbox.path("tmp"))
        .output();
    let output = output.unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    if told.contains("unshare failed") {
        println!("skipped: mounts by a user: unshare failed");
        return None;
    }
    Some(output)
}

fn chown(sandbox: &Sandbox, paths: &[&str]) {
    for path in paths {
        let all = Command::new("chown")
            .args(["-R", "65534"])
            .arg(sandbox.path(path))
            .status();
        assert!(all.unwrap().success());
    }
}
