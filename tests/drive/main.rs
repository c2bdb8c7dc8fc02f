//! Simulated drives as a user meets them.

mod fit;
mod lives;
mod runs;
mod sweep;
mod traces;
mod uniform;

use std::process::{Command, Output};
use testkit::Sandbox;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// A sandbox whose store is `runs.db`.
fn sandbox() -> Sandbox {
    Sandbox::new(PROGRAM).with_path("CRYPTMARK_STORE", "runs.db")
}

/// `cryptmark drive` with these arguments.
fn run_drive(arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
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
        (vec!["run", "--device", "mlc-128g"], "isn't a flash chip"),
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
