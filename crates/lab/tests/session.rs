//! Whole sessions over devices with scripted behaviour.

use block::layer::{Count, Effect, Fault, Rule, Trace, Trigger};
use block::{BlockDevice, OperationKind, RamDevice};
use cryptmark_lab::LabError;
use cryptmark_lab::clock::Clock;
use cryptmark_lab::experiment::Devices;
use cryptmark_lab::record::{Bottleneck, Device, Run, Tier};
use cryptmark_lab::session::{Observer, Session, Visit};
use cryptmark_lab::stats::LEAST;
use cryptmark_lab::system::Storage;
use cryptmark_lab::trial::{self, Options};
use std::collections::BTreeSet;
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A session of `plan` over `storage`.
fn opened(plan: &Devices, storage: &Storage, seed: u64) -> Result<Session<'static>, LabError> {
    let filling = &mut |_| ControlFlow::Continue(());
    Session::of_devices(plan, storage, seed, "id".into(), filling)
}

const PLAN: &str = r#"
title = "a test"
size = "8 MiB"
repetitions = 6
ciphers = ["aes-xts-plain64", "serpent-xts-plain64"]

[[workload]]
name = "r"
pattern = "random"
op = "read"
block_size = "4 KiB"
queue_depth = 4
bytes = "1 MiB"

[[workload]]
name = "w"
pattern = "sequential"
op = "write"
block_size = "64 KiB"
threads = 2
queue_depth = 2
bytes = "2 MiB"
"#;

fn storage(device: impl BlockDevice + 'static) -> Storage {
    Storage {
        reach: None,
        device: Arc::new(device),
        description: Device::default(),
        warnings: Vec::new(),
    }
}

/// Keeps what it hears; stops the session after some visits.
#[derive(Default)]
struct Watch {
    order: Vec<String>,
    kept: Vec<Vec<usize>>,
    stop_after: Option<usize>,
    fail_to_keep: bool,
    stop: Arc<AtomicBool>,
}

