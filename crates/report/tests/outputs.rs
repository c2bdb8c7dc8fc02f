//! Text, Markdown, CSV and JSON of handmade runs: realistic, empty, bare,
//! hostile, extreme.

mod sample;

use cryptmark_report::text::Style;
use cryptmark_report::{advice, compare, csv, html, json, markdown, text};
use lab::record::{
    Bottleneck, Interval, Measure, NoiseVerdict, Paper, Published, Run, Tier, Trial, Verdict,
};

fn table(run: &Run, width: u16) -> String {
    text::table(
        run,
        &Style {
            width,
            ..Style::default()
        },
    )
}

fn everything(run: &Run) -> [String; 5] {
    let runs = std::slice::from_ref(run);
    [
        table(run, 110),
        markdown::render(runs),
        csv::render(runs),
        html::render(runs),
        advice::sentence(run),
    ]
}

#[test]
fn the_table_a_person_pastes() {
    let expected = "\
quick · run 20261121T120000-7f3a · 2026-11-21T12:00:00+01:00
AMD Ryzen 7 5800U with Radeon Graphics · 16 cores · 4.30 GHz · Debian GNU/Linux 13 · Linux 6.12.48
ssd Samsung SSD 980 PRO 1TB · file on ext4 · around the page cache (direct) · io_uring
Noise floor: plain against itself 1.001 (0.994–1.008, n 10): quiet

                                      rate       p99   against plain                  crypto   limit
────────────────────────────────────────────────────────────────────────────────────────────────────────
rand-4k-read, depth 1
  plain                        12,793 IOPS    188 µs                                     0 %   device
  AES-256 XTS, builtin         12,409 IOPS    193 µs   slower by 3.0 % (1.1–4.9)         3 %   device
  Serpent-256 XTS, dm-crypt    11,642 IOPS    206 µs   slower by 9.0 % (7.2–10.8)        9 %   device
  Twofish-256 XTS, builtin     11,897 IOPS    202 µs   slower by 7.0 % (5.1–8.9)         7 %   device
  plain again (A/A)                                    not distinguishable (±0.8 %)
";
    let table = table(&sample::run(), 110);
    let (answer, rest) = table.split_once("\n\n").unwrap();
    assert_eq!(flat(answer), advice::sentence(&sample::run()));
    assert!(rest.starts_with(expected), "{table}");
    assert!(
        table.contains(
            "  AES-256 XTS, builtin          3,114 MB/s   6.47 ms   not distinguishable (±2.2 %)     <1 %   device\n"
        ),
        "{table}"
    );
}

#[test]
fn every_width_keeps_the_verdicts() {
    for width in [110, 104, 90, 80, 76, 60, 50, 40] {
        let table = table(&sample::run(), width);
        for line in table.lines() {
            assert!(
                line.chars().count() <= usize::from(width),
                "{width}: {line}"
            );
        }
        assert!(
            table.contains("slower by 29.0 % (27.6–30.4)"),
            "{width}: {table}"
        );
    }
    assert_eq!(
        table(&sample::run(), 400),
        table(&sample::run(), 110),
        "a wide terminal does not make a table wider"
    );
}

#[test]
fn colour_and_ascii_are_asked_for() {
    let run = sample::run();
    assert!(!table(&run, 110).contains('\x1b'));
    let colour = text::table(
        &run,
        &Style {
            colour: true,
            ..Style::default()
        },
    );
    assert!(colour.contains("\x1b[33mslower\x1b[0m by 9.0 %"));
    let plain: String = colour.replace("\x1b[33m", "").replace("\x1b[0m", "");
    assert_eq!(plain, table(&run, 110), "colour does not change the layout");
    let ascii = text::table(
        &run,
        &Style {
            unicode: false,
            ..Style::default()
        },
    );
    assert!(ascii.is_ascii(), "{ascii}");
    assert!(ascii.contains("slower by 29.0 % (27.6-30.4)"));
    assert!(ascii.contains("387 us"));
}

#[test]
fn advice_says_what_each_costs_and_what_to_choose() {
    let sentence = advice::sentence(&sample::run());
    assert_eq!(
        sentence,
        "AES-256 XTS costs nothing measurable (at most 2.2 %) on large transfers and 1.1 to 13 % \
         on small ones. Twofish-256 XTS costs 5.1 to 40 %. Choose AES-256 XTS. Serpent-256 XTS, \
         dm-crypt costs 7.2 to 59 %."
    );
}

