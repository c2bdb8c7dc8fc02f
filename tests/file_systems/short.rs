//! The plans of file systems that ship, in short.

use crate::record;
use crate::sandbox::{is_clean, measure, sandbox};
use lab::kernel::{Lab, Version};
use serde_json::Value;
use std::collections::BTreeSet;
use testkit::Sandbox;

const FILE_SYSTEMS: &str = include_str!("../../crates/lab/plans/file-systems.toml");
const FILES: &str = include_str!("../../crates/lab/plans/file-encryption.toml");
const OPTIONS: &str = include_str!("../../crates/lab/plans/dm-crypt-options.toml");
const INTEGRITY: &str = include_str!("../../crates/lab/plans/integrity.toml");

/// The systems that were measured, each with its options.
fn systems(sandbox: &Sandbox, plan: &str, arguments: &[&str]) -> BTreeSet<(String, String)> {
    let short = ["--quick", "--repeat", "1", "--json", "-"];
    let output = measure(sandbox, plan)
        .args(short)
        .args(arguments)
        .output()
        .unwrap();
    let run = record(&output);
    assert_eq!(is_clean(sandbox), Ok(()));
    assert_eq!(run["partial"], false);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let trials = run["trials"].as_array().unwrap().iter();
    trials
        .map(|trial| (text(&trial["system"]), text(&trial["backend"])))
        .collect()
}

#[test]
fn what_file_systems_cost_here() {
    let Some(sandbox) = sandbox() else { return };
    let one = ["--cipher", "aes-xts-plain64", "--size", "128MB"];
    let systems = systems(&sandbox, FILE_SYSTEMS, &one);
    for system in ["none", "builtin-fuse"] {
        let measured = systems.iter().any(|(measured, _)| measured == system);
        assert!(measured, "{systems:?}");
    }
}

#[test]
fn what_encryption_of_files_costs_here() {
    let Some(sandbox) = sandbox() else { return };
    if !block::program::is_there("gocryptfs") {
        println!("skipped: file systems: there is no gocryptfs");
        return;
    }
    let systems = systems(&sandbox, FILES, &["--system", "gocryptfs"]);
    assert_eq!(systems.len(), 2, "{systems:?}");
}

#[test]
fn what_options_of_dm_crypt_cost_in_the_lab() {
    let Some(sandbox) = sandbox() else { return };
    if let Err(error) = Lab::find(Version::V5_10) {
        println!(
            "skipped: file systems in the lab kernel: {error} (cargo xtask install lab-kernel)"
        );
        return;
    }
    // Plain, and a row of each line of options, the first without any.
    for (plan, rows) in [(OPTIONS, 11), (INTEGRITY, 7)] {
        let systems = systems(&sandbox, plan, &["--system", "lab:dm-crypt"]);
        assert_eq!(systems.len(), rows, "{systems:?}");
    }
}
