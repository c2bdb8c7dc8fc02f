//! Handmade runs: a realistic one, and the extremes.
// Each test program uses a part of this.
#![allow(dead_code)]

use lab::record::*;

/// A laptop with an SSD, three workloads, three ciphers, every field filled.
pub fn run() -> Run {
    let mut trials = Vec::new();
    for (workload, op, block, depth, plain_mb_s, slow) in [
        ("rand-4k-read", "read", 4096, 1, 52.4, [0.97, 0.91, 0.93]),
        (
            "rand-4k-write",
            "write",
            4096,
            32,
            812.0,
            [0.886, 0.71, 0.8],
        ),
        (
            "seq-1m-read",
            "read",
            1 << 20,
            8,
            3120.0,
            [0.998, 0.42, 0.61],
        ),
    ] {
        let plain = cell(workload, op, block, depth, plain_mb_s);
        trials.push(plain.clone());
        trials.push(Trial {
            overhead: Some(overhead(1.001, 0.007, Verdict::NotDistinguishable)),
            ..plain.clone()
        });
        for (number, ratio) in slow.into_iter().enumerate() {
            trials.push(encrypted(&plain, number, ratio));
        }
    }
    let mut warnings = vec![
        "governor is `powersave`: clocks vary; set `performance` (cpupower frequency-set -g performance)"
            .to_owned(),
    ];
    trials[3].warnings.append(&mut warnings);
    Run {
        exposures: Vec::new(),
        schema: SCHEMA.into(),
        run: "20261121T120000-7f3a".into(),
        plan: "quick".into(),
        started: "2026-11-21T12:00:00+01:00".into(),
        partial: false,
        seed: 42,
        shard: None,
        fingerprint: None,
        host: host(),
        noise: Noise {
            aa_ratio: Some(interval(1.001, 0.007)),
            verdict: NoiseVerdict::Quiet,
        },
        trials,
        paper: None,
        conditioning: None,
        marks: Vec::new(),
        warnings: vec!["the device was not preconditioned; --precondition fills it first".into()],
    }
}

/// A run of `workloads` × `setups` cells: plain, plain again, and as many
/// ciphers and systems as that takes, as a large plan on block devices has them.
pub fn many(workloads: usize, setups: usize) -> Run {
    const NAMES: [&str; 10] = [
        "aes",
        "serpent",
        "twofish",
        "camellia",
        "cast6",
        "sm4",
        "aria",
        "seed",
        "kuznyechik",
        "anubis",
    ];
    const MODES: [&str; 2] = ["xts-plain64", "cbc-essiv:sha256"];
    const SYSTEMS: [&str; 5] = ["builtin", "builtin-nbd", "builtin-fuse", "dm-crypt", "qemu"];
    let mut trials = Vec::new();
    for workload in 0..workloads {
        let (op, block) = [("read", 4096), ("write", 4096), ("read", 1 << 20)][workload % 3];
        let depth = 1 << (workload % 6);
        let rate = 50.0 + workload as f64;
        let plain = cell(&format!("load-{workload:02}-{op}"), op, block, depth, rate);
        trials.push(plain.clone());
        trials.push(Trial {
            overhead: Some(overhead(1.001, 0.007, Verdict::NotDistinguishable)),
            ..plain.clone()
        });
        for number in 0..setups.saturating_sub(2) {
            let ratio = 0.4 + 0.6 * ((number * 37 + workload) % 100) as f64 / 100.0;
            let cipher = format!("{}-{}", NAMES[number % 10], MODES[number / 10 % 2]);
            trials.push(Trial {
                cipher: Some(cipher),
                system: SYSTEMS[number / 20 % 5].into(),
                ..encrypted(&plain, 0, ratio)
            });
        }
    }
    Run {
        plan: "many".into(),
        trials,
        ..run()
    }
}

