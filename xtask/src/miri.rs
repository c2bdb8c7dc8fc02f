//! `cargo xtask miri`: the block crate's tests of buffers, ranges, layers, and of devices and queues
//! in memory, by Miri. Its other tests call what Miri does not know: io_uring, locks, devices.

use crate::{root, tests};
use std::process::{Command, Stdio};

/// A compiler that has Miri.
const TOOLCHAIN: &str = "nightly";

/// Cargo's options that choose test programs, and the tests in them that it can run.
const TESTS: &[(&[&str], &[&str])] = &[
    (&["--lib"], &["buffer::", "layer::", "range::"]),
    (
        &["--test", "queue", "--test", "stacks"],
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
];

/// Runs them, and says how long each took.
pub fn run() -> bool {
    if !has_miri() && !add_miri() {
        return tests::skip("Miri: rustup cannot provide a nightly compiler with it");
    }
    TESTS.iter().all(|(programs, tests)| {
        let tested = Command::new("rustup")
            .args(["run", TOOLCHAIN, "cargo", "miri", "test"])
            .args(["--locked", "--package", "cryptmark-block"])
            .args(*programs)
            .arg("--target-dir")
            .arg(root().join("target/miri"))
            .arg("--")
            .args(*tests)
            .args(["-Z", "unstable-options", "--report-time"])
            .current_dir(root())
            .status();
        tested.is_ok_and(|status| status.success())
    })
}

fn has_miri() -> bool {
    let asked = Command::new("rustup")
        .args(["run", TOOLCHAIN, "cargo", "miri", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

fn add_miri() -> bool {
    let installed = Command::new("rustup")
        .args(["toolchain", "install", TOOLCHAIN, "--profile", "minimal"])
        .args(["--component", "miri", "--component", "rust-src"])
        .status();
    installed.is_ok_and(|status| status.success()) && has_miri()
}
