//! Plans that print what people know from other programs, in their short form.

use super::sandbox;
use serde_json::Value;

/// The table of cryptsetup, in its order; what reads cryptsetup's reads this too.
#[test]
fn the_table_of_cryptsetup_is_where_it_was() {
    let sandbox = sandbox();
    let short = ["run", "cryptsetup-benchmark", "--quick", "--repeat", "1"];
    let table = sandbox.ok(&short);
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.ends_with("MiB/s") && !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let names: Vec<String> = rows.iter().map(|row| row[..2].join(" ")).collect();
    let mut expected = Vec::new();
    for (mode, bits) in [("cbc", 128), ("cbc", 256), ("xts", 256), ("xts", 512)] {
        for cipher in ["aes", "serpent", "twofish"] {
            expected.push(format!("{cipher}-{mode} {bits}b"));
        }
    }
    assert_eq!(names, expected, "{table}");
    for row in &rows {
        assert_eq!(row.len(), 6, "{row:?}");
    }
    assert!(
        table.contains("#     Algorithm |       Key |      Encryption |      Decryption"),
        "{table}"
    );
    for hash in ["sha1", "sha256", "sha512", "ripemd160", "whirlpool"] {
        let starts = format!("PBKDF2-{hash} ");
        let line = table.lines().find(|line| line.starts_with(&starts));
        let line = line.unwrap_or_else(|| panic!("{hash} is not in\n{table}"));
        assert!(
            line.ends_with("iterations per second for 256-bit key"),
            "{line}"
        );
    }
    for name in ["argon2i ", "argon2id "] {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.ends_with("(requested 200 ms time)"), "{line}");
    }
    sandbox.write("table.txt", &table);
    let said = sandbox.ok(&["import", "table.txt"]);
    assert!(said.contains("24 cells of cryptsetup benchmark"), "{said}");
}

fn rate(run: &Value, workload: &str, cipher: &Value) -> f64 {
    let trials = run["trials"].as_array().unwrap();
    let is_its = |trial: &&Value| trial["workload"] == workload && trial["cipher"] == *cipher;
    let trial = trials.iter().find(is_its).unwrap();
    trial["throughput_mb_s"]["median"].as_f64().unwrap()
}

/// The score that the report prints of `label` under a heading.
fn score(text: &str, heading: &str, label: &str) -> f64 {
    let section = text.lines().skip_while(|line| !line.starts_with(heading));
    let line = section
        .skip(1)
        .find(|line| line.trim_start().starts_with(label));
    let line = line.unwrap_or_else(|| panic!("{label} of {heading} is not in\n{text}"));
    let word = line.split_once(": ").unwrap().1.split(' ').next().unwrap();
    word.trim_end_matches(';').replace(',', "").parse().unwrap()
}

/// The published formula on the rates of the same run.
#[test]
fn scores_of_as_ssd_follow_from_the_rates() {
    let sandbox = sandbox();
    let arguments = ["--quick", "--repeat", "1", "--json", "run.json"];
    let drive = ["--system", "drive:mlc-128g", "--cpu", "aes=300MB/s"];
    let cipher = ["--cipher", "aes-xts-plain64"];
    let text = sandbox.ok(&[&["run", "as-ssd"], &arguments[..], &drive, &cipher].concat());
    let run = sandbox.read_json("run.json");
    let encrypted = Value::from("aes-xts-plain64");
    for (label, cipher) in [("plain", &Value::Null), ("AES-256", &encrypted)] {
        let rate = |workload| rate(&run, workload, cipher);
        let reads = 0.1 * rate("seq-16m-read") + rate("rand-4k-read") + rate("rand-4k-64thrd-read");
        let writes =
            0.1 * rate("seq-16m-write") + rate("rand-4k-write") + rate("rand-4k-64thrd-write");
        let all = reads
            + writes
            + rate("rand-4k-read")
            + 0.05 * rate("seq-16m-write")
            + 0.5 * rate("rand-4k-64thrd-read");
        for (heading, expected) in [
            ("AS SSD read score", reads),
            ("AS SSD write score", writes),
            ("AS SSD score", all),
        ] {
            let printed = score(&text, heading, label);
            // Three digits are printed.
            assert!(
                (printed / expected - 1.0).abs() < 0.006,
                "{heading}: {printed} for {expected}"
            );
        }
    }
}

