//! The file-system paper's experiment in the lab kernel, in its short form.

use crate::record;
use crate::sandbox::{is_clean, measure, sandbox};
use lab::kernel::{Lab, Version};
use serde_json::Value;
use std::collections::BTreeSet;

const SHORT: &str = include_str!("../../crates/lab/plans/crypto-fs-short.toml");

/// Every system under every file system, with the times that only the kernel
/// itself can tell.
#[test]
fn the_paper_is_repeated_in_short() {
    let Some(sandbox) = sandbox() else { return };
    if let Err(error) = Lab::find(Version::V5_10) {
        println!(
            "skipped: file systems in the lab kernel: {error} (cargo xtask install lab-kernel)"
        );
        return;
    }
    let run = record(
        &measure(&sandbox, SHORT)
            .args(["--json", "-"])
            .output()
            .unwrap(),
    );
    assert_eq!(is_clean(&sandbox), Ok(()));
    let warnings = run["warnings"].to_string();
    assert!(!warnings.contains("absent"), "{warnings}");
    assert_eq!(run["partial"], false);

    let trials = run["trials"].as_array().unwrap();
    let cells: BTreeSet<String> = trials
        .iter()
        .map(|trial| {
            let cipher = trial["cipher"].as_str().unwrap_or("plain");
            format!("{} {cipher} {}", trial["system"], trial["operation"]["fs"])
        })
        .collect();
    // Plain, and three systems with two ciphers, under three file systems.
    assert_eq!(cells.len(), 7 * 3, "{cells:?}");
    for trial in trials {
        let text = |name: &str| trial[name].as_str().unwrap_or_default();
        let (system, op) = (text("system"), text("op"));
        let what = format!(
            "{system} {} {} {}",
            text("cipher"),
            trial["operation"]["fs"].as_str().unwrap_or_default(),
            text("workload")
        );
        assert_eq!(trial["repetitions"], 3, "{what}");
        let time = |part: &str| trial["time_s"][part].as_f64();
        assert!(
            time("user").is_some() && time("sys").is_some(),
            "{what}: no ticks here"
        );
        match (system, op) {
            ("lab:none", _) => assert_eq!(time("crypto"), None, "{what}"),
            (_, "mkfs" | "read" | "write") => {
                assert!(time("crypto").is_some_and(|crypto| crypto > 0.0), "{what}");
            }
            _ => {}
        }
        // Two ciphers of the paper's five; its first table names none.
        let published = trial["published"].as_array().unwrap();
        let crypto = |figure: &&Value| figure["measure"] == "crypto";
        match (
            system,
            trial["operation"]["fs"].as_str().unwrap_or_default(),
            text("workload"),
        ) {
            ("lab:dm-crypt" | "lab:cryptoloop", "ext2", "read-1m") => {
                assert_eq!(published.len(), 1, "{what}");
                let there = match (system, text("cipher")) {
                    ("lab:dm-crypt", "aes-cbc-plain") => 0.0153,
                    ("lab:dm-crypt", _) => 0.0414,
                    (_, "aes-cbc-plain") => 0.0144,
                    _ => 0.0406,
                };
                assert_eq!(published[0]["value"], there, "{what}");
                let samples = trial["operation"]["samples_crypto_s"].as_array().unwrap();
                assert_eq!(samples.len(), 3, "{what}");
            }
            ("lab:dm-crypt", "jffs2", _) if text("cipher") == "aes-cbc-plain" => {
                assert_eq!(published.len(), 2, "{what}");
                assert_eq!(published.iter().filter(crypto).count(), 1, "{what}");
            }
            ("lab:none" | "lab:builtin-fuse", ..) => assert!(published.is_empty(), "{what}"),
            _ => {}
        }
    }
    assert_eq!(run["paper"]["base"], "aes");
}