fn host() -> Host {
    Host {
        cpu: "AMD Ryzen 7 5800U with Radeon Graphics".into(),
        features: ["aes", "vaes", "avx2"].map(String::from).to_vec(),
        clock_hz: Some(4.3e9),
        tsc_hz: Some(1.897e9),
        clock_resolution_ns: 10.0,
        clock_cost_ns: 21.5,
        cores: 16,
        kernel: "Linux 6.12.48".into(),
        os: "Debian GNU/Linux 13".into(),
        governor: Some("powersave".into()),
        memory: 16 << 30,
        load_average: Some(0.21),
        steal: Some(0.0),
        hypervisor: None,
        versions: [("cryptmark".to_owned(), "0.1.0".to_owned())].into(),
    }
}

fn encrypted(plain: &Trial, number: usize, ratio: f64) -> Trial {
    let verdict = match ratio {
        ratio if ratio > 0.99 => Verdict::NotDistinguishable,
        _ => Verdict::Slower,
    };
    let latency = plain.latency_us.as_ref().unwrap();
    let stretched = |us: f64| us / ratio;
    Trial {
        system: if number == 1 { "dm-crypt" } else { "builtin" }.into(),
        backend: Some("vaes256".into()).filter(|_| number != 1),
        cipher: Some(
            [
                "aes-xts-plain64",
                "serpent-xts-plain64",
                "twofish-xts-plain64",
            ][number]
                .into(),
        ),
        key_bits: Some(512),
        sector_bytes: Some(4096),
        format: Some("luks2".into()),
        throughput_mb_s: interval(plain.throughput_mb_s.median * ratio, 0.02),
        iops: interval(plain.iops.median * ratio, 0.02),
        cycles_per_byte: Some(interval(0.6, 0.01)),
        latency_us: Some(Latency {
            p50: stretched(latency.p50),
            p90: stretched(latency.p90),
            p99: stretched(latency.p99),
            p99_9: stretched(latency.p99_9),
            max: stretched(latency.max),
            curve: latency
                .curve
                .iter()
                .map(|(percentile, us)| (*percentile, stretched(*us)))
                .collect(),
        }),
        time_s: TimeSplit {
            crypto: Some(10.0 * (1.0 - ratio)),
            wait: Some(10.0 * ratio - 2.0),
            ..plain.time_s.clone()
        },
        latency_split_us: Some(LatencySplit {
            queue: 1.0,
            crypto: 2.0,
            device: 70.0,
        }),
        overhead: Some(overhead(ratio, 0.02, verdict)),
        bottleneck: if ratio < 0.6 {
            Bottleneck::Cipher
        } else {
            Bottleneck::Device
        },
        constant_time: Some(true),
        samples_mb_s: samples(plain.throughput_mb_s.median * ratio),
        ..plain.clone()
    }
}

/// A plain cell that moves `mb_s`.
pub fn cell(workload: &str, op: &str, block_bytes: u64, queue_depth: u32, mb_s: f64) -> Trial {
    let iops = mb_s * 1e6 / block_bytes as f64;
    let p50 = 1e6 * f64::from(queue_depth) / iops;
    let curve = [
        (0.0, 0.7),
        (50.0, 1.0),
        (75.0, 1.1),
        (90.0, 1.3),
        (95.0, 1.5),
        (99.0, 2.4),
        (99.5, 3.4),
        (99.9, 7.0),
        (99.99, 21.0),
        (100.0, 48.0),
    ]
    .map(|(percentile, factor)| (percentile, p50 * factor));
    Trial {
        tier: Tier::Block,
        system: "none".into(),
        system_version: "0.1.0".into(),
        backend: None,
        cipher: None,
        key_bits: None,
        sector_bytes: None,
        format: None,
        device: Device {
            kind: "ssd".into(),
            model: Some("Samsung SSD 980 PRO 1TB".into()),
            path_kind: "file".into(),
            filesystem: Some("ext4".into()),
            in_use: None,
            cache: "direct".into(),
            write_cache: Some("write back".into()),
            engine: "io_uring".into(),
            scheduler: Some("none".into()),
            driver: None,
            size: 1 << 30,
        },
        workload: workload.into(),
        op: op.into(),
        block_bytes: Some(block_bytes),
        queue_depth: Some(queue_depth),
        threads: Some(1),
        cold: false,
        fsync: None,
        repetitions: 10,
        bytes: Some(1 << 32),
        requests: Some((1 << 32) / block_bytes),
        throughput_mb_s: interval(mb_s, 0.02),
        iops: interval(iops, 0.02),
        cycles_per_byte: None,
        latency_us: Some(Latency {
            p50,
            p90: p50 * 1.3,
            p99: p50 * 2.4,
            p99_9: p50 * 7.0,
            max: p50 * 48.0,
            curve: curve.to_vec(),
        }),
        time_s: TimeSplit {
            wall: Some(10.0),
            user: Some(0.9),
            sys: Some(1.8),
            cpu: None,
            workers: None,
            crypto: Some(0.0),
            copy: Some(0.3),
            submit: Some(1.2),
            wait: Some(8.0),
            other: Some(0.5),
        },
        latency_split_us: None,
        energy: None,
        overhead: None,
        bottleneck: Bottleneck::Device,
        steady_state: Some(true),
        constant_time: None,
        samples_mb_s: samples(mb_s),
        warnings: Vec::new(),
        published: Vec::new(),
        detail: Detail::Requests,
    }
}

