//! Results of other programs, as they wrote them, and spoilt ones.

extern crate cryptmark_lab as lab;

mod facts;

use lab::import::{ImportError, Imported, Results, read, run};
use lab::record::{Latency, Run, Tier, Trial};
use serde_json::Value;
use std::path::Path;

/// fio 3.33 and hyperfine 1.15 on one machine; the others by their documents.
fn sample(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/import/samples");
    std::fs::read_to_string(Path::new(folder).join(name)).unwrap()
}

fn results(text: &str) -> Results {
    match read(text) {
        Ok(Imported::Results(results)) => results,
        other => panic!("{other:?}"),
    }
}

fn imported(names: &[&str]) -> Run {
    let results: Vec<_> = names.iter().map(|name| results(&sample(name))).collect();
    run("1-id".to_owned(), "none", "then".to_owned(), &results).unwrap()
}

fn one<'a>(run: &'a Run, workload: &str, op: &str) -> &'a Trial {
    let mut found = run
        .trials
        .iter()
        .filter(|trial| trial.workload == workload && trial.op == op);
    let trial = found.next().unwrap_or_else(|| panic!("{workload} {op}"));
    assert!(found.next().is_none(), "{workload} {op} is there twice");
    trial
}

/// Block size, queue depth, threads.
fn load(trial: &Trial) -> (Option<u64>, Option<u32>, Option<u32>) {
    (trial.block_bytes, trial.queue_depth, trial.threads)
}

fn latency(trial: &Trial) -> &Latency {
    trial.latency_us.as_ref().unwrap()
}

#[track_caller]
fn near(value: f64, expected: f64) {
    assert!(
        (value / expected - 1.0).abs() < 1e-6,
        "{value}, {expected} expected"
    );
}

#[test]
fn a_job_of_fio() {
    let run = imported(&["fio-read.json"]);
    assert_eq!((run.plan.as_str(), run.partial), ("fio", false));
    assert_eq!(run.trials.len(), 1);
    let trial = one(&run, "rand-4k-read (randread)", "read");
    near(trial.throughput_mb_s.median, 36.282368 / 1.001);
    near(trial.iops.median, 8858.0 / 1.001);
    near(latency(trial).p99, 3293.184);
    near(latency(trial).max, 12014.21);
    assert_eq!(load(trial), (Some(4096), Some(1), Some(1)));
    assert_eq!(
        (trial.bytes, trial.requests),
        (Some(36_282_368), Some(8858))
    );
    assert_eq!(
        (trial.device.cache.as_str(), trial.device.engine.as_str()),
        ("buffered", "psync")
    );
    assert_eq!(trial.system_version, "fio-3.33");
    // The machine of the measurement is unknown.
    assert_eq!(run.host.cpu, "");
}

/// The concurrent work of a job's two processes adds up to one repetition.
#[test]
fn two_processes_of_fio() {
    let run = imported(&["fio-two-processes.json"]);
    let trial = one(&run, "mix (randrw)", "mixed");
    assert_eq!(
        (trial.threads, trial.repetitions, trial.block_bytes),
        (Some(2), 1, Some(16384))
    );
    let rates = (8.126464 + 8.650752) / 0.063 + (7.962624 + 8.814592) / 0.069;
    near(trial.throughput_mb_s.median, rates);
}

/// An import that takes a step for each pair of jobs would not finish here.
#[test]
fn many_jobs_of_fio() {
    let jobs: Vec<String> = (0..40_000)
        .map(|job| {
            format!(
                r#"{{"jobname": "job", "groupid": {}, "job options": {{"numjobs": "{job}"}},
                    "read": {{"io_bytes": 4096, "total_ios": 1, "runtime": 1.0}}}}"#,
                job / 2
            )
        })
        .collect();
    let text = format!(
        r#"{{"fio version": "fio-3.33", "jobs": [{}]}}"#,
        jobs.join(",")
    );
    let results = results(&text);
    let run = run("1-id".to_owned(), "none", "then".to_owned(), &[results]).unwrap();
    assert_eq!(run.trials.len(), 40_000);
}

