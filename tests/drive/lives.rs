//! Lives of drives, and what plans would measure on them.

use crate::{json, run_drive};

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