/// Ten repetitions around `mb_s`, spread over ±2 %.
pub fn samples(mb_s: f64) -> Vec<f64> {
    (0..10)
        .map(|at| mb_s * (0.98 + 0.004 * f64::from((at * 7) % 11)))
        .collect()
}

pub fn interval(median: f64, spread: f64) -> Interval {
    Interval {
        median,
        low: median * (1.0 - spread),
        high: median * (1.0 + spread),
        n: 10,
    }
}

pub fn overhead(ratio: f64, spread: f64, verdict: Verdict) -> Overhead {
    Overhead {
        against: "none".into(),
        ratio: interval(ratio, spread),
        verdict,
        smallest: Some(spread),
    }
}

/// A run that was stopped before the first cell.
pub fn empty() -> Run {
    Run {
        partial: true,
        host: Host::default(),
        noise: Noise::default(),
        trials: Vec::new(),
        warnings: Vec::new(),
        ..run()
    }
}

/// A run without any of the optional measurements.
pub fn bare() -> Run {
    let mut run = run();
    run.host = Host::default();
    run.noise = Noise::default();
    for trial in &mut run.trials {
        trial.backend = None;
        trial.key_bits = None;
        trial.sector_bytes = None;
        trial.format = None;
        trial.device = Device::default();
        trial.cycles_per_byte = None;
        trial.latency_us = None;
        trial.time_s = TimeSplit::default();
        trial.latency_split_us = None;
        trial.overhead = None;
        trial.bottleneck = Bottleneck::Unknown;
        trial.steady_state = None;
        trial.samples_mb_s = Vec::new();
        trial.warnings = Vec::new();
    }
    run
}

