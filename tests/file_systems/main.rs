//! File systems on encrypted devices, measured on this kernel as root: what a
//! run records, how it fails, and that nothing of it stays.

mod encrypted_files;
mod ending;
mod in_lab;
mod paper;
mod sandbox;
mod short;

use sandbox::{PLAN, PROGRAM, is_clean, kernel_has, measure, sandbox, temporary};
use serde_json::Value;
use std::process::{Command, Output};
use testkit::{Expect as _, Sandbox, two_lines};

fn record(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    match run {
        Value::Array(mut runs) => runs.remove(0),
        run => run,
    }
}

#[test]
fn a_run_times_every_operation_plain_and_encrypted() {
    let Some(sandbox) = sandbox() else { return };
    let run = record(
        &measure(&sandbox, PLAN)
            .args(["--json", "-"])
            .output()
            .unwrap(),
    );
    assert_eq!(is_clean(&sandbox), Ok(()));
    assert_eq!(temporary(&sandbox), 0);

    let trials = run["trials"].as_array().unwrap();
    let operations = PLAN.matches("[[operation]]").count();
    assert_eq!(
        trials.len(),
        3 * operations,
        "plain, encrypted, plain again"
    );
    for trial in trials {
        let what = format!("{} on {}", trial["workload"], trial["system"]);
        assert_eq!(
            (&trial["tier"], &trial["operation"]["fs"]),
            (&"fs".into(), &"ext2".into())
        );
        assert_eq!(trial["repetitions"], 2, "{what}");
        assert_eq!(
            trial["operation"]["samples_s"].as_array().unwrap().len(),
            2,
            "{what}"
        );
        assert!(trial["time_s"]["wall"].as_f64().unwrap() > 0.0, "{what}");
        assert!(trial["time_s"]["cpu"].as_f64().is_some(), "{what}");
        let crypto = trial["time_s"]["crypto"].as_f64();
        match trial["system"].as_str().unwrap() {
            "none" => assert_eq!(crypto, None, "{what}"),
            system => {
                assert_eq!(system, "builtin-fuse");
                assert_eq!(trial["cipher"], "aes-cbc-plain");
                assert!(trial["backend"].is_string(), "{what}");
                assert_eq!(trial["overhead"]["against"], "none");
                if ["write", "read", "copy", "mkfs"].contains(&trial["op"].as_str().unwrap()) {
                    let wall = trial["time_s"]["wall"].as_f64().unwrap();
                    assert!(crypto.is_some_and(|c| c > 0.0 && c < 64.0 * wall), "{what}");
                }
            }
        }
    }
    let of = |name: &str| {
        let found = trials.iter().find(|trial| trial["workload"] == name);
        found.unwrap()
    };
    for name in ["none", "builtin-fuse"] {
        let cold = |op: &str| {
            let found = trials
                .iter()
                .find(|trial| trial["op"] == op && trial["system"] == name);
            found.unwrap()["operation"]["moved"].clone()
        };
        // Nothing was left in a cache: both repetitions have reached the device,
        // or the engine, with all of their 3 MB.
        for (op, bytes) in [("read", "read_bytes"), ("write", "written_bytes")] {
            let moved = cold(op)[bytes].as_u64().unwrap();
            assert!(moved >= 6_000_000, "{name}: {op} {moved}");
        }
    }
    assert_eq!(of("copy")["bytes"], 6_000_000);
    assert_eq!(of("stat")["requests"], 40);
    assert!(of("own")["latency_us"]["p50"].as_f64().unwrap() >= 50_000.0);
    let encrypted_read = trials
        .iter()
        .find(|trial| trial["op"] == "read" && trial["system"] == "builtin-fuse");
    let moved = &encrypted_read.unwrap()["operation"]["moved"];
    let read_bytes = moved["read_bytes"].as_u64().unwrap();
    advised(&sandbox, operations, read_bytes);
}

