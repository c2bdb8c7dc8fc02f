//! Simulated drives as a user meets them.

use block::model::{Discarded, Model};
use block::{BlockDevice, ByteRange, RamDevice};
use cipher::{CipherSpec, IvSector, Key, SectorLayout};
use drive::SimulatedDevice;
use drive::preset::Preset;
use serde_json::Value;
use std::process::{Command, Output};
use volume::{CryptDevice, Mapping};

fn run_drive(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cryptmark"))
        .arg("drive")
        .args(arguments)
        .output()
        .unwrap()
}

#[track_caller]
fn json(arguments: &[&str]) -> serde_json::Value {
    let output = run_drive(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The published point of greedy cleaning with discards, as a script asks for it.
#[test]
fn a_run_answers_in_json() {
    let run = json(&[
        "run",
        "--device",
        "ssd-uniform",
        "--workload",
        "uniform",
        "--blocks",
        "8192",
        "--pages-per-block",
        "64",
        "--over-provisioning",
        "11.1%",
        "--gc",
        "greedy",
        "--discard-fraction",
        "0.1",
        "--warmup",
        "5",
        "--measure",
        "5",
        "--seed",
        "3",
        "--json",
        "-",
    ]);
    let amplification = run["write_amplification"].as_f64().unwrap();
    assert!(
        (amplification / 2.598 - 1.0).abs() < 0.01,
        "{amplification}"
    );
    let pages = |name: &str| run[name].as_u64().unwrap();
    let quotient = pages("flash_pages") as f64 / pages("host_pages") as f64;
    assert!((quotient - amplification).abs() < 1e-9);
    let erases = run["erase_counts"].as_array().unwrap();
    assert_eq!(erases.len(), 8192);
    let erased: u64 = erases.iter().map(|erases| erases.as_u64().unwrap()).sum();
    // What was written in whole blocks was erased in whole blocks.
    assert!(erased.abs_diff(pages("flash_pages") / 64) <= 2, "{erased}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        json(&[
            "run",
            "--blocks",
            "256",
            "--hot",
            "20/80",
            "--gc",
            "d-choices:5",
            "--streams",
            "2",
            "--over-provisioning",
            "20%",
            "--seed",
            seed,
            "--json",
            "-",
        ])
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn a_lifetime_answers_in_text_and_json() {
    let arguments = [
        "lifetime", "--device", "mlc-128g", "--daily", "20GB", "--fill", "80%", "--years", "0.2",
    ];
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("lives.html");
    let output = run_drive(&[&arguments[..], &["--html", page.to_str().unwrap()]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg").count(), 5);
    for words in [
        "TRIM passed",
        "TRIM blocked",
        "filled with noise",
        "left unpartitioned",
        "lasts",
    ] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    let json = json(&[&arguments[..], &["--json", "-"]].concat());
    let of = |setup: &str| {
        let setups = json["setups"].as_array().unwrap();
        let found = setups.iter().find(|s| s["setup"] == setup).unwrap();
        found["write_amplification"].as_f64().unwrap()
    };
    assert!(of("passed") < of("unpartitioned") && of("unpartitioned") < of("filled"));
    let blocked = &json["setups"][2];
    assert_eq!(blocked["setup"], "blocked");
    for series in ["moments", "erases"] {
        assert!(blocked[series].as_array().unwrap().len() > 8, "{blocked}");
    }
    assert_eq!(blocked["leak"]["map"].as_array().unwrap().len(), 64);
}

/// A drive of the user's own, from what `show` prints.
#[test]
fn a_shown_drive_can_be_edited() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let shown = String::from_utf8(run_drive(&["show", "mlc-128g"]).stdout).unwrap();
    std::fs::write(&file, shown.replace("\"128 GB\"", "\"8 GB\"")).unwrap();
    let path = file.to_str().unwrap();
    let life = [
        "lifetime", "--device", path, "--daily", "1GB", "--years", "0.1", "--json", "-",
    ];
    assert_eq!(json(&life)["setups"].as_array().unwrap().len(), 5);

    std::fs::write(&file, shown.replace("page = ", "pgae = ")).unwrap();
    let output = run_drive(&life);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors.contains("mine.toml: line 5") && errors.contains("pgae"),
        "{errors}"
    );
}

/// A trace of another program, played: 3 pages written, one discarded.
#[test]
fn a_trace_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    std::fs::write(
        &file,
        "fio version 2 iolog\nf write 0 12288\nf trim 0 4096\nf read 0 512\n",
    )
    .unwrap();
    let path = file.to_str().unwrap();
    let run = json(&[
        "run",
        "--workload",
        path,
        "--blocks",
        "64",
        "--over-provisioning",
        "20%",
        "--json",
        "-",
    ]);
    let count = |name: &str| run[name].as_u64().unwrap();
    assert_eq!((count("host_pages"), count("discarded_pages")), (3, 1));
    assert_eq!(count("pages_in_use"), count("logical_pages") - 1);

    let refused = |text: &str, more: &[&str], says: &str| {
        std::fs::write(&file, text).unwrap();
        let output = run_drive(&[&["run", "--workload", path], more].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(says), "{errors}");
    };
    refused("0 0 8 8 1\n0 0 8 x 1\n", &[], "trace: line 2");
    refused("hello\n", &[], "none of the formats");
    refused("", &[], "asks for nothing");
    refused("0 0 99999999 8 0\n", &[], "request 1 of the trace ends at");
    refused("0 0 8 8 0\n", &["--hot", "20/80"], "--hot");
    refused("0 0 8 8 0\n", &["--page-size", "0"], "--page-size");
}

#[test]
fn a_trace_is_written_in_another_format() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(file("trace"), "0 0 8 8 1\n1.5 0 16 8 0\n").unwrap();
    let output = run_drive(&["trace", &file("trace"), "--format", "fio"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("fio version 3 iolog\n"), "{text}");
    assert!(
        text.contains("0 drive read 4096 4096\n1 drive write 8192 4096\n"),
        "{text}"
    );
    let written = run_drive(&[
        "trace",
        &file("trace"),
        "--format",
        "msr",
        "-o",
        &file("other"),
    ]);
    assert!(written.status.success());
    let text = std::fs::read_to_string(file("other")).unwrap();
    assert_eq!(
        text,
        "0,drive,0,Read,4096,4096,0\n15000,drive,0,Write,8192,4096,0\n"
    );
    // A discard is nothing that MSR's format has: no half-written file stays behind.
    std::fs::write(file("trace"), "fio version 2 iolog\nf trim 0 4096\n").unwrap();
    let refused = run_drive(&[
        "trace",
        &file("trace"),
        "--format",
        "msr",
        "-o",
        &file("third"),
    ]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// A slow cipher costs a fast drive's streams more than a slow drive's seeks.
#[test]
fn a_prediction_answers_in_text_and_json() {
    let predict = |device, cpu| {
        json(&[
            "predict", "--device", device, "--cipher", "aes", "--cpu", cpu, "--json", "-",
        ])
    };
    let ratio = |prediction: &serde_json::Value, workload: &str| {
        let cells = prediction["cells"].as_array().unwrap();
        let cell = cells
            .iter()
            .find(|cell| cell["workload"] == workload)
            .unwrap();
        cell["encrypted"][0]["ratio"].as_f64().unwrap()
    };
    let disk = predict("hdd-desktop-2003", "aes=20MB/s");
    assert!(ratio(&disk, "rand-4k-read") > 0.97, "{disk}");
    assert!(ratio(&disk, "seq-4m-read") < 0.85, "{disk}");
    let ssd = predict("mlc-128g", "aes=60MB/s");
    assert!(ratio(&ssd, "seq-4m-read") < 0.2, "{ssd}");
    assert_eq!(ssd["cells"][0]["encrypted"][0]["bottleneck"], "cipher");

    let in_turn = json(&[
        "predict",
        "--device",
        "mlc-128g",
        "--cipher",
        "aes",
        "--cpu",
        "aes=60MB/s",
        "--driver",
        "in-turn",
        "--json",
        "-",
    ]);
    assert_eq!(in_turn["driver"], "in-turn");
    assert!(ratio(&in_turn, "seq-4m-read") < ratio(&ssd, "seq-4m-read") * 1.001);

    let text = run_drive(&["predict", "--device", "hdd-desktop-2003", "--cipher", "aes"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("measured here") && text.contains("matters below"),
        "{text}"
    );
}

/// A key whose blocks are copied: random writes wear and take 32 times as much,
/// and what a cipher costs is nothing beside that.
#[test]
fn flash_wears_and_is_predicted() {
    let run = json(&[
        "run",
        "--device",
        "flash-key-128m",
        "--warmup",
        "0.5",
        "--measure",
        "0.5",
        "--json",
        "-",
    ]);
    let amplification = run["write_amplification"].as_f64().unwrap();
    assert!((amplification / 32.0 - 1.0).abs() < 0.02, "{run}");
    assert_eq!(run["erase_counts"].as_array().unwrap().len(), 1004);
    assert!(run["terabytes_written"].as_f64().unwrap() > 0.1, "{run}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    // The second block twice, and a page of the first.
    std::fs::write(
        &file,
        "fio version 2 iolog\nf write 131072 131072\nf write 131072 131072\nf write 0 2048\n",
    )
    .unwrap();
    let trace = file.to_str().unwrap();
    let run = json(&[
        "run",
        "--device",
        "mtd-nand-128m",
        "--workload",
        trace,
        "--json",
        "-",
    ]);
    let count = |name: &str| run[name].as_u64().unwrap();
    assert_eq!((count("host_pages"), count("flash_pages")), (129, 128));
    let erases = run["erase_counts"].as_array().unwrap();
    assert_eq!(
        (&erases[0], &erases[1], &erases[2]),
        (&1.into(), &1.into(), &0.into())
    );

    let prediction = json(&[
        "predict",
        "--device",
        "flash-key-128m",
        "--size",
        "100MB",
        "--cipher",
        "aes",
        "--cpu",
        "aes=10MB/s",
        "--json",
        "-",
    ]);
    let ratio = |workload: &str| {
        let cells = prediction["cells"].as_array().unwrap();
        let cell = cells.iter().find(|cell| cell["workload"] == workload);
        cell.unwrap()["encrypted"][0]["ratio"].as_f64().unwrap()
    };
    assert!(ratio("rand-4k-write") > 0.97, "{prediction}");
    assert!(ratio("seq-4m-write") < 0.7, "{prediction}");
}

/// A run's figures and remarks; not the machine and the time of day.
fn figures(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cryptmark"))
        .args(["run", "--json", "-", "--no-progress"])
        .args(arguments)
        .current_dir(folder.path())
        .env("CRYPTMARK_STORE", folder.path().join("runs.db"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut record: Value = serde_json::from_slice(&output.stdout).unwrap();
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
    let output = Command::new(env!("CARGO_BIN_EXE_cryptmark"))
        .args(["run", "anvil", "--dry-run", "--repeat", "2"])
        .args(["--system", "drive:mlc-128g", "--system", "drive:tlc-1t"])
        .args(["--cipher", "aes-xts-plain64"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // 4 workloads, 2 repetitions, 2 drives: plain, with a cipher, and plain again.
    assert!(text.contains("48 visits in virtual time"), "{text}");
    assert!(text.contains("drive:tlc-1t aes-xts-plain64"), "{text}");
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
    assert!(told.contains("wait meanwhile"), "{told}");
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
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_cryptmark"))
            .args(["run", "anvil"])
            .args(&arguments)
            .current_dir(folder.path())
            .env("CRYPTMARK_STORE", folder.path().join("runs.db"))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(says), "{arguments:?}: {errors}");
    }
}

#[test]
fn faults_are_told_in_two_lines() {
    for (arguments, says) in [
        (
            vec!["run", "--over-provisioning", "0%"],
            "over-provisioning",
        ),
        (vec!["run", "--over-provisioning", "7"], "7%"),
        (vec!["run", "--blocks", "3"], "blocks"),
        (
            vec!["run", "--blocks", "100", "--over-provisioning", "0.5%"],
            "spare",
        ),
        (vec!["run", "--pages-per-block", "0"], "pages-per-block"),
        (vec!["run", "--gc", "lru"], "greedy"),
        (vec!["run", "--gc", "d-choices:0"], "d-choices"),
        (vec!["run", "--discard-fraction", "0.5"], "discard-fraction"),
        (vec!["run", "--hot", "20"], "20/80"),
        (vec!["run", "--hot", "0/80"], "hot"),
        (
            vec!["run", "--hot", "20/80", "--workload", "uniform"],
            "--workload",
        ),
        (vec!["run", "--streams", "2"], "--hot"),
        (vec!["run", "--streams", "3"], "streams"),
        (vec!["run", "--measure", "0"], "measure"),
        (vec!["run", "--workload", "/nowhere"], "/nowhere"),
        (vec!["run", "--warmup", "nan"], "warmup"),
        (
            vec!["lifetime", "--device", "mlc-128g", "--compression", "1%"],
            "compression",
        ),
        (vec!["trace", "/nowhere", "--format", "fio"], "/nowhere"),
        (vec!["trace", "/nowhere", "--format", "csv"], "blkparse"),
        (vec!["predict", "--device", "nothing"], "drive list"),
        (
            vec!["predict", "--device", "mlc-128g", "--plan", "ciphers"],
            "ciphers",
        ),
        (
            vec!["predict", "--device", "mlc-128g", "--cipher", "ase"],
            "ase",
        ),
        (
            vec!["predict", "--device", "mlc-128g", "--cpu", "aes=fast"],
            "145MB/s",
        ),
        (
            vec!["predict", "--device", "mlc-128g", "--cpu", "camellia=9MB/s"],
            "--cipher",
        ),
        (
            vec![
                "predict",
                "--device",
                "hdd-desktop-2003",
                "--plan",
                "nothing",
            ],
            "nothing",
        ),
        (vec!["show", "nothing"], "drive list"),
        (vec!["show", "/nowhere.toml"], "/nowhere.toml"),
        (vec!["run", "--device", "nothing"], "drive list"),
        (vec!["run", "--device", "mlc-128g"], "no flash chip"),
        (
            vec!["run", "--device", "mtd-nor-16m", "--gc", "fifo"],
            "--gc",
        ),
        (
            vec!["run", "--device", "mtd-nor-16m", "--measure", "0"],
            "measure",
        ),
        (
            vec!["lifetime", "--device", "flash-key-128m"],
            "drive run --device flash-key-128m",
        ),
        (
            vec!["predict", "--device", "flash-key-128m"],
            "the drive holds 128000000 bytes",
        ),
        (vec!["lifetime", "--device", "nothing"], "drive list"),
        (
            vec!["lifetime", "--device", "/nowhere.toml"],
            "/nowhere.toml",
        ),
        (
            vec!["lifetime", "--device", "mlc-128g", "--fill", "100%"],
            "fill",
        ),
        (
            vec!["lifetime", "--device", "mlc-128g", "--daily", "0"],
            "daily",
        ),
        (
            vec!["lifetime", "--device", "mlc-128g", "--unpartitioned", "95%"],
            "unpartitioned",
        ),
        (
            vec![
                "lifetime",
                "--device",
                "mlc-128g",
                "--html",
                "/nowhere/x.html",
            ],
            "/nowhere/x.html",
        ),
        (
            vec!["predict", "--device", "mlc-128g", "--driver", "bestcrypt"],
            "in-turn",
        ),
    ] {
        let output = run_drive(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(
            errors.starts_with("error: ") && errors.contains(says),
            "{arguments:?}: {errors}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