impl Observer for Watch {
    fn visiting(&mut self, visit: &Visit<'_>) {
        if self.stop_after == Some(self.order.len()) {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.order.push(format!(
            "{} {} {}",
            visit.round, visit.workload, visit.label
        ));
    }

    fn keep(
        &mut self,
        run: &Run,
        changed: &[usize],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if self.fail_to_keep {
            return Err("the disk is full".into());
        }
        assert!(changed.iter().all(|place| *place < run.trials.len()));
        self.kept.push(changed.to_vec());
        Ok(())
    }
}

fn measure(storage: &Storage, watch: &mut Watch) -> (Run, Result<(), LabError>) {
    let plan = Devices::parse("test", PLAN).unwrap();
    let session = opened(&plan, storage, 42).unwrap();
    let stop = Arc::clone(&watch.stop);
    session.measure(&stop, watch)
}

/// [`PLAN`] in slices, until each cost is known to `precision` points.
fn until(seconds: f64, precision: f64) -> Devices {
    let until = format!("until = {{ seconds = {seconds}, precision = {precision} }}\n[[workload]]");
    Devices::parse("test", &PLAN.replacen("[[workload]]", &until, 1)).unwrap()
}

/// If every ratio is known soon, every cell gets as many visits as an interval needs.
#[test]
fn slices_end_when_all_is_decided() {
    let plan = until(60.0, 50.0);
    let storage = storage(RamDevice::new(8 << 20));
    let session = opened(&plan, &storage, 42).unwrap();
    let mut watch = Watch::default();
    let stop = Arc::clone(&watch.stop);
    let (run, outcome) = session.measure(&stop, &mut watch);
    outcome.unwrap();
    assert!(!run.partial);
    assert_eq!(run.trials.len(), 2 * 4);
    for trial in &run.trials {
        assert!(trial.repetitions >= LEAST as u32, "{trial:?}");
        let is_first = trial.overhead.is_none();
        assert!(is_first || trial.overhead.as_ref().unwrap().ratio.n == trial.repetitions);
        // The samples that charts draw are those of the comparison, one for each repetition.
        assert_eq!(trial.samples_mb_s.len() as u32, trial.repetitions);
        assert_eq!(trial.steady_state, None);
    }
    let first: Vec<&String> = watch
        .order
        .iter()
        .filter(|visit| visit.contains(" r "))
        .collect();
    let round = |number: usize| &first[4 * number..][..4];
    let labels = |visits: &[&String]| -> Vec<String> {
        let label = |visit: &&String| visit.split_once(" r ").unwrap().1.to_owned();
        visits.iter().map(label).collect()
    };
    let mut back = labels(round(1));
    back.reverse();
    assert_eq!(labels(round(0)), back);
}

/// Small requests are one core's work, regardless of the number of cores.
#[test]
fn large_requests_are_measured_on_all_cores_too() {
    let cores = std::thread::available_parallelism().unwrap().get() as u32;
    if cores == 1 {
        println!("skipped: all cores: there is one");
        return;
    }
    let text = PLAN
        .replace("64 KiB", "1 MiB")
        .replace("ciphers", "all_cores = true\nciphers");
    let plan = Devices::parse("test", &text).unwrap();
    let storage = storage(RamDevice::new(8 << 20));
    let session = opened(&plan, &storage, 42).unwrap();
    let (run, outcome) = session.measure(&AtomicBool::new(false), &mut Watch::default());
    outcome.unwrap();
    let of = |workload: &str| -> Vec<u32> {
        let trials = run.trials.iter().filter(|trial| trial.workload == workload);
        trials
            .filter(|trial| trial.cipher.is_some())
            .map(|trial| trial.cores())
            .collect()
    };
    assert_eq!(of("r"), [1, 1]);
    assert_eq!(of("w"), [1, cores, 1, cores]);
}

/// A ratio that cannot be known to that precision takes all of its time, and is reported as far as
/// it is known.
#[test]
fn slices_end_when_their_time_is_spent() {
    let plan = until(1.0, 0.1);
    let storage = storage(RamDevice::new(8 << 20));
    let session = opened(&plan, &storage, 42).unwrap();
    let stop = AtomicBool::new(false);
    let (run, outcome) = session.measure(&stop, &mut Watch::default());
    outcome.unwrap();
    assert!(!run.partial);
    assert_eq!(run.trials.len(), 2 * 4);
}

#[test]
fn a_session_measures_every_cell_in_alternating_order() {
    let mut watch = Watch::default();
    let (run, outcome) = measure(&storage(RamDevice::new(8 << 20)), &mut watch);
    outcome.unwrap();
    assert!(!run.partial);
    assert_eq!(run.trials.len(), 2 * 4);
    assert_eq!(watch.order.len(), 6 * 2 * 4);
    assert_eq!(
        watch.order[..4],
        [
            "1 r plain",
            "1 r builtin aes-xts-plain64",
            "1 r builtin serpent-xts-plain64",
            "1 r plain",
        ]
    );
    assert_eq!(watch.order[8 + 1], "2 r builtin serpent-xts-plain64");
    // A session of less than two seconds hands over its records once.
    let places: BTreeSet<usize> = watch.kept.iter().flatten().copied().collect();
    assert_eq!(places, (0..8).collect());

    for trial in &run.trials {
        assert_eq!(trial.tier, Tier::Block);
        assert_eq!(trial.repetitions, 6);
        assert_eq!(trial.samples_mb_s.len(), 6);
        assert!(trial.throughput_mb_s.median > 0.0);
        assert!(trial.steady_state.is_some());
        let bytes = if trial.workload == "r" { 1 } else { 2 } << 20;
        assert_eq!(trial.bytes, Some(6 * bytes));
        assert_eq!(trial.requests, Some(6 * bytes / trial.block_bytes.unwrap()));
        assert_eq!(
            trial.overhead.is_none(),
            trial == &run.trials[0] || trial == &run.trials[4]
        );
        let time = &trial.time_s;
        if trial.cipher.is_some() {
            assert!(time.crypto.unwrap() > 0.0 && trial.cycles_per_byte.is_some());
            assert_eq!(trial.key_bits, Some(512));
        } else {
            assert_eq!(time.crypto, Some(0.0));
            assert!(trial.cycles_per_byte.is_none());
        }
    }
    assert_eq!(run.trials[1].system, "builtin");
    assert_eq!(run.noise.aa_ratio.unwrap().n, 12);
    // A written record can be read.
    let json = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<Run>(&json).unwrap(), run);
}

