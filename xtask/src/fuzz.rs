//! `cargo xtask fuzz`: the targets of fuzz/ by libFuzzer, each for some seconds. Tests drive the
//! same functions without it, in CI too.

use crate::{root, tests};
use std::fs;
use std::process::{Command, Stdio};

/// A compiler that has the sanitizers.
const TOOLCHAIN: &str = "nightly";

/// Seconds for a target, where none are given.
const SECONDS: &str = "20";

/// Bounds of an input: megabytes at once and in all, and seconds. Leaks are not looked for, because
/// threads that are just ending pass for some.
const BOUNDS: [&str; 4] = [
    "-malloc_limit_mb=64",
    "-rss_limit_mb=1024",
    "-timeout=1",
    "-detect_leaks=0",
];

/// Runs the targets that are named, or all.
pub fn run(rest: &[String]) -> bool {
    if !has_cargo_fuzz() {
        return tests::skip("libFuzzer: there is no nightly compiler with cargo-fuzz");
    }
    let (seconds, named) = match rest.split_first() {
        Some((first, rest)) if first.parse::<u32>().is_ok() => (first.as_str(), rest),
        _ => (SECONDS, rest),
    };
    let targets = fs::read_dir(root().join("fuzz/fuzz_targets")).expect("there are targets");
    let mut targets: Vec<String> = targets
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .filter(|target| named.is_empty() || named.contains(target))
        .collect();
    targets.sort();
    targets.iter().all(|target| one(target, seconds))
}

fn one(target: &str, seconds: &str) -> bool {
    let folder = root().join("fuzz");
    let corpora = ["corpus", "seeds"].map(|kind| folder.join(kind).join(target));
    let made = fs::create_dir_all(&corpora[0]);
    let corpora = corpora.iter().filter(|corpus| corpus.is_dir());
    let fuzzed = Command::new("rustup")
        .args(["run", TOOLCHAIN, "cargo", "fuzz", "run", target])
        .args(corpora)
        .arg("--")
        .args(BOUNDS)
        .arg(format!("-max_total_time={seconds}"))
        .arg("-print_final_stats=1")
        .current_dir(root())
        .status();
    made.is_ok() && fuzzed.is_ok_and(|status| status.success())
}

fn has_cargo_fuzz() -> bool {
    let asked = Command::new("rustup")
        .args(["run", TOOLCHAIN, "cargo", "fuzz", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}