/// The same job in several files is repeated.
#[test]
fn repetitions() {
    let run = imported(&["fio-read.json", "fio-read.json", "fio-read.json"]);
    let trial = one(&run, "rand-4k-read (randread)", "read");
    assert_eq!((trial.repetitions, trial.samples_mb_s.len()), (3, 3));
    assert_eq!(trial.throughput_mb_s.n, 3);
    near(trial.throughput_mb_s.median, 36.282368 / 1.001);
    near(trial.time_s.wall.unwrap(), 3.003);
}

#[test]
fn commands_of_hyperfine() {
    let run = imported(&["hyperfine.json"]);
    let trial = one(&run, "sleep 0.01", "command");
    assert_eq!(trial.tier, Tier::Fs);
    assert_eq!(
        trial.samples_s(),
        [
            0.015284686,
            0.024514001,
            0.020168631000000003,
            0.011330624000000001
        ]
    );
    // Reports show the time, and of it what the processor did.
    near(latency(trial).p50, 17726.6585);
    near(latency(trial).max, 24514.001);
    near(trial.time_s.cpu.unwrap(), 4.0 * 0.00119725);
    one(&run, "sleep 0.02", "command");
}

#[test]
fn crystaldiskmark() {
    let run = imported(&["crystaldiskmark.txt"]);
    assert_eq!(run.plan, "crystaldiskmark");
    assert_eq!(run.started, "2026-05-09T12:00:00Z");
    // One of the eight was not measured.
    assert_eq!(run.trials.len(), 7);
    let trial = one(&run, "rnd4k-q32t1-read", "read");
    near(trial.throughput_mb_s.median, 300.163);
    near(trial.iops.median, 73282.0);
    assert_eq!(load(trial), (Some(4096), Some(32), Some(1)));
    assert_eq!(trial.system_version, "8.0.4");
    near(
        one(&run, "seq1m-q8t1-write", "write")
            .throughput_mb_s
            .median,
        520.811,
    );
}

/// The imported results can be compared with those of the plan of the same name.
#[test]
fn workloads_have_the_names_of_the_plan() {
    let run = imported(&["crystaldiskmark.txt"]);
    let plan = lab::experiment::Devices::load("crystaldiskmark").unwrap();
    for trial in &run.trials {
        let same = plan
            .workloads
            .iter()
            .find(|workload| workload.name == trial.workload);
        let workload = same.unwrap_or_else(|| panic!("{}", trial.workload));
        assert_eq!(Some(workload.block_size.as_u64()), trial.block_bytes);
        assert_eq!(Some(workload.queue_depth), trial.queue_depth);
    }
}

#[test]
fn kdiskmark() {
    let run = imported(&["kdiskmark.txt"]);
    assert_eq!(
        (run.plan.as_str(), run.started.as_str()),
        ("kdiskmark", "2026-10-13T10:20:30Z")
    );
    assert_eq!(run.trials.len(), 4);
    assert_eq!(run.trials[0].system_version, "3.0.0");
    assert_eq!(
        one(&run, "seq128k-q32t1-write", "write").block_bytes,
        Some(128 << 10)
    );
    near(
        one(&run, "rnd4k-q1t1-r70-mixed", "mixed")
            .throughput_mb_s
            .median,
        // 10,009.8 requests of 4096 bytes a second.
        40.039 * 1.024,
    );
}

#[test]
fn benchmark_of_cryptsetup() {
    let run = imported(&["cryptsetup.txt"]);
    // A cipher that the kernel lacks is not a cell.
    assert_eq!(run.trials.len(), 4);
    let rates = run.trials.iter().map(|trial| {
        let cipher = trial.cipher.as_deref().unwrap();
        (
            cipher,
            trial.key_bits,
            trial.op.as_str(),
            trial.throughput_mb_s.median,
        )
    });
    let mib = 1.048_576;
    assert_eq!(
        rates.collect::<Vec<_>>(),
        [
            ("aes-cbc-plain64", Some(128), "encrypt", 1205.5 * mib),
            ("aes-cbc-plain64", Some(128), "decrypt", 3869.1 * mib),
            ("aes-xts-plain64", Some(512), "encrypt", 3000.0 * mib),
            ("aes-xts-plain64", Some(512), "decrypt", 2990.0 * mib),
        ]
    );
    assert!(
        run.warnings
            .iter()
            .any(|warning| warning.contains("key derivations"))
    );
}

