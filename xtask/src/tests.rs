//! `cargo xtask test`: every test, with what it could not run named and counted.

use crate::{packages, root};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Marks a line in which a test says what it could not run, and why.
const SKIPPED: &str = "skipped: ";

/// Provides what tests need, runs them, sums up.
pub fn run() -> bool {
    packages::provide();
    let mut skipped = Vec::new();
    let passed = test(&["--workspace", "--all-features"], &mut skipped);
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

/// Runs `cargo test`, passes its output on and collects what was skipped.
fn test(arguments: &[&str], skipped: &mut Vec<String>) -> bool {
    let child = Command::new(env!("CARGO"))
        .arg("test")
        .args(arguments)
        // Passing tests, too, are to be heard when they skip something.
        .args(["--", "--show-output"])
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
