//! The bare translation layer under random writes.

use crate::json;

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
