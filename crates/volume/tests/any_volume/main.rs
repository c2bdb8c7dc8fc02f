//! Parsers under any bytes: no panic, no hang, no large allocation.
//!
//! With `-- --ignored` it goes on for longer, as the environment says: FUZZ_TARGET, FUZZ_EXECUTIONS,
//! and FUZZ_DONE for what was done before. `cargo +nightly fuzz run TARGET` knows the code.

mod mutation;
mod targets;

use mutation::Mutation;
use peak_alloc::PeakAlloc;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use targets::{TARGETS, Target};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The most memory that reading any input may take, bytes.
const MOST_MEMORY: usize = 64 << 20;

/// Inputs to begin with, one folder for each target.
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(CORPUS).join(target);
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Runs `target` so many times; the longest that it took, and the most memory.
fn drive(target: Target, corpus: &[Vec<u8>], executions: u64, seed: u64) -> (Duration, usize) {
    let mut mutation = Mutation::new(corpus, seed);
    let mut input = Vec::new();
    let (mut longest, mut most) = (Duration::ZERO, 0);
    for number in 0..executions {
        mutation.next(&mut input);
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        let start = Instant::now();
        let done = std::panic::catch_unwind(|| target(&input));
        longest = longest.max(start.elapsed());
        let taken = MEMORY.peak_usage().saturating_sub(before);
        most = most.max(taken);
        if done.is_err() || taken > MOST_MEMORY {
            let path = std::env::temp_dir().join("cryptmark-fuzz-input");
            fs::write(&path, &input).unwrap();
            panic!(
                "seed {seed}, execution {number}, {taken} bytes: see {}",
                path.display()
            );
        }
    }
    (longest, most)
}

#[test]
fn any_bytes_are_read_or_refused() {
    for (name, target) in TARGETS {
        let corpus = corpus(name);
        for input in &corpus {
            target(input);
        }
        drive(target, &corpus, 3000, 1);
    }
}

#[test]
#[ignore = "as long as one likes: FUZZ_TARGET, FUZZ_EXECUTIONS"]
fn at_length() {
    let number = |name: &str, usual: u64| match std::env::var(name) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => usual,
    };
    let wanted = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let executions = number("FUZZ_EXECUTIONS", 1_000_000);
    let mut done = number("FUZZ_DONE", 0);
    let found = TARGETS.iter().find(|(name, _)| *name == wanted);
    let names = TARGETS.map(|(name, _)| name).join(", ");
    let (name, target) = found.unwrap_or_else(|| panic!("the targets are {names}"));
    let corpus = corpus(name);
    const ROUND: u64 = 1_000_000;
    while done < executions {
        let round = ROUND.min(executions - done);
        let (longest, most) = drive(*target, &corpus, round, done);
        done += round;
        println!(
            "{name}: {done} executions; the longest {longest:?}, the most memory {most} bytes"
        );
    }
}
