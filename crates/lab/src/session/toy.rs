//! A kind of system that is nothing but a subject: all that a session needs of a new one.

use super::cell::Cell;
use super::subject::{Once, Subject};
use super::{Session, Unwatched};
use crate::error::LabError;
use crate::experiment::{Schedule, Until};
use crate::record::{Bottleneck, Detail, Trial, Verdict};
use crate::trial::Sample;
use crate::workload::{Mix, Pattern, Workload};
use bytesize::ByteSize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Answers a request in the given number of seconds, a little later every round.
struct Toy(f64);

impl Subject for Toy {
    fn takes(&self, workload: &Workload) -> bool {
        workload.op == Mix::Read
    }

    fn visit(&self, workload: &Workload, once: Once<'_>) -> Result<Sample, LabError> {
        let seconds = self.0 * (1.0 + 0.01 * f64::from(once.number));
        Ok(Sample::timed_elsewhere(workload.block_bytes(), seconds))
    }

    fn lasts(&self) -> bool {
        false
    }

    fn complete(&self, trial: &mut Trial) {
        trial.format = Some("toy".to_owned());
    }
}

fn workload(name: &str, op: Mix) -> Workload {
    Workload::new(name, Pattern::Random, op, ByteSize::kib(4))
}

fn cell(system: &str, seconds: f64, plan: &Schedule) -> Cell {
    let identity = Trial {
        system: system.to_owned(),
        system_version: "1".to_owned(),
        ..Trial::default()
    };
    Cell::new(Box::new(Toy(seconds)), system.to_owned(), identity, plan)
}

/// The time may be over before the first slice: a device may be that slow.
#[test]
fn every_workload_is_visited_whatever_the_time() {
    let plan = Schedule {
        repetitions: 1,
        until: Some(Until {
            seconds: 0.0,
            precision: 2.0,
        }),
        workloads: vec![workload("first", Mix::Read), workload("last", Mix::Read)],
        ..Schedule::default()
    };
    let cells = vec![cell("none", 0.01, &plan), cell("toy", 0.02, &plan)];
    let session = Session::of(Arc::new(plan), 1, "id".to_owned(), Vec::new(), |_| cells).unwrap();
    let (run, outcome) = session.measure(&AtomicBool::new(false), &mut Unwatched);
    outcome.unwrap();
    let measured: Vec<_> = run
        .trials
        .iter()
        .map(|trial| (&*trial.workload, trial.repetitions))
        .collect();
    assert_eq!(
        measured,
        [("first", 1), ("first", 1), ("last", 1), ("last", 1)]
    );
}

#[test]
fn a_subject_is_all_that_a_new_kind_of_system_needs() {
    let plan = Schedule {
        repetitions: 4,
        workloads: vec![workload("r", Mix::Read), workload("w", Mix::Write)],
        ..Schedule::default()
    };
    let cells = vec![
        cell("none", 0.01, &plan),
        cell("toy", 0.02, &plan),
        cell("none", 0.01, &plan),
    ];
    let session = Session::of(Arc::new(plan), 1, "id".to_owned(), Vec::new(), |_| cells).unwrap();
    let (run, outcome) = session.measure(&AtomicBool::new(false), &mut Unwatched);
    outcome.unwrap();
    let [plain, toy, again] = &run.trials[..] else {
        panic!("nobody takes the second workload: {:?}", run.trials);
    };
    assert!(plain.overhead.is_none() && again.overhead.is_some());
    let overhead = toy.overhead.as_ref().unwrap();
    assert!((overhead.ratio.median - 0.5).abs() < 1e-9, "{overhead:?}");
    assert_eq!((overhead.ratio.n, overhead.verdict), (4, Verdict::Slower));
    assert_eq!(
        (toy.bottleneck, &toy.detail),
        (Bottleneck::Cipher, &Detail::Requests)
    );
    assert_eq!(
        (toy.format.as_deref(), toy.steady_state),
        (Some("toy"), None)
    );
}