/// Advice does not treat encryption on all cores as another set-up.
#[test]
fn advice_says_what_all_cores_change() {
    let mut run = sample::run();
    let alone = advice::sentence(&run);
    let shared: Vec<Trial> = run
        .trials
        .iter()
        .filter(|trial| trial.system == "builtin" && trial.block_bytes > Some(65536))
        .map(|trial| {
            let mut trial = trial.clone();
            trial.backend = Some("vaes256 on 16 cores".into());
            let overhead = trial.overhead.as_mut().unwrap();
            overhead.ratio = sample::interval(0.9, 0.01);
            overhead.verdict = Verdict::Slower;
            trial
        })
        .collect();
    assert!(shared.len() > 1);
    run.trials.extend(shared);
    let sentence = advice::sentence(&run);
    let more = " If 16 cores encrypt them, large transfers cost 9.1 to 11 % with AES-256 XTS, 9.1 \
                to 11 % with Twofish-256 XTS.";
    assert!(sentence.contains(more), "{sentence}");
    assert_eq!(sentence.replace(more, ""), alone);
    let table = table(&run, 110);
    assert!(table.contains("AES-256 XTS, builtin, 16 cores"), "{table}");
    // Compared with itself, each is compared with its own.
    let same = compare::compare(&run, &run, &compare::Options::default()).unwrap();
    let pairs = same.cells.iter();
    let ratios: Vec<f64> = pairs.map(|pair| pair.ratio.unwrap().median).collect();
    assert!(
        ratios.iter().all(|ratio| (ratio - 1.0).abs() < 1e-12),
        "{ratios:?}"
    );
    assert!(same.only_a.is_empty() && same.only_b.is_empty());
}

/// Between systems more differs than the cipher.
#[test]
fn advice_compares_within_one_system() {
    let mut run = sample::run();
    for trial in &mut run.trials {
        if trial.cipher.is_some() && trial.system == "builtin" {
            trial.system = "builtin-nbd".to_owned();
        }
    }
    let sentence = advice::sentence(&run);
    assert!(
        sentence.contains("Choose AES-256 XTS, builtin-nbd."),
        "{sentence}"
    );
    assert!(
        sentence.contains(" Serpent-256 XTS, dm-crypt costs "),
        "{sentence}"
    );
    run.trials
        .retain(|trial| trial.cipher.is_none() || trial.system == "dm-crypt");
    let sentence = advice::sentence(&run);
    assert!(
        sentence.starts_with("Serpent-256 XTS, dm-crypt costs "),
        "{sentence}"
    );
    for trial in &mut run.trials {
        if trial.cipher.take().is_some() {
            trial.system = "path:/mnt/vault".to_owned();
        }
    }
    let sentence = advice::sentence(&run);
    assert!(sentence.starts_with("path:/mnt/vault costs "), "{sentence}");
}

#[test]
fn advice_is_silent_about_the_device_when_the_cipher_was_a_limit() {
    let mut run = sample::run();
    for trial in &mut run.trials {
        trial.bottleneck = Bottleneck::Cipher;
    }
    let sentence = advice::sentence(&run);
    assert!(sentence.contains("Choose AES-256 XTS."), "{sentence}");
    assert!(!sentence.contains("The device"), "{sentence}");
}

#[test]
fn advice_when_nothing_is_to_be_told_apart() {
    let mut run = sample::run();
    for trial in &mut run.trials {
        if let Some(overhead) = &mut trial.overhead {
            overhead.ratio = sample::interval(0.998, 0.01);
            overhead.verdict = Verdict::NotDistinguishable;
        }
    }
    let sentence = advice::sentence(&run);
    assert!(
        sentence.starts_with("AES-256 XTS costs nothing measurable (at most 1.2 %), on large"),
        "{sentence}"
    );
}

/// Noise of 13 % hides no cost of 39 %.
#[test]
fn advice_on_a_noisy_machine_says_what_is_certain() {
    let mut run = sample::run();
    run.noise.verdict = NoiseVerdict::Noisy;
    run.noise.aa_ratio = Some(sample::interval(0.95, 0.08));
    for trial in &mut run.trials {
        if let Some(overhead) = &mut trial.overhead
            && trial.cipher.as_deref() == Some("aes-xts-plain64")
        {
            overhead.ratio = sample::interval(0.97, 0.12);
            overhead.verdict = Verdict::NotDistinguishable;
        }
    }
    let sentence = advice::sentence(&run);
    assert!(
        sentence.contains("Twofish-256 XTS costs 5.1 to 40 %. Choose AES-256 XTS."),
        "{sentence}"
    );
    assert!(
        sentence.contains("AES-256 XTS costs at most 15 %"),
        "{sentence}"
    );
    assert!(
        sentence.contains("costs are not decided: measure longer"),
        "{sentence}"
    );
    let table = table(&run, 110);
    let noise = table.find("NOISY").expect("the noise is named");
    let first_cell = table.find("rand-4k-read").expect("a cell");
    assert!(noise < first_cell, "before any other number");
}

