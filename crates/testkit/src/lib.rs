//! Helpers that the tests of the program share: a directory of their own, programs run in it,
//! checks of how those ended, servers of web pages, and browsers.
//!
//! Only tests depend on it, and it depends on no other crate of this workspace.

mod arguments;
#[cfg(target_os = "linux")]
pub mod browser;
mod expect;
mod pages;
mod running;
mod sandbox;

pub use arguments::Arguments;
pub use expect::{Expect, two_lines};
pub use pages::{Pages, status};
pub use running::Running;
pub use sandbox::Sandbox;

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options that make a key derivation cheap, for tests of something else.
pub const CHEAP: &str = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000";

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `done` is true, and panics with `failure` if that takes more than two minutes.
#[track_caller]
pub fn wait_until(failure: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{failure}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether all of `programs` are installed; prints which one is missing and skips the test.
pub fn have(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let is_missing = |program: &&&str| !folders.iter().any(|at| at.join(program).is_file());
    let missing = programs.iter().find(is_missing);
    if let Some(program) = missing {
        println!("skipped: there is no {program}");
    }
    missing.is_none()
}

/// `length` bytes in which no two sectors are equal, the same for the same `seed`.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    // Xorshift64 with Marsaglia's shifts; a state of zero would stay zero.
    let mut state = (seed << 1 | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