/// Bare ciphers by the engine and by a library, over two sizes of requests;
/// the library is faster at the smaller one, and lacks the cascade.
pub fn ciphers() -> Run {
    let mut run = run();
    run.plan = "ciphers".into();
    run.trials = Vec::new();
    let sizes: [(&str, u64, u32); 3] =
        [("512", 512, 1), ("1m", 1 << 20, 1), ("1m-all", 1 << 20, 2)];
    for (size, block, threads) in sizes {
        for op in ["encrypt", "decrypt"] {
            for (cipher, key_bits, engine, library) in [
                ("aes-xts-plain64", 512, 13_400.0, Some(5_988.0)),
                ("aes-twofish-serpent-xts-plain64", 1536, 950.0, None),
            ] {
                let ratio: f64 = if block == 512 { 0.9 } else { 2.24 };
                let cell = |system: &str, mb_s: f64| Trial {
                    tier: Tier::Cipher,
                    system: system.into(),
                    backend: Some("vaes512".into()).filter(|_| system == "builtin"),
                    cipher: Some(cipher.into()),
                    key_bits: Some(key_bits),
                    sector_bytes: Some(512),
                    cycles_per_byte: Some(interval(3690.0 / mb_s, 0.01)),
                    constant_time: Some(true).filter(|_| system == "builtin"),
                    threads: Some(threads),
                    ..cell(&format!("{op}-{size}"), op, block, 1, mb_s)
                };
                let verdict = match ratio {
                    ratio if ratio < 1.0 => Verdict::Slower,
                    _ => Verdict::Faster,
                };
                let mut ours = cell("builtin", engine * f64::from(threads));
                let first = ours.clone();
                if let Some(rate) = library {
                    let against = |against: &str, ratio, verdict| {
                        Some(Overhead {
                            against: against.into(),
                            ..overhead(ratio, 0.01, verdict)
                        })
                    };
                    ours.overhead = against("openssl", ratio, verdict);
                    let mut theirs = cell("openssl", rate * f64::from(threads));
                    theirs.overhead = against("builtin", 1.0 / ratio, Verdict::Slower);
                    let mut again = first;
                    again.overhead = against("builtin", 1.001, Verdict::NotDistinguishable);
                    run.trials.extend([ours, theirs, again]);
                } else {
                    run.trials.push(ours);
                }
            }
        }
    }
    run
}

/// Text that would break out of HTML, Markdown, CSV and a terminal.
pub const HOSTILE: &str = "<script>alert(1)</script>\"'&|`\x1b[31m\n\u{202e}=1+1";

/// A run whose every text is [`HOSTILE`].
pub fn hostile() -> Run {
    let mut run = run();
    let text = || HOSTILE.to_owned();
    run.run = text();
    run.plan = text();
    run.started = text();
    run.warnings = vec![text()];
    run.host.cpu = text();
    run.host.os = text();
    run.host.governor = Some(text());
    run.host.features = vec![text()];
    run.host.versions = [(text(), text())].into();
    for trial in &mut run.trials {
        trial.device.model = Some(text());
        trial.device.cache = text();
        trial.workload = format!("{}{}", trial.workload, HOSTILE);
        trial.op = text();
        if trial.cipher.is_some() {
            trial.system = text();
            trial.cipher = Some(text());
        }
        trial.warnings = vec![text()];
        trial.published = vec![Published {
            document: text(),
            value: 1.0,
            unit: text(),
            figure: text(),
            row: 1,
            system: text(),
            device: text(),
            cipher: text(),
            measure: Measure::Rate,
        }];
    }
    run.paper = Some(Paper {
        document: text(),
        differs: text(),
        base: text(),
    });
    run
}

/// A run whose numbers no sane machine yields.
pub fn extreme() -> Run {
    let mut run = run();
    let values = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -1.0,
        1e-300,
        1e300,
        f64::MAX,
        f64::MIN_POSITIVE,
    ];
    let mut next = values.into_iter().cycle();
    let mut value = move || next.next().unwrap_or_default();
    for trial in &mut run.trials {
        let mut wild = || Interval {
            median: value(),
            low: value(),
            high: value(),
            n: 0,
        };
        trial.throughput_mb_s = wild();
        trial.iops = wild();
        if let Some(overhead) = &mut trial.overhead {
            overhead.ratio = wild();
        }
        trial.time_s.wall = Some(value());
        trial.time_s.crypto = Some(value());
        trial.time_s.wait = Some(value());
        if let Some(latency) = &mut trial.latency_us {
            latency.p99 = value();
            latency
                .curve
                .iter_mut()
                .for_each(|point| *point = (value(), value()));
        }
        trial.threads = Some(u32::MAX);
        trial.queue_depth = Some(u32::MAX);
        trial.block_bytes = Some(u64::MAX);
        trial.samples_mb_s = values.to_vec();
    }
    run.host.clock_hz = Some(f64::NAN);
    run.noise.aa_ratio = Some(Interval {
        median: f64::NAN,
        low: f64::NAN,
        high: f64::INFINITY,
        n: 0,
    });
    run
}