/// One pair says nothing certain, however far apart its two values are.
#[test]
fn too_few_repetitions_are_no_verdict() {
    let mut run = sample::run();
    for trial in &mut run.trials {
        if let Some(overhead) = &mut trial.overhead {
            overhead.ratio = Interval {
                n: 1,
                ..sample::interval(0.036, 0.0)
            };
            overhead.verdict = Verdict::TooFew;
        }
    }
    let [text, markdown, csv, page, sentence] = everything(&run);
    for output in [&text, &markdown] {
        assert!(!output.contains("not distinguishable"), "{output}");
        assert!(output.contains("slower by 96.4 % (too few)"), "{output}");
    }
    // In the picture as in the table.
    let pictures: String = page.split("<svg").skip(1).collect();
    assert!(pictures.contains("slower by 96.4 % (too few)<"), "{page}");
    assert!(
        csv.contains(",too few,") && !csv.contains("not distinguishable"),
        "{csv}"
    );
    assert!(
        sentence.starts_with("Too few repetitions to say what encryption costs: measure"),
        "{sentence}"
    );
    assert!(!sentence.contains("Choose"), "{sentence}");
    // Of the others nothing is proposed either while one of them is open.
    let mut run = sample::run();
    let twofish = run.trials.iter_mut().find(|trial| {
        let cipher = trial.cipher.as_deref();
        cipher.is_some_and(|cipher| cipher.starts_with("twofish"))
    });
    let overhead = twofish.unwrap().overhead.as_mut().unwrap();
    (overhead.ratio.n, overhead.verdict) = (2, Verdict::TooFew);
    let sentence = advice::sentence(&run);
    assert!(
        sentence.contains("Twofish-256 XTS costs an amount that needs more repetitions to measure"),
        "{sentence}"
    );
    assert!(!sentence.contains("Choose"), "{sentence}");
}

/// The maximum cost of a cipher is the farthest end of all its intervals, not that of the worst
/// median. An uncertain cost is not reported as certain.
#[test]
fn advice_says_the_most_that_the_other_ciphers_may_cost() {
    let mut run = sample::run();
    let (certain, open) = (sample::interval(0.8, 0.01), sample::interval(0.82, 0.32));
    for trial in &mut run.trials {
        if trial.cipher.as_deref() != Some("twofish-xts-plain64") {
            continue;
        }
        let small = trial.block_bytes < Some(65536);
        let overhead = trial.overhead.as_mut().unwrap();
        (overhead.ratio, overhead.verdict) = match small {
            true => (open, Verdict::NotDistinguishable),
            false => (certain, Verdict::Slower),
        };
    }
    let sentence = advice::sentence(&run);
    assert!(
        sentence.contains("Twofish-256 XTS costs up to 44 %"),
        "{sentence}"
    );
    for trial in &mut run.trials {
        if let Some(overhead) = &mut trial.overhead
            && trial.cipher.as_deref() == Some("twofish-xts-plain64")
        {
            (overhead.ratio, overhead.verdict) = (open, Verdict::NotDistinguishable);
        }
    }
    let sentence = advice::sentence(&run);
    assert!(
        sentence.contains("Twofish-256 XTS costs at most 44 %"),
        "{sentence}"
    );
}

/// Two set-ups of one cipher have two names, in the answer as in the tables.
#[test]
fn advice_tells_set_ups_of_one_cipher_apart() {
    let mut run = sample::run();
    let others: Vec<Trial> = run
        .trials
        .iter()
        .filter(|trial| trial.cipher.as_deref() == Some("aes-xts-plain64"))
        .map(|trial| Trial {
            sector_bytes: Some(512),
            ..trial.clone()
        })
        .collect();
    run.trials.extend(others);
    let sentence = advice::sentence(&run);
    assert!(
        sentence.contains("Choose AES-256 XTS, 4096 B sectors or AES-256 XTS, 512 B sectors"),
        "{sentence}"
    );
}

/// A cipher that only one core encrypts is one of those to choose from, even if others are shared.
#[test]
fn advice_compares_what_is_shared_with_what_cannot_be() {
    let mut run = sample::run();
    for trial in &mut run.trials {
        if trial.cipher.as_deref() == Some("twofish-xts-plain64") {
            trial.backend = Some("vaes256 on 16 cores".into());
        }
    }
    let sentence = advice::sentence(&run);
    assert!(
        sentence.contains("Twofish-256 XTS, 16 cores costs 5.1 to 40 %. Choose AES-256 XTS."),
        "{sentence}"
    );
}

#[test]
fn advice_calls_nothing_faster_that_is_not_certain() {
    let mut run = sample::run();
    for trial in &mut run.trials {
        if let Some(overhead) = &mut trial.overhead {
            overhead.ratio = sample::interval(1.02, 0.01);
            overhead.verdict = Verdict::NotDistinguishable;
        }
    }
    let sentence = advice::sentence(&run);
    assert!(
        sentence.starts_with("AES-256 XTS costs nothing measurable (at most 0 %)"),
        "{sentence}"
    );
    for trial in &mut run.trials {
        if let Some(overhead) = &mut trial.overhead {
            overhead.verdict = Verdict::Faster;
        }
    }
    let sentence = advice::sentence(&run);
    assert!(
        sentence.starts_with("AES-256 XTS costs nothing: it is faster"),
        "{sentence}"
    );
}

