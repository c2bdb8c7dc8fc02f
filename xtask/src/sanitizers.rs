//! `cargo xtask sanitizers`: tests in builds that see what a test itself does not, on a nightly
//! compiler: Miri, AddressSanitizer, ThreadSanitizer, and every order of threads by loom.

use crate::{root, tests};
use std::process::{Command, Stdio};

/// A compiler that has them.
const TOOLCHAIN: &str = "nightly";

/// One sanitizer.
struct Sanitizer {
    name: &'static str,
    /// Cargo's command, with what builds the standard library if it has to be instrumented too.
    cargo: &'static [&'static str],
    flags: &'static str,
    /// What it would report that is no fault.
    allows: (&'static str, &'static str),
    /// Cargo's options that choose test programs, and what chooses the tests in them.
    runs: &'static [(&'static [&'static str], &'static [&'static str])],
}

const SERVE: &[&str] = &[
    "--package",
    "cryptmark-serve",
    "--features",
    "ublk,tls",
    "--lib",
    "--tests",
];

const ALL: &[Sanitizer] = &[
    // Its other tests call what Miri does not know: io_uring, locks, devices.
    Sanitizer {
        name: "miri",
        cargo: &["miri", "test"],
        flags: "",
        allows: ("MIRIFLAGS", ""),
        runs: &[
            (
                &["--package", "cryptmark-block", "--lib"],
                &["buffer::", "layer::", "range::"],
            ),
            (
                &[
                    "--package",
                    "cryptmark-block",
                    "--test",
                    "queue",
                    "--test",
                    "stacks",
                ],
                &[
                    "boxed",
                    "delays_are",
                    "delays_over_faults",
                    "devices_one",
                    "faultless",
                    "null_device",
                    "slices_hand",
                ],
            ),
        ],
    },
    Sanitizer {
        name: "address",
        cargo: &["test", "--target", TARGET],
        flags: "-Zsanitizer=address",
        // A ring that is abandoned leaks what the kernel may still write to.
        allows: ("ASAN_OPTIONS", "detect_leaks=0"),
        runs: &[
            (&["--package", "cryptmark-block", "--lib", "--tests"], &[]),
            (SERVE, &["--skip", MEMORY]),
            (
                &[
                    "--package",
                    "cryptmark-volume",
                    "--lib",
                    "--test",
                    "any_volume",
                ],
                &[],
            ),
            (
                &[
                    "--package",
                    "cryptmark-volume",
                    "--test",
                    "crash",
                    "--test",
                    "operations",
                ],
                &[],
            ),
        ],
    },
    Sanitizer {
        name: "thread",
        cargo: &["test", "-Zbuild-std", "--target", TARGET],
        flags: "-Zsanitizer=thread",
        // FUSE's threads end by themselves.
        allows: ("TSAN_OPTIONS", "report_thread_leaks=0"),
        runs: &[
            (&["--package", "cryptmark-block", "--lib", "--tests"], &[]),
            (SERVE, &["--skip", MEMORY]),
            (
                &["--package", "cryptmark-volume", "--test", "operations"],
                &[],
            ),
        ],
    },
    Sanitizer {
        name: "orders",
        cargo: &["test", "--target", TARGET],
        flags: "--cfg loom",
        allows: ("LOOM_MAX_PREEMPTIONS", "3"),
        runs: &[(&["--package", "cryptmark-serve", "--lib"], &["::orders::"])],
    },
];

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// It limits the memory of a process, which is several times as much here.
const MEMORY: &str = "a_thousand_clients_that_ask_for_much";

/// Runs all, or those that are named.
pub fn run(names: &[String]) -> bool {
    if let Some(name) = names
        .iter()
        .find(|name| ALL.iter().all(|one| one.name != **name))
    {
        let known: Vec<_> = ALL.iter().map(|one| one.name).collect();
        eprintln!(
            "no sanitizer is called `{name}`; there are {}",
            known.join(", ")
        );
        return false;
    }
    if !has_nightly() && !add_nightly() {
        return tests::skip("sanitizers: rustup cannot provide a nightly compiler with Miri");
    }
    let chosen = ALL
        .iter()
        .filter(|one| names.is_empty() || names.iter().any(|name| name == one.name));
    // All of them say what they find.
    let failed: Vec<_> = chosen
        .filter(|one| !one.run())
        .map(|one| one.name)
        .collect();
    for name in &failed {
        eprintln!("failed: {name}");
    }
    failed.is_empty()
}

impl Sanitizer {
    fn run(&self) -> bool {
        let run = |(programs, tests): &(&[&str], &[&str])| {
            println!("{}: {}", self.name, programs.join(" "));
            let tested = Command::new("rustup")
                .args(["run", TOOLCHAIN, "cargo"])
                .args(self.cargo)
                .args(["--locked", "--no-fail-fast", "--target-dir"])
                .arg(root().join("target").join(self.name))
                .args(*programs)
                .arg("--")
                .args(*tests)
                .env("RUSTFLAGS", self.flags)
                .env(self.allows.0, self.allows.1)
                .current_dir(root())
                .status();
            tested.is_ok_and(|status| status.success())
        };
        // All are run.
        let passed: Vec<bool> = self.runs.iter().map(run).collect();
        passed.into_iter().all(|passed| passed)
    }
}

fn has_nightly() -> bool {
    let asked = Command::new("rustup")
        .args(["run", TOOLCHAIN, "cargo", "miri", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

fn add_nightly() -> bool {
    let installed = Command::new("rustup")
        .args(["toolchain", "install", TOOLCHAIN, "--profile", "minimal"])
        .args(["--component", "miri", "--component", "rust-src"])
        .status();
    installed.is_ok_and(|status| status.success()) && has_nightly()
}
