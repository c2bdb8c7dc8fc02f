//! Runs by another program: what they measure, what they refuse, and what they leave behind.

use cryptmark_lab::experiment::{Changes, Experiment};
use cryptmark_lab::record::{Run, Tier};
use cryptmark_lab::run::{Request, RunError, Step};
use cryptmark_lab::store::{Location, Store};
use std::ops::ControlFlow;
use std::path::Path;

const DEVICES: &str = r#"
title = "a test"
size = "4 MiB"
repetitions = 3
ciphers = ["aes-xts-plain64"]

[[workload]]
name = "r"
pattern = "random"
op = "read"
block_size = "4 KiB"
bytes = "64 KiB"

[[workload]]
name = "w"
pattern = "sequential"
op = "write"
block_size = "64 KiB"
bytes = "128 KiB"
"#;

fn devices() -> Request {
    Request::parse("devices", DEVICES).unwrap().seed(7).unwrap()
}

fn go_on(_: Step<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn devices_are_measured_in_a_directory_and_leave_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut filled, mut visits) = (0, 0);
    let run = devices()
        .at(directory.path())
        .unwrap()
        .measure(&mut |step| {
            match step {
                Step::Filling { done, total } => {
                    assert_eq!(total, 4 << 20);
                    filled = done;
                }
                Step::Visiting(visit) => visits = visits.max(visit.visits),
                other => panic!("{other}"),
            }
            ControlFlow::Continue(())
        });
    let run = run.unwrap();
    assert!(is_empty(directory.path()));
    assert_eq!((filled, visits), (4 << 20, 2 * 3 * 3));
    assert!(!run.partial);
    assert_eq!((run.plan.as_str(), run.seed), ("devices", 7));
    // Each workload on the plain device, through the engine, and on the plain device again.
    assert_eq!(run.trials.len(), 2 * 3);
    for trial in &run.trials {
        assert_eq!(trial.tier, Tier::Block);
        assert_eq!(trial.device.path_kind, "file");
        assert_eq!((trial.device.size, trial.repetitions), (4 << 20, 3));
    }
    // The caller may keep it.
    let location = Location::Folder(directory.path().join("runs"));
    let store = Store::open(&location).unwrap();
    store.take_over(std::slice::from_ref(&run)).unwrap();
    assert_eq!(store.load(&run.run).unwrap(), run);
}

#[test]
fn without_a_directory_devices_are_measured_in_memory() {
    let changes = Changes {
        repetitions: Some(4),
        ..Changes::default()
    };
    let request = devices().changed(&changes).unwrap();
    let run = request.measure(&mut go_on).unwrap();
    let is_so = |trial: &&cryptmark_lab::record::Trial| {
        trial.device.path_kind == "memory" && trial.repetitions == 4
    };
    assert_eq!(run.trials.iter().filter(is_so).count(), 6);
    // Each run has a name of its own.
    assert_ne!(run.run, request.measure(&mut go_on).unwrap().run);
}

/// Stops at the visit number `at`, from 0.
fn stopped(at: u64, directory: &Path) -> Result<Run, RunError> {
    let request = devices().at(directory).unwrap();
    request.measure(&mut |step| match step {
        Step::Visiting(visit) if visit.done == at => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
}

#[test]
fn the_caller_may_stop_it_at_every_step() {
    let directory = tempfile::tempdir().unwrap();
    let filling = devices()
        .at(directory.path())
        .unwrap()
        .measure(&mut |_| ControlFlow::Break(()));
    assert!(matches!(filling, Err(RunError::Stopped)), "{filling:?}");
    let first = stopped(0, directory.path());
    assert!(matches!(first, Err(RunError::Stopped)), "{first:?}");
    let late = stopped(15, directory.path()).unwrap();
    assert!(late.partial && !late.trials.is_empty());
    assert!(is_empty(directory.path()));
}

#[test]
fn only_a_directory_is_taken_and_nothing_is_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("precious");
    let precious = vec![7; 8 << 20];
    std::fs::write(&file, &precious).unwrap();
    for place in [&file, Path::new("/dev/null"), Path::new("nbd://localhost")] {
        let refused = devices().at(place).unwrap().measure(&mut go_on);
        let refused = refused.unwrap_err().to_string();
        assert_eq!(refused, format!("{} is not a directory", place.display()));
    }
    let missing = devices().at(directory.path().join("missing")).unwrap();
    let refused = missing.measure(&mut go_on).unwrap_err().to_string();
    assert!(refused.ends_with("missing does not exist"), "{refused}");
    assert_eq!(std::fs::read(&file).unwrap(), precious);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_failed_run_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let changes = Changes {
        systems: vec!["gocryptfs".parse().unwrap()],
        ..Changes::default()
    };
    let request = devices()
        .changed(&changes)
        .unwrap()
        .at(directory.path())
        .unwrap();
    let failed = request.measure(&mut go_on);
    assert!(matches!(failed, Err(RunError::Refused(_))), "{failed:?}");
    assert!(is_empty(directory.path()));
}

#[test]
fn more_memory_than_there_is_is_refused() {
    let changes = Changes {
        size: Some(bytesize::ByteSize::pib(1)),
        ..Changes::default()
    };
    let refused = devices().changed(&changes).unwrap().measure(&mut go_on);
    let refused = refused.unwrap_err().to_string();
    let needed = format!("are free, but the plan needs {}", 1u64 << 50);
    assert!(refused.ends_with(&needed), "{refused}");
}

#[test]
fn plans_that_need_the_program_are_refused() {
    for plan in ["file-systems", "crypto-fs", "file-encryption"] {
        let refused = Request::load(plan).unwrap_err();
        let what = refused.to_string();
        assert!(
            what.starts_with(&format!("the plan {plan} measures")),
            "{what}"
        );
        assert!(refused.remedy().contains(plan));
    }
    let unknown = Request::load("quik").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no plan \"quik\"");
}

#[test]
fn what_has_no_effect_is_refused() {
    let kdf = || Request::load("kdf").unwrap();
    let rounds = |repetitions| Changes {
        repetitions: Some(repetitions),
        ..Changes::default()
    };
    let Experiment::Derivations(five) = kdf().changed(&rounds(5)).unwrap().experiment().clone()
    else {
        panic!("kdf derives keys");
    };
    assert_eq!(five.repetitions, 5);
    let range = kdf().changed(&rounds(0)).unwrap_err().to_string();
    assert_eq!(range, "repetitions = 0 is not between 1 and 1000");
    for refused in [kdf().at("/tmp"), kdf().seed(1)] {
        let error = refused.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("cannot be chosen for key derivations")
        );
    }
    let overwrite = Changes {
        overwrite: true,
        ..Changes::default()
    };
    let error = Request::load("quick").unwrap().changed(&overwrite);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("only the program cryptmark"), "{error}");
    // Calibration takes seconds, so that only the beginning is tried here.
    let stopped = kdf().measure(&mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(RunError::Stopped)));
}