/// What `advise` makes of the run in the store, whose two encrypted reads moved
/// `read_bytes` bytes.
fn advised(sandbox: &Sandbox, operations: usize, read_bytes: u64) {
    let spec = r#"
title = "a slow box"
clock_mhz = 1000
speed = 0.5
[device]
read_mb_s = 10
write_mb_s = 5
[[cipher]]
name = "serpent-cbc-plain"
key_size = 256
encrypt = 40
decrypt = 30
[[cipher]]
name = "aes-cbc-plain"
key_size = 256
"#;
    let advise = |spec: &str, json: bool| {
        sandbox.write("spec.toml", spec);
        let mut command = sandbox.cryptmark("advise --target spec.toml");
        command.args(json.then_some("--json"));
        command.output().unwrap()
    };
    let answer = record(&advise(spec, true));
    let estimates = answer["estimates"].as_array().unwrap();
    assert_eq!(estimates.len(), 3 * operations, "plain and two ciphers");
    let of = |operation: &str, cipher: Option<&str>| {
        let found = estimates
            .iter()
            .find(|e| e["operation"] == operation && e["cipher"].as_str() == cipher);
        found.unwrap()
    };
    let number = |value: &Value| value.as_f64().unwrap();
    // At least 3 MB at 10 MB/s. The kernel may read ahead, but no more than it
    // says. Each byte takes 30 cycles at 1 GHz, which is 0.3 of its transfer.
    let read = of("read", Some("serpent-cbc-plain"));
    let (device, crypto) = (number(&read["device_s"]), number(&read["crypto_s"]));
    let most = read_bytes as f64 / 10e6;
    assert!((0.3..=most).contains(&device), "{most} {read}");
    assert!((0.29..0.31).contains(&(crypto / device)), "{read}");
    assert_eq!(read["recorded_with"], serde_json::json!(["aes-cbc-plain"]));
    assert_eq!(number(&of("read", None)["crypto_s"]), 0.0);
    assert_eq!(answer["costs"][1]["measured"], true);

    let table = advise(spec, false);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(
        table.contains("a slow box") && table.contains("measured here"),
        "{table}"
    );

    for (from, to, told) in [
        (
            "read_mb_s = 10",
            "read_mb_s = 0",
            "read_mb_s = 0 is not possible",
        ),
        ("clock_mhz", "clock_ghz", "spec.toml, line 3"),
        ("serpent-cbc", "snake-cbc", "snake"),
        ("speed", "run = \"nothing\"\nspeed", "nothing"),
    ] {
        let said = two_lines(&advise(&spec.replacen(from, to, 1), false), 2, from);
        assert!(said.contains(told), "{said}");
    }
}

/// Every ratio is known to half of all there is as soon as there is an interval.
#[test]
fn rounds_end_when_all_is_decided() {
    let Some(sandbox) = sandbox() else { return };
    let mut run = measure(&sandbox, PLAN);
    run.args(["--op", "sleep 0.2", "--precision", "50", "--time", "86400"]);
    let run = record(&run.args(["--json", "-"]).output().unwrap());
    assert_eq!(is_clean(&sandbox), Ok(()));
    assert_eq!(run["partial"], false);
    for trial in run["trials"].as_array().unwrap() {
        let rounds = trial["repetitions"].as_u64().unwrap();
        assert!((8..1000).contains(&rounds), "{trial}");
    }
    let mut short = measure(&sandbox, PLAN);
    short.args(["--op", "sleep 0.1", "--precision", "0.1", "--time", "1"]);
    let run = record(&short.args(["--json", "-"]).output().unwrap());
    assert_eq!(is_clean(&sandbox), Ok(()));
    let trials = run["trials"].as_array().unwrap();
    assert_eq!((trials.len(), &run["partial"]), (3, &false.into()));
    assert!(trials.iter().all(|trial| trial["repetitions"] != 1000));
}

#[test]
fn several_do_the_same_at_a_time_in_a_warm_cache() {
    let Some(sandbox) = sandbox() else { return };
    let plan = PLAN.replacen("repetitions = 2", "repetitions = 1\ncache = \"warm\"", 1);
    let mut run = measure(&sandbox, &plan);
    let run = record(&run.args(["--jobs", "3", "--json", "-"]).output().unwrap());
    assert_eq!(is_clean(&sandbox), Ok(()));
    let trials = run["trials"].as_array().unwrap();
    let write = trials.iter().find(|trial| trial["workload"] == "write");
    assert_eq!(write.unwrap()["bytes"], 9_000_000);
    assert!(
        trials
            .iter()
            .all(|trial| trial["threads"] == 3 && trial["cold"] == false)
    );
}