/// An interval that says nothing in per cent is not printed in per cent.
#[test]
fn no_interval_of_hundreds_of_per_cent_is_shown() {
    let mut run = sample::run();
    for trial in &mut run.trials {
        if let Some(overhead) = &mut trial.overhead {
            overhead.ratio = sample::interval(1.2, 4.41);
            overhead.verdict = Verdict::NotDistinguishable;
        }
    }
    let [text, markdown, _, html, sentence] = everything(&run);
    for output in [&text, &markdown, &html, &sentence] {
        assert!(!output.contains("±4"), "{output}");
    }
}

#[test]
fn ciphers_of_one_name_are_told_apart() {
    let mut run = sample::ciphers();
    for trial in &mut run.trials {
        trial.key_bits = Some(512);
        trial.cipher = trial.cipher.as_deref().map(|cipher| match cipher {
            "aes-xts-plain64" => cipher.to_owned(),
            _ => "aes-xts-plain".to_owned(),
        });
    }
    let table = table(&run, 110);
    for text in [
        "  AES-256 XTS, aes-xts-plain64      512   13,400",
        "  AES-256 XTS, aes-xts-plain        512      950",
        "AES-256 XTS, aes-xts-plain64 is the fastest here",
    ] {
        assert!(table.contains(text), "{text}: {table}");
    }
}

#[test]
fn bare_ciphers_stand_beside_the_fastest_library() {
    let run = sample::ciphers();
    let expected = "\
encrypt, 1 MiB requests, 1 thread
                            sector     MB/s     c/B   best library           const. time   2 threads
───────────────────────────────────────────────────────────────────────────────────────────────────────
  AES-256 XTS                  512   13,400   0.275   2.24 ±0.02 × openssl   yes              26,800
  AES-Twofish-Serpent XTS      512      950   3.884   –                      yes               1,900
";
    let table_110 = table(&run, 110);
    assert!(table_110.contains(expected), "{table_110}");
    for text in [
        "AES-256 XTS",
        "13,400",
        "0.275",
        "2.24 ±0.02 × openssl",
        "26,800",
        "the first cipher against itself",
        "AES-256 XTS is the fastest here: 13,400",
        "The engine is faster than every library in 4 of 6 comparisons, not distinguishable in 0, \
         and slower in 2",
        "0.90 (0.89–0.91) × openssl",
    ] {
        assert!(flat(&table_110).contains(text), "{text}: {table_110}");
    }
    // The second measurement of the first cipher does not get a row of its own.
    assert_eq!(
        table_110.matches("  AES-256 XTS ").count(),
        2,
        "{table_110}"
    );
    let runs = std::slice::from_ref(&run);
    let page = html::render(runs);
    assert!(
        page.contains("0.90 × at 512 B"),
        "the weakest size is named"
    );
    assert_eq!(page.matches("by size of requests").count(), 2 + 4);
    let markdown = markdown::render(runs);
    assert!(
        markdown.contains("512 B: 13,400, 1 MiB: 13,400"),
        "{markdown}"
    );
    for width in [110, 90, 70, 50, 30] {
        let table = table(&run, width);
        assert!(
            table
                .lines()
                .all(|line| line.chars().count() <= usize::from(width)),
            "{table}"
        );
        assert!(table.contains("13,400"), "{table}");
    }
}

/// Without the line breaks that a narrow terminal needs.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_partial_run_says_so() {
    let mut run = sample::run();
    run.partial = true;
    run.trials.truncate(3);
    assert!(advice::sentence(&run).starts_with("This run is partial."));
    let [text, markdown, csv, html, _] = everything(&run);
    assert!(text.contains("PARTIAL"));
    assert!(markdown.contains(", partial"));
    assert!(csv.lines().nth(1).unwrap().contains(",true,"));
    assert!(html.contains("<strong>partial</strong>"));
}

#[test]
fn an_empty_run_says_what_to_do() {
    let run = sample::empty();
    let [text, markdown, csv, html, sentence] = everything(&run);
    assert!(sentence.contains("cryptmark run --quick"));
    assert!(text.contains("No cell was measured."));
    assert!(text.contains("no A/A pair was measured"));
    assert!(markdown.contains("Nothing was measured"));
    assert_eq!(csv.lines().count(), 1);
    assert!(html.contains("No cell was measured."));
    assert!(!html.contains("<svg"));

    assert_eq!(markdown::render(&[]), "No run.\n");
    assert_eq!(json::render(&[]).unwrap(), "[]\n");
    assert!(html::render(&[]).contains("There is no run"));
}

