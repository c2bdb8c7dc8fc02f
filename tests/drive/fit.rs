//! `cryptmark drive fit` as a user meets it, and filling a drive that is not here.

use crate::sandbox;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Measures whatever is under the folder for temporary files: what the numbers
/// are, nobody can say, but every command takes them.
#[test]
fn a_fitted_drive_is_a_drive() {
    let sandbox = sandbox();
    let fit = sandbox.run(&[
        "drive",
        "fit",
        "--at",
        ".",
        "--size",
        "128MB",
        "--out",
        "mine.toml",
    ]);
    let errors = String::from_utf8_lossy(&fit.stderr);
    assert!(fit.status.success(), "{errors}");
    let text = String::from_utf8(fit.stdout).unwrap();
    for words in ["measured", "rand-4k-q32-read", "interface_mb_s", "error"] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    let shown = sandbox.run(&["drive", "show", "mine.toml"]).stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("fitted from tlc-1t"), "{shown}");
    assert!(shown.contains("fitted to what"), "{shown}");
    let predict = [
        "drive",
        "predict",
        "--device",
        "mine.toml",
        "--size",
        "128MB",
        "--cipher",
        "aes",
        "--cpu",
        "aes=500MB/s",
    ];
    let predicted = sandbox.run(&predict);
    assert!(predicted.status.success());
    let of_a_run = [
        "run",
        "anvil",
        "--quick",
        "--size",
        "128MB",
        "--system",
        "drive:mine.toml",
        "--cipher",
        "aes-xts-plain64",
        "--cpu",
        "aes=500MB/s",
    ];
    assert!(sandbox.run(&of_a_run).status.success());
    // The test file had no name.
    let mut names: Vec<_> = std::fs::read_dir(sandbox.directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("runs.db"))
        .collect();
    names.sort();
    assert_eq!(names, ["mine.toml"]);
}

#[test]
fn what_cannot_be_fitted_is_told_in_two_lines() {
    let sandbox = sandbox();
    sandbox.write("data", vec![7; 130_000_000]);
    for (arguments, code, says) in [
        // What somebody keeps there.
        (vec!["--at", "data", "--size", "128MB"], 4, "data"),
        (vec!["--at", "nowhere"], 2, "nowhere"),
        (vec!["--at", ".", "--size", "1MB"], 2, "--size"),
        (vec!["--at", ".", "--out", "mine"], 2, ".toml"),
        (vec!["--at", ".", "--from", "nothing"], 2, "drive list"),
        (
            vec!["--at", ".", "--from", "flash-key-128m"],
            2,
            "data sheet",
        ),
        (
            vec!["--at", ".", "--from", "hdd-desktop-2003", "--size", "11GB"],
            2,
            "the drive holds 10000000000 bytes",
        ),
    ] {
        let output = sandbox.run(&[&["drive", "fit"], &arguments[..]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(says), "{arguments:?}: {errors}");
        assert_eq!(errors.lines().count(), 2, "{errors}");
    }
    assert_eq!(sandbox.read("data"), vec![7; 130_000_000]);
}

/// Ctrl-C while a large drive is filled: 130, and nothing is left of it.
#[test]
fn filling_a_drive_can_be_ended() {
    let sandbox = sandbox();
    let mut child = sandbox
        .cryptmark(&["run", "anvil", "--size", "200GB"])
        .args(["--system", "drive:tlc-1t", "--cipher", "aes-xts-plain64"])
        .args(["--cpu", "aes=500MB/s"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // From when it counts signals until it has filled so much is seconds.
    while child.try_wait().unwrap().is_none() && !catches_interrupts(child.id()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    let signal = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(signal.success());
    let ended = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{errors}");
    assert!(errors.contains("Nothing was measured"), "{errors}");
    let list = sandbox.run(&["list"]);
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(!list.contains("anvil"), "{list}");
    for entry in std::fs::read_dir(sandbox.directory()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with("runs.db"), "{name}");
    }
}

/// Whether a process has a handler of SIGINT.
fn catches_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 1 << (2 - 1) != 0)
}
