//! Two runs compared: what is found, what is refused, how it reads.

mod sample;

use cryptmark_report::compare::{self, CompareError, Normalise, Options, compare};
use cryptmark_report::text::Style;
use lab::record::{Run, Verdict};

/// A run in which every rate is `factor` times as high.
fn another_day(factor: f64) -> Run {
    scaled_where(factor, |_| true)
}

/// A run in which the rates of encrypted systems are `factor` times as high.
fn scaled(factor: f64) -> Run {
    scaled_where(factor, |trial| trial.cipher.is_some())
}

fn scaled_where(factor: f64, is_scaled: fn(&lab::record::Trial) -> bool) -> Run {
    let mut run = sample::run();
    run.run = "20261122T120000-b".into();
    for trial in run.trials.iter_mut().filter(|trial| is_scaled(trial)) {
        for (at, value) in (0_i32..).zip(&mut trial.samples_mb_s) {
            *value *= factor * (1.0 + 0.002 * f64::from(at % 3 - 1));
        }
        trial.throughput_mb_s.median *= factor;
    }
    run
}

fn with_threshold(percent: f64) -> Options {
    Options {
        slower_than: Some(percent),
        ..Options::default()
    }
}

/// Two repetitions a side prove nothing, however large their difference is.
#[test]
fn too_few_samples_are_counted_for_themselves() {
    let [mut a, mut b] = [sample::run(), sample::run()];
    for run in [&mut a, &mut b] {
        for trial in &mut run.trials {
            trial.samples_mb_s.truncate(2);
        }
    }
    for rate in b
        .trials
        .iter_mut()
        .flat_map(|trial| &mut trial.samples_mb_s)
    {
        *rate /= 10.0;
    }
    let comparison = compare(&a, &b, &with_threshold(5.0)).unwrap();
    for pair in &comparison.cells {
        assert_eq!(pair.verdict, Verdict::TooFew);
        // Plain itself is not judged if shares of it are.
        assert_eq!(pair.unjudged, pair.by.is_some());
    }
    let text = compare::text(&comparison, &Style::default());
    let conclusion = "faster in 0, not distinguishable in 0, and too few samples in 12.";
    assert!(text.replace('\n', " ").contains(conclusion), "{text}");
    let json = serde_json::to_string(&comparison).unwrap();
    assert!(json.contains("\"verdict\":\"too few\""), "{json}");
}

#[test]
fn a_run_equals_itself() {
    let comparison = compare(&sample::run(), &sample::run(), &with_threshold(0.0)).unwrap();
    assert_eq!(comparison.cells.len(), 12, "A/A cells are not compared");
    for pair in &comparison.cells {
        assert_eq!(pair.verdict, Verdict::NotDistinguishable);
        assert!((pair.ratio.unwrap().median - 1.0).abs() < 1e-12);
    }
    assert_eq!(comparison.exceeding().count(), 0);
    assert!(comparison.only_a.is_empty() && comparison.only_b.is_empty());
}

#[test]
fn the_threshold_is_judged_on_the_interval() {
    let (a, b) = (sample::run(), scaled(0.9));
    let found = |percent| {
        compare(&a, &b, &with_threshold(percent))
            .unwrap()
            .exceeding()
            .count()
    };
    assert_eq!(found(5.0), 9);
    assert_eq!(
        found(9.9),
        0,
        "10 % slower is not certainly more than 9.9 %"
    );
    assert_eq!(found(15.0), 0);
    let comparison = compare(&a, &b, &Options::default()).unwrap();
    let encrypted = |comparison: &compare::Comparison, verdict| {
        let cells = comparison.cells.iter();
        let mut encrypted = cells.filter(|pair| pair.key.setup.cipher.is_some());
        encrypted.all(|pair| pair.verdict == verdict)
    };
    assert!(encrypted(&comparison, Verdict::Slower));
    assert_eq!(comparison.exceeding().count(), 0, "no threshold, no excess");
    let faster = compare(&b, &a, &with_threshold(5.0)).unwrap();
    assert!(encrypted(&faster, Verdict::Faster));
    assert_eq!(faster.exceeding().count(), 0);
}

