//! What `cargo xtask constant-time` found, counted.

use super::grouped;
use super::stored::Runs;

/// The column that says what was found.
const FOUND: usize = 5;

/// Two sentences on all combinations of cipher, mode, IV and backend.
pub(super) fn sentences(runs: &Runs) -> String {
    let lines = runs.constant_time.lines();
    let found = lines.filter(|line| !line.starts_with('#'));
    let found: Vec<&str> = found
        .filter_map(|line| line.split('\t').nth(FOUND))
        .collect();
    if found.is_empty() {
        return String::new();
    }
    let clean = found.iter().filter(|found| **found == "clean").count();
    let count = |count: usize| grouped(&count.to_string());
    format!(
        "Of {} combinations of cipher, mode, IV and backend, {} are constant-time. The others look\n\
         up tables.\n",
        count(found.len()),
        count(clean),
    )
}