#[test]
fn what_nobody_measured_is_a_dash() {
    let run = sample::bare();
    let [text, markdown, csv, html, sentence] = everything(&run);
    assert!(
        text.contains("  AES XTS, builtin         12,409 IOPS     –"),
        "{text}"
    );
    assert!(markdown.contains("| AES XTS, builtin | 12,409"));
    let row: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    let column = |name| {
        csv::header()
            .iter()
            .position(|column| *column == name)
            .unwrap()
    };
    for unknown in ["cycles_per_byte", "crypto_s", "overhead_ratio", "clock_hz"] {
        assert_eq!(row[column(unknown)], "", "{unknown} is not zero");
    }
    assert!(!html.contains("Where the time went"));
    assert!(!html.contains("<h3>Latency</h3>"));
    assert!(sentence.contains("No encrypted system was compared"));
}

#[test]
fn hostile_text_stays_text() {
    let run = sample::hostile();
    let [text, markdown, csv, html, sentence] = everything(&run);
    assert_eq!(html.matches("<script").count(), 1, "the page's own: {html}");
    assert!(!html.contains("=\"<"), "attributes are escaped");
    assert!(html.contains("&lt;script&gt;"));
    assert!(!markdown.contains("<script"));
    assert!(!text.contains('\x1b'), "a terminal is not steered");
    for output in [&text, &markdown, &html, &sentence] {
        assert!(!output.contains('\u{202e}'), "text is not turned round");
    }
    assert!(!table(&run, 60).contains('\x1b'));
    // Every row of the CSV still has every field.
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    assert_eq!(reader.records().flatten().count(), run.trials.len());
    assert!(!sentence.is_empty());
}

#[test]
fn extreme_numbers_break_nothing() {
    let run = sample::extreme();
    let [text, markdown, csv, html, sentence] = everything(&run);
    for output in [&text, &markdown, &csv, &html, &sentence] {
        for nonsense in ["NaN", "inf ", "inf%", "∞"] {
            assert!(!output.contains(nonsense), "{nonsense} in {output}");
        }
    }
    for width in [20, 40, 80] {
        table(&run, width);
    }
    let mut tiny = sample::run();
    tiny.trials[0].throughput_mb_s = Interval {
        median: 1e-7,
        low: 1e-8,
        high: 1e-6,
        n: 1,
    };
    tiny.trials[0].block_bytes = Some(1 << 20);
    assert!(table(&tiny, 110).contains("1.0e-7 MB/s"));
}

/// More cells than any plan for devices has.
#[test]
fn a_full_run_can_be_sent_on() {
    let page = html::render(&[sample::many(20, 30)]);
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    // Twenty pictures of rates, latencies, one of costs and one of ledgers, each
    // with 24 systems and some with plain; the table has every cell.
    assert_eq!(page.matches("<g role=\"img\"").count(), 20 * (4 * 24 + 3));
    assert_eq!(page.matches("<tr data-system").count(), 600);
    assert!(page.contains("A workload has up to 29 systems"));
    let fastest = html::render(&[sample::many(1, 60)]);
    let ratios: Vec<f64> = sample::many(1, 60).trials[2..]
        .iter()
        .filter_map(|trial| trial.overhead.as_ref())
        .map(|cost| cost.ratio.median)
        .collect();
    let best = ratios.iter().copied().fold(0.0, f64::max);
    let worst = ratios.iter().copied().fold(1.0, f64::min);
    assert!(fastest.contains(&format!("ratio {best:.3} (")));
    assert!(!fastest.contains(&format!("ratio {worst:.3} (")));
}

#[test]
fn the_csv_header_is_stable() {
    let csv = csv::render(&[sample::run(), sample::run()]);
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    assert_eq!(header.iter().collect::<Vec<_>>(), csv::header());
    assert!(
        csv.starts_with("run,plan,started,partial,seed,cpu,cores,kernel,os,aa_ratio,"),
        "columns are only ever added at the end"
    );
    // The last one of the first version of the table.
    let last = header.iter().position(|name| name == "smallest_difference");
    assert_eq!(last, Some(99));
    assert!(header.iter().all(|name| !name.starts_with("samples_")));
    let rows: Vec<_> = reader.records().flatten().collect();
    assert_eq!(rows.len(), 30);
    let column = |name| {
        csv::header()
            .iter()
            .position(|column| *column == name)
            .unwrap()
    };
    let aes = &rows[2];
    for (name, value) in [
        ("cipher", "aes-xts-plain64"),
        ("key_bits", "512"),
        ("tier", "block"),
        ("noise", "quiet"),
        ("verdict", "slower"),
        ("overhead_n", "10"),
        ("latency_device_us", "70"),
        ("wall_s", "10"),
        ("bottleneck", "device"),
        ("against", "none"),
        ("cold", "false"),
        ("ordinal", "2"),
        ("trial_cores", "1"),
    ] {
        assert_eq!(&aes[column(name)], value, "{name}");
    }
}

