//! Drives parsers with spoilt inputs of a corpus, without libFuzzer: no panic, no hang, no large
//! allocation. The tests of several crates include this file.
//!
//! `at_length` goes on for longer, as the environment says: FUZZ_TARGET, FUZZ_EXECUTIONS, and
//! FUZZ_DONE for what was done before. `cargo +nightly fuzz run TARGET` drives the same functions.

mod mutation;

use mutation::Mutation;
use peak_alloc::PeakAlloc;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// A parser that takes any bytes.
pub type Target = fn(&[u8]);

/// The most memory that reading any input may take, bytes.
const MOST_MEMORY: usize = 64 << 20;

/// The longest that any input may take. A test's build is slow, and its machine may be busy.
const LONGEST: Duration = Duration::from_secs(20);

/// Inputs to begin with: those of fuzz/seeds, which has a folder for each target.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = above.map(|above| above.join("fuzz/seeds").join(target));
    let folder = folders.find(|folder| folder.is_dir()).unwrap();
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Runs `target` with every seed, and this often with spoilt ones, after those that `done` counts.
/// The longest time that it took, and the most memory.
fn drive(name: &str, target: Target, executions: u64, done: u64) -> (Duration, usize) {
    let seeds = seeds(name);
    let mut mutation = Mutation::new(&seeds, done);
    let (mut longest, mut most) = (Duration::ZERO, 0);
    let mut input = Vec::new();
    for number in 0..seeds.len() as u64 + executions {
        match seeds.get(number as usize) {
            Some(seed) => input.clone_from(seed),
            None => mutation.next(&mut input),
        }
        let (time, taken) = once(target, &input, || {
            format!("{name}, FUZZ_DONE={done}, execution {number}")
        });
        (longest, most) = (longest.max(time), most.max(taken));
    }
    (longest, most)
}

/// Runs `target` once; the time that it took, and the memory. Panics where these are too much.
pub fn once(target: Target, input: &[u8], what: impl Fn() -> String) -> (Duration, usize) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let start = Instant::now();
    let ended = std::panic::catch_unwind(|| target(input));
    let time = start.elapsed();
    let taken = MEMORY.peak_usage().saturating_sub(before);
    if ended.is_err() || taken > MOST_MEMORY || time > LONGEST {
        let path = std::env::temp_dir().join("cryptmark-fuzz-input");
        fs::write(&path, input).unwrap();
        let what = what();
        panic!("{what}: {time:?}, {taken} bytes: see {}", path.display());
    }
    (time, taken)
}

/// All targets for a moment each.
pub fn for_a_moment(targets: &[(&str, Target)]) {
    for (name, target) in targets {
        let (longest, most) = drive(name, *target, 3000, 1);
        println!("{name}: the longest {longest:?}, the most memory {most} bytes");
    }
}

/// The target that the environment names, for as long as it says.
pub fn at_length(targets: &[(&str, Target)]) {
    const ROUND: u64 = 1_000_000;
    let number = |name: &str, usual: u64| match std::env::var(name) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => usual,
    };
    let wanted = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let executions = number("FUZZ_EXECUTIONS", ROUND);
    let mut done = number("FUZZ_DONE", 0);
    let names: Vec<&str> = targets.iter().map(|(name, _)| *name).collect();
    let found = targets.iter().find(|(name, _)| *name == wanted);
    let (name, target) = found.unwrap_or_else(|| panic!("the targets are {}", names.join(", ")));
    while done < executions {
        let round = ROUND.min(executions - done);
        let (longest, most) = drive(name, *target, round, done);
        done += round;
        println!(
            "{name}: {done} executions; the longest {longest:?}, the most memory {most} bytes"
        );
    }
}
