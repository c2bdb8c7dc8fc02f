//! Shipped plans and the documents that they repeat.

use block::RamDevice;
use cryptmark_lab::LabError;
use cryptmark_lab::experiment::{Devices, Experiment, shipped, toml};
use cryptmark_lab::published::repeats::Repeats;
use cryptmark_lab::published::{Document, Row};
use cryptmark_lab::record::{Device, Measure, Run, Trial};
use cryptmark_lab::session::{Session, Unwatched};
use cryptmark_lab::system::Storage;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A session of `plan` over `storage`.
fn opened(plan: &Devices, storage: &Storage, seed: u64) -> Result<Session<'static>, LabError> {
    let filling = &mut |_| ControlFlow::Continue(());
    Session::of_devices(plan, storage, seed, "id".into(), filling)
}

/// A run of `plan` over memory.
fn measured(plan: &Devices) -> Run {
    let storage = Storage {
        reach: None,
        device: Arc::new(RamDevice::resident(plan.extent_bytes())),
        description: Device::default(),
        warnings: Vec::new(),
    };
    let session = opened(plan, &storage, 42).unwrap();
    let (run, outcome) = session.measure(&AtomicBool::new(false), &mut Unwatched);
    outcome.unwrap();
    run
}

fn repeats(name: &str) -> Option<Repeats> {
    match Experiment::load(name).unwrap() {
        Experiment::Devices(plan) => plan.published,
        Experiment::FileSystems(plan) => plan.published,
        Experiment::Ciphers(plan) => plan.published,
        Experiment::Derivations(_) | Experiment::Lives(_) => None,
    }
}

/// The subject of a row. Two cramfs images of different files differ only in
/// their number.
fn about(row: &Row) -> [&str; 4] {
    [&row.pattern, &row.direction, &row.unit, &row.figure].map(String::as_str)
}

#[test]
fn every_document_is_repeated_and_no_row_is_mistaken_for_another() {
    let mut documents = Vec::new();
    for (name, _) in shipped() {
        let Some(repeats) = repeats(name) else {
            continue;
        };
        let rows = repeats.document.rows().unwrap();
        documents.push(repeats.document);
        for repeated in &repeats.figures {
            let of = |number: &u32| &rows[*number as usize - 1];
            let first = of(&repeated.rows[0]);
            for row in repeated.rows.iter().map(of) {
                let what = format!("{name}, {}: row {}", repeated.workload, row.row);
                match repeated.measure {
                    // The same range, claimed in two sections.
                    Measure::Loss => assert_eq!(row.unit, "%", "{what}"),
                    // Several systems or drives, a table each.
                    _ if repeats.document != Document::CryptoFs => {
                        assert_eq!(about(row)[..3], about(first)[..3], "{what}");
                    }
                    _ => assert_eq!(about(row), about(first), "{what}"),
                }
                let word = match repeated.measure {
                    Measure::Crypto => "crypto",
                    Measure::Sys => "sys",
                    Measure::Time => "time",
                    _ => continue,
                };
                assert!(row.metric.contains(word), "{what}: {}", row.metric);
                // A workload is named for what it does.
                assert!(
                    repeated.workload.contains(&row.direction[..3]) || row.direction == "make",
                    "{what}"
                );
            }
            let distinct: BTreeSet<&u32> = repeated.rows.iter().collect();
            assert_eq!(distinct.len(), repeated.rows.len(), "{name}: {repeated:?}");
        }
    }
    for document in Document::ALL {
        assert!(documents.contains(&document), "{document:?}");
    }
}

#[test]
fn measurements_are_repeated_all() {
    // Rows that no plan repeats: a rate in memory, and statements without
    // numbers.
    let left = [("ssd-truecrypt", 1)];
    for name in ["storage-ciphers", "java-os", "ssd-truecrypt", "crypto-fs"] {
        let repeats = repeats(name).unwrap();
        let rows = repeats.document.rows().unwrap();
        let used: BTreeSet<u32> = repeats
            .figures
            .iter()
            .flat_map(|f| f.rows.clone())
            .collect();
        let unused = rows
            .iter()
            .filter(|row| row.kind == "measurement")
            .filter(|row| !used.contains(&row.row.parse().unwrap()));
        let known = left
            .iter()
            .find(|(of, _)| *of == name)
            .map_or(0, |known| known.1);
        assert_eq!(unused.count(), known, "{name}");
    }
}