#[test]
fn json_is_the_record() {
    let run = sample::run();
    let text = json::render(std::slice::from_ref(&run)).unwrap();
    let read: Run = serde_json::from_str(&text).unwrap();
    assert_eq!(read.run, run.run);
    assert_eq!(read.trials.len(), run.trials.len());
    let two = json::render(&[run.clone(), run]).unwrap();
    let read: Vec<Run> = serde_json::from_str(&two).unwrap();
    assert_eq!(read.len(), 2);
}

#[test]
fn markdown_has_a_table_a_workload() {
    let markdown = markdown::render(&[sample::run()]);
    assert_eq!(markdown.matches("\n## rand-4k-").count(), 2);
    assert!(markdown.contains(
        "| AES-256 XTS, builtin | 12,409 (12,161–12,657) IOPS | 10 | 80.6 µs | 193 µs | \
         slower by 3.0 % (1.1–4.9) | 2.0 % | 3 % | device |"
    ));
    assert!(markdown.contains("Plain against itself (A/A): not distinguishable (±0.8 %)"));
}

#[test]
fn equal_names_are_told_apart() {
    let mut run = sample::run();
    let mut other = run.trials[2].clone();
    other.sector_bytes = Some(512);
    run.trials.push(other);
    let mut third = run.trials[2].clone();
    third.cipher = Some("aes-xts-plain".into());
    run.trials.push(third);
    let markdown = markdown::render(&[run]);
    for label in [
        "| AES-256 XTS, builtin, aes-xts-plain64, 4096 B sectors |",
        "| AES-256 XTS, builtin, aes-xts-plain64, 512 B sectors |",
        "| AES-256 XTS, builtin, aes-xts-plain |",
    ] {
        assert!(markdown.contains(label), "{markdown}");
    }
}

#[test]
fn several_devices_are_named_in_the_titles() {
    let mut run = sample::run();
    let mut simulated = run.trials.clone();
    for trial in &mut simulated {
        trial.device.model = Some("hdd-2005".into());
    }
    run.trials.extend(simulated);
    let markdown = markdown::render(&[run]);
    for title in [
        "## rand-4k-read, depth 1, Samsung SSD 980 PRO 1TB direct\n",
        "## rand-4k-read, depth 1, hdd-2005 direct\n",
    ] {
        assert!(markdown.contains(title), "{markdown}");
    }
}

/// Core-seconds, passphrases and order of the derivations, in every output.
#[test]
fn key_derivations_are_sorted_by_what_a_guess_costs() {
    let run = sample::kdf_run();
    let text = text::table(&run, &Style::default());
    let (_, text) = text.split_once("\n\n").unwrap();
    let place = |needle: &str| {
        text.find(needle)
            .unwrap_or_else(|| panic!("{needle}:\n{text}"))
    };
    // 4 core-seconds (two cores for 2 s), 0.5, 0.1 and 0.001.
    let order = ["luks2 ", "veracrypt ", "veracrypt-system ", "truecrypt "].map(place);
    assert!(order.is_sorted(), "{text}");
    for needle in [
        "4.00",
        "1 GiB",
        "argon2id, 4 passes, 4 lanes",
        "sha512 × 500,000",
        "4,000 ×",
    ] {
        place(needle);
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 110),
        "{text}"
    );

    let sentence = advice::sentence(&run);
    assert!(sentence.contains("most with luks2 (argon2id"), "{sentence}");
    assert!(sentence.contains("least with truecrypt"), "{sentence}");
    for page in [
        markdown::render(std::slice::from_ref(&run)),
        html::render(std::slice::from_ref(&run)),
    ] {
        // A year has 31,557,600 seconds.
        assert!(
            page.contains("7,889,400") && page.contains("1 GiB"),
            "{page}"
        );
    }
    for width in [20, 40, 60, 80] {
        let style = Style {
            width,
            ..Style::default()
        };
        let narrow = text::table(&run, &style);
        assert!(narrow.contains("4.00"), "{narrow}");
    }
}

/// The page says what the text says of scores, preparation and rounds, and draws them.
#[test]
fn scores_and_rounds_stand_on_the_page() {
    let run = sample::scored();
    let text = flat(&text::table(&run, &Style::default()));
    let page = html::render(std::slice::from_ref(&run));
    for needle in [
        "Disk Mark (PassMark; published 1234)",
        "for the whole suite, in which this test weighs 20 %",
        "published -1.9 %",
        "nothing else used the machine meanwhile",
        "everything was discarded",
        "rand-4k-write, plain: steady in the last 5 of 10 rounds",
    ] {
        assert!(text.contains(needle), "{needle}\n{text}");
        assert!(page.contains(needle), "{needle}");
    }
    // Behind a colon in a terminal, a sentence of its own on the page.
    assert!(text.contains("Steady state: before each test"), "{text}");
    let markdown = markdown::render(std::slice::from_ref(&run));
    for (name, output) in [("page", &page), ("Markdown", &markdown)] {
        assert!(output.contains("Before each test"), "{name}");
    }
    // Half of 3,120 MB/s and a quarter of 812, and what repetitions add.
    let bar = "<title>plain: 1,76";
    // The first round and the last.
    let curve = "<title>rand-4k-write, plain, MB/s by round: 796, ";
    for needle in [bar, curve, "aria-label=\"Disk Mark\""] {
        assert!(page.contains(needle), "{needle}");
    }
    let without = html::render(&[sample::run()]);
    assert!(!without.contains("Preparation") && !without.contains("Steady state"));
}

