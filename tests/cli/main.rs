//! The program as a user meets it: answers, two-line errors, exit codes, no litter.

mod asked;
mod browse;
mod choices;
mod energy;
mod kept;
mod papers;
mod refused;
mod stopped;

use lab::store::{Location, Store};
use std::process::{Command, Output};
use testkit::{Sandbox, two_lines};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// A plan that is done in a second.
const TINY: &str = r#"
title = "a tiny plan"
size = "8 MiB"
repetitions = 5
ciphers = ["aes-xts-plain64"]

[[workload]]
name = "rand-4k-read"
pattern = "random"
op = "read"
block_size = "4 KiB"
seconds = 0.02

[[workload]]
name = "seq-64k-write"
pattern = "sequential"
op = "write"
block_size = "64 KiB"
queue_depth = 4
seconds = 0.02
"#;

/// Where a sandbox's runs are.
const STORE: &str = "data/cryptmark/runs";

/// A sandbox with a plan, and a place to measure.
fn sandbox() -> Sandbox {
    // Not the default folder: that may be memory-backed, and disks are meant here.
    Sandbox::within(env!("CARGO_TARGET_TMPDIR"), PROGRAM)
        .with_directory("at")
        .with_file("tiny.toml", TINY)
}

/// The place to measure must be as empty as it was.
fn assert_no_litter(sandbox: &Sandbox) {
    let left: Vec<_> = std::fs::read_dir(sandbox.path("at")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Runs a shell script in a mount namespace of its own, with a small tmpfs on
/// `at`; `None` where the system does not allow that.
fn in_small_tmpfs(sandbox: &Sandbox, options: &str, script: &str) -> Option<Output> {
    let script = format!("mount -t tmpfs -o {options} none at && {script}");
    let mut command = sandbox.command("unshare", &["-Urm", "sh", "-c", &script]);
    command.env("PROGRAM", PROGRAM);
    let probe = Command::new("unshare")
        .args(["-Urm", "mount", "-t", "tmpfs", "none", "/mnt"])
        .output();
    match probe {
        Ok(probe) if probe.status.success() => Some(command.output().unwrap()),
        _ => {
            println!("skipped: a tmpfs of the test's own (unshare -Urm is not permitted here)");
            None
        }
    }
}

#[test]
fn a_run_is_printed_stored_shown_and_reported() {
    let sandbox = sandbox();
    let table = sandbox.ok(&[
        "run",
        "tiny.toml",
        "--at",
        "at",
        "--html",
        "page.html",
        "--json",
        "run.json",
        "--seed",
        "7",
    ]);
    for word in [
        "Noise floor",
        "rand-4k-read",
        "seq-64k-write",
        "AES-256",
        "plain",
        "Stored as",
    ] {
        assert!(table.contains(word), "{word} is not in\n{table}");
    }
    assert_no_litter(&sandbox);

    let json = sandbox.read_json("run.json");
    assert_eq!(json["schema"], "cryptmark/2");
    assert_eq!(json["partial"], false);
    assert_eq!(json["seed"], 7);
    assert_eq!(json["trials"].as_array().unwrap().len(), 6);
    assert_eq!(json["trials"][1]["cipher"], "aes-xts-plain64");
    assert!(json["trials"][1]["overhead"]["ratio"]["median"].is_f64());

    let id = json["run"].as_str().unwrap();
    assert!(sandbox.ok(&["list"]).contains(id));
    assert!(sandbox.ok(&["show"]).contains("rand-4k-read"));
    assert!(sandbox.ok(&["show", &id[..12]]).contains(id));
    assert!(sandbox.ok(&["report", id]).contains("AES-256"));
    for (file, start) in [
        ("r.html", "<!DOCTYPE html>"),
        ("r.md", "#"),
        ("r.csv", "run,"),
        ("r.json", "{"),
    ] {
        sandbox.ok(&["report", "latest", "-o", file]);
        let text = sandbox.read_text(file);
        assert!(
            text.to_lowercase().starts_with(&start.to_lowercase()),
            "{file}: {}",
            &text[..80]
        );
    }
    assert!(sandbox.path("page.html").exists());

    // The same cells of another run are compared with it.
    sandbox.ok(&["baseline", "set", "before"]);
    assert!(sandbox.ok(&["baseline", "list"]).contains("before"));
    let table = sandbox.ok(&[
        "run",
        "tiny.toml",
        "--at",
        "at",
        "--baseline",
        "before",
        "--fail-if-slower",
        "99",
    ]);
    assert!(table.contains("rand-4k-read"), "{table}");
    assert!(
        sandbox
            .ok(&["compare", "before", "latest"])
            .contains("rand-4k-read")
    );
    sandbox.ok(&["baseline", "rm", "before"]);
    sandbox.fails(2, &["compare", "before", "latest"]);
}

#[test]
fn the_record_goes_to_standard_output_when_asked() {
    let sandbox = sandbox();
    let json = sandbox.ok(&["run", "tiny.toml", "--at", "at", "--json", "-", "--quick"]);
    let record: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(record["trials"][0]["repetitions"], 3);
}

/// A directory is measured as it is, beside the plain device and the engine
/// behind its own file; and nothing is said of its cipher.
#[test]
fn mounted_systems_and_files_of_our_own_are_measured() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.path("vault")).unwrap();
    let systems = [
        "--system",
        "builtin-fuse",
        "--system",
        "path:vault",
        "--system",
        "path:nowhere",
        "--system",
        "path:tiny.toml",
    ];
    let run = ["run", "tiny.toml", "--at", "at", "--quick"];
    let plan = sandbox.ok(&[&run[..], &systems, &["--dry-run"]].concat());
    assert!(
        plan.contains("builtin-fuse aes-xts-plain64, path:vault"),
        "{plan}"
    );
    std::fs::create_dir(sandbox.path("tmp")).unwrap();
    let arguments = [&run[..], &systems, &["--json", "-"]].concat();
    let mut command = sandbox.cryptmark(&arguments);
    let output = command.env("TMPDIR", sandbox.path("tmp")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // Nor can a mount be there.
    assert_eq!(std::fs::read_dir(sandbox.path("tmp")).unwrap().count(), 0);
    let json = String::from_utf8(output.stdout).unwrap();
    let record: serde_json::Value = serde_json::from_str(&json).unwrap();
    let trials = record["trials"].as_array().unwrap();
    let of = |system: &str| trials.iter().filter(|t| t["system"] == system).count();
    let warnings = record["warnings"].to_string();
    let mut expected = vec!["path:vault"];
    match warnings.contains("absent: cannot mount") {
        true => println!("skipped: builtin-fuse: {warnings}"),
        false => expected.push("builtin-fuse"),
    }
    for system in expected {
        assert_eq!(of(system), 2, "{system}: {warnings}");
        let trial = trials.iter().find(|t| t["system"] == system).unwrap();
        assert_eq!(trial["overhead"]["against"], "none");
        assert_eq!(trial["time_s"]["crypto"], serde_json::Value::Null);
    }
    let vault = trials.iter().find(|t| t["system"] == "path:vault").unwrap();
    assert_eq!(vault["cipher"], serde_json::Value::Null);
    assert!(
        warnings.contains("absent: path:nowhere (nowhere does not exist"),
        "{warnings}"
    );
    assert!(warnings.contains("absent: path:tiny.toml"), "{warnings}");
    assert_eq!(std::fs::read_dir(sandbox.path("vault")).unwrap().count(), 0);
    assert_no_litter(&sandbox);
    // The baseline of another run knows it by its name.
    sandbox.ok(&["baseline", "set", "before"]);
    let again = [
        &run[..],
        &["--system", "path:vault", "--baseline", "before"],
    ];
    assert!(sandbox.ok(&again.concat()).contains("path:vault"));
    let ublk = sandbox.fails(
        2,
        &["run", "tiny.toml", "--system", "builtin-ublk", "--at", "at"],
    );
    assert!(ublk.contains("volume serve --ublk"), "{ublk}");
}

/// Of slices the first is under way before who watches hears of it.
#[test]
fn who_watches_sees_rounds_and_costs() {
    let sandbox = sandbox();
    let run = format!("{PROGRAM} run --at at --size 64MB --time 8 --cipher aes > out.txt");
    let terminal = format!("stty cols 100; {run}");
    let script = sandbox
        .command("script", &["-qec", &terminal, "/dev/null"])
        .env("TERM", "xterm")
        .output();
    let shown = match script {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => return println!("skipped: script: {error}"),
    };
    let rounds: Vec<&str> = shown
        .split('\r')
        .filter(|line| line.contains(" round ") && line.contains('%'))
        .collect();
    assert!(rounds.len() > 2, "{shown}");
    for line in rounds {
        assert!(line.contains(" s left at most "), "{line}");
        assert!(!line.contains("B/s"), "{line}");
    }
    // One core, and on most machines all of them below.
    let words: Vec<&str> = shown.split_whitespace().collect();
    // What moves the cursor stands before the first word.
    let costs =
        |four: &[&str]| four[0].ends_with("AES-256") && four[1..] == ["XTS", "large", "transfers"];
    assert!(words.windows(4).any(costs), "{shown}");
    let answer = sandbox.read_text("out.txt");
    assert!(answer.contains("Noise floor"), "{shown}{answer}");
}

/// A cipher that is named alone is what disks have.
#[test]
fn a_name_alone_is_xts() {
    let sandbox = sandbox();
    for (given, expected) in [
        ("aes", "builtin aes-xts-plain64"),
        ("aes-cbc-essiv:sha256", "builtin aes-cbc-essiv:sha256"),
        // It has blocks of 64 bits, and no XTS.
        ("blowfish", "builtin blowfish-cbc-plain"),
    ] {
        let text = sandbox.ok(&["run", "--dry-run", "--cipher", given]);
        let line = text.lines().find(|line| line.starts_with("on: "));
        assert!(line.unwrap().ends_with(expected), "{text}");
    }
}

#[test]
fn memory_is_measured_with_a_warning() {
    let sandbox = sandbox();
    let Some(output) = in_small_tmpfs(
        &sandbox,
        "size=128m",
        "$PROGRAM run tiny.toml --at at --quick",
    ) else {
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("is in memory"), "{table}");
}

#[test]
fn the_cipher_tier_needs_no_disk() {
    let sandbox = sandbox();
    let table = sandbox.ok(&["run", "tiny.toml", "--tier", "cipher", "--quick"]);
    assert!(table.contains("AES-256"), "{table}");
    let plan = sandbox.ok(&["run", "tiny.toml", "--tier", "cipher", "--dry-run"]);
    assert!(plan.contains(" of memory\n"), "{plan}");
    let error = sandbox.fails(
        2,
        &[
            "run",
            "tiny.toml",
            "--cipher",
            "twofish-xts-plain64",
            "--backend",
            "vaes512",
        ],
    );
    assert!(error.contains("portable"), "{error}");
}

/// Stores the latest run again as `id`, with every encrypted rate times `factor`.
fn store_scaled(sandbox: &Sandbox, id: &str, factor: f64) {
    let store = Store::open(&Location::Folder(sandbox.path(STORE))).unwrap();
    let mut run = store.load("latest").unwrap();
    run.run = id.to_owned();
    for trial in run.trials.iter_mut().filter(|t| t.cipher.is_some()) {
        for sample in &mut trial.samples_mb_s {
            *sample *= factor;
        }
    }
    store.begin(&run).unwrap();
    for (ordinal, trial) in run.trials.iter().enumerate() {
        store.put_trials(id, &[(ordinal as u32, trial)]).unwrap();
    }
    store.finish(&run).unwrap();
}

#[test]
fn a_threshold_that_is_exceeded_is_exit_code_5() {
    let sandbox = sandbox();
    sandbox.ok(&["run", "tiny.toml", "--tier", "cipher"]);
    // Far beyond what any noise does to an interval.
    store_scaled(&sandbox, "zz-slow", 1e-3);
    let run = sandbox.ok(&["list"]);
    let fast = run
        .lines()
        .find(|line| !line.starts_with("zz"))
        .and_then(|line| line.split(' ').next())
        .unwrap();
    let output = sandbox.run(&["compare", fast, "zz-slow", "--fail-if-slower", "10"]);
    let error = two_lines(&output, 5, "slower");
    assert!(error.contains("slower by more than 10 %"), "{error}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("slower by"));
    sandbox.ok(&["compare", "zz-slow", fast, "--fail-if-slower", "10"]);
    sandbox.ok(&["compare", fast, "zz-slow"]);
    sandbox.fails(2, &["compare", fast, "zz-slow", "--fail-if-slower", "101"]);
}

#[test]
fn derivations_are_described_and_take_no_cipher() {
    let sandbox = sandbox();
    let text = sandbox.ok(&["run", "kdf", "--dry-run"]);
    assert!(
        text.contains("luks2-argon2id, calibrated to 2000 ms"),
        "{text}"
    );
    assert!(text.contains("veracrypt-pbkdf2-sha512\n"), "{text}");
    for option in ["--cipher=aes-xts-plain64", "--size=1GiB", "--seed=1"] {
        let error = sandbox.fails(2, &["run", "kdf", option]);
        assert!(error.contains("key derivations"), "{error}");
    }
    sandbox.fails(2, &["run", "kdf", "--repeat", "0"]);
    sandbox.fails(2, &["run", "--cores", "0"]);
    assert!(!sandbox.path(STORE).exists());
    assert!(sandbox.ok(&["plans"]).contains("kdf"));
}

#[test]
fn help_man_completions_and_dry_run_need_no_store() {
    let sandbox = sandbox();
    assert!(sandbox.ok(&["--help"]).contains("compare"));
    assert!(sandbox.ok(&["man"]).contains("cryptmark"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(sandbox.ok(&["completions", shell]).contains("cryptmark"));
    }
    let plan = sandbox.ok(&["run", "--dry-run", "--repeat", "2", "--cores", "1"]);
    assert!(plan.contains("40 visits"), "{plan}");
    let plan = sandbox.ok(&["run", "--dry-run", "--repeat", "2"]);
    let visits = match std::thread::available_parallelism().unwrap().get() {
        1 => "40 visits",
        // Large requests of each cipher once more.
        _ => "52 visits",
    };
    assert!(plan.contains(visits), "{plan}");
    assert!(sandbox.ok(&["plans"]).contains("crystaldiskmark"));
    assert!(sandbox.ok(&["plans"]).contains("anvil for storage-ciphers"));
    // What is too long even for three repetitions names a shorter plan.
    let quick = sandbox.ok(&["run", "crypto-fs", "--quick", "--dry-run"]);
    assert!(quick.starts_with("plan crypto-fs-short: "), "{quick}");
    let toml = sandbox.ok(&["plans", "show", "quick"]);
    sandbox.write("mine.toml", toml);
    sandbox.ok(&["run", "mine.toml", "--dry-run"]);
    std::fs::create_dir(sandbox.path("man")).unwrap();
    sandbox.ok(&["man", "--out-dir", "man"]);
    assert!(sandbox.path("man/cryptmark-run.1").exists());
    assert!(!sandbox.path(STORE).exists());
}

#[test]
fn a_dry_run_counts_every_size_of_sectors_and_keys() {
    let sandbox = sandbox();
    let one = [
        "run",
        "--dry-run",
        "--repeat",
        "2",
        "--cores",
        "1",
        "--cipher",
        "aes",
    ];
    let plan = sandbox.ok(&one);
    assert!(plan.contains("24 visits"), "{plan}");
    let sizes = ["--sector-size", "512", "--sector-size", "4096"];
    let plan = sandbox.ok(&[&one[..], &sizes].concat());
    // One set-up more, for each of four workloads twice.
    assert!(plan.contains("32 visits"), "{plan}");
    assert!(
        plan.contains(
            "aes-xts-plain64 (sectors of 512 B), builtin aes-xts-plain64 (sectors of 4096 B)"
        ),
        "{plan}"
    );
    // Six ciphers with two keys each, and the first again, five times in both directions.
    let plan = sandbox.ok(&["run", "cryptsetup-benchmark", "--dry-run"]);
    assert!(plan.contains("130 visits"), "{plan}");
    assert!(plan.contains("serpent-xts-plain64 (256 bit)"), "{plan}");
}

/// A library is present if it can be loaded, and Java if it is found.
#[test]
fn doctor_looks_before_it_says_present() {
    let sandbox = sandbox();
    let mut command = sandbox.cryptmark(&["doctor"]);
    // Whatever root's PATH says, root finds the system's.
    if rustix::process::geteuid().is_root() {
        std::os::unix::process::CommandExt::uid(&mut command, 65534).current_dir("/");
    }
    let output = command
        .env("PATH", sandbox.path("nothing"))
        .env_remove("JAVA_HOME")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("java: absent, java is not installed"),
        "{text}"
    );
}

#[test]
fn doctor_says_what_is_there_and_what_is_missing() {
    let text = sandbox().ok(&["doctor"]);
    for word in [
        "clock",
        "ciphers",
        "portable (not constant-time)",
        "timers cost",
        "io_uring",
        "lab:dm-crypt: measured with --tier fs",
        "builtin: present\n",
        match cfg!(feature = "rustcrypto") {
            // Compiled in, so it has a version everywhere.
            true => "rustcrypto: present, ",
            false => "rustcrypto: absent, rustcrypto is not in this build",
        },
    ] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
}