#[test]
fn a_round_visits_the_same_extents_on_every_system() {
    let trace = Arc::new(Trace::new(RamDevice::new(8 << 20)));
    let storage = Storage {
        reach: None,
        device: trace.clone(),
        description: Device::default(),
        warnings: Vec::new(),
    };
    let plan = Devices::parse("test", PLAN).unwrap();
    let visit = |seed| {
        trace.take();
        let options = Options {
            seed,
            metered: true,
            slice: false,
            stop: &AtomicBool::new(false),
            clock: Clock::get(),
        };
        trial::run(&*storage.device, &plan.workloads[0], options).unwrap();
        let offsets: Vec<u64> = trace.take().iter().map(|entry| entry.offset).collect();
        offsets
    };
    let (first, again, other) = (visit(1), visit(1), visit(2));
    assert_eq!(first.len(), 256);
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn an_interrupted_session_keeps_whole_rounds_and_says_partial() {
    let mut watch = Watch {
        stop_after: Some(13),
        ..Watch::default()
    };
    let (run, outcome) = measure(&storage(RamDevice::new(8 << 20)), &mut watch);
    assert!(outcome.unwrap_err().is_interrupted());
    assert!(run.partial);
    // Eight visits are a round; in the second the first workload was completed.
    assert_eq!(run.trials.len(), 8);
    assert_eq!(run.trials[0].repetitions, 2);
    assert_eq!(run.trials[4].repetitions, 1);
}

#[test]
fn a_device_that_fills_up_ends_the_session_with_its_error() {
    const ENOSPC: i32 = 28;
    let device = Fault::new(
        RamDevice::new(8 << 20),
        [Rule::on(
            OperationKind::Write,
            Trigger::AfterBytes(4 << 20),
            Effect::Fail(ENOSPC),
        )],
    );
    let (run, outcome) = measure(&storage(device), &mut Watch::default());
    let error = outcome.unwrap_err();
    let source = error.source().unwrap().to_string();
    assert!(source.starts_with("writing of "), "{source}");
    assert!(!error.remedy().is_empty());
    assert!(run.partial && !run.trials.is_empty());
}

#[test]
fn what_cannot_be_kept_ends_the_session() {
    let mut watch = Watch {
        fail_to_keep: true,
        ..Watch::default()
    };
    let (run, outcome) = measure(&storage(RamDevice::new(8 << 20)), &mut watch);
    let kept = outcome.unwrap_err().to_string();
    assert_eq!(kept, "the measurements could not be stored");
    assert!(run.partial);
    assert!(!run.trials.is_empty());
}

/// A user who interrupts the session learns that the measurements were not stored.
#[test]
fn what_cannot_be_kept_at_the_end_of_an_interrupted_session_is_told() {
    let plan = until(60.0, 0.1);
    let storage = storage(RamDevice::new(8 << 20));
    let mut watch = Watch {
        stop_after: Some(13),
        fail_to_keep: true,
        ..Watch::default()
    };
    let session = opened(&plan, &storage, 42).unwrap();
    let stop = Arc::clone(&watch.stop);
    let (run, outcome) = session.measure(&stop, &mut watch);
    let kept = outcome.unwrap_err().to_string();
    assert_eq!(kept, "the measurements could not be stored");
    assert!(run.partial && !run.trials.is_empty());
}

#[test]
fn a_target_that_does_not_store_is_found_by_the_self_check() {
    let device = Fault::new(
        RamDevice::new(8 << 20),
        [Rule::on(
            OperationKind::Write,
            Trigger::From(1),
            Effect::Lose,
        )],
    );
    let storage = storage(device);
    let plan = Devices::parse("test", PLAN).unwrap();
    let Err(error) = opened(&plan, &storage, 1) else {
        panic!("a device that forgets was accepted");
    };
    assert!(
        error.to_string().contains("differs from the data written"),
        "{error}"
    );
}

#[test]
fn absent_systems_are_named() {
    let device = storage(RamDevice::new(8 << 20));
    let with = |systems: &str| {
        let text = PLAN.replacen("ciphers", &format!("systems = [{systems}]\nciphers"), 1);
        Devices::parse("test", &text).unwrap()
    };
    let plan = with("\"builtin\", \"dm-crypt\", \"lab:dm-crypt\"");
    let session = opened(&plan, &device, 1).unwrap();
    let warnings = session.header().warnings.join("\n");
    assert!(warnings.contains("absent: dm-crypt"), "{warnings}");
    assert!(warnings.contains("absent: lab:dm-crypt"), "{warnings}");

    let plan = with("\"veracrypt\"");
    let error = opened(&plan, &device, 1).err().unwrap().to_string();
    assert!(error.starts_with("none of the requested"), "{error}");
}

#[test]
fn weak_ciphers_are_named() {
    let device = storage(RamDevice::new(8 << 20));
    let warnings = |ciphers: &str| {
        let plan = PLAN
            .lines()
            .map(|line| match line.starts_with("ciphers") {
                true => format!("ciphers = [{ciphers}]\n"),
                false => format!("{line}\n"),
            })
            .collect::<String>();
        let plan = Devices::parse("test", &plan).unwrap();
        let session = opened(&plan, &device, 1).unwrap();
        session.header().warnings.clone()
    };
    let strong = "\"aes-xts-plain64\", \"serpent-cbc-essiv:sha256\"";
    assert_eq!(warnings(strong), Vec::<String>::new());
    let weak = warnings("\"des-cbc-plain64\", \"cast5-cbc-essiv:md5\"").join("\n");
    for sentence in [
        "des-cbc-plain64: all keys of 56 bits can be tried",
        "des-cbc-plain64: IVs are predictable",
        "cast5-cbc-essiv:md5: blocks of 64 bits repeat",
    ] {
        assert!(weak.contains(sentence), "{weak}");
    }
}

#[test]
fn the_depth_is_kept_in_flight_by_refilling_one_by_one() {
    // A queue that counts how many requests are in flight at each reaping.
    struct Watched<D>(D, std::sync::Mutex<Vec<u32>>);
    struct WatchedQueue<'a>(Box<dyn block::Queue + 'a>, &'a std::sync::Mutex<Vec<u32>>);
    impl block::Queue for WatchedQueue<'_> {
        fn submit(&mut self, request: block::Request) {
            self.0.submit(request);
        }
        fn reap(&mut self, wait: block::Wait) -> Option<block::Completion> {
            self.1.lock().unwrap().push(self.0.in_flight());
            self.0.reap(wait)
        }
        fn in_flight(&self) -> u32 {
            self.0.in_flight()
        }
    }
    impl<D: BlockDevice> BlockDevice for Watched<D> {
        fn geometry(&self) -> block::Geometry {
            self.0.geometry()
        }
        fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), block::BlockError> {
            self.0.read_at(offset, into)
        }
        fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), block::BlockError> {
            self.0.write_at(offset, data)
        }
        fn flush(&self) -> Result<(), block::BlockError> {
            self.0.flush()
        }
        fn discard(&self, range: block::ByteRange) -> Result<(), block::BlockError> {
            self.0.discard(range)
        }
        fn queue(
            &self,
            options: block::QueueOptions,
        ) -> Result<Box<dyn block::Queue + '_>, block::BlockError> {
            Ok(Box::new(WatchedQueue(self.0.queue(options)?, &self.1)))
        }
    }

    let plan = Devices::parse("test", PLAN).unwrap();
    let count = Count::new(RamDevice::new(8 << 20));
    let device = Watched(&count, Default::default());
    let options = Options {
        seed: 1,
        metered: true,
        slice: false,
        stop: &AtomicBool::new(false),
        clock: Clock::get(),
    };
    let sample = trial::run(&device, &plan.workloads[0], options).unwrap();
    assert_eq!(sample.requests, 256);
    assert_eq!(count.of(OperationKind::Read).operations, 256);
    let seen = device.1.into_inner().unwrap();
    // Four in flight until no more are to be made, then three, two, one, none.
    assert_eq!(seen.len(), 257);
    assert!(seen[..253].iter().all(|in_flight| *in_flight == 4));
    assert_eq!(seen[253..], [3, 2, 1, 0]);
}