#[test]
fn an_own_command_is_an_operation() {
    let Some(sandbox) = sandbox() else { return };
    let mut run = measure(&sandbox, PLAN);
    let run = run.args(["--op", "echo x > y", "--repeat", "1", "--json", "-"]);
    let run = record(&run.output().unwrap());
    let trials = run["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 3);
    assert!(trials.iter().all(|trial| trial["workload"] == "echo x > y"));

    let failing = measure(&sandbox, PLAN)
        .args(["--op", "echo no >&2; false"])
        .output();
    let said = two_lines(&failing.unwrap(), 1, "--op");
    assert!(said.contains("failed: no"), "{said}");
    assert_eq!(is_clean(&sandbox), Ok(()));
}

#[test]
fn other_file_systems_are_made_where_the_host_has_them() {
    let Some(sandbox) = sandbox() else { return };
    for (name, size) in [
        ("ext4", "32 MiB"),
        ("xfs", "320 MiB"),
        ("btrfs", "128 MiB"),
        ("f2fs", "64 MiB"),
    ] {
        let missing = Command::new(format!("mkfs.{name}"))
            .arg("-V")
            .output()
            .is_err();
        if missing || !kernel_has(name) {
            println!("skipped: {name}: the kernel or its program is not there");
            continue;
        }
        let plan = PLAN
            .replacen("ext2", name, 1)
            .replacen("32 MiB", size, 1)
            .replacen("repetitions = 2", "repetitions = 1", 1);
        let run = record(
            &measure(&sandbox, &plan)
                .args(["--json", "-"])
                .output()
                .unwrap(),
        );
        assert_eq!(run["trials"][0]["operation"]["fs"], name);
        assert_eq!(is_clean(&sandbox), Ok(()), "{name}");
    }
}

#[test]
fn failures_say_what_and_what_to_do() {
    let Some(sandbox) = sandbox() else { return };
    let said = |command: &mut Command, code: i32| command.fails(code);

    let small = PLAN
        .replacen("ext2", "ext4", 1)
        .replacen("32 MiB", "4 MiB", 1);
    let small = small.replace("3 MB", "100 kB").replace("1 MB", "100 kB");
    let told = said(&mut measure(&sandbox, &small), 1);
    assert!(
        told.contains("at least 8388608") && told.contains("a size of 8388608"),
        "{told}"
    );

    // As much as the device has, and no room for the file system's own.
    let full = PLAN.replacen("\"3 MB\"", "\"32 MiB\"", 1);
    let told = said(&mut measure(&sandbox, &full), 1);
    assert!(told.contains("\"write\" do not fit into ext2"), "{told}");

    let told = said(
        &mut measure(&sandbox, &PLAN.replacen("\"3 MB\"", "\"40 MB\"", 1)),
        2,
    );
    assert!(told.contains("test extent"), "{told}");

    // Root looks in the system's folders alone: there it is missing for a while.
    let mut without = Command::new("unshare");
    without.args(["--mount", "sh", "-c"]);
    without.arg(
        "mount --bind /usr/sbin /mnt && mount -t tmpfs none /usr/sbin && ln -s /mnt/* /usr/sbin/ \
         && rm /usr/sbin/mkfs.ext2 && exec \"$0\" \"$@\"",
    );
    let whole = measure(&sandbox, PLAN);
    without.arg(whole.get_program()).args(whole.get_args());
    let told = said(&mut sandbox.prepare(without), 1);
    assert!(
        told.contains("mkfs.ext2 is not installed") && told.contains("e2fsprogs"),
        "{told}"
    );

    if !std::path::Path::new("/sys/module/dm_crypt").exists() {
        let told = said(measure(&sandbox, PLAN).args(["--system", "dm-crypt"]), 2);
        assert!(
            told.contains("no dm-crypt") && told.contains("modprobe dm-crypt"),
            "{told}"
        );
    }
    // A file system that the kernel lacks, though its program is there.
    let f2fs = PLAN.replacen("ext2", "f2fs", 1);
    let f2fs = f2fs.replacen("32 MiB", "64 MiB", 1);
    if Command::new("mkfs.f2fs").arg("-V").output().is_ok() && !kernel_has("f2fs") {
        let told = said(&mut measure(&sandbox, &f2fs), 1);
        assert!(
            told.contains("no f2fs") && told.contains("modprobe f2fs"),
            "{told}"
        );
    }
    let jffs2 = PLAN.replacen("ext2", "jffs2", 1);
    if Command::new("mkfs.jffs2").arg("-V").output().is_ok() && kernel_has("jffs2") {
        let told = said(&mut measure(&sandbox, &jffs2), 2);
        assert!(told.contains("lab kernel"), "{told}");
    }
    let told = said(measure(&sandbox, PLAN).args(["--system", "qemu"]), 2);
    assert!(
        told.contains("qemu is not measured in the tier fs"),
        "{told}"
    );
    let told = said(measure(&sandbox, PLAN).args(["--threads", "2"]), 2);
    assert!(told.contains("threads cannot be chosen"), "{told}");

    let mut user = Command::new("setpriv");
    user.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    user.args([PROGRAM, "--store", "/dev/null/x", "run", "plan.toml"]);
    let mut permissions = std::fs::metadata(sandbox.path("")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o777);
    for path in ["", "tmp", "at"] {
        std::fs::set_permissions(sandbox.path(path), permissions.clone()).unwrap();
    }
    let mut user = sandbox.prepare(user);
    user.args(["--no-progress", "--at", "at", "--store"])
        .arg(sandbox.path("tmp/store"));
    let output = user.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("needs root") || told.contains("Permission denied"),
        "{told}"
    );
    assert_eq!(is_clean(&sandbox), Ok(()));
}
