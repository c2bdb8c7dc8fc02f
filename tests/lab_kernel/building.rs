//! Building: what is missing is named, and what was interrupted is no kernel.

use crate::sandbox::{PROGRAM, on_each};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Programs that building uses besides apt-get.
const PROGRAMS: &[&str] = &[
    "sh",
    "cat",
    "sleep",
    "apt-config",
    "dpkg-deb",
    "tar",
    "xz",
    "patch",
    "make",
    "gcc",
    "ld",
    "flex",
    "bison",
    "bc",
];

/// `lab build` in an empty cache, with an apt-get of the test's and without the
/// program `missing`; nothing where building is not possible anyway.
fn build(folder: &Path, apt_get: &str, missing: &str) -> Option<Command> {
    if !cfg!(target_arch = "x86_64") || !Path::new("/etc/apt").exists() {
        println!("skipped: building the lab kernel: this is no x86-64 Debian");
        return None;
    }
    let programs = folder.join("programs");
    fs::create_dir(&programs).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for name in PROGRAMS.iter().filter(|name| **name != missing) {
        let real = std::env::split_paths(&path).find(|folder| folder.join(name).exists());
        match real {
            Some(real) => symlink(real.join(name), programs.join(name)).unwrap(),
            None => {
                println!("skipped: building the lab kernel: there is no {name}");
                return None;
            }
        }
    }
    let apt = programs.join("apt-get");
    fs::write(&apt, format!("#!/bin/sh\n{apt_get}\n")).unwrap();
    fs::set_permissions(&apt, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(PROGRAM);
    command
        .args(["lab", "build"])
        .env("PATH", &programs)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Whatever root's PATH says, root runs the system's programs.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(folder, Some(65534), Some(65534)).unwrap();
        command.uid(65534).gid(65534);
    }
    Some(command)
}

/// What the cache has, which is never a kernel here.
fn kept(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("cache/cryptmark/lab-kernel"));
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_is_missing_is_named_with_its_package() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut build) = build(folder.path(), "exit 1", "flex") else {
        return;
    };
    let output = build.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(
        said,
        "error: building the lab kernel needs flex\n  Install the programs as root: apt-get \
         install flex\n"
    );
    assert!(kept(folder.path()).is_empty());
}

#[test]
fn without_a_network_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let apt = "echo \"E: Failed to fetch http://x  Temporary failure resolving 'x'\" >&2; exit 100";
    let Some(mut build) = build(folder.path(), apt, "") else {
        return;
    };
    let output = build.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("error: cannot reach an archive of Debian: E: "),
        "{said}"
    );
    assert_eq!(said.lines().count(), 2, "{said}");
    assert_eq!(kept(folder.path()), ["build.log", "lock"]);
}

#[test]
fn another_failure_names_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut build) = build(folder.path(), "echo E: it is broken; exit 100", "") else {
        return;
    };
    let output = build.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let log = folder.path().join("cache/cryptmark/lab-kernel/build.log");
    let expected = format!(
        "error: reading the archive's lists failed: E: it is broken\n  The whole log is in {}.\n",
        log.display()
    );
    assert_eq!(said, expected);
    // It was asked for at the mirror, and at the archive of old suites.
    assert_eq!(
        fs::read_to_string(log).unwrap(),
        "E: it is broken\nE: it is broken\n"
    );
}

/// Of a release that no archive has any more, the newest one is taken.
#[test]
fn a_release_that_is_gone_is_replaced_by_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let apt = "case $2 in --error-on=any) exit 0;; esac; echo \"E: no $3\"; exit 100";
    let Some(mut build) = build(folder.path(), apt, "") else {
        return;
    };
    let output = build.args(["--kernel", "6.1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = fs::read_to_string(folder.path().join("cache/cryptmark/lab-kernel/build.log"));
    let asked: Vec<_> = log.as_ref().unwrap().lines().collect();
    let exact = "E: no linux-source-6.1=6.1.";
    assert_eq!(asked.len(), 3, "{asked:?}");
    // At the mirror, and at the archive of old suites.
    assert!(asked[..2].iter().all(|line| line.starts_with(exact)));
    assert_eq!(asked[2], "E: no linux-source-6.1");
}

#[test]
fn interrupted_or_killed_there_is_no_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let apt = format!(": >{}/ready; exec sleep 1000", folder.path().display());
    let Some(mut build) = build(folder.path(), &apt, "") else {
        return;
    };
    for signal in [Signal::KILL, Signal::INT] {
        let child = build.spawn().unwrap();
        while !folder.path().join("ready").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        fs::remove_file(folder.path().join("ready")).unwrap();
        if signal == Signal::INT {
            assert_eq!(output.status.code(), Some(130), "{said}");
            // What the killed one had left is gone, too.
            assert_eq!(kept(folder.path()), ["build.log", "lock"]);
        } else {
            assert_eq!(kept(folder.path()), ["build", "build.log", "lock"]);
        }
    }
    // The apt-get of the one that was killed.
    end_sleepers(folder.path());
}

/// Ends what runs in a folder that was removed, or below it.
fn end_sleepers(folder: &Path) {
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(place) = fs::read_link(entry.path().join("cwd")) else {
            continue;
        };
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if place.starts_with(folder)
            && let Some(process) = number.and_then(Pid::from_raw)
        {
            kill_process(process, Signal::KILL).unwrap();
        }
    }
}

#[test]
fn doctor_says_whether_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let doctor = |cache: Option<&Path>| {
        let mut command = Command::new(PROGRAM);
        command.arg("doctor").stdin(Stdio::null());
        if let Some(cache) = cache {
            command.env("XDG_CACHE_HOME", cache);
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let without = doctor(Some(folder.path()));
    assert!(
        without.contains("lab kernel 5.10: absent")
            && without.contains("lab kernel 6.1: absent")
            && without.contains("cryptmark lab build --kernel 6.1"),
        "{without}"
    );
    let with = doctor(None);
    on_each(|_, kernel| {
        let said = format!("lab kernel {}: /", kernel[1]);
        assert!(with.contains(&said), "{with}");
    });
}