/// One row each on a scale of seconds: 4 core-seconds a guess for a second's unlock.
#[test]
fn derivations_are_drawn() {
    let page = html::render(&[sample::kdf_run()]);
    let rows = page.matches("; a guess ").count();
    // A caption and a title.
    assert_eq!(rows, 2 * 4, "{page}");
    assert!(
        page.contains("<title>luks2, argon2id, 4 passes, 4 lanes: 2.00 s; a guess 4.00 core-s")
    );
    let mut partial = sample::kdf_run();
    partial.trials.truncate(1);
    assert!(!html::render(&[partial]).contains("; a guess "));
}

/// A derivation that was interrupted before its guess has dashes, and is not compared.
#[test]
fn a_derivation_without_its_guess_has_dashes() {
    let mut run = sample::kdf_run();
    run.trials.truncate(1);
    run.partial = true;
    let text = text::table(&run, &Style::default());
    assert!(
        text.contains('–') && text.contains("too few measurements"),
        "{text}"
    );
    assert!(html::render(&[run]).contains("–"));
}

/// A record of a derivation survives JSON, and other records lack that field.
#[test]
fn a_derivation_in_json() {
    let json = json::render(&[sample::kdf_run()]).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let text = value.to_string();
    assert!(text.contains("\"kdf\":{"), "{text}");
    let read: lab::record::Kdf = {
        let trials = match &value {
            serde_json::Value::Array(runs) => &runs[0]["trials"],
            run => &run["trials"],
        };
        serde_json::from_value(trials[4]["kdf"].clone()).unwrap()
    };
    assert_eq!((read.memory_kib, read.calibrated_ms), (1 << 20, Some(2000)));
    assert!(!json::render(&[sample::run()]).unwrap().contains("\"kdf\""));
}

/// The sample's cells as operations on a file system in the lab kernel.
fn on_file_systems() -> Run {
    let mut run = sample::run();
    for trial in &mut run.trials {
        trial.tier = Tier::Fs;
        trial.operation_mut().fs = Some("ext2".into());
        trial.system = format!("lab:{}", trial.system);
        trial.repetitions = 10;
        trial.time_s.sys = Some(0.02);
        trial.time_s.workers = None;
        trial.time_s.crypto = trial.cipher.as_ref().map(|_| 0.5);
        if let Some(overhead) = &mut trial.overhead {
            overhead.against = "lab:none".into();
        }
        trial.operation_mut().samples_s = vec![0.1, 0.2];
    }
    run
}

#[test]
fn file_systems_have_tables_with_real_system_and_crypto_time() {
    let run = on_file_systems();
    let wide = table(&run, 110);
    let header = wide.lines().find(|line| line.starts_with("operation"));
    for column in ["system", "real", "sys", "crypto", "against plain"] {
        assert!(
            header.is_some_and(|header| header.contains(column)),
            "{wide}"
        );
    }
    assert!(wide.contains("ext2 in the lab kernel"), "{wide}");
    let plain = wide.lines().find(|line| line.contains("  plain  "));
    assert!(
        plain.is_some_and(|line| line.contains("2.00 ms") && line.contains('–')),
        "{wide}"
    );
    let encrypted = wide.lines().find(|line| line.contains("dm-crypt"));
    assert!(
        encrypted.is_some_and(|line| line.contains("50.0 ms")),
        "{wide}"
    );
    for width in [20, 60, 80, 110] {
        let text = table(&run, width);
        assert!(text.contains("dm-crypt"), "{text}");
    }
    let [_, markdown, _, html, advice] = everything(&run);
    for text in [&markdown, &html] {
        assert!(
            text.contains("kernel threads") && text.contains("50.0 ms"),
            "{text}"
        );
    }
    assert!(
        advice.starts_with(
            "AES-256 XTS, lab:builtin costs least in its worst operation: rand-4k-write on ext2 \
             takes 1.13 × as long as plain."
        ),
        "{advice}"
    );
}