/// A machine that is slower today does not mean that encryption has become slower. For unencrypted
/// trials, only the rate can be compared.
#[test]
fn a_slower_day_is_told_of_plain_and_fails_nothing() {
    let (mut a, mut b) = (sample::run(), another_day(0.9));
    let comparison = compare(&a, &b, &with_threshold(5.0)).unwrap();
    assert_eq!(comparison.exceeding().count(), 0);
    assert_eq!(comparison.unjudged().count(), 0);
    for pair in &comparison.cells {
        let expected = match pair.key.setup.cipher {
            None => (Verdict::Slower, None),
            Some(_) => (Verdict::NotDistinguishable, Some(Normalise::Plain)),
        };
        assert_eq!((pair.verdict, pair.by), expected, "{pair:?}");
    }
    let text = compare::text(&comparison, &Style::default());
    assert!(text.contains("rate slower by 10.0 %"), "{text}");

    for run in [&mut a, &mut b] {
        run.trials.retain(|trial| trial.cipher.is_none());
    }
    let comparison = compare(&a, &b, &with_threshold(5.0)).unwrap();
    assert_eq!(comparison.exceeding().count(), 3);
    let text = compare::text(&comparison, &Style::default());
    assert!(!text.contains("rate slower"), "{text}");
}

/// The noise floor of every load of `run`, as an arm of plain against itself.
fn with_noise(mut run: Run, arm: f64) -> Run {
    for trial in &mut run.trials {
        if trial.cipher.is_none()
            && let Some(again) = &mut trial.overhead
        {
            again.ratio = sample::interval(1.0, arm);
        }
    }
    run
}

/// An operation on a file system has a time, whether it moves bytes or not.
#[test]
fn operations_are_compared_by_their_times() {
    let timed = |seconds: f64| {
        let mut run = sample::run();
        for trial in &mut run.trials {
            trial.operation_mut().fs = Some("ext2".into());
            trial.throughput_mb_s = sample::interval(0.0, 0.0);
            trial.latency_us.as_mut().unwrap().p50 = seconds * 1e6;
            trial.operation_mut().samples_s = sample::samples(seconds);
        }
        run
    };
    let comparison = compare(&timed(0.045), &timed(0.09), &Options::default()).unwrap();
    assert_eq!(comparison.cells[0].verdict, Verdict::Slower);
    for text in [
        compare::text(&comparison, &Style::default()),
        compare::markdown(&comparison),
    ] {
        assert!(
            text.contains("45.0 ms") && text.contains("90.0 ms"),
            "{text}"
        );
        assert!(text.contains(" on ext2"), "{text}");
        assert!(!text.contains("MB/s"), "{text}");
    }
}

#[test]
fn noise_hides_small_differences() {
    let (a, b) = (sample::run(), scaled(0.96));
    let sure = compare(&a, &b, &Options::default()).unwrap();
    assert_eq!(sure.cells[1].verdict, Verdict::Slower);
    let unsure = compare(&with_noise(a, 0.06), &b, &Options::default()).unwrap();
    assert_eq!(unsure.cells[1].verdict, Verdict::NotDistinguishable);
    assert!((unsure.noise_floor - (1.0 / 0.94 - 1.0)).abs() < 1e-9);
}

#[test]
fn differing_environments_are_refused_unless_asked_for() {
    let a = sample::run();
    let mut b = sample::run();
    b.host.kernel = "Linux 6.18.0".into();
    for trial in &mut b.trials {
        trial.device.model = None;
        trial.device.cache = "buffered".into();
    }
    let error = compare(&a, &b, &Options::default()).unwrap_err();
    let CompareError::Environment { differences } = &error else {
        panic!("{error}");
    };
    let what: Vec<&str> = differences.iter().map(|item| item.what).collect();
    assert_eq!(what, ["kernel", "device model", "cache mode"]);
    assert!(error.to_string().contains("Linux 6.12.48 / Linux 6.18.0"));
    assert!(error.remedy().contains("--across-machines"));

    let across = Options {
        across_machines: true,
        ..Options::default()
    };
    let comparison = compare(&a, &b, &across).unwrap();
    assert_eq!(comparison.differences.len(), 3);
    assert!(compare::text(&comparison, &Style::default()).contains("DIFFERENT ENVIRONMENTS"));
    assert!(compare::markdown(&comparison).contains("DIFFERENT ENVIRONMENTS"));
}

