//! `cargo xtask budget`: what a newcomer's first build costs, and what it may cost.

use crate::{cargo, root};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Instant;

/// Crates that are compiled, the project's own included.
const CRATES: usize = 173;
/// Bytes of the program.
const BYTES: u64 = 16_000_000;
/// CPU seconds of a build. Machines differ, so more is reported, and does not fail.
const SECONDS: f64 = 300.0;

/// Builds the program as `cargo build --release` does, from nothing, in a folder of its own;
/// whether it has few enough crates and bytes.
pub fn run() -> bool {
    let Some(crates) = crates() else {
        eprintln!("cargo tree cannot be asked");
        return false;
    };
    let target = root().join("target/budget");
    // A folder that is not there is as clean.
    let _ = fs::remove_dir_all(&target);
    let (start, before) = (Instant::now(), children());
    let folder = target.to_string_lossy().into_owned();
    if !cargo(&["build", "--release", "--target-dir", &folder]) {
        return false;
    }
    let wall = start.elapsed().as_secs_f64();
    let after = children();
    let bytes = fs::metadata(target.join("release/cryptmark")).map_or(0, |file| file.len());
    let _ = fs::remove_dir_all(&target);
    println!("crates          {crates} (limit {CRATES})");
    println!(
        "program         {:.1} MB (limit {:.0})",
        bytes as f64 / 1e6,
        BYTES as f64 / 1e6
    );
    match before.zip(after) {
        Some((before, after)) => {
            println!(
                "CPU             {:.0} s (limit {SECONDS:.0})",
                after - before
            );
            if after - before > SECONDS {
                println!("warning: a build takes more CPU seconds here than it should");
            }
        }
        None => println!("CPU             unknown: this system does not tell"),
    }
    println!("wall            {wall:.0} s");
    crates <= CRATES && (1..=BYTES).contains(&bytes)
}

/// How many crates a default build compiles for this machine.
fn crates() -> Option<usize> {
    let tree = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["tree", "--package", "cryptmark", "--locked"])
        .args(["--edges", "normal,build", "--prefix", "none"])
        .args(["--format", "{p}"])
        .output()
        .ok()?;
    let text = String::from_utf8(tree.stdout).ok()?;
    let crates: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.split(" (").next())
        .collect();
    (tree.status.success() && !crates.is_empty()).then_some(crates.len())
}

/// CPU seconds of all processes that this one has started and that have ended; proc(5), fields
/// 16 and 17 of `stat`, in hundredths.
fn children() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may have blanks.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<f64> = rest
        .split(' ')
        .skip(13)
        .take(2)
        .map_while(|field| field.parse().ok())
        .collect();
    (fields.len() == 2).then(|| fields.iter().sum::<f64>() / 100.0)
}