/// The whitepaper's composite beside what it prints, on a disk as slow as its own.
#[test]
fn the_disk_mark_stands_beside_the_published_one() {
    let sandbox = sandbox();
    let plan = ["run", "fde-passmark", "--quick", "--json", "run.json"];
    let drive = ["--system", "drive:hdd-desktop-2003", "--cpu", "aes=50MB/s"];
    let cipher = ["--cipher", "aes-xts-plain64"];
    let text = sandbox.ok(&[&plan[..], &drive, &cipher].concat());
    let run = sandbox.read_json("run.json");
    let rate = |workload| rate(&run, workload, &Value::Null);
    let mean = (rate("seq-16k-read") + rate("seq-16k-write") + rate("rand-16k-rw")) / 3.0;
    let printed = score(&text, "Disk Mark", "plain");
    assert!(
        (printed / (mean * 10.85) - 1.0).abs() < 0.02,
        "{printed} for {mean}"
    );
    let rating = score(&text, "PassMark rating", "plain");
    assert!(
        (rating / printed - 0.2).abs() < 0.002,
        "{rating} of {printed}"
    );
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in [
        "published 168.7",
        "published 33.7",
        "published -2.9 %",
        "Preparation",
    ] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
}

/// A drive so small that its whole life is over in a second.
fn small_drive() -> String {
    let drive = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/answers/small-ssd.toml");
    format!("drive:{drive}")
}

