//! Sessions of bare ciphers: the measured systems, and the comparisons between them.

use cryptmark_lab::LabError;
use cryptmark_lab::experiment::{Changes, Ciphers, Experiment};
use cryptmark_lab::record::{Run, Trial};
use cryptmark_lab::session::{Observer, Session, Visit};
use cryptmark_lab::system::peer::Library;
use cryptmark_lab::system::{Bare, Encryption};
use std::sync::atomic::{AtomicBool, Ordering};

const PLAN: &str = r#"
title = "a test"
tier = "cipher"
size = "64 KiB"
repetitions = 3
systems = ["builtin", "openssl", "libgcrypt", "dm-crypt", "none"]
ciphers = ["aes-xts-plain64", "serpent-cbc-plain64", "aes-twofish-serpent"]
sector_size = [512, 4096]

[[workload]]
name = "encrypt-512"
pattern = "sequential"
op = "encrypt"
block_size = "512 B"
bytes = "4 KiB"

[[workload]]
name = "decrypt-16k"
pattern = "sequential"
op = "decrypt"
block_size = "16 KiB"
threads = 2
bytes = "256 KiB"
"#;

struct Silent<'a> {
    stop: &'a AtomicBool,
    stop_after: u64,
}

impl Observer for Silent<'_> {
    fn visiting(&mut self, visit: &Visit<'_>) {
        self.stop
            .store(visit.done == self.stop_after, Ordering::Relaxed);
    }

    fn keep(
        &mut self,
        _: &Run,
        _: &[usize],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }
}

fn measure(text: &str, stop_after: u64) -> (Run, Result<(), LabError>) {
    let plan = Ciphers::parse("test", text).unwrap();
    let session = Session::of_ciphers(&plan, 42, "id".into()).unwrap();
    let stop = AtomicBool::new(false);
    session.measure(
        &stop,
        &mut Silent {
            stop: &stop,
            stop_after,
        },
    )
}

/// Whether the machine has the library, as the lab sees it.
fn present(library: Library) -> bool {
    let encryption = Encryption::parse("aes-xts-plain64", None, 512, None).unwrap();
    let (systems, _) = Bare::open(encryption, &[library]).unwrap();
    systems.len() == 2
}

#[test]
fn the_engine_meets_the_fastest_library_and_libraries_meet_the_engine() {
    let (run, outcome) = measure(PLAN, u64::MAX);
    outcome.unwrap();
    let libraries: Vec<&str> = [Library::OpenSsl, Library::Libgcrypt]
        .into_iter()
        .filter(|library| present(*library))
        .map(Library::name)
        .collect();
    for name in ["openssl", "libgcrypt"] {
        if !libraries.contains(&name) {
            println!("skipped: no {name} here");
        }
    }
    let of = |workload: &str| -> Vec<&Trial> {
        run.trials
            .iter()
            .filter(|trial| trial.workload == workload)
            .collect()
    };
    // 4096-byte sectors do not fit requests of 512 bytes.
    assert!(
        of("encrypt-512")
            .iter()
            .all(|t| t.sector_bytes == Some(512))
    );
    assert!(
        of("decrypt-16k")
            .iter()
            .any(|t| t.sector_bytes == Some(4096))
    );
    for trial in of("decrypt-16k") {
        assert_eq!((trial.bytes, trial.requests), (Some(768 << 10), Some(48)));
        assert_eq!(trial.threads, Some(2));
        assert!(trial.cycles_per_byte.is_some());
        assert_eq!(trial.constant_time.is_some(), trial.system == "builtin");
    }
    for trial in &run.trials {
        let cipher = trial.cipher.as_deref().unwrap();
        let against = trial
            .overhead
            .as_ref()
            .map(|overhead| overhead.against.as_str());
        match (trial.system.as_str(), cipher) {
            // No library has cascades.
            (system, "aes-twofish-serpent") => assert_eq!((system, against), ("builtin", None)),
            ("builtin", "aes-xts-plain64") => assert!(
                against == Some("builtin")
                    || libraries.is_empty()
                    || libraries.contains(&against.unwrap())
            ),
            ("builtin", _) => assert!(against.is_none() || against == Some("libgcrypt")),
            (system, _) => {
                assert!(libraries.contains(&system));
                assert_eq!(against, Some("builtin"));
            }
        }
    }
    // The first cipher is measured twice in every workload.
    assert_eq!(run.noise.aa_ratio.unwrap().n, 6);
    for absent in ["dm-crypt", "none", "aes-twofish-serpent"] {
        assert!(
            run.warnings.iter().any(|warning| warning.contains(absent)) || libraries.is_empty(),
            "{absent}: {:?}",
            run.warnings
        );
    }
}