/// A property is equal, differs, or is unknown; an unknown one is not equal.
#[test]
fn each_property_of_the_environment_counts() {
    type Change = fn(&mut Run);
    let changes: [(&str, Change); 13] = [
        ("processor", |run| run.host.cpu = "Another".into()),
        ("cores", |run| run.host.cores += 1),
        ("system", |run| run.host.os = "Another".into()),
        ("kernel", |run| run.host.kernel = "Another".into()),
        ("governor", |run| run.host.governor = Some("another".into())),
        ("size of the extent", |run| {
            devices(run, |device| device.size *= 2)
        }),
        ("device kind", |run| {
            devices(run, |device| device.kind = "hdd".into())
        }),
        ("device model", |run| {
            devices(run, |device| device.model = Some("X".into()))
        }),
        ("file system", |run| {
            devices(run, |device| device.filesystem = Some("xfs".into()))
        }),
        ("write cache", |run| {
            devices(run, |device| device.write_cache = Some("X".into()))
        }),
        ("scheduler", |run| {
            devices(run, |device| device.scheduler = Some("bfq".into()))
        }),
        ("engine", |run| {
            devices(run, |device| device.engine = "another".into())
        }),
        ("cache mode", |run| {
            devices(run, |device| device.cache = "another".into())
        }),
    ];
    for (what, change) in changes {
        let (a, mut b) = (sample::run(), sample::run());
        change(&mut b);
        let error = compare(&a, &b, &Options::default()).unwrap_err();
        let CompareError::Environment { differences } = error else {
            panic!("{what}: {error}");
        };
        assert_eq!(differences.len(), 1, "{differences:?}");
        assert_eq!(differences[0].what, what);
    }
    let (a, mut b) = (sample::run(), sample::run());
    for trial in &mut b.trials {
        trial.backend = trial.backend.as_ref().map(|_| "another".to_owned());
    }
    let comparison = compare(&a, &b, &Options::default()).unwrap();
    assert_eq!(comparison.differences[0].what, "backend");
    assert!(compare::text(&comparison, &Style::default()).contains("/ another)"));

    let mut a = sample::run();
    a.host = lab::record::Host::default();
    devices(&mut a, |device| device.cache = "unknown".into());
    let comparison = compare(&a, &a, &Options::default()).unwrap();
    assert!(comparison.differences.is_empty());
    assert_eq!(comparison.unknown, ["processor", "cache mode"]);
    let text = compare::text(&comparison, &Style::default());
    assert!(text.contains("may differ: processor, cache mode"), "{text}");
}

fn devices(run: &mut Run, change: fn(&mut lab::record::Device)) {
    let trials = run.trials.iter_mut();
    trials.for_each(|trial| change(&mut trial.device));
}

/// Half the machine with the same share lost: encryption costs as much on both.
#[test]
fn machines_are_compared_by_what_encryption_leaves() {
    let (a, b) = (sample::run(), another_day(0.5));
    let by = |normalise| Options {
        across_machines: true,
        normalise: Some(normalise),
        ..Options::default()
    };
    let comparison = compare(&a, &b, &by(Normalise::Plain)).unwrap();
    for pair in &comparison.cells {
        assert_eq!(pair.normalised.is_some(), pair.key.setup.cipher.is_some());
        let expected = match pair.key.setup.cipher {
            Some(_) => Verdict::NotDistinguishable,
            None => Verdict::TooFew,
        };
        assert_eq!(pair.verdict, expected, "{pair:?}");
    }
    let raw = compare(&a, &b, &Options::default()).unwrap();
    assert_eq!(raw.cells[0].verdict, Verdict::Slower);
    for text in [
        compare::text(&comparison, &Style::default()),
        compare::markdown(&comparison),
    ] {
        assert!(
            text.contains("NORMALISED: shares of the plain rate"),
            "{text}"
        );
        assert!(text.contains("A ÷ plain"), "{text}");
    }
    // Cycles are known of bare ciphers alone.
    let error = compare(&a, &b, &by(Normalise::Cycles)).unwrap_err();
    assert_eq!(error, CompareError::NotNormalised);
    let bare = |hz: f64, factor: f64| {
        let mut run = another_day(factor);
        run.host.clock_hz = Some(hz);
        for trial in &mut run.trials {
            trial.tier = lab::record::Tier::Cipher;
        }
        run
    };
    let comparison = compare(&bare(3e9, 1.0), &bare(6e9, 2.0), &by(Normalise::Cycles)).unwrap();
    for pair in &comparison.cells {
        assert_eq!(pair.verdict, Verdict::NotDistinguishable, "{pair:?}");
    }
    let [cycles, same] = comparison.cells[0].normalised.unwrap();
    let expected = 3e3 / rate_of_a_thread(&bare(3e9, 1.0));
    assert!((cycles / expected - 1.0).abs() < 0.05 && (same / cycles - 1.0).abs() < 1e-9);
}

/// MB/s of the first cell, for each thread.
fn rate_of_a_thread(run: &Run) -> f64 {
    run.trials[0].throughput_mb_s.median / f64::from(run.trials[0].threads.unwrap())
}

