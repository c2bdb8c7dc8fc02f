//! What the figures mean, as a user asks for it: advice, and plans whose tables
//! and scores people know from other programs.

mod advice;
mod plans;

use testkit::Sandbox;

/// A sandbox with a place to measure, `at`.
fn sandbox() -> Sandbox {
    // Not the default folder: that may be memory-backed, and disks are meant here.
    let parent = env!("CARGO_TARGET_TMPDIR");
    Sandbox::within(parent, env!("CARGO_BIN_EXE_cryptmark")).with_directory("at")
}