/// Four key derivations, unlocked and guessed on two cores.
pub fn kdf_run() -> Run {
    let mut trials = Vec::new();
    for (workload, name, hash, iterations, memory_kib, lanes, unlock_s, guess_s) in [
        (
            "truecrypt-pbkdf2-sha512",
            "pbkdf2",
            Some("sha512"),
            1000,
            0,
            1,
            0.002,
            0.0005,
        ),
        (
            "veracrypt-pbkdf2-sha512",
            "pbkdf2",
            Some("sha512"),
            500_000,
            0,
            1,
            1.0,
            0.25,
        ),
        ("luks2-argon2id", "argon2id", None, 4, 1 << 20, 4, 2.0, 2.0),
        (
            "veracrypt-system-pbkdf2-sha256",
            "pbkdf2",
            Some("sha256"),
            200_000,
            0,
            1,
            0.2,
            0.05,
        ),
    ] {
        let kdf = Kdf {
            name: name.into(),
            hash: hash.map(String::from),
            iterations,
            memory_kib,
            lanes,
            calibrated_ms: (lanes == 4).then_some(2000),
        };
        for (op, threads, rate) in [("unlock", 1, 1.0 / unlock_s), ("guess", 2, 1.0 / guess_s)] {
            trials.push(Trial {
                tier: Tier::Cipher,
                system: "builtin".into(),
                format: workload.split('-').next().map(String::from),
                threads: Some(threads),
                iops: interval(rate, 0.01),
                detail: Detail::Kdf(Box::new(kdf.clone())),
                overhead: None,
                cipher: None,
                ..cell(workload, op, 64, 1, 64.0 * rate / 1e6)
            });
        }
    }
    Run {
        plan: "kdf".into(),
        host: Host { cores: 2, ..host() },
        trials,
        ..run()
    }
}

/// A run that repeats a document: two of its drives, three ciphers, of which
/// one is the other way round here.
pub fn beside_a_paper() -> Run {
    let mut run = run();
    let paper = Paper {
        document: "A paper, 2007".into(),
        differs: "There: drives of then. Here: this one.".into(),
        base: "AES".into(),
    };
    let published = |cipher: &str, device: &str, value: f64, measure| Published {
        document: paper.document.clone(),
        value,
        unit: if measure == Measure::Rate {
            "Mb/s"
        } else {
            "%"
        }
        .into(),
        figure: "Figure 2".into(),
        row: 1,
        system: "TrueCrypt".into(),
        device: device.into(),
        cipher: cipher.into(),
        measure,
    };
    // AES at 0.97 of plain, Serpent at 0.91, Twofish at 0.93.
    for (trial, cipher, hdd, ssd) in [
        (2, "AES", 0.5, 20.0),
        (3, "Serpent", 0.43, 10.0),
        (4, "Twofish", 0.42, 15.0),
    ] {
        run.trials[trial].system = "builtin".into();
        run.trials[trial].published = vec![
            published(cipher, "a disk", hdd, Measure::Rate),
            published(cipher, "an SSD", ssd, Measure::Rate),
        ];
    }
    let loss = published("AES", "", 5.1, Measure::Loss);
    run.trials[2].published.push(loss);
    run.paper = Some(paper);
    run
}

/// [`run`] with a score of two of its workloads, as PassMark makes one, and with
/// rounds until a steady state.
pub fn scored() -> Run {
    let weights = [
        ("seq-1m-read".to_owned(), 0.5),
        ("rand-4k-write".to_owned(), 0.25),
    ];
    Run {
        marks: vec![Mark {
            name: "Disk Mark".into(),
            source: "PassMark".into(),
            weights: weights.into(),
            published: Some(1234.0),
            share: Some(0.2),
            published_loss: Some(-1.9),
        }],
        conditioning: Some(Conditioning {
            precondition: 2,
            purged: Some(true),
            tests: vec![SteadyTest {
                name: "IOPS".into(),
                workloads: vec!["rand-4k-write".into()],
                tracked: vec!["rand-4k-write".into()],
            }],
        }),
        ..run()
    }
}
