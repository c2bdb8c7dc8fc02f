//! Results made of known facts, as people's options, locales and versions have them. The import
//! gives the facts back, or says that it does not know.

use super::{latency, load, one, run_of};
use lab::import::{ImportError, read};
use lab::record::Trial;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// As many of each program; the long form has 20,000.
fn cases() -> u64 {
    let asked = std::env::var("IMPORT_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(400)
}

struct Chance(Xoshiro256PlusPlus);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

fn each(mut case: impl FnMut(&mut Chance)) {
    for seed in 0..cases() {
        case(&mut Chance(Xoshiro256PlusPlus::seed_from_u64(seed)));
    }
}

/// Equal, but for what three decimals leave out.
#[track_caller]
fn close(value: f64, expected: f64) {
    let off = (value - expected).abs();
    assert!(
        off < 0.0011 + expected * 1e-5,
        "{value}, {expected} expected"
    );
}

/// A number as fio takes it.
fn typed(chance: &mut Chance, number: u64) -> String {
    match number {
        kib if kib % 1024 == 0 && chance.below(2) == 0 => {
            format!("{}{}", kib / 1024, chance.one(&["k", "K", "kb", "ki"]))
        }
        number if chance.below(3) == 0 => format!("0x{number:x}"),
        number => number.to_string(),
    }
}

#[test]
fn fio() {
    each(|chance| {
        let pattern = chance.one(&["read", "randread", "write", "randwrite"]);
        let op = pattern.trim_start_matches("rand");
        let block = chance.one(&[512, 4096, 16384, 1 << 20]);
        let depth = chance.one(&[1_u64, 4, 32, 1024]);
        let jobs = chance.one(&[1_u64, 2, 8]);
        let engine = chance.one(&["psync", "libaio", "io_uring", "rbd", "windowsaio", ""]);
        let direct = chance.one(&["0", "1", ""]);
        let sizes = chance.one(&["bs", "blocksize", "bssplit", "bsrange", ""]);
        let fsync = chance.below(2) == 0;
        let has_options = chance.below(8) > 0;
        let mut options = vec![format!(r#""rw": "{pattern}""#)];
        match sizes {
            "" => {}
            "bssplit" => options.push(r#""bssplit": "4k/60:64k/40""#.to_owned()),
            "bsrange" => options.push(r#""bsrange": "4k-64k""#.to_owned()),
            name => options.push(format!(r#""{name}": "{}""#, typed(chance, block))),
        }
        options.push(format!(r#""iodepth": "{}""#, typed(chance, depth)));
        options.push(format!(r#""numjobs": "{}""#, typed(chance, jobs)));
        for (name, value) in [("ioengine", engine), ("direct", direct)] {
            if !value.is_empty() {
                options.push(format!(r#""{name}": "{value}""#));
            }
        }
        if fsync {
            options.push(r#""fsync": "1""#.to_owned());
        }
        if !has_options {
            options.clear();
        }
        // What ramped up is not counted as requests, but as bytes.
        let (requests, ms) = (1000 + chance.below(9000), 1 + chance.below(5000));
        let bytes = requests * block + chance.below(2) * block;
        let text = format!(
            r#"{{"fio version": "fio-3.{}", "jobs": [{{"jobname": "job", "job options": {{{}}},
                "{op}": {{"io_bytes": {bytes}, "total_ios": {requests}, "runtime": {ms}}}}}]}}"#,
            chance.below(42),
            options.join(", "),
        );
        let run = run_of(&text);
        let [trial] = &run.trials[..] else {
            panic!("{text}");
        };
        assert_eq!(
            (trial.op.as_str(), trial.bytes),
            (op, Some(bytes)),
            "{text}"
        );
        close(trial.throughput_mb_s.median, bytes as f64 / 1e3 / ms as f64);
        assert_eq!(trial.latency_us, None);
        let known = |value: u64| Some(value).filter(|_| has_options);
        let expected = match sizes {
            "bssplit" | "bsrange" => None,
            "" => known(4096),
            _ => known(block),
        };
        assert_eq!(trial.block_bytes, expected, "{text}");
        let expected = match engine {
            "psync" => known(1),
            "" if depth != 1 => None,
            _ => known(depth),
        };
        assert_eq!(trial.queue_depth.map(u64::from), expected, "{text}");
        assert_eq!(trial.threads.map(u64::from), known(jobs), "{text}");
        let cache = match (has_options, engine, direct) {
            (false, ..) | (_, "rbd", _) => "unknown",
            (_, _, "1") => "direct",
            _ => "buffered",
        };
        assert_eq!(trial.device.cache, cache, "{text}");
        let is_named = |word: &str| trial.workload.contains(word);
        assert_eq!(is_named("fsync=1"), has_options && fsync, "{text}");
        assert_eq!(is_named(&format!("({pattern}")), has_options, "{text}");
        assert_eq!(is_named("bssplit="), has_options && sizes == "bssplit");
    });
}

/// Outputs of one file are states of one command, or results beside each other; one work twice is
/// not taken for repetitions.
#[test]
fn several_outputs_of_fio() {
    let output = |name: &str, at: u64, elapsed: u64, bytes: u64, start: &str| {
        format!(
            r#"{{"fio version": "fio-3.36", "timestamp": {at}, "jobs": [{{"jobname": "{name}",
                {start} "elapsed": {elapsed}, "job options": {{"bs": "4k"}}, "read":
                {{"io_bytes": {bytes}, "total_ios": 1, "runtime": 1000}}}}]}}"#
        )
    };
    let start = |ms: u64| format!(r#""job_start": {ms},"#);
    // At intervals, without and with the time of the beginning.
    for starts in [[String::new(), String::new()], [start(7), start(7)]] {
        let first = output("a", 1000, 10, 4096, &starts[0]);
        let last = output("a", 1010, 20, 8192, &starts[1]);
        let run = run_of(&format!("{first}\n{last}"));
        assert_eq!((run.trials.len(), run.trials[0].bytes), (1, Some(8192)));
    }
    // Before a change and after it.
    let again = [
        [
            output("a", 1000, 10, 4096, ""),
            output("a", 1100, 10, 8192, ""),
        ],
        [
            output("a", 1000, 10, 4096, ""),
            output("a", 1000, 10, 4096, ""),
        ],
        [
            output("a", 1000, 10, 4096, &start(7)),
            output("a", 1010, 20, 8192, &start(8)),
        ],
    ];
    for [first, last] in again {
        for text in [format!("{first}\n{last}"), format!("[{first}, {last}]")] {
            assert!(
                matches!(read(&text), Err(ImportError::Several { .. })),
                "{text}"
            );
        }
    }
    for between in ["\n", "\n```\n", "\nand then\n"] {
        let (first, last) = (output("a", 1, 1, 4096, ""), output("b", 1, 1, 4096, ""));
        assert_eq!(run_of(&format!("{first}{between}{last}")).trials.len(), 2);
    }
}

#[test]
fn crystaldiskmark_and_kdiskmark() {
    each(|chance| {
        let tool = chance.one(&[
            "CrystalDiskMark 3.0.3",
            "CrystalDiskMark 5.2.1",
            "CrystalDiskMark 8.0.5",
            "KDiskMark (3.1.4)",
            "",
        ]);
        let comma = chance.below(4) == 0;
        let number = |value: f64, places: usize| {
            let text = format!("{value:.places$}");
            match comma {
                true => text.replace('.', ","),
                false => text,
            }
        };
        let (block, pattern) =
            chance.one(&[(1_u64 << 20, "seq"), (128 << 10, "seq"), (4096, "rnd")]);
        let (depth, threads) = (chance.one(&[1_u32, 8, 32]), chance.one(&[1_u32, 16]));
        let op = chance.one(&["Read", "Write"]);
        let iops = (10 + chance.below(500_000)) as f64 / 10.0;
        let bytes = iops * block as f64 / 1e6;
        let size = match block {
            4096 => "4KiB",
            131_072 => "128KiB",
            _ => "1MiB",
        };
        let (line, depth, threads, block, iops_said) = match tool {
            // The sizes of old versions stand in the direction's words, or nowhere.
            "CrystalDiskMark 3.0.3" => match pattern {
                "seq" => (
                    format!("Sequential {op} : {} MB/s", number(bytes, 3)),
                    1,
                    1,
                    1 << 20,
                    false,
                ),
                _ => (
                    format!(
                        "Random {op} 4KB (QD={depth}) : {} MB/s [ {} IOPS]",
                        number(bytes, 3),
                        number(iops, 1)
                    ),
                    depth,
                    1,
                    4096,
                    true,
                ),
            },
            "CrystalDiskMark 5.2.1" => match pattern {
                "seq" if depth == 1 => (
                    format!("Sequential {op} (T= {threads}) : {} MB/s", number(bytes, 3)),
                    1,
                    threads,
                    1 << 20,
                    false,
                ),
                "seq" => (
                    format!(
                        "Sequential {op} (Q= {depth},T= {threads}) : {} MB/s",
                        number(bytes, 3)
                    ),
                    depth,
                    threads,
                    128 << 10,
                    false,
                ),
                _ => (
                    format!(
                        "Random {op} 4KiB (Q= {depth},T= {threads}) : {} MB/s [ {} IOPS]",
                        number(bytes, 3),
                        number(iops, 1)
                    ),
                    depth,
                    threads,
                    4096,
                    true,
                ),
            },
            _ => {
                let name = if pattern == "seq" { "SEQ" } else { "RND" };
                // KDiskMark's MB are 1024 of its KB; the line says so itself.
                let is_kde = tool.starts_with('K') || tool.is_empty();
                let printed = if is_kde { bytes / 1.024 } else { bytes };
                (
                    format!(
                        "[{op}]\n  {name} {size} (Q= {depth}, T= {threads}): {} MB/s [ {} IOPS] < 9.00 us>",
                        number(printed, 3),
                        number(iops, 1)
                    ),
                    depth,
                    threads,
                    block,
                    true,
                )
            }
        };
        let text = format!("{tool}\n* MB/s = 1,000,000 bytes/s\n\n{line}\n");
        if bytes < 0.01 {
            return;
        }
        let run = run_of(&text);
        let [trial] = &run.trials[..] else {
            panic!("{text}");
        };
        assert_eq!(
            load(trial),
            (Some(block), Some(depth), Some(threads)),
            "{text}"
        );
        assert_eq!(trial.op, op.to_lowercase());
        close(trial.throughput_mb_s.median, bytes);
        if iops_said {
            close(trial.iops.median, iops);
        }
        assert_eq!((trial.bytes, trial.time_s.wall), (None, None));
    });
    let two = "CrystalDiskMark 8.0.5\n[Read]\n  SEQ 1MiB (Q= 8, T= 1): 6291.456 MB/s\n";
    let two = format!("{two}{}", two.replace("6291", "4194"));
    assert!(matches!(read(&two), Err(ImportError::Several { .. })));
}

#[test]
fn cryptsetup_in_other_languages() {
    each(|chance| {
        let header = chance.one(&[
            "#     Algorithm |       Key |      Encryption |      Decryption",
            "#   Algorithmus | Schlüssel | Verschlüsselung | Entschlüsselung",
            "#     算法      |      密钥 |    加密         |      解密",
            "",
        ]);
        let none = chance.one(&["N/A", "není k dispozici", "недоступно"]);
        let point = chance.one(&['.', ',']);
        let rate = |chance: &mut Chance| (1 + chance.below(90_000)) as f64 / 10.0;
        let rates = [rate(chance), rate(chance)];
        let known = [chance.below(4) > 0, true];
        let cell = |at: usize| match known[at] {
            true => format!("{:.1} MiB/s", rates[at]).replace('.', &point.to_string()),
            false => none.to_owned(),
        };
        let bits = chance.one(&[128, 256, 512]);
        let cells = [cell(0), cell(1)];
        let text = format!("{header}\n  aes-xts {bits}b {} {}\n", cells[0], cells[1]);
        let run = run_of(&text);
        assert_eq!(
            run.trials.len(),
            known.iter().filter(|known| **known).count()
        );
        for (at, op) in ["encrypt", "decrypt"].into_iter().enumerate() {
            if known[at] {
                let trial = one(&run, &format!("{op}-64k"), op);
                assert_eq!(trial.key_bits, Some(bits));
                close(trial.throughput_mb_s.median, rates[at] * 1.048_576);
            }
        }
        let twice = read(&format!("{text}\nWith it:\n{text}"));
        assert!(matches!(twice, Err(ImportError::Several { .. })));
    });
}

#[test]
fn hyperfine_of_several_commands() {
    each(|chance| {
        let mut commands = Vec::new();
        let mut known = Vec::new();
        for number in 0..1 + chance.below(3) {
            let mut times: Vec<f64> = (0..1 + 2 * chance.below(4))
                .map(|_| (1 + chance.below(90_000)) as f64 / 1e4)
                .collect();
            let fails = chance.below(5) == 0;
            let is_empty = chance.below(8) == 0;
            if is_empty {
                times[0] = 0.0;
            }
            let codes = times.iter().map(|_| if fails { "1" } else { "0" });
            let codes = codes.collect::<Vec<_>>().join(",");
            let (user, system) = (0.25, chance.one(&[None, Some(0.125)]));
            // Older versions wrote fewer fields, newer ones write more.
            let mut fields = vec![
                format!(r#""command": "cp a b{number}""#),
                format!(r#""mean": 1.0, "stddev": null, "user": {user}"#),
                format!(r#""times": {times:?}"#),
            ];
            fields.extend(system.map(|system| format!(r#""system": {system}"#)));
            if fails || chance.below(2) == 0 {
                fields.push(format!(r#""exit_codes": [{codes}]"#));
            }
            let parameter = chance.one(&["", "4k"]);
            let mut name = format!("cp a b{number}");
            if !parameter.is_empty() {
                fields.push(format!(r#""parameters": {{"bs": "{parameter}"}}"#));
                name += &format!(" (bs={parameter})");
            }
            if chance.below(2) == 0 {
                fields.push(r#""memory_usage_byte": [1, 2]"#.to_owned());
            }
            commands.push(format!("{{{}}}", fields.join(", ")));
            if !fails && !is_empty {
                times.sort_by(f64::total_cmp);
                known.push((name, times, system));
            }
        }
        let text = format!(r#"{{"results": [{}]}}"#, commands.join(", "));
        if known.is_empty() {
            assert!(matches!(read(&text), Err(ImportError::Empty { .. })));
            return;
        }
        let run = run_of(&text);
        assert_eq!(run.trials.len(), known.len());
        for (name, times, system) in known {
            let trial = one(&run, &name, "command");
            assert_eq!(trial.repetitions as usize, times.len());
            let median = times[times.len() / 2];
            close(trial.iops.median * median, 1.0);
            assert_eq!(load(trial), (None, None, None));
            assert_eq!(trial.bytes, None);
            let all: f64 = times.iter().sum();
            close(trial.time_s.wall.unwrap(), all);
            let of_all = |mean: f64| mean * times.len() as f64;
            close(trial.time_s.user.unwrap(), of_all(0.25));
            assert_eq!(trial.time_s.sys, system.map(of_all));
        }
    });
}

#[test]
fn diskspd_by_what_was_asked() {
    let sample = super::sample("diskspd.xml");
    each(|chance| {
        let share = chance.one(&[0, 1, 30, 99, 100]);
        let is_random = chance.below(2) == 0;
        let (depth, threads) = (1 + chance.below(64), 1 + chance.below(16));
        let block = chance.one(&[4096, 8192, 1 << 20]);
        let text = sample
            .replace("<WriteRatio>30<", &format!("<WriteRatio>{share}<"))
            .replace("<RequestCount>32<", &format!("<RequestCount>{depth}<"))
            .replace("<ThreadsPerFile>2<", &format!("<ThreadsPerFile>{threads}<"))
            .replace("<BlockSize>4096<", &format!("<BlockSize>{block}<"))
            .replace(
                "<Random>4096<",
                &format!("<Random>{}<", if is_random { 4096 } else { 0 }),
            );
        for trial in &run_of(&text).trials {
            let expected = (Some(block), Some(depth as u32), Some(threads as u32));
            assert_eq!(load(trial), expected);
            let name = &trial.workload;
            assert_eq!(name.starts_with("rnd"), is_random, "{name}");
            let is_mix = (1..100).contains(&share);
            assert_eq!(name.contains(&format!("-w{share}-")), is_mix, "{name}");
            assert!(latency(trial).p50 > 0.0);
        }
    });
}

/// Work under another setting is other work, whichever it is.
#[test]
fn every_setting_of_diskspd_tells_work_apart() {
    let sample = super::sample("diskspd.xml");
    let name = |text: &str| run_of(text).trials[1].workload.clone();
    let usual = name(&sample);
    let target = &sample[sample.find("<Target>").unwrap()..sample.find("</Target>").unwrap()];
    let mut told = std::collections::HashSet::from([usual.clone()]);
    for setting in [
        "<BaseFileOffset>4096</BaseFileOffset>",
        "<SequentialScan>true</SequentialScan>",
        "<RandomAccess>true</RandomAccess>",
        "<TemporaryFile>true</TemporaryFile>",
        "<UseLargePages>true</UseLargePages>",
        "<WriteThrough>false</WriteThrough>",
        "<WriteBufferContent><Pattern>zero</Pattern></WriteBufferContent>",
        "<WriteBufferContent><Pattern>random</Pattern><RandomDataSource><SizeInBytes>9</SizeInBytes>\
         </RandomDataSource></WriteBufferContent>",
        "<ParallelAsyncIO>true</ParallelAsyncIO>",
        "<ThreadStride>8192</ThreadStride>",
        "<MaxFileSize>65536</MaxFileSize>",
        "<IOPriority>1</IOPriority>",
        "<IOPriority>2</IOPriority>",
        "<Weight>2</Weight>",
        "<Throughput>10</Throughput>",
        "<Throughput unit=\"IOPS\">10</Throughput>",
        "<ThinkTime>5</ThinkTime>",
        "<ThinkTime>50</ThinkTime>",
        "<BurstSize>7</BurstSize>",
        "<StrideSize>8192</StrideSize>",
        "<InterlockedSequential>true</InterlockedSequential>",
        "<MemoryMappedIo>true</MemoryMappedIo>",
        "<Distribution><Absolute><Range IO=\"90\">4096</Range></Absolute></Distribution>",
        "<Distribution><Absolute><Range IO=\"80\">4096</Range></Absolute></Distribution>",
        "<Distribution><Percent><Range IO=\"80\">40</Range></Percent></Distribution>",
        "<AnOptionOfTomorrow>1</AnOptionOfTomorrow>",
    ] {
        let tag = &setting[..=setting.find(['>', ' ']).unwrap()].replace(' ', ">");
        let end = tag.replace('<', "</");
        let asked = match target.find(tag.as_str()) {
            Some(at) => {
                let until = target.find(&end).unwrap() + end.len();
                format!("{}{setting}{}", &target[..at], &target[until..])
            }
            None => format!("{target}{setting}"),
        };
        assert!(
            told.insert(name(&sample.replacen(target, &asked, 1))),
            "{setting}"
        );
    }
    let same = format!("{target}<StrideSize>4096</StrideSize><ThinkTime>0</ThinkTime>");
    assert_eq!(name(&sample.replacen(target, &same, 1)), usual);
}

/// The name and what to do, for outputs of other programs.
#[test]
fn what_is_not_read_is_named() {
    for (text, tool) in [
        ("AS SSD Benchmark 2.0.7316.34247\nSeq: 500 MB/s", "AS SSD"),
        ("# Yet-Another-Bench-Script #\nfio Disk Speed Tests", "YABS"),
        ("Phoronix Test Suite v10.8.4", "Phoronix"),
        ("Doing aes-256-cbc for 3s on 16 size blocks", "openssl"),
        ("AES-SIV-512-Go   \t 300.00 MB/s", "gocryptfs"),
        (
            "Version  2.00       ------Sequential Output------",
            "bonnie++",
        ),
        ("\tIozone: Performance Test of File I/O", "iozone"),
        ("smartctl 7.3 2022-02-28 r5338", "smartctl"),
        (
            "Command Line: diskspd.exe -b4k\n\nInput parameters:",
            "DiskSpd",
        ),
        (
            "Run status group 0 (all jobs):\n   READ: bw=34.6MiB/s",
            "fio",
        ),
        (
            "Benchmark 1: sleep 0.1\n  Time (mean ± σ): 100 ms",
            "hyperfine",
        ),
    ] {
        let refused = read(text).expect_err(tool);
        assert!(refused.to_string().contains(tool), "{refused}");
        assert!(refused.remedy().len() > 20);
    }
}

/// What is measured and not said is `null`.
#[test]
fn unknown_values_are_null() {
    let text = "CrystalDiskMark 8.0.5\n[Read]\n  SEQ 1MiB (Q= 8, T= 1): 6291.456 MB/s\n";
    let run = run_of(text);
    let trial: &Trial = &run.trials[0];
    let json = serde_json::to_value(trial).unwrap();
    for field in ["latency_us", "bytes", "requests"] {
        assert!(json[field].is_null(), "{field}: {}", json[field]);
    }
    assert!(json["time_s"]["wall"].is_null());
}