#[test]
fn diskspd() {
    let run = imported(&["diskspd.xml"]);
    assert_eq!(
        (run.plan.as_str(), run.started.as_str()),
        ("diskspd", "2023-01-20T12:34:56Z")
    );
    assert_eq!(run.trials.len(), 2);
    for (workload, op, bytes, requests, p50, p999, max) in [
        (
            "rnd4k-q32t2-w30-read",
            "read",
            4_096_000_000,
            1_000_000,
            380.0,
            3125.0,
            20500.0,
        ),
        (
            "rnd4k-q32t2-w30-through-write",
            "write",
            1_638_400_000,
            400_000,
            520.0,
            5000.0,
            30250.0,
        ),
    ] {
        let trial = one(&run, workload, op);
        near(trial.throughput_mb_s.median, bytes as f64 / 1e7);
        near(trial.iops.median, requests as f64 / 10.0);
        assert_eq!((trial.bytes, trial.requests), (Some(bytes), Some(requests)));
        let latency = latency(trial);
        assert_eq!((latency.p50, latency.p99_9, latency.max), (p50, p999, max));
        assert_eq!(load(trial), (Some(4096), Some(32), Some(2)));
        assert_eq!(trial.device.cache, "direct");
        assert_eq!(trial.system_version, "2.1.0-dev");
    }
}

/// Each target is a job of its own. Percentiles over all targets belong to none of them.
#[test]
fn diskspd_on_two_files() {
    let whole = sample("diskspd.xml");
    let asked = &whole[whole.find("<Target>").unwrap()..];
    let asked = &asked[..asked.find("</Targets>").unwrap()];
    let other = asked.replace("test.dat", "other.dat");
    let two = whole.replacen(asked, &format!("{asked}{other}"), 1);
    let thread = two.rfind("test.dat").unwrap();
    let two = format!("{}other{}", &two[..thread], &two[thread + 4..]);
    let run = run_of(&two);
    let names: Vec<&str> = run.trials.iter().map(|trial| &*trial.workload).collect();
    assert_eq!(
        names,
        [
            "rnd4k-q32t2-w30-read (d:\\other.dat)",
            "rnd4k-q32t2-w30-through-write (d:\\other.dat)",
            "rnd4k-q32t2-w30-read (d:\\test.dat)",
            "rnd4k-q32t2-w30-through-write (d:\\test.dat)",
        ]
    );
    for trial in &run.trials {
        assert_eq!((trial.repetitions, &trial.latency_us), (1, &None));
    }
}

#[test]
fn spoilt_xml_of_diskspd() {
    let whole = sample("diskspd.xml");
    let end = whole.find("<TestTimeSeconds>").unwrap();
    let error = "<Error>The test was interrupted before the measurements began.</Error>";
    let interrupted = format!("{}{error}</TimeSpan></Results>", &whole[..end]);
    let bomb = format!("<!DOCTYPE Results [<!ENTITY a \"aaaa\">]>{whole}");
    assert!(matches!(
        read(&interrupted),
        Err(ImportError::Empty { tool: "diskspd" })
    ));
    for text in [&whole[..end], &bomb, &whole.replace("DESKTOP", "&#27;[2J")] {
        let refused = read(text);
        let is_right = matches!(refused, Err(ImportError::Xml(_) | ImportError::Control));
        assert!(is_right, "{refused:?}");
    }
}

/// A run of this program comes back as it went out.
#[test]
fn runs_of_this_program() {
    let run = imported(&["crystaldiskmark.txt"]);
    let other = imported(&["fio-read.json"]);
    let single = serde_json::to_string_pretty(&run).unwrap();
    let both = serde_json::to_string_pretty(&[run.clone(), other.clone()]).unwrap();
    for (text, expected) in [(single, vec![run.clone()]), (both, vec![run, other])] {
        match read(&text) {
            Ok(Imported::Runs(runs)) => assert_eq!(runs, expected),
            other => panic!("{other:?}"),
        }
    }
}