#[test]
fn an_interrupted_session_keeps_whole_rounds() {
    let one = PLAN.replace(
        "\"builtin\", \"openssl\", \"libgcrypt\", \"dm-crypt\", \"none\"",
        "\"builtin\"",
    );
    // A round is 3 + 1 visits of the first workload and 6 + 1 of the second.
    let (run, outcome) = measure(&one, 12);
    assert!(outcome.unwrap_err().is_interrupted());
    assert!(run.partial);
    assert_eq!(run.trials.len(), 11);
    assert!(run.trials.iter().all(|trial| trial.repetitions == 1));
}

/// No machine does 3DES at 3 GB/s: a request takes ten milliseconds, not one.
#[test]
fn slow_cells_are_visited_less_often_where_the_plan_allows_it() {
    let plan = r#"
title = "a test"
tier = "cipher"
size = "64 KiB"
repetitions = 2
slow_repetitions = 1
systems = ["builtin"]
ciphers = ["des3_ede-cbc-plain64"]

[[workload]]
name = "slow"
pattern = "sequential"
op = "encrypt"
block_size = "32 MiB"
seconds = 0.001

[[workload]]
name = "long"
pattern = "sequential"
op = "encrypt"
block_size = "64 KiB"
seconds = 0.2
"#;
    let (run, outcome) = measure(plan, u64::MAX);
    outcome.unwrap();
    // The engine, and the engine again.
    for (name, repetitions) in [("slow", 1), ("long", 2)] {
        let of_it: Vec<_> = run.trials.iter().filter(|t| t.workload == name).collect();
        assert_eq!(of_it.len(), 2);
        assert!(of_it.iter().all(|trial| trial.repetitions == repetitions));
    }
}

/// Requests of less than a sector are none of the first cipher's: theirs has an A/A pair as well.
#[test]
fn every_workload_has_a_cipher_that_is_measured_twice() {
    let text = PLAN.replace("[512, 4096]", "[4096, 512]");
    let (run, outcome) = measure(&text, u64::MAX);
    outcome.unwrap();
    for (name, sectors) in [("encrypt-512", 512), ("decrypt-16k", 4096)] {
        let of_it = run.trials.iter().filter(|trial| trial.workload == name);
        let again: Vec<&Trial> = of_it
            .filter(|trial| {
                let overhead = trial.overhead.as_ref();
                overhead.is_some_and(|overhead| overhead.against == trial.system)
            })
            .collect();
        assert_eq!(again.len(), 1, "{name}");
        assert_eq!(again[0].sector_bytes, Some(sectors), "{name}");
    }
}

#[test]
fn only_absent_systems_are_an_error() {
    let text = PLAN.replace("[\"builtin\", \"openssl\", \"libgcrypt\", ", "[");
    let plan = Ciphers::parse("test", &text).unwrap();
    let error = Session::of_ciphers(&plan, 42, "id".into()).err().unwrap();
    let error = error.to_string();
    assert!(error.starts_with("none of the requested"), "{error}");
    assert!(error.contains("; "), "{error}");
}

#[test]
fn bare_ciphers_and_devices_do_not_mix() {
    for (from, to) in [
        ("tier = \"cipher\"", "tier = \"block\""),
        ("op = \"decrypt\"", "op = \"read\""),
    ] {
        let error = Experiment::parse("test", &PLAN.replace(from, to)).unwrap_err();
        assert!(!error.remedy().is_empty(), "{error}");
    }
}

fn changed(text: &str, changes: Changes) -> Result<Ciphers, LabError> {
    match Experiment::parse("test", text)?.changed(&changes)? {
        Experiment::Ciphers(plan) => Ok(plan),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_size_leaves_the_ciphers_that_have_it() {
    let of = |bits| {
        let key_size = Some(bits);
        let none = Changes::default();
        changed(PLAN, Changes { key_size, ..none })
    };
    assert_eq!(
        of(256).unwrap().ciphers,
        ["aes-xts-plain64", "serpent-cbc-plain64"]
    );
    assert_eq!(of(512).unwrap().ciphers, ["aes-xts-plain64"]);
    // Nothing has it: the error is left to name what is possible.
    assert!(of(100).is_err());
}

#[test]
fn threads_multiply_workloads_and_zero_is_every_core() {
    let text = PLAN.replace("threads = 2", "threads = 0");
    assert!(Ciphers::parse("test", &text).unwrap().workloads[1].threads >= 1);
    let threads = Changes {
        threads: vec![1, 3],
        ..Changes::default()
    };
    let plan = changed(&text, threads).unwrap();
    let names: Vec<&str> = plan.workloads.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names[..2], ["encrypt-512", "encrypt-512-t3"]);
    assert_eq!(plan.workloads.len(), 4);
}
