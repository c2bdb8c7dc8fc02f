//! `cargo xtask msrv`: whether the oldest compiler that the manifest promises takes the crates.

use crate::{publish, root, tests};
use std::process::{Command, Stdio};

/// The version that the manifest promises, as in 1.94.
const VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// Checks the published crates by that compiler, which rustup may have to fetch.
pub fn run() -> bool {
    // Toolchains have the names of whole versions.
    let toolchain = match VERSION.matches('.').count() {
        1 => format!("{VERSION}.0"),
        _ => VERSION.to_owned(),
    };
    if !has(&toolchain) && !add(&toolchain) {
        let reason = format!("the oldest compiler: rustup cannot provide Rust {toolchain}");
        return tests::skip(&reason);
    }
    let checked = Command::new("rustup")
        .args(["run", &toolchain, "cargo", "check", "--locked"])
        .args(publish::chosen())
        .arg("--target-dir")
        .arg(root().join("target/msrv"))
        .current_dir(root())
        .status();
    checked.is_ok_and(|status| status.success())
}

fn has(toolchain: &str) -> bool {
    let asked = Command::new("rustup")
        .args(["run", toolchain, "rustc", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

fn add(toolchain: &str) -> bool {
    let added = Command::new("rustup")
        .args(["toolchain", "install", toolchain, "--profile", "minimal"])
        .status();
    added.is_ok_and(|status| status.success()) && has(toolchain)
}