#[test]
fn snias_tests_run_in_short() {
    let sandbox = sandbox();
    let drive = small_drive();
    let short = [
        "run", "snia", "--quick", "--size", "64MB", "--json", "run.json",
    ];
    let text = sandbox.ok(&[&short[..], &["--system", &drive, "--cpu", "aes=500MB/s"]].concat());
    let run = sandbox.read_json("run.json");
    assert_eq!(run["conditioning"]["precondition"], 2);
    assert_eq!(run["conditioning"]["purged"], true);
    let trials = run["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 11 * 3);
    for trial in trials {
        assert_eq!(trial["repetitions"], 5, "{trial}");
        assert!(trial["steady_state"].is_boolean(), "{trial}");
    }
    for word in [
        "Steady state: before each test everything was discarded",
        "  throughput",
        "tp-1m-write, plain",
    ] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
    // On a file of this machine as well, whatever it does there.
    let plan = sandbox
        .ok(&["plans", "show", "snia"])
        .replace("2.0\n", "0.01\n");
    sandbox.write("brief.toml", plan);
    let brief = [
        "run",
        "brief.toml",
        "--repeat",
        "5",
        "--size",
        "32MiB",
        "--at",
        "at",
    ];
    let text = sandbox.ok(&brief);
    assert!(text.contains("in the last 5 of 5 rounds"), "{text}");
    assert_eq!(std::fs::read_dir(sandbox.path("at")).unwrap().count(), 0);
    assert!(
        sandbox
            .fails(2, &["run", "snia", "--repeat", "4"])
            .contains("5")
    );
}

const WRITES: &str = r#"
title = "random writes"
size = "64 MB"
repetitions = 25
ciphers = ["aes-xts-plain64"]

[steady]
precondition = 2
[[steady.test]]
name = "IOPS"
workloads = ["write"]
tracked = ["write"]

[[workload]]
name = "write"
pattern = "random"
op = "write"
block_size = "4 KiB"
queue_depth = 32
seconds = 0.2
"#;

/// Rounds build on each other: the drive gets slower than it is when it is new,
/// until it is steady.
#[test]
fn a_drive_is_measured_when_it_is_steady() {
    let sandbox = sandbox();
    sandbox.write("steady.toml", WRITES);
    let (head, tail) = WRITES.split_once("[steady]").unwrap();
    let workload = tail.split_once("[[workload]]").unwrap().1;
    sandbox.write("fresh.toml", format!("{head}[[workload]]{workload}"));
    let drive = small_drive();
    let run = |plan, rounds| {
        let arguments = [
            "run", plan, "--repeat", rounds, "--seed", "1", "--json", "-",
        ];
        sandbox.json(
            &[
                &arguments[..],
                &["--system", &drive, "--cpu", "aes=500MB/s"],
            ]
            .concat(),
        )
    };
    let (steady, fresh) = (run("steady.toml", "25"), run("fresh.toml", "5"));
    let samples = |run: &Value| -> Vec<f64> {
        let samples = run["trials"][0]["samples_mb_s"].as_array().unwrap();
        samples.iter().map(|rate| rate.as_f64().unwrap()).collect()
    };
    let rounds = samples(&steady);
    assert!((5..25).contains(&rounds.len()), "{rounds:?}");
    assert_eq!(steady["trials"][0]["steady_state"], true);
    let last = rounds[rounds.len() - 5..].iter().sum::<f64>() / 5.0;
    let new = samples(&fresh)[0];
    assert!(last < 0.8 * new, "{last} and {new}: {rounds:?}");
    // The plain side's two visits are of two drives with the same past.
    let again = steady["noise"]["aa_ratio"]["median"].as_f64().unwrap();
    assert!((0.98..1.02).contains(&again), "{again}");
}

/// Whatever `cryptmark plans` lists is run in short by a test.
#[test]
fn every_plan_runs_in_short() {
    /// Where others are: with what must come out, or what they need.
    const ELSEWHERE: &[(&str, &str)] = &[
        ("cryptsetup-benchmark", "here"),
        ("snia", "here"),
        ("java-os", "tests/cli/papers.rs"),
        ("storage-ciphers", "tests/cli/papers.rs"),
        ("fde-passmark", "tests/cli/papers.rs"),
        ("ssd-truecrypt", "tests/cli/papers.rs"),
        ("kdf", "here, as far as cryptsetup-benchmark has it"),
        (
            "crypto-fs",
            "tests/file_systems/paper.rs, as crypto-fs-short",
        ),
        ("crypto-fs-short", "tests/file_systems/paper.rs"),
        ("file-systems", "tests/file_systems/short.rs"),
        ("dm-crypt-options", "tests/file_systems/short.rs"),
        ("integrity", "tests/file_systems/short.rs"),
        ("file-encryption", "tests/file_systems/short.rs"),
    ];
    let sandbox = sandbox();
    let listed = sandbox.ok(&["plans"]);
    let names = listed.lines().take_while(|line| !line.is_empty());
    let names: Vec<&str> = names.filter_map(|line| line.split(' ').next()).collect();
    let mut run = Vec::new();
    for name in names {
        if ELSEWHERE.iter().any(|(elsewhere, _)| *elsewhere == name) {
            run.push(name);
            continue;
        }
        let short = ["run", name, "--quick", "--repeat", "1", "--json", "-"];
        let one = ["--cipher", "aes-xts-plain64", "--size", "64MB"];
        let at: &[&str] = match name.contains("ciphers") && name != "storage-ciphers" {
            true => &[],
            false => &["--at", "at"],
        };
        let record = sandbox.json(&[&short[..], &one, at].concat());
        let trials = record["trials"].as_array().unwrap();
        let encrypted = |trial: &&Value| trial["cipher"] == "aes-xts-plain64";
        assert!(trials.iter().any(|trial| encrypted(&trial)), "{name}");
        assert_eq!(record["partial"], false, "{name}");
        run.push(name);
    }
    for (elsewhere, _) in ELSEWHERE {
        assert!(run.contains(elsewhere), "{elsewhere} is no longer a plan");
    }
}
