//! The package for aarch64.

use super::build;
use crate::emulated::{AARCH64, add_library, has_library};
use crate::root;
use crate::tests::Ran;
use std::path::Path;

/// Builds a wheel for aarch64.
pub fn run(tools: &Path, profile: &[&str], ran: &mut Ran) -> bool {
    if !has_library(AARCH64.target) && !add_library(AARCH64.target) {
        let what = "Rust's standard library is missing";
        ran.skipped.push(format!("Python for aarch64: {what}"));
        return true;
    }
    let folder = root().join("target/python/wheels-aarch64");
    let target = [profile, &["--target", AARCH64.target]].concat();
    build(tools, &folder, &target).is_some()
}
