//! `cargo xtask test`: every test, with what it could not run named and counted.

use crate::emulated::{self, Extent};
use crate::{packages, root, windows};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Marks a line in which a test says what it could not run, and why.
const SKIPPED: &str = "skipped: ";

/// Provides what tests need, runs them here and some of the cipher crate's on
/// other machines; sums up.
pub fn run() -> bool {
    packages::provide();
    sum_up(|skipped| {
        let all = ["test", "--workspace", "--all-features"];
        // Tests without the kernel say that they skipped it.
        let _ = crate::cargo(&[&all[..], &["--no-run"]].concat()) && lab_kernel();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(all).args(["--no-fail-fast", "--"]);
        let here = test(&mut cargo, skipped);
        skipped.push("the program for Windows (cargo xtask windows builds and tries it)".into());
        emulated::run(Extent::Short, skipped) && here
    })
}

/// Has the program that lies beside this one build the lab kernel, unless it is
/// there.
pub fn lab_kernel() -> bool {
    let Ok(own) = std::env::current_exe() else {
        return false;
    };
    Command::new(own.with_file_name("cryptmark"))
        .args(["lab", "build"])
        .status()
        .is_ok_and(|status| status.success())
}

/// Provides what tests need, runs all of the cipher crate's on other machines,
/// sums up.
pub fn run_emulated() -> bool {
    packages::provide();
    sum_up(|skipped| emulated::run(Extent::Whole, skipped))
}

/// Provides what it takes, builds the program for Windows and runs tests of it,
/// sums up.
pub fn run_windows() -> bool {
    packages::provide_windows();
    sum_up(windows::run)
}

fn sum_up(tests: impl FnOnce(&mut Vec<String>) -> bool) -> bool {
    let mut skipped = Vec::new();
    let passed = tests(&mut skipped);
    skipped.sort();
    skipped.dedup();
    println!(
        "\n{} tests or parts of tests could not run here",
        skipped.len()
    );
    for line in skipped {
        println!("  {line}");
    }
    passed
}

/// Runs `cargo`, a `cargo test` up to the arguments of the tests, passes its
/// output on and collects what was skipped.
pub fn test(cargo: &mut Command, skipped: &mut Vec<String>) -> bool {
    let child = cargo
        // Passing tests, too, are to be heard when they skip something.
        .arg("--show-output")
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("cargo could not be started");
        return false;
    };
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if let Some(at) = line.find(SKIPPED) {
                skipped.push(line[at + SKIPPED.len()..].to_owned());
            }
            println!("{line}");
        }
    }
    child.wait().is_ok_and(|status| status.success())
}