#[test]
fn names_of_the_tools_lead_to_the_plans() {
    for (old, new) in [("anvil", "storage-ciphers"), ("passmark", "fde-passmark")] {
        assert_eq!(Devices::load(old).unwrap(), Devices::load(new).unwrap());
        assert_eq!(Devices::load(old).unwrap().name, new);
    }
}

#[test]
fn what_is_not_to_be_found_is_refused() {
    let toml = toml("storage-ciphers").unwrap();
    let refused = |from: &str, to: &str| {
        let text = toml.replacen(from, to, 1);
        assert_ne!(text, toml);
        let error = Devices::parse("x", &text).expect_err(to);
        assert!(!error.to_string().is_empty() && error.remedy().ends_with(['.', '?']));
        error
    };
    let error = refused("rows = [1,", "rows = [999,");
    assert!(
        error.to_string().contains("the document has no row 999"),
        "{error}"
    );
    // A claim, which is not a number.
    let error = refused("rows = [1,", "rows = [109,");
    assert!(error.to_string().contains("published: row 109 "), "{error}");
    let error = refused("TrueCrypt = \"builtin\", ", "");
    assert!(
        error.to_string().contains("not among the systems"),
        "{error}"
    );
    let error = refused("Serpent = \"serpent-xts-plain64\", ", "");
    assert!(
        error.to_string().contains("not among the ciphers"),
        "{error}"
    );
    let error = refused(
        "{ workload = \"seq-4m-read\"",
        "{ workload = \"seq-5m-read\"",
    );
    assert!(
        error.to_string().contains("no workload or operation"),
        "{error}"
    );
    refused("document = \"storage-ciphers\"", "document = \"the-bible\"");
    refused("measure = \"rate\"", "measure = \"taste\"");
    refused("\"tcrypt\", ", "\"rot13\", ");
}

/// Each format is a volume of its own. A cell has its published figures once,
/// and not in its second measurement.
#[test]
fn cells_carry_what_was_published_of_them() {
    let mut plan = Devices::load("storage-ciphers").unwrap();
    plan.size = bytesize::ByteSize::mib(40);
    plan.repetitions = 1;
    for workload in &mut plan.workloads {
        workload.bytes = workload.bytes.map(|_| bytesize::ByteSize::mib(8));
        workload.seconds = workload.seconds.map(|_| 0.002);
    }
    let run = measured(&plan);
    let paper = run.paper.as_ref().unwrap();
    assert!(paper.document.contains("BestCrypt") && paper.base == "AES");
    assert_eq!(run.trials.len(), 4 * (2 + 3 * 2));
    let of = |format: Option<&str>| {
        let of = move |trial: &&Trial| trial.format.as_deref() == format;
        run.trials.iter().filter(of).collect::<Vec<_>>()
    };
    for trial in of(Some("tcrypt")) {
        assert_eq!((trial.sector_bytes, trial.key_bits), (Some(512), Some(512)));
        // Three drives, two programs.
        assert_eq!(trial.published.len(), 6, "{}", trial.workload);
    }
    for trial in of(Some("luks2")).into_iter().chain(of(None)) {
        assert!(trial.published.is_empty(), "{}", trial.workload);
    }
    let cell = of(Some("tcrypt"))
        .into_iter()
        .find(|trial| {
            trial.workload == "rand-4k-read"
                && trial.cipher.as_deref() == Some("twofish-xts-plain64")
        })
        .unwrap();
    let figures: Vec<(&str, f64)> = cell
        .published
        .iter()
        .filter(|published| published.device == "Western Digital HDD")
        .map(|published| (published.system.as_str(), published.value))
        .collect();
    assert_eq!(figures, [("BestCrypt", 0.49), ("TrueCrypt", 0.42)]);

    let mut plan = Devices::load("fde-passmark").unwrap();
    plan.size = bytesize::ByteSize::mib(8);
    plan.repetitions = 1;
    for workload in &mut plan.workloads {
        workload.seconds = Some(0.002);
    }
    let run = measured(&plan);
    let told: Vec<(&str, usize)> = run
        .trials
        .iter()
        .filter(|trial| trial.workload == "rand-16k-rw")
        .map(|trial| (trial.system.as_str(), trial.published.len()))
        .collect();
    // Plain, AES, Serpent, Twofish, plain again.
    assert_eq!(
        told,
        [
            ("none", 1),
            ("builtin", 4),
            ("builtin", 0),
            ("builtin", 0),
            ("none", 0)
        ]
    );
}
