//! Simulated drives as systems of a run, and below volumes.

use block::model::{Discarded, Model};
use block::{BlockDevice, ByteRange, RamDevice};
use cipher::{CipherSpec, IvSector, Key, SectorLayout};
use drive::SimulatedDevice;
use drive::preset::Preset;
use serde_json::Value;
use volume::{CryptDevice, Mapping};

/// A run's figures and remarks; not the machine and the time of day.
fn figures(arguments: &[&str]) -> Value {
    let run = ["run", "--json", "-", "--no-progress"];
    let mut record = crate::sandbox().json(&[&run, arguments].concat());
    let run = record.as_object_mut().unwrap();
    for changing in ["run", "started", "host"] {
        run.remove(changing).unwrap();
    }
    record
}

/// Two drives in a run: each plain, with two ciphers, and plain again.
#[test]
fn drives_are_systems_of_a_run() {
    let arguments = [
        "anvil",
        "--quick",
        "--size",
        "128MiB",
        "--seed",
        "5",
        "--system",
        "drive:mlc-128g",
        "--system",
        "drive:hdd-desktop-2003",
        "--cipher",
        "aes-xts-plain64",
        "--cipher",
        "serpent-xts-plain64",
        "--cpu",
        "aes=145MB/s,serpent-xts-plain64=60MB/s",
    ];
    let run = figures(&arguments);
    assert_eq!(run, figures(&arguments));
    assert_eq!(run["noise"]["verdict"], "quiet");
    assert_eq!(run["noise"]["aa_ratio"]["median"], 1.0);
    let told = run["warnings"].as_array().unwrap();
    assert!(
        told.len() == 2
            && told[0]
                .as_str()
                .unwrap()
                .contains("145 MB/s on one core, as given")
    );

    let trials = run["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 4 * 2 * 4);
    let cell = |drive: &str, workload: &str, cipher: Option<&str>| {
        let found = trials.iter().find(|trial| {
            trial["device"]["model"] == drive
                && trial["workload"] == workload
                && trial["cipher"].as_str() == cipher
        });
        found.unwrap_or_else(|| panic!("{drive} {workload} {cipher:?}"))
    };
    let aes = Some("aes-xts-plain64");
    for drive in ["mlc-128g", "hdd-desktop-2003"] {
        for workload in [
            "seq-4m-read",
            "rand-4k-read",
            "seq-4m-write",
            "rand-4k-write",
        ] {
            let plain = cell(drive, workload, None);
            assert_eq!(plain["system"], "none");
            assert_eq!(plain["device"]["kind"], "simulated");
            assert_eq!(plain["bottleneck"], "device");
            assert_eq!(plain["time_s"]["user"], Value::Null);
            let encrypted = cell(drive, workload, aes);
            assert_eq!(encrypted["system"], format!("drive:{drive}"));
            assert_eq!(encrypted["overhead"]["against"], "none");
            // A turning disk has the sector no sooner for an earlier request.
            let verdict = match (drive, workload) {
                ("hdd-desktop-2003", "rand-4k-read" | "rand-4k-write") => "not distinguishable",
                _ => "slower",
            };
            assert_eq!(encrypted["overhead"]["verdict"], verdict, "{encrypted}");
            assert_eq!(encrypted["cycles_per_byte"], Value::Null);
            assert_eq!(encrypted["warnings"], serde_json::json!([]));
            let time = |part: &str| encrypted["time_s"][part].as_f64().unwrap();
            let parts = time("crypto") + time("wait");
            assert!((parts / time("wall") - 1.0).abs() < 1e-9, "{encrypted}");
            // What 145 MB/s take for the bytes, one request at a time.
            let crypto = encrypted["bytes"].as_f64().unwrap() / 145e6;
            assert!((time("crypto") / crypto - 1.0).abs() < 0.001, "{encrypted}");
        }
    }
    // A fast drive waits for the cipher, a slow one does not.
    let stream = |drive| &cell(drive, "seq-4m-read", aes)["bottleneck"];
    assert_eq!(stream("mlc-128g"), "cipher");
    assert_eq!(stream("hdd-desktop-2003"), "device");
}

#[test]
fn a_simulated_run_says_what_it_would_do() {
    let run = "run anvil --dry-run --repeat 2 --system drive:mlc-128g --system drive:tlc-1t \
               --cipher aes-xts-plain64";
    let output = crate::sandbox().run(run);
    let text = String::from_utf8(output.stdout).unwrap();
    // 4 workloads, 2 repetitions, 2 drives: plain, with a cipher, and plain again.
    assert!(text.contains("48 visits in virtual time"), "{text}");
    assert!(text.contains("drive:tlc-1t aes-xts-plain64"), "{text}");
}

/// A steady state writes a drive whole, which without a size has enough to clean.
#[test]
fn a_steady_state_chooses_the_size_of_a_drive() {
    let run = figures(&["snia", "--quick", "--system", "drive:mlc-128g"]);
    let sizes = run["trials"].as_array().unwrap().iter();
    let mut sizes = sizes.map(|trial| trial["device"]["size"].as_u64().unwrap());
    assert!(sizes.all(|size| size == 2_800_000_000 / 4096 * 4096));
}

/// Requests of several threads are on their way together, and cores encrypt
/// them side by side.
#[test]
fn cores_and_threads_of_a_simulated_run() {
    let rate = |threads: &str, cores: &str| {
        let run = figures(&[
            "anvil",
            "--quick",
            "--size",
            "128MiB",
            "--repeat",
            "1",
            "--system",
            "drive:mlc-128g",
            "--cipher",
            "aes-xts-plain64",
            "--cpu",
            "aes=100MB/s",
            "--threads",
            threads,
            "--cores",
            cores,
        ]);
        let trials = run["trials"].as_array().unwrap();
        assert_eq!(trials[1]["threads"].to_string(), threads);
        assert_eq!(
            trials[1]["workload"].as_str().unwrap().find("seq-4m-read"),
            Some(0)
        );
        trials[1]["throughput_mb_s"]["median"].as_f64().unwrap()
    };
    let alone = rate("1", "4");
    let serial = rate("4", "1");
    let parallel = rate("4", "4");
    assert!(alone < serial && serial < 101.0, "{alone} {serial}");
    // The first requests and the last ones have not all cores at work.
    assert!(parallel > 2.5 * serial, "{parallel} {serial}");
}

/// A drive that waits while its driver encrypts is slower than a queue, and
/// one that reads behind each read slower still, through no fault of the cipher.
#[test]
fn drivers_of_a_simulated_run() {
    let run = |driver: &str, cores: &str| {
        figures(&[
            "anvil",
            "--quick",
            "--size",
            "128MiB",
            "--seed",
            "5",
            "--system",
            "drive:mlc-128g",
            "--cipher",
            "aes-xts-plain64",
            "--cpu",
            "aes=400MB/s",
            "--threads",
            "4",
            "--cores",
            cores,
            "--driver",
            driver,
        ])
    };
    let rate = |run: &Value, workload: &str| {
        let trials = run["trials"].as_array().unwrap();
        let is_it = |trial: &&Value| {
            trial["workload"].as_str().unwrap().starts_with(workload)
                && trial["cipher"] != Value::Null
        };
        let trial = trials.iter().find(is_it).unwrap();
        (
            trial["throughput_mb_s"]["median"].as_f64().unwrap(),
            trial["bottleneck"].clone(),
        )
    };
    let (queue, in_turn) = (run("queue", "1"), run("in-turn", "1"));
    let truecrypt = run("truecrypt", "2");
    for (run, driver) in [
        (&queue, "queue"),
        (&in_turn, "in-turn"),
        (&truecrypt, "truecrypt"),
    ] {
        assert_eq!(run["trials"][0]["device"]["driver"], Value::Null);
        assert_eq!(run["trials"][1]["device"]["driver"], driver);
    }
    let told = in_turn["warnings"][0].as_str().unwrap();
    assert!(told.contains("wait during encryption"), "{told}");
    let (beside, _) = rate(&queue, "seq-4m-read");
    let (waiting, _) = rate(&in_turn, "seq-4m-read");
    // 550 MB/s of the interface and 400 MB/s of the cipher, one behind the other.
    assert!(
        waiting < 240.0 && beside > 1.5 * waiting,
        "{waiting} {beside}"
    );
    let (random, limit) = rate(&truecrypt, "rand-4k-read");
    let (beside, _) = rate(&queue, "rand-4k-read");
    assert!(random < 0.7 * beside, "{random} {beside}");
    assert_eq!(limit, "device");
}

/// What an encrypted volume on a simulated drive keeps, and that its discards
/// arrive there.
#[test]
fn volumes_run_on_simulated_drives() {
    const SIZE: u64 = 2 << 20;
    for name in Preset::names() {
        let drive = Preset::named(name).unwrap().drive(SIZE, 1).unwrap();
        let device = SimulatedDevice::new(drive, RamDevice::new(SIZE), None).unwrap();
        let spec: CipherSpec = "aes-xts-plain64".parse().unwrap();
        let crypt = CryptDevice::new(
            device,
            Mapping {
                spec,
                key: Key::random(64).unwrap(),
                layout: SectorLayout::default(),
                data: ByteRange::new(0, SIZE),
                first: IvSector::new(0),
                backend: None,
                sharing: None,
                allow_discards: true,
                holes: true,
            },
        )
        .unwrap();
        let discarded = match crypt.geometry().discard_granularity {
            Some(_) => Discarded::Zeros,
            None => Discarded::Anything,
        };
        let model = Model::new(11);
        Model { discarded, ..model }.run(&crypt);
        assert!(drive::time::now() > 0);
    }
}

#[test]
fn drives_that_cannot_be_measured_are_told_in_two_lines() {
    for (arguments, says) in [
        (vec!["--system", "drive:nothing"], "drive list"),
        (vec!["--system", "drive:"], "unknown system"),
        (
            vec!["--system", "drive:hdd-desktop-2003", "--size", "20GB"],
            "hdd-desktop-2003: the drive holds 10000000000 bytes",
        ),
        (vec!["--system", "drive:/nowhere.toml"], "/nowhere.toml"),
        // A steady state writes the whole drive, which needs blocks to clean.
        (
            vec![
                "snia",
                "--quick",
                "--size",
                "1GB",
                "--system",
                "drive:mlc-128g",
            ],
            "a size of 2800MB or more",
        ),
        (
            vec!["--system", "drive:mlc-128g", "--cpu", "camellia=9MB/s"],
            "camellia",
        ),
        (
            vec![
                "--system",
                "drive:mlc-128g",
                "--cipher",
                "aes-xts-plain64",
                "--cpu",
                "aes=1e-9MB/s",
            ],
            "cipher rate",
        ),
        (
            vec!["--system", "builtin", "--cpu", "aes=9MB/s"],
            "drive:NAME",
        ),
        (
            vec!["--system", "drive:mlc-128g", "--cpu", "aes=fast"],
            "145MB/s",
        ),
        (
            vec!["--system", "drive:mlc-128g", "--driver", "veracrypt"],
            "in-turn",
        ),
        (
            vec!["--system", "builtin", "--driver", "in-turn"],
            "drive:NAME",
        ),
        (
            vec![
                "--system",
                "drive:mlc-128g",
                "--driver",
                "in-turn",
                "--cores",
                "2",
            ],
            "one core",
        ),
    ] {
        let output = crate::sandbox()
            .cryptmark("run")
            .args(arguments[0].starts_with("--").then_some("anvil"))
            .args(&arguments)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(says), "{arguments:?}: {errors}");
    }
}