#[test]
fn cells_of_one_run_alone_are_listed() {
    let mut a = sample::run();
    let mut b = sample::run();
    a.trials.remove(4);
    b.trials.retain(|trial| trial.workload != "seq-1m-read");
    let comparison = compare(&a, &b, &Options::default()).unwrap();
    assert_eq!(comparison.cells.len(), 7);
    assert_eq!(comparison.only_b.len(), 1);
    assert_eq!(comparison.only_a.len(), 4);
    let text = compare::text(&comparison, &Style::default());
    assert!(text.contains("only in A: seq-1m-read · plain"), "{text}");
    assert!(
        text.contains("only in B: rand-4k-read · Twofish-256 XTS, builtin")
            || text.contains("only in B: rand-4k-read · Serpent-256 XTS, dm-crypt"),
        "{text}"
    );
}

/// A gate that could see nothing says so.
#[test]
fn what_could_not_be_judged_is_counted() {
    let (a, mut b) = (sample::run(), scaled(0.75));
    let told = |a: &Run, b: &Run| {
        let comparison = compare(a, b, &with_threshold(5.0)).unwrap();
        let text = compare::text(&comparison, &Style::default());
        (comparison, text.replace("\n  ", " "))
    };
    let (sure, text) = told(&a, &b);
    assert_eq!((sure.exceeding().count(), sure.unjudged().count()), (9, 0));
    assert!(
        !text.contains("could not be judged") && !text.contains("lacks"),
        "{text}"
    );

    let (blind, text) = told(&with_noise(a, 0.3), &b);
    assert_eq!(
        (blind.exceeding().count(), blind.unjudged().count()),
        (0, 9)
    );
    let reason = "9 could not be judged: the noise floor of 42.9 % is above the threshold.";
    assert!(text.contains(reason), "{text}");
    let json = compare::json(&blind).unwrap();
    assert!(json.contains("\"unjudged\": true"), "{json}");

    let a = sample::run();
    b.trials.retain(|trial| trial.workload != "seq-1m-read");
    for trial in &mut b.trials {
        trial.samples_mb_s.truncate(2);
    }
    let (few, text) = told(&a, &b);
    assert_eq!((few.exceeding().count(), few.unjudged().count()), (0, 6));
    assert!(
        text.contains("6 could not be judged: their intervals are too wide"),
        "{text}"
    );
    assert!(text.contains("B lacks 4 cells of A."), "{text}");
}

/// The same with other devices, options of the kernel and caches is another cell.
#[test]
fn cells_are_paired_with_their_like() {
    let on = |model: &str, options: &str| {
        let mut run = sample::run();
        for trial in &mut run.trials {
            trial.device.model = Some(model.into());
            if trial.system == "dm-crypt" {
                trial.backend = Some(options.into());
            }
        }
        run.trials
    };
    let of = |parts: &[Vec<lab::record::Trial>]| Run {
        trials: parts.concat(),
        ..sample::run()
    };
    let both = of(&[on("x", "same_cpu_crypt"), on("y", "same_cpu_crypt")]);
    let other_way = of(&[on("y", "same_cpu_crypt"), on("x", "same_cpu_crypt")]);
    for (a, b, cells) in [
        (&both, &other_way, 24),
        (&both, &of(&[on("y", "same_cpu_crypt")]), 12),
    ] {
        let comparison = compare(a, b, &Options::default()).unwrap();
        assert_eq!(comparison.cells.len(), cells);
        assert_eq!(comparison.only_a.len(), 24 - cells);
    }
    let options = ["no_read_workqueue", "same_cpu_crypt"].map(|options| on("x", options));
    let a = of(&options);
    let b = of(&options[1..]);
    let comparison = compare(&a, &b, &Options::default()).unwrap();
    let text = compare::text(&comparison, &Style::default());
    assert!(text.contains("dm-crypt, no_read_workqueue"), "{text}");
    let others = comparison
        .cells
        .iter()
        .filter(|pair| pair.key.setup.system == "dm-crypt");
    assert!(others.clone().count() == 3);
    for pair in others {
        assert_eq!(pair.key.setup.options.as_deref(), Some("same_cpu_crypt"));
    }

    let mut cold = sample::run();
    for trial in &mut cold.trials {
        trial.cold = true;
    }
    assert!(matches!(
        compare(&sample::run(), &cold, &Options::default()),
        Err(CompareError::NothingInCommon { .. })
    ));
}

#[test]
fn nothing_in_common_is_an_error() {
    let a = sample::run();
    let mut b = sample::run();
    for trial in &mut b.trials {
        trial.queue_depth = trial.queue_depth.map(|depth| depth + 1);
    }
    for other in [
        b,
        Run {
            host: a.host.clone(),
            ..sample::empty()
        },
    ] {
        assert!(matches!(
            compare(&a, &other, &Options::default()),
            Err(CompareError::NothingInCommon { .. })
        ));
    }
}