/// Every number of a cell, below zero; every interval, turned round.
#[test]
fn records_that_nobody_measured() {
    fn spoil(value: &mut Value, at: &mut usize) -> Option<String> {
        match value {
            Value::Number(number) if *at == 0 => {
                let was = number.as_f64()?;
                *value = Value::from(-was - 1.0);
                Some("a number".into())
            }
            Value::Number(_) => {
                *at -= 1;
                None
            }
            Value::Array(values) => values.iter_mut().find_map(|value| spoil(value, at)),
            Value::Object(fields) => {
                let spoilt = |(name, value): (&String, &mut Value)| {
                    spoil(value, at).map(|place| format!("{name}: {place}"))
                };
                fields.iter_mut().find_map(spoilt)
            }
            _ => None,
        }
    }
    let run = serde_json::to_value(imported(&["fio-read.json"])).unwrap();
    let refused = |run: &Value, what: &str| {
        let refused = read(&run.to_string()).expect_err(what);
        assert!(!refused.to_string().is_empty() && !refused.remedy().is_empty());
    };
    let mut count = 0;
    loop {
        let (mut spoilt, mut at) = (run.clone(), count);
        let Some(place) = spoil(&mut spoilt["trials"][0], &mut at) else {
            break;
        };
        refused(&spoilt, &place);
        count += 1;
    }
    assert!(count > 30, "{count}");
    for (field, value) in [("low", 1e9), ("high", 0.0), ("median", 1e9)] {
        let mut spoilt = run.clone();
        spoilt["trials"][0]["throughput_mb_s"][field] = value.into();
        refused(&spoilt, field);
    }
    let mut spoilt = run.clone();
    spoilt["trials"][0]["repetitions"] = 0.into();
    refused(&spoilt, "repetitions");
    for id in ["latest", "", "../x", "a b", "~", "zz"] {
        let mut spoilt = run.clone();
        spoilt["run"] = id.into();
        refused(&spoilt, id);
    }
    assert!(read(&run.to_string()).is_ok());
}

/// Versions 3, 5 and 6 have the direction in the line, and a comma stands for a point.
#[test]
fn older_crystaldiskmarks() {
    let text = "\
CrystalDiskMark 3.0.3 x64 (C) 2007-2013 hiyohiyo
* MB/s = 1,000,000 byte/s [SATA/300 = 300,000,000 byte/s]

           Sequential Read :   250.000 MB/s
         Random Read 512KB :   180,500 MB/s
   Random Write 4KB (QD=32) :    81.920 MB/s [ 20000.0 IOPS]
  Random Read 4KiB (Q=  8,T= 4) :   204.800 MB/s [  50000.0 IOPS]
";
    let read = [results(text)];
    let run = run("1-id".to_owned(), "none", "then".to_owned(), &read).unwrap();
    assert_eq!(run.trials.len(), 4);
    for (workload, op, rate, block, depth, threads) in [
        ("seq1m-q1t1-read", "read", 250.0, 1 << 20, 1, 1),
        ("rnd512k-q1t1-read", "read", 180.5, 512 << 10, 1, 1),
        ("rnd4k-q32t1-write", "write", 81.92, 4096, 32, 1),
        ("rnd4k-q8t4-read", "read", 204.8, 4096, 8, 4),
    ] {
        let trial = one(&run, workload, op);
        near(trial.throughput_mb_s.median, rate);
        let expected = (Some(block), Some(depth), Some(threads));
        assert_eq!(load(trial), expected, "{workload}");
    }
}

fn run_of(text: &str) -> Run {
    let read = [results(text)];
    run("1-id".to_owned(), "none", "then".to_owned(), &read).unwrap()
}