#[test]
fn mixed_and_compressible_workloads_do_what_they_say() {
    let text = PLAN
        .replacen(
            "op = \"read\"",
            "op = \"mixed\"\nread_percent = 25\ncompressible = 50",
            1,
        )
        .replacen("bytes = \"1 MiB\"", "bytes = \"4 MiB\"", 1);
    let plan = Devices::parse("test", &text).unwrap();
    let ram = RamDevice::new(8 << 20);
    let count = Count::new(&ram);
    let options = Options {
        seed: 3,
        metered: true,
        slice: false,
        stop: &AtomicBool::new(false),
        clock: Clock::get(),
    };
    trial::run(&count, &plan.workloads[0], options).unwrap();
    let reads = count.of(OperationKind::Read).operations;
    let writes = count.of(OperationKind::Write).operations;
    assert_eq!(reads + writes, 1024);
    assert!((200..312).contains(&reads), "{reads} reads");
    let mut block = vec![0; 4096];
    let mut written = 0;
    for offset in (0..8 << 20).step_by(4096) {
        ram.read_at(offset, &mut block).unwrap();
        if block[2048..].iter().any(|byte| *byte != 0) {
            assert!(block[..2048].iter().all(|byte| *byte == 0));
            written += 1;
        }
    }
    assert!(written > 500, "{written} blocks");
}