/// A cipher that is not distinguishable from plain costs less than one that is certainly slower.
#[test]
fn the_cheapest_on_file_systems_may_cost_nothing_measurable() {
    let mut run = on_file_systems();
    for trial in &mut run.trials {
        if let Some(overhead) = &mut trial.overhead
            && trial.cipher.as_deref() == Some("aes-xts-plain64")
        {
            overhead.ratio = sample::interval(0.99, 0.02);
            overhead.verdict = Verdict::NotDistinguishable;
        }
    }
    assert_eq!(
        advice::sentence(&run),
        "AES-256 XTS, lab:builtin costs least in its worst operation: nothing measurable."
    );
    for trial in &mut run.trials {
        if let Some(overhead) = &mut trial.overhead {
            (overhead.ratio.n, overhead.verdict) = (2, Verdict::TooFew);
        }
    }
    let sentence = advice::sentence(&run);
    assert!(sentence.starts_with("Too few repetitions"), "{sentence}");
}

#[test]
fn published_figures_stand_beside_ours() {
    let run = sample::beside_a_paper();
    let [text, markdown, csv, html, _] = everything(&run);
    for (report, kind) in [(&text, "text"), (&markdown, "Markdown"), (&html, "HTML")] {
        let report = flat(report);
        for word in [
            "Compared with the paper",
            "A paper, 2007",
            "There: drives of then.",
            "TrueCrypt, a disk, Figure 2",
            "builtin luks2",
            "0.43 Mb/s",
            "0.86",
            // 0.91 ÷ 0.97, in every repetition.
            "0.94 (0.94–0.94)",
            "holds here in 1 of 2 comparisons, differs in 1 and is undecided in 0",
        ] {
            assert!(
                report.contains(word),
                "{word} is not in the {kind}: {report}"
            );
        }
        let order = report.replace("&gt;", ">");
        assert!(
            order.contains("there: AES > Serpent > Twofish. So here? no: Twofish > Serpent."),
            "{kind}: {order}"
        );
        assert!(
            order.contains("there: AES > Twofish > Serpent. So here? yes."),
            "{kind}: {order}"
        );
    }
    assert!(
        flat(&text).contains(
            "a disk, Figure 2: AES 0.5 Mb/s; Serpent 0.43 Mb/s, 0.86; Twofish 0.42 Mb/s, 0.84."
        ),
        "{text}"
    );
    assert!(
        flat(&text).contains("TrueCrypt, AES, Figure 2 5.1 % 3.0 % (1.1–4.9)"),
        "{text}"
    );
    assert!(
        csv.contains("0.5 Mb/s (TrueCrypt, a disk, Figure 2) | 20 Mb/s"),
        "{csv}"
    );
    for width in [20, 40, 60, 80, 110] {
        let text = table(&run, width);
        assert!(
            text.lines()
                .all(|line| line.chars().count() <= usize::from(width).max(60)),
            "{width}: {text}"
        );
        assert!(flat(&text).contains("So here? yes."), "{width}: {text}");
    }
}

#[test]
fn an_order_that_cannot_be_told_is_not_judged() {
    let mut run = sample::beside_a_paper();
    // Noise as large as the difference between AES and Serpent.
    run.trials[1].overhead = Some(sample::overhead(1.0, 0.08, Verdict::NotDistinguishable));
    let text = flat(&table(&run, 110));
    assert!(
        text.contains("not distinguishable: AES and Serpent"),
        "{text}"
    );
    assert!(
        text.contains("differs in 0 and is undecided in 2"),
        "{text}"
    );
    // Neither is one with two repetitions.
    let mut run = sample::beside_a_paper();
    for trial in &mut run.trials {
        trial.samples_mb_s.truncate(2);
    }
    let text = flat(&table(&run, 110));
    assert!(text.contains("is undecided in 2"), "{text}");
}

/// Times: less is faster, and two systems are compared cipher by cipher.
#[test]
fn published_times_of_two_systems_are_compared() {
    let mut run = on_file_systems();
    let mut other = run.trials[2].clone();
    other.system = "lab:cryptoloop".into();
    run.trials.push(other);
    let last = run.trials.len() - 1;
    for (at, system, value, crypto) in [(2, "dm-crypt", 0.02, 0.3), (last, "Cryptoloop", 0.01, 0.2)]
    {
        let trial = &mut run.trials[at];
        trial.operation_mut().samples_crypto_s = vec![crypto; 5];
        trial.published = vec![Published {
            document: "A paper".into(),
            value,
            unit: "s".into(),
            figure: "Table III".into(),
            row: 1,
            system: system.into(),
            device: "32 MB ext2".into(),
            cipher: "aes".into(),
            measure: Measure::Crypto,
        }];
    }
    run.paper = Some(Paper {
        document: "A paper".into(),
        differs: String::new(),
        base: "aes".into(),
    });
    let [text, markdown, _, html, _] = everything(&run);
    for report in [text, markdown, html] {
        let report = flat(&report);
        assert!(report.contains("dm-crypt ÷ Cryptoloop"), "{report}");
        assert!(
            report.contains("2.00") && report.contains("1.50 (1.50–1.50)"),
            "{report}"
        );
        assert!(
            !report.contains("So here?"),
            "one cipher has no order: {report}"
        );
    }
}