/// The import states the settings that a job really had, not those that its options ask for.
#[test]
fn what_fio_means() {
    let fio = sample("fio-read.json");
    let with = |options: &str| {
        run_of(&format!(
            r#"{{"fio version": "fio-3.33", "jobs": [{{"jobname": "r", "job options": {{{options}}},
                "read": {{"io_bytes": 4096000, "total_ios": 1000, "runtime": 1000}}}}]}}"#
        ))
    };
    for (engine, depth) in [("psync", 1), ("io_uring", 32)] {
        let run = with(&format!(r#""iodepth": "32", "ioengine": "{engine}""#));
        assert_eq!(run.trials[0].queue_depth, Some(depth), "{engine}");
    }
    for (options, cache) in [
        ("", "unknown"),
        (r#""bs": "4k""#, "buffered"),
        (r#""direct": "1""#, "direct"),
        (r#""buffered": "0""#, "direct"),
    ] {
        assert_eq!(with(options).trials[0].device.cache, cache, "{options}");
    }
    // A job that is over within a millisecond has rates.
    let short = run_of(&fio.replace("\"runtime\" : 1001", "\"runtime\" : 0"));
    near(short.trials[0].throughput_mb_s.median, 36.246121);
    let trimmed = fio.replace("\"trim\" : {", "\"other\" : {");
    let trimmed = run_of(&trimmed.replace("\"read\" : {", "\"trim\" : {"));
    assert_eq!(trimmed.trials[0].op, "trim");
}

/// A job that failed is missed, and one name for two files is two jobs.
#[test]
fn jobs_of_fio_that_are_not_alike() {
    let job = |file: &str, error: u32, group: u32| {
        format!(
            r#"{{"jobname": "r", "groupid": {group}, "error": {error},
                "job options": {{"filename": "{file}", "bs": "4k"}},
                "read": {{"io_bytes": 4096000, "total_ios": 1000, "runtime": 1000}}}}"#
        )
    };
    let output = |jobs: &[String]| {
        let jobs = jobs.join(", ");
        format!(r#"{{"fio version": "fio-3.33", "jobs": [{jobs}]}}"#)
    };
    let run = run_of(&output(&[job("a", 0, 0), job("b", 0, 1)]));
    let names: Vec<&str> = run
        .trials
        .iter()
        .map(|trial| trial.workload.as_str())
        .collect();
    assert_eq!(names, ["r (a)", "r (b)"]);
    let run = run_of(&output(&[job("a", 0, 0), job("a", 5, 0)]));
    assert_eq!(run.trials[0].repetitions, 1);
    let said = run
        .warnings
        .iter()
        .any(|warning| warning.contains("jobs that failed"));
    assert!(said, "{:?}", run.warnings);
}

/// The importer accepts lines around the JSON. Of several states of one command, the last one has
/// all.
#[test]
fn output_of_fio_among_other_lines() {
    let fio = sample("fio-read.json");
    // The same command a second earlier.
    let before = fio.replace("36282368", "4096");
    let fio = fio.replace("\"elapsed\" : 2", "\"elapsed\" : 3");
    let fio = fio.replace("1795333864,", "1795333865,");
    for text in [
        format!("fio: a remark\n{fio}\nfio: it is over {{}}\n"),
        format!("{{ a remark\n{fio}"),
        format!("{before}\n{fio}"),
    ] {
        let run = run_of(&text);
        assert_eq!(run.trials[0].bytes, Some(36_282_368), "{text}");
    }
    let clients = fio.replace("\"jobs\"", "\"client_stats\"");
    assert_eq!(run_of(&clients).trials.len(), 1);
    // Even a million opening braces must only cause an error.
    assert!(read(&"{\n".repeat(1 << 20)).is_err());
}

#[test]
fn commands_of_hyperfine_by_parameters() {
    let command = |command: &str, more: &str| {
        format!(r#"{{"command": "{command}", "times": [0.2, 0.3, 0.4]{more}}}"#)
    };
    let parameters = |threads: &str| format!(r#", "parameters": {{"threads": "{threads}"}}"#);
    let text = format!(
        r#"{{"results": [{}, {}, {}, {}]}}"#,
        command("cp a b", &parameters("4")),
        command("cp a b", &parameters("8")),
        command(r"cp a b\nsync", ""),
        command("false", r#", "exit_codes": [0, 1, 0]"#)
    );
    let run = run_of(&text);
    let names: Vec<&str> = run
        .trials
        .iter()
        .map(|trial| trial.workload.as_str())
        .collect();
    assert_eq!(
        names,
        ["cp a b (threads=4)", "cp a b (threads=8)", "cp a b sync"]
    );
    let said = run
        .warnings
        .iter()
        .any(|warning| warning.contains("commands that failed"));
    assert!(said, "{:?}", run.warnings);
}

#[test]
fn what_is_refused() {
    let fio = sample("fio-read.json");
    let diskmark = sample("crystaldiskmark.txt");
    let cryptsetup = sample("cryptsetup.txt");
    for (text, says) in [
        (String::new(), "neither"),
        ("a letter".to_owned(), "neither"),
        ("{}".to_owned(), "neither"),
        ("[{}]".to_owned(), "neither"),
        ("[]".to_owned(), "neither"),
        ("{\"results\": 7}".to_owned(), "JSON"),
        ("{\"results\": []}".to_owned(), "no finished measurement"),
        (r#"{"schema": "cryptmark/9"}"#.to_owned(), "cryptmark/9"),
        (r#"{"schema": "cryptmark/1"}"#.to_owned(), "cryptmark/1"),
        (r#"{"schema": "cryptmark/2"}"#.to_owned(), "JSON"),
        (fio[..fio.len() / 2].to_owned(), "JSON"),
        (fio.replace("fio-3.33", "fio-2.21"), "fio-2.21"),
        (fio.replace("fio-3.33", "fio"), "units"),
        (
            fio.replace("\"error\" : 0", "\"error\" : 5"),
            "no finished measurement",
        ),
        (fio.replace("rand-4k-read", "\\u001b[2J"), "control"),
        (diskmark.replace("Q= 32", "Q= -2"), "line 11"),
        (diskmark.replace("33.906", "fast"), "line 12"),
        (diskmark.replace("33.906", "inf"), "line 12"),
        // What contradicts itself is no fact.
        (diskmark.replace(" 536.4 IOPS", " 136.4 IOPS"), "line 9"),
        (diskmark.replace(" 8277.8 IOPS", "    0.0 IOPS"), "line 12"),
        (diskmark.replace("1MiB", "99999999999999999MiB"), "line 9"),
        (diskmark.replace("[Read]", ""), "line 9"),
        (diskmark.replace("hiyohiyo", "\u{1b}[2J"), "control"),
        (cryptsetup.replace("3869.1", "-1"), "line 6"),
        (cryptsetup.replace("128b", "128"), "line 6"),
        (
            cryptsetup.replace("MiB/s", "GiB/s"),
            "no finished measurement",
        ),
    ] {
        let refused = match read(&text) {
            Err(refused) => refused,
            Ok(read) => panic!("{says}: {read:?}"),
        };
        assert!(
            refused.to_string().contains(says),
            "{refused}, {says} expected"
        );
        assert!(!refused.remedy().is_empty());
    }
}

#[test]
fn programs_do_not_mix() {
    let both = ["fio-read.json", "hyperfine.json"].map(|name| results(&sample(name)));
    let refused = run("1-id".to_owned(), "none", "then".to_owned(), &both).unwrap_err();
    assert!(matches!(
        refused,
        ImportError::Mixed {
            first: "fio",
            second: "hyperfine"
        }
    ));
}

/// Any spoilt file is read or refused.
#[test]
fn spoilt_files() {
    for name in [
        "fio-read.json",
        "hyperfine.json",
        "crystaldiskmark.txt",
        "kdiskmark.txt",
        "cryptsetup.txt",
        "diskspd.xml",
    ] {
        let whole = sample(name);
        // A prime, so that all columns come up.
        let places = (0..whole.len()).step_by(7);
        for at in places.filter(|at| whole.is_char_boundary(*at)) {
            let (before, after) = whole.split_at(at);
            let rest = after
                .char_indices()
                .nth(1)
                .map_or("", |(at, _)| &after[at..]);
            for text in [
                before.to_owned(),
                format!("{before}{rest}"),
                format!("{before}9{rest}"),
            ] {
                if let Ok(Imported::Results(results)) = read(&text) {
                    run("1-id".to_owned(), "none", "then".to_owned(), &[results]).unwrap();
                }
            }
        }
    }
}
