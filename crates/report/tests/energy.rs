//! What reports say of a run whose machine has an energy sensor, and of one without.

mod sample;

use cryptmark_report::text::Style;
use cryptmark_report::{advice, csv, html, json, markdown, text};
use lab::record::{Energy, EnergyCost, EnergyVerdict, Interval, Run};

fn within(median: f64, low: f64, high: f64) -> Interval {
    Interval {
        median,
        low,
        high,
        n: 10,
    }
}

/// The sample run on a laptop that takes 3.1 W at rest. Ciphers cost energy on writes alone.
fn run() -> Run {
    let mut run = sample::run();
    for trial in &mut run.trials {
        let writes = trial.op == "write" && trial.cipher.is_some();
        let cost = EnergyCost {
            system: "none".into(),
            ratio: Some(match writes {
                true => within(1.203, 1.18, 1.227),
                false => within(1.001, 0.99, 1.012),
            }),
            more_j_per_gb: Some(match writes {
                true => within(0.8, 0.6, 1.0),
                false => within(0.01, -0.05, 0.06),
            }),
            verdict: match writes {
                true => EnergyVerdict::More,
                false => EnergyVerdict::NotDistinguishable,
            },
        };
        trial.energy = Some(Box::new(Energy {
            source: "package-0 + dram (powercap)".into(),
            j_per_gb: Some(within(4.8, 4.7, 4.9)),
            mj_per_operation: Some(within(0.0197, 0.0193, 0.0201)),
            against: trial.overhead.as_ref().map(|_| cost),
            idle_w: within(3.1, 3.05, 3.16),
            samples_j: vec![Some(20.6); 10],
        }));
    }
    run
}

fn table(run: &Run) -> String {
    text::table(
        run,
        &Style {
            width: 110,
            ..Style::default()
        },
    )
}

#[test]
fn the_answer_has_a_sentence_on_energy() {
    let sentence = advice::sentence(&run());
    let energy = "takes up to 0.80 J more a gigabyte (0.60–1.00), with rand-4k-write.";
    assert!(sentence.ends_with(energy), "{sentence}");
    // One set-up under one workload needs no names.
    let mut one = run();
    one.trials
        .retain(|trial| trial.workload == "rand-4k-write" && trial.system != "dm-crypt");
    let aes = |cipher: &Option<String>| cipher.as_deref().is_none_or(|c| c.starts_with("aes"));
    one.trials.retain(|trial| aes(&trial.cipher));
    let sentence = advice::sentence(&one);
    let energy = "Encryption takes 0.80 J more a gigabyte (0.60–1.00).";
    assert!(sentence.ends_with(energy), "{sentence}");
    // Reads cost nothing that could be measured.
    one = run();
    one.trials.retain(|trial| trial.op == "read");
    let sentence = advice::sentence(&one);
    let energy = "takes no more energy that could be measured.";
    assert!(sentence.ends_with(energy), "{sentence}");
}

#[test]
fn every_report_has_a_section_on_energy() {
    let run = run();
    let runs = std::slice::from_ref(&run);
    let (text, markdown, page) = (table(&run), markdown::render(runs), html::render(runs));
    for output in [&text, &markdown, &page] {
        for part in [
            "Energy",
            "package-0 + dram (powercap)",
            "20.3 % more (18.0–22.7)",
            "not distinguishable (±1.2 %)",
            "J/GB",
        ] {
            assert!(output.contains(part), "{part}: {output}");
        }
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 110),
        "{text}"
    );
    let csv = csv::render(runs);
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let rows: Vec<_> = reader.records().flatten().collect();
    let value = |row: usize, name: &str| {
        let place = header.iter().position(|column| column == name).unwrap();
        rows[row][place].to_owned()
    };
    let place = run
        .trials
        .iter()
        .position(|t| t.op == "write" && t.cipher.is_some());
    let place = place.unwrap();
    for (name, expected) in [
        ("energy_source", "package-0 + dram (powercap)"),
        ("energy_j_per_gb", "4.8"),
        ("energy_ratio", "1.203"),
        ("energy_ratio_n", "10"),
        ("energy_more_j_per_gb_low", "0.6"),
        ("energy_verdict", "more"),
        ("idle_w", "3.1"),
    ] {
        assert_eq!(value(place, name), expected, "{name}");
    }
    let read: Run = serde_json::from_str(&json::render(runs).unwrap()).unwrap();
    assert_eq!(read, run);
}

/// Without plain storage, an encrypted system is compared with another, which is named.
#[test]
fn systems_other_than_plain_are_named() {
    let mut run = run();
    for trial in &mut run.trials {
        if let Some(cost) = trial
            .energy
            .as_mut()
            .and_then(|energy| energy.against.as_mut())
        {
            cost.system = "openssl".into();
        }
    }
    let text = table(&run);
    assert!(
        text.contains("20.3 % more (18.0–22.7) than openssl"),
        "{text}"
    );
    assert!(
        text.contains("not distinguishable (±1.2 %) from openssl"),
        "{text}"
    );
    assert!(!advice::sentence(&run).contains("gigabyte"));
}

#[test]
fn a_machine_without_a_sensor_is_not_told_so() {
    let run = sample::run();
    let runs = std::slice::from_ref(&run);
    let json = json::render(runs).unwrap();
    for output in [
        table(&run),
        markdown::render(runs),
        html::render(runs),
        json,
    ] {
        assert!(!output.to_lowercase().contains("energy"), "{output}");
    }
}
