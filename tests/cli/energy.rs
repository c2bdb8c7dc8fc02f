//! Energy sensors, and the hours of a battery.

use super::{TINY, sandbox};
use lab::energy::{Choice, SYSFS, sensors};
use std::path::Path;

const SPEC: &str = r#"
title = "a sensor node"
clock_mhz = 80
[device]
read_mb_s = 2
write_mb_s = 0.5
[battery]
watt_hours = 8
average_watts = 0.004
active_watts = 0.06
daily_read_mb = 20
daily_write_mb = 40
[[cipher]]
name = "aes-xts-plain64"
encrypt = 110
decrypt = 120
"#;

/// No run is needed, and nothing is measured.
#[test]
fn a_battery_is_told_in_hours() {
    let sandbox = sandbox();
    sandbox.write("spec.toml", SPEC);
    let text = sandbox.ok(&["advise", "--target", "spec.toml"]);
    let battery = "A battery of 8 Wh lasts 2000.0 hours at 0.004 W without encryption";
    assert!(text.contains(battery), "{text}");
    // 85 s a day at 60 mW are 1.42 mWh.
    let row = text.lines().last().unwrap();
    assert!(row.starts_with("aes-xts-plain64 512 "), "{text}");
    for figure in [" 85.0 ", " 1.42 ", " 29.08 "] {
        assert!(row.contains(figure), "{row}");
    }
    let json = sandbox.ok(&["advise", "--target", "spec.toml", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(answer["run"].is_null());
    let lost = answer["drains"][0]["hours_lost"]["expected"].as_f64();
    assert!((lost.unwrap() - 29.08).abs() < 0.01, "{json}");

    // Without a battery, a run is needed as before.
    let (machine, cipher) = SPEC.split_once("[battery]").unwrap();
    let (_, cipher) = cipher.split_once("[[cipher]]").unwrap();
    sandbox.write("plain.toml", format!("{machine}[[cipher]]{cipher}"));
    sandbox.fails(2, &["advise", "--target", "plain.toml"]);
    for (right, wrong) in [
        ("watt_hours = 8", "watt_hours = 0"),
        ("active_watts = 0.06", "active_watts = -1"),
        ("daily_read_mb = 20", "daily_read_mb = -20"),
    ] {
        sandbox.write("wrong.toml", SPEC.replace(right, wrong));
        let error = sandbox.fails(2, &["advise", "--target", "wrong.toml"]);
        assert!(error.contains("is not possible"), "{wrong}: {error}");
    }
}

/// Only a machine with a sensor has energy in its records, and not if it is turned off.
#[test]
fn a_run_has_energy_if_there_is_a_sensor() {
    let found = sensors(Path::new(SYSFS));
    let chosen = Choice::Auto.of(&found).unwrap();
    let sandbox = sandbox();
    sandbox.write("tiny.toml", TINY);
    let run = |energy: &[&str]| {
        let command = ["run", "tiny.toml", "--json", "-"];
        sandbox.ok(&[&command, energy].concat())
    };
    assert!(!run(&["--energy", "none"]).contains("\"energy\""));
    if chosen.is_none() {
        assert!(!run(&[]).contains("\"energy\""));
    }
    let doctor = sandbox.ok(&["doctor"]);
    let lines = doctor
        .lines()
        .skip_while(|line| !line.starts_with("energy    "));
    let first = lines.into_iter().next().unwrap();
    assert_eq!(first.contains("no sensor"), found.is_empty(), "{doctor}");
}
