//! `cryptmark drive sweep`: lives of many drives as a user meets them.

use serde_json::Value;
use testkit::Sandbox;

/// A drive of which a life takes a moment, and two fills of it.
const SWEEP: &str = r#"
title = "a small SSD, full and not"
devices = ["small.toml"]
policies = ["pass", "block"]
fills = ["60%", "90%"]
seeds = 3
daily = "1 GB"
years = 0.1
ciphers = ["aes-xts-plain64"]
cpu = { aes = "1500MB/s" }

[[workload]]
name = "rand-4k-write"
pattern = "random"
op = "write"
block_size = "4 KiB"
bytes = "8 MiB"
"#;

/// A sandbox with the specification and the drive.
fn sandbox() -> Sandbox {
    let shown = String::from_utf8(crate::run_drive(&["show", "mlc-128g"]).stdout).unwrap();
    let small = shown
        .replace("\"128 GB\"", "\"256 MB\"")
        .replace("\"8 KiB\"", "\"4 KiB\"")
        .replace("pages_per_block = 256", "pages_per_block = 64")
        .replace("channels = 8", "channels = 2")
        .replace("chips_per_channel = 4", "chips_per_channel = 1");
    crate::sandbox()
        .with_file("small.toml", small)
        .with_file("small-sweep.toml", SWEEP)
}

/// What is the same in two runs: neither their names nor the machine.
fn trials(json: &str) -> Value {
    serde_json::from_str::<Value>(json).unwrap()["trials"].clone()
}

#[test]
fn a_sweep_is_stored_and_read_like_any_run() {
    let sandbox = sandbox();
    let told = sandbox.ok(&["drive", "sweep", "small-sweep.toml", "--dry-run"]);
    assert!(told.contains("2 fills, 3 seeds: 2 places"), "{told}");
    assert!(
        told.contains("12 lives") && told.contains("about "),
        "{told}"
    );
    assert!(sandbox.ok(&["list"]).contains("No runs"));

    let sweep = ["drive", "sweep", "small-sweep.toml", "--no-progress"];
    let json = sandbox.ok(&[&sweep[..], &["--json", "-"]].concat());
    let all = trials(&json);
    assert_eq!(all.as_array().unwrap().len(), 2 * 3);
    assert_eq!(all[2]["life"]["policy"], "block");
    assert_eq!(all[2]["life"]["lifetime_years"]["n"], 3);
    let text = sandbox.ok(&sweep);
    for words in ["Stored as", "flash writes", "TRIM blocked", "90 % full"] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    let again = sandbox.ok(&["show", "latest", "--json"]);
    assert_eq!(trials(&again), all, "the same seeds, the same lives");

    let list = sandbox.ok(&["list"]);
    let ids: Vec<&str> = list
        .lines()
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert_eq!(ids.len(), 2);
    for (file, words) in [
        ("lives.html", "How long the drives last"),
        ("lives.md", "How long the drives last"),
        ("lives.csv", "lifetime_years"),
    ] {
        sandbox.ok(&["report", ids[0], "-o", file]);
        let page = sandbox.read_text(file);
        assert!(page.contains(words), "{file}");
    }
    let compared = sandbox.ok(&["compare", ids[0], ids[1]]);
    assert!(compared.contains("Of 6 cells in both runs"), "{compared}");
    assert!(compared.contains("small.toml, 60"), "{compared}");
}

#[test]
fn hosts_share_a_sweep() {
    let sandbox = sandbox();
    let cut = [
        "fleet",
        "plan",
        "small-sweep.toml",
        "--hosts",
        "2",
        "--seed",
        "5",
    ];
    let told = sandbox.ok(&[&cut[..], &["-o", "shared.toml"]].concat());
    assert!(told.contains("small-sweep has 2 shards"), "{told}");
    for shard in ["2/2", "1/2"] {
        sandbox.ok(&["run", "shared.toml", "--shard", shard, "--no-progress"]);
    }
    let again = sandbox.ok(&["run", "shared.toml", "--shard", "1/2"]);
    assert!(again.contains("stored already"), "{again}");
    let shared = sandbox.ok(&["show", "small-sweep", "--json"]);
    let sweep = [
        "drive",
        "sweep",
        "small-sweep.toml",
        "--seed",
        "5",
        "--no-progress",
    ];
    let single = sandbox.ok(&[&sweep[..], &["--json", "-"]].concat());
    assert_eq!(trials(&shared), trials(&single));

    let refused = sandbox.run(&["fleet", "plan", "small-sweep.toml", "--hosts", "3"]);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    assert!(errors.contains("Ask for at most 2"), "{errors}");
}

#[test]
fn faults_of_sweeps_are_told_in_two_lines() {
    let sandbox = sandbox();
    sandbox.write("wrong.toml", SWEEP.replace("fills", "fill"));
    sandbox.write("disk.toml", SWEEP.replace("small.toml", "hdd-wd"));
    sandbox.write("huge.toml", SWEEP.replace("seeds = 3", "seeds = 1000001"));
    for (arguments, says) in [
        (vec!["drive", "sweep", "wrong.toml"], "line 5"),
        (vec!["drive", "sweep", "disk.toml"], "hdd-wd is a disk"),
        (vec!["drive", "sweep", "huge.toml"], "1000000"),
        (vec!["drive", "sweep", "/nowhere.toml"], "/nowhere.toml"),
        (vec!["drive", "sweep", "quick"], "cryptmark run quick"),
        (
            vec!["drive", "sweep", "small-sweep.toml", "--resume"],
            "no interrupted run",
        ),
    ] {
        let output = sandbox.run(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(
            errors.starts_with("error: ") && errors.contains(says),
            "{arguments:?}: {errors}"
        );
        assert_eq!(errors.trim_end().lines().count(), 2, "{errors}");
    }
}
