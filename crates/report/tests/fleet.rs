//! A fleet as text and as a page.

mod sample;

use cryptmark_report::fleet::{
    Alike, Breakdown, FleetReport, Outlier, Outliers, Quantiles, Regression, text,
};
use cryptmark_report::html;
use cryptmark_report::text::Style;
use lab::record::Tier;
use sample::HOSTILE;

fn alike(name: &str) -> Alike {
    Alike {
        tier: Tier::Block,
        system: "builtin".into(),
        cipher: "aes-xts-plain64".into(),
        key_bits: 512,
        against: "none".into(),
        fs: String::new(),
        workload: format!("rand-4k-read{name}"),
        op: "read".into(),
        block_bytes: Some(4096),
        queue_depth: Some(1),
        threads: Some(1),
        device: format!("Disk{name}"),
        cpu: format!("CPU{name}"),
    }
}

fn quantiles(name: &str, trials: u64) -> Quantiles {
    Quantiles {
        name: name.into(),
        trials,
        p5: 0.5,
        p25: 0.804,
        p50: 0.9,
        p75: 1.0,
        p95: 1.013,
    }
}

/// A report whose names end with `name`.
fn report(name: &str) -> FleetReport {
    let groups = (0..30).map(|number| quantiles(&format!("model {number}{name}"), 1234));
    FleetReport {
        place: format!("trials{name}"),
        trials: 12_345_678,
        runs: 4321,
        compared: 9_999_999,
        overhead: vec![
            Breakdown {
                by: "CPU".into(),
                groups: groups.collect(),
            },
            Breakdown {
                by: "cipher".into(),
                groups: vec![quantiles(&format!("aes{name}"), 7)],
            },
        ],
        outliers: Outliers {
            found: 5000,
            farthest: vec![Outlier {
                run: format!("20261122-a{name}"),
                alike: alike(name),
                ratio: 0.2,
                p25: 0.8,
                p50: 0.9,
                p75: 0.95,
                trials: 77,
            }],
        },
        regressions: vec![Regression {
            alike: alike(name),
            before: format!("0.1.0{name}"),
            before_trials: 60,
            before_ratio: 0.9,
            after: format!("0.2.0{name}"),
            after_trials: 70,
            after_ratio: 0.812,
        }],
    }
}

#[test]
fn text_says_what_was_found() {
    let text = text(&report(""), &Style::default());
    for words in [
        "trials: 12,345,678 trials of 4,321 run(s), 9,999,999 of them compared with plain",
        "−50.0 %   −19.6 %   −10.0 %   0.0 %   +1.3 %",
        "and 10 more: --json has them all",
        "Far from similar trials: 5,000 trial(s)",
        "20261122-a: −80.0 %, while 77 similar trials have −10.0 % (−20.0 %…−5.0 %)",
        "AES-256 XTS, builtin, rand-4k-read · CPU · Disk",
        "and 4,999 more, less far away",
        "0.1.0 → 0.2.0: −10.0 % → −18.8 % (60 and 70 trials)",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let nothing = FleetReport {
        overhead: Vec::new(),
        outliers: Outliers::default(),
        regressions: Vec::new(),
        ..report("")
    };
    let text = cryptmark_report::fleet::text(&nothing, &Style::default());
    assert!(text.contains("No trial is far from similar trials, among groups of eight or more."));
    assert!(text.contains("No version is slower than the one before it, among versions"));
    let page = html::fleet(&nothing);
    assert!(page.contains("No trial was compared with plain.") && !page.contains("<svg"));
}

#[test]
fn a_page_has_every_figure_and_a_picture_of_the_most() {
    let page = html::fleet(&report(""));
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(page.contains("The picture shows the 24 with the most trials."));
    for number in 0..30 {
        let row = format!("<th scope=\"row\">model {number}</th>");
        assert!(page.contains(&row), "{row}");
    }
    let svg = page.split("<svg").nth(1).unwrap();
    let svg = svg.split("</svg>").next().unwrap();
    assert!(svg.contains("model 23") && !svg.contains("model 24"));
    assert!(page.contains("data-value=\"0.812\""));
    assert!(page.contains("half of the trials with aes are at −10.0 %"));
}

#[test]
fn names_from_records_stay_text() {
    let hostile = report(HOSTILE);
    let page = html::fleet(&hostile);
    assert!(!page.contains("<script>alert") && !page.contains('\u{202e}'));
    assert!(!text(&hostile, &Style::default()).contains(['\x1b', '\u{202e}']));
}

#[test]
fn json_comes_back_as_it_was() {
    let report = report("");
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<FleetReport>(&json).unwrap(), report);
}