/// With `fsync` each write has a flush, which is part of its request; reads have none.
#[test]
fn a_write_that_is_stored_is_one_request() {
    let text = PLAN
        .replacen("op = \"read\"", "op = \"mixed\"\nfsync = true", 1)
        .replacen("bytes = \"1 MiB\"", "bytes = \"4 MiB\"", 1);
    let plan = Devices::parse("test", &text).unwrap();
    let ram = RamDevice::new(8 << 20);
    let count = Count::new(&ram);
    let options = Options {
        seed: 3,
        metered: true,
        slice: false,
        stop: &AtomicBool::new(false),
        clock: Clock::get(),
    };
    let sample = trial::run(&count, &plan.workloads[0], options).unwrap();
    let of = |kind| count.of(kind).operations;
    let writes = of(OperationKind::Write);
    assert!(writes > 0 && of(OperationKind::Read) > 0);
    assert_eq!(of(OperationKind::Flush), writes);
    assert_eq!(sample.requests, 1024);
    assert_eq!((sample.bytes, sample.latency.len()), (4 << 20, 1024));
}

#[test]
fn an_unstressed_part_is_no_bottleneck() {
    let (run, _) = measure(&storage(RamDevice::new(8 << 20)), &mut Watch::default());
    // Memory answers at once, so no thread waits for it.
    assert!(
        run.trials
            .iter()
            .all(|trial| trial.bottleneck != Bottleneck::Device)
    );
}