#[test]
fn a_threshold_is_a_percentage() {
    for percent in [-1.0, 100.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            compare(&sample::run(), &sample::run(), &with_threshold(percent)),
            Err(CompareError::Threshold { .. })
        ));
    }
}

#[test]
fn runs_without_samples_compare_to_nothing() {
    let (mut a, b) = (sample::run(), sample::run());
    for trial in &mut a.trials {
        trial.samples_mb_s.clear();
    }
    let comparison = compare(&a, &b, &with_threshold(1.0)).unwrap();
    assert!(comparison.cells.iter().all(|pair| pair.ratio.is_none()));
    assert_eq!(comparison.exceeding().count(), 0);
    assert!(compare::text(&comparison, &Style::default()).contains("no samples to compare"));

    let extreme = sample::extreme();
    compare(&extreme, &extreme, &with_threshold(1.0)).unwrap();
}

#[test]
fn it_reads_well() {
    let comparison = compare(&sample::run(), &scaled(0.9), &with_threshold(5.0)).unwrap();
    let text = compare::text(&comparison, &Style::default());
    assert!(text.contains("slower by 10.0 %"), "{text}");
    assert!(text.contains("Of 12 cells in both runs, B is slower in 9"));
    let one_line = text.replace("\n  ", " ");
    assert!(one_line.contains("9 certainly slower by more than 5 % (!)."));
    assert!(
        text.lines().all(|line| line.chars().count() <= 110),
        "{text}"
    );
    let markdown = compare::markdown(&comparison);
    assert!(markdown.contains(
        "| rand-4k-read | AES-256 XTS, builtin | 50.8 (97.0 %) | 45.7 (87.3 %) | slower by"
    ));
    let json: serde_json::Value =
        serde_json::from_str(&compare::json(&comparison).unwrap()).unwrap();
    assert_eq!(json["cells"][1]["verdict"], "slower");
    assert_eq!(json["cells"][1]["exceeds"], true);
    assert_eq!(json["cells"][1]["by"], "plain");

    let hostile = compare(&sample::hostile(), &sample::hostile(), &Options::default()).unwrap();
    assert!(!compare::text(&hostile, &Style::default()).contains('\x1b'));
    assert!(!compare::markdown(&hostile).contains("<script"));
}

/// File systems of two sizes, one core and several, and two extents are not the same cell.
#[test]
fn what_differs_in_size_or_cores_is_another_cell() {
    let of_size = |mib: u64, seconds: f64| {
        let mut run = sample::run();
        for trial in &mut run.trials {
            trial.tier = lab::record::Tier::Fs;
            trial.operation_mut().fs = Some("ext4".into());
            trial.operation_mut().samples_s = sample::samples(seconds);
            trial.device.size = mib << 20;
        }
        run.trials
    };
    let of = |parts: &[Vec<lab::record::Trial>]| Run {
        trials: parts.concat(),
        ..sample::run()
    };
    // The larger ones take longer.
    let both = of(&[of_size(32, 1.0), of_size(64, 2.0)]);
    let larger = of(&[of_size(64, 2.0)]);
    let comparison = compare(&both, &larger, &Options::default()).unwrap();
    assert_eq!(comparison.only_a.len(), 12);
    for pair in &comparison.cells {
        assert_eq!(pair.verdict, Verdict::NotDistinguishable, "{pair:?}");
    }
    let text = compare::text(&comparison, &Style::default());
    assert!(text.contains("on ext4, 64 MiB, warm"), "{text}");

    let shared = |cores: u32| {
        let mut run = sample::run();
        for trial in run.trials.iter_mut().filter(|t| t.system == "builtin") {
            trial.backend = Some(format!("vaes512 on {cores} cores"));
        }
        run
    };
    let alone = compare(&sample::run(), &shared(4), &Options::default()).unwrap();
    let engine = |run: &Run| run.trials.iter().filter(|t| t.system == "builtin").count();
    assert_eq!(alone.only_a.len(), engine(&shared(4)));
    let text = compare::text(&alone, &Style::default());
    assert!(text.contains("builtin, 4 cores"), "{text}");
    let error = compare(&shared(2), &shared(4), &Options::default()).unwrap_err();
    assert!(
        error.to_string().contains("cores that encrypt (2 / 4)"),
        "{error}"
    );

    let mut longer = sample::run();
    for trial in &mut longer.trials {
        trial.device.size *= 2;
    }
    let error = compare(&sample::run(), &longer, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("extent"), "{error}");
}
